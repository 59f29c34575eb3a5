"""What is put in the place of functions and methods while a program is traced, and taken away again."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import pullback as torch
from pullback.fx.naming import names
from pullback.fx.node import map_aggregate
from pullback.fx.proxy import Proxy

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
"""The functions `wrap` was called for: by name, the global names of their module."""
_wrapped_methods_to_patch: list[tuple[type, str]] = []
"""Methods of classes that are written down and not traced."""
BINARY = "add sub mul matmul pow eq ne lt le gt ge"
OPERATORS = {f"__{name}__": name for name in BINARY.split()} | {"__truediv__": "div", "__mod__": "remainder"}
OPERATORS |= {f"__{name}__": f"__{name}__" for name in ("floordiv", "and", "or", "xor", "lshift", "rshift")}
OPERATORS |= {"__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_"}
"""The methods of tensors behind operators, and the names by which torch tells of them."""
MARK = "__fx_already_patched"


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """The last proxy in nested containers; None if there is none."""
    found: list[Proxy] = []
    map_aggregate(objects_to_search, lambda item: found.append(item) if isinstance(item, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but a call with a proxy is written down."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str, told: str | None = None) -> Callable[..., Any]:
    """The method, but a call with a proxy is written down."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", told or name, args, kwargs)

    return wrapped


class _Patcher:
    """Exchanges global names and methods, and gives them back."""

    def __init__(self) -> None:
        self.undo: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Exchange a global name."""
        setattr(new_fn, MARK, deduplicate)
        known = name in frame_dict
        if known and getattr(frame_dict[name], MARK, False):
            return
        before = frame_dict.get(name)

        def put() -> None:
            frame_dict[name] = new_fn

        def take() -> None:
            if known:
                frame_dict[name] = before
            else:  # it was the builtin
                del frame_dict[name]

        self.change(put, take)

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Exchange a method of a class."""
        setattr(new_fn, MARK, deduplicate)
        before = getattr(cls, name)
        if not getattr(before, MARK, False):
            self.change(lambda: setattr(cls, name, new_fn), lambda: setattr(cls, name, before))

    def change(self, put: Callable[[], None], take: Callable[[], None]) -> None:
        """Do something that can be undone."""
        self.undo.append((put, take))
        put()

    def visit_once(self, thing: Any) -> bool:
        """Whether something is seen for the first time."""
        new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return new

    def revert_all_patches(self) -> None:
        """Give everything back for now."""
        for _, take in reversed(self.undo):
            take()

    def reapply_all_patches(self) -> None:
        """Exchange everything again."""
        for put, _ in self.undo:
            put()


current_patcher: _Patcher | None = None


@contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A block at whose end everything exchanged in it is given back."""
    global current_patcher
    before = current_patcher
    patcher = current_patcher = _Patcher()
    try:
        yield patcher
    finally:
        patcher.revert_all_patches()
        current_patcher = before


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """A block in which nothing is exchanged."""
    patcher = current_patcher
    if patcher is None:
        yield
        return
    patcher.revert_all_patches()
    try:
        yield
    finally:
        patcher.reapply_all_patches()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Let the functions `wrap` was called for, and methods of tensors, write down their calls."""
    for (_, name), frame_dict in list(_wrapped_fns_to_patch.items()):
        orig_fn = frame_dict[name] if name in frame_dict else getattr(builtins, name)
        patcher.patch(frame_dict, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))
    for name, told in tensor_methods().items():
        patcher.patch_method(torch.Tensor, name, _create_wrapped_method(torch.Tensor, name, told))


@functools.cache
def tensor_methods() -> dict[str, str]:
    """Methods of tensors that are one object with a function: only by themselves they tell that they are methods."""
    shared = names()
    methods = [
        name for name, value in vars(torch.Tensor).items() if isinstance(value, FunctionType) and value in shared
    ]
    plain = {name: name for name in methods if not name.startswith("__")}
    return plain | {name: told for name, told in OPERATORS.items() if hasattr(torch.Tensor, name)}


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Let functions found among global names write down their calls: those of `math`, as a rule."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))
