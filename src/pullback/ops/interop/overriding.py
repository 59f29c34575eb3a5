"""Functions written in terms of ops ask modes and `__torch_function__` too, once a program has any.

An op asks by itself. A function would only be seen through its ops, so when the first class with its own
`__torch_function__` is defined, or the first mode entered, all functions are patched: they ask first.
"""

from __future__ import annotations

from threading import get_ident
from types import FunctionType
from typing import Any

from pullback._modes import modes
from pullback._op import overrides
from pullback._op.declare import Function, Op, functions, spaces
from pullback._op.overrides import decide, function_modes, overriding_class
from pullback._op.patch import OVERRIDES, Action, Patch
from pullback._runtime.building import made
from pullback._tensor import Tensor
from pullback.ops import load_all

METHODS = "__getitem__ __setitem__ __len__ __repr__ backward register_hook retain_grad item tolist"
"""Methods that are no declared functions and ask as well."""
NEVER = ("pullback.ops.interop.settings", "pullback.ops.autocast", "pullback.ops.random.generator")
"""Modules of functions that are about no tensor: nobody is asked."""


def asks(call: Any) -> bool:
    """Whether classes and modes may override a function."""
    return getattr(getattr(call, "op", None), "overridable", True) and call.__module__ not in NEVER


def asking(name: str) -> Action:
    """What a function does from now on: whoever decides about it is asked first."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kind = overriding_class((*args, *kwargs.values()))
        if function_modes.get() or (kind is not None and not hasattr(kind, "run_op")):  # a batch asks op by op
            told = getattr(getattr(callables[name], "op", None), "told", None)
            if told is not None:
                args = told(args, bool(function_modes.get()))
            return decide(callables[name], args, kwargs, f"torch.{name}")
        return original(*args, **kwargs)

    return run


callables: dict[str, Any] = {}
"""The functions by the names errors give them."""


def install() -> None:
    """Let every function ask, from now on."""
    if not asked_first.on:
        load_all()
        made(lambda: asked_first.hold("the program"))


def all_functions() -> list[tuple[Any, Action]]:
    """The functions that ask, and what they do."""
    found: dict[str, Any] = {}
    for space, names in spaces.items():
        prefix = "" if space == "torch" else f"{space}."
        for name, call in names.items():
            declared = getattr(call, "op", None)
            if type(declared) is Function or (declared is None and space == "nn.functional"):
                found.setdefault(prefix + name, call)
    for declared in functions.values():
        if declared.call not in found.values():
            found.setdefault(f"Tensor.{declared.name}", declared.call)
    for name in METHODS.split():
        found[f"Tensor.{name}"] = method = getattr(Tensor, name)
        method.__name__ = name
    for name, call in spaces["nn.functional"].items():
        if not hasattr(call, "op"):
            call.__name__ = name
    for name, call in found.items():
        if asks(call) and call not in callables.values():
            callables[name] = call
    return [(call, asking(name)) for name, call in callables.items()]


asked_first = Patch(OVERRIDES, all_functions)


class CallsAsWritten:
    """A block in which ops tell of a call as it was written: what was given by name arrives by name.

    An op tells by itself too, but puts the arguments in order first. Who writes a program down, as torch.fx does, wants
    to know how the call was written.
    """

    def __enter__(self) -> None:
        install()
        told_first.hold(self)

    def __exit__(self, *error: object) -> None:
        told_first.drop(self)


def all_ops() -> list[tuple[Any, Action]]:
    """Every public op, with what it does in such a block."""
    ops = dict.fromkeys([call for names in spaces.values() for call in names.values() if is_op(call)])
    return [(call, telling(call)) for call in ops]


def telling(call: Any) -> Action:
    """What an op does meanwhile."""
    name = f"torch.{call.__name__}"

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kind = overriding_class((*args, *kwargs.values()))
        if kind is not None and not function_modes.get() and not hasattr(kind, "run_op"):
            return decide(call, args, kwargs, name)
        return original(*args, **kwargs)

    return run


told_first = Patch(OVERRIDES, all_ops)


def is_op(call: Any) -> bool:
    """Whether it is the function of an op."""
    return isinstance(call, FunctionType) and isinstance(getattr(call, "op", None), Op)


def enter(mode: Any) -> None:
    """Ask a mode about every call from here on."""
    install()
    stack = function_modes.get()
    try:
        modes.hold(who(stack))
        function_modes.set((*stack, mode))
    except BaseException:
        leave_for(stack)
        raise


def leave() -> Any:
    """Stop asking the innermost mode."""
    stack = function_modes.get()
    if not stack:
        raise RuntimeError("trying to pop from empty mode stack")
    leave_for(stack[:-1])
    return stack[-1]


def leave_for(around: tuple[Any, ...]) -> None:
    """Ask those modes only that are around another; once more does no harm."""
    try:
        function_modes.set(around)
    finally:
        modes.drop(who(around))


def who(around: tuple[Any, ...]) -> Any:
    """What a mode inside of others is known by, in this thread."""
    return "function mode", get_ident(), len(around)


def init_subclass(cls: type, **kwargs: Any) -> None:
    """A class of tensors is defined."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    if "__torch_dispatch__" in cls.__dict__:
        overrides.let_class_be_told(cls)
    if "__torch_function__" in cls.__dict__ and overrides.overrides(cls) and not cls.__module__.startswith("pullback."):
        install()


overrides.let_functions_ask = install
Tensor.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]
