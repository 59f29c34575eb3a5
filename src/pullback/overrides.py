"""Who may override torch's functions, as programs ask for it: `torch.overrides`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from types import FunctionType
from typing import Any

from pullback._op.declare import spaces
from pullback._op.overrides import ask, function_modes, overloaded, torch_function_enabled
from pullback._runtime.interrupts import Block
from pullback._tensor import Tensor
from pullback.ops import load_all
from pullback.ops.interop.overriding import asks, enter, leave, leave_for

__all__ = [
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

# ------------------------------------------------------------------ asking classes


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode or a class among the arguments decides about a call."""
    return bool(function_modes.get()) or (torch_function_enabled.get() and bool(overloaded(relevant_args)))


def has_torch_function_unary(arg: Any) -> bool:
    """The same of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same of several arguments."""
    return has_torch_function(args)


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Any = None) -> list[Any]:
    """One argument of each class that may decide, subclasses first."""
    return overloaded(relevant_args) if torch_function_enabled.get() else []


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let a mode or a class among the arguments answer a call of your own function."""
    items = _get_overloaded_args(relevant_args)
    result = ask(public_api, args, kwargs, items)
    if result is not NotImplemented:
        return result
    text = (
        f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement "
        f"__torch_function__: {[type(item) for item in items]}"
    )
    stack = function_modes.get()
    raise TypeError(f"{text} nor in mode {stack[-1]}" if stack else text)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """A decorator that makes a function overridable; `dispatcher` tells which arguments matter."""

    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(inp: Any) -> bool:
    """Whether torch's functions take it for a tensor."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# ------------------------------------------------------------------ the functions


@cache
def _get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions by the module or class they are found in."""
    load_all()
    found: dict[Any, list[Any]] = {}
    for name in ("torch", "nn.functional", "linalg", "fft", "special"):
        module: Any = sys.modules[__package__]
        for part in name.split(".") if name != "torch" else ():
            module = getattr(module, part)
        named = spaces[name].items()
        found[module] = [f for n, f in named if callable(f) and not n.startswith("_") and not ignored(f)]
    methods = [f for n, f in vars(Tensor).items() if isinstance(f, FunctionType) and n != "__new__"]
    found[Tensor] = [f for f in dict.fromkeys(methods) if not ignored(f)]
    return found


def ignored(function: Any) -> bool:
    """Whether a function is about no tensor."""
    return isinstance(function, type) or not asks(function)


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions `__torch_function__` is asked about, by the module or class they are found in."""
    return {place: list(functions) for place, functions in _get_overridable_functions().items()}


def get_ignored_functions() -> set[Any]:
    """The public functions `__torch_function__` is never asked about."""
    load_all()
    return {f for f in spaces["torch"].values() if callable(f) and ignored(f) and not isinstance(f, type)}


def get_testing_overrides() -> dict[Any, Any]:
    """Not available: it lists a function with the signature of each of torch's."""
    raise NotImplementedError(
        "torch.overrides.get_testing_overrides is not available in pullback; use get_overridable_functions"
    )


@cache
def names() -> dict[Any, str]:
    """Every overridable function by its name; a method that is also a function has the name of the function."""
    out: dict[Any, str] = {}
    for place, functions in _get_overridable_functions().items():
        prefix = "torch.Tensor" if place is Tensor else "torch" + place.__name__.removeprefix("pullback")
        attributes = {id(value): name for name, value in reversed(list(vars(place).items()))}
        for function in functions:
            out.setdefault(function, f"{prefix}.{attributes.get(id(function), function.__name__)}")
    return out


def resolve_name(f: Any) -> str | None:
    """The name under which torch publishes a function; None if it is not one `__torch_function__` is asked about."""
    return names().get(f)


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether it is a method of Tensor, or reads or writes an attribute."""
    return func in _get_overridable_functions()[Tensor] or getattr(func, "__name__", None) == "__get__"


# ------------------------------------------------------------------ modes


class TorchFunctionMode(Block):
    """A block in which `__torch_function__` of this object is asked about every function of torch that is called."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What to do instead of calling `func`; inside, the mode itself is not asked."""
        raise NotImplementedError

    def _before(self) -> Any:
        """The modes around."""
        return function_modes.get()

    def _begin(self, before: Any) -> Any:
        """Ask this one first."""
        enter(self)
        return self

    def _end(self, before: Any) -> None:
        """Ask those around."""
        leave_for(before)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The old way to make one."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode, or None."""
    stack = function_modes.get()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[Any]:
    """All modes, the innermost last."""
    return list(function_modes.get())


_push_mode, _pop_mode = enter, leave


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """A block in which the innermost mode is not asked."""
    mode = leave()
    try:
        yield mode
    finally:
        enter(mode)


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """A block in which handlers may call functions of torch, which they always may."""
    return nullcontext()
