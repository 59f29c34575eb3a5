"""The marks `torch.jit` puts on functions and classes, and the questions programs ask about it.

There is no TorchScript compiler here: Python runs the program. The marks are kept, so that programs find them.
"""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple
from typing import Final as Final

from pullback.nn.modules.module import Module

Dict, List, Tuple, Optional, Union = typing.Dict, typing.List, typing.Tuple, typing.Optional, typing.Union  # noqa: UP006
tracing: ContextVar[bool] = ContextVar("tracing", default=False)
"""Whether a traced program runs."""


class FunctionModifiers:
    """What a mark says."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def marked(fn: Any, modifier: str) -> Any:
    """The function itself, with a mark; a property is marked at its functions."""
    if isinstance(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                part._torchscript_modifier = modifier  # type: ignore[attr-defined]
        return fn
    fn._torchscript_modifier = modifier
    return fn


def export(fn: Any) -> Any:
    """Mark a method as one that a scripted module has too; here it has all of them."""
    return marked(fn, FunctionModifiers.EXPORT)


def unused(fn: Any) -> Any:
    """Mark a function that TorchScript leaves out; here it runs."""
    return marked(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that TorchScript leaves to Python; Python runs everything here."""
    if callable(drop):
        return marked(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    on_export = kwargs.pop("drop_on_export", None)
    if on_export or drop:
        said = "ignore(drop_on_export=True)" if on_export else "ignore(True)"
        warnings.warn(
            f"{said} has been deprecated. TorchScript will now drop the function call on compilation. Use "
            "torch.jit.unused now. {}",
            category=FutureWarning,
            stacklevel=2,
        )
    modifier = FunctionModifiers.UNUSED if on_export or drop else FunctionModifiers.IGNORE
    return lambda fn: marked(fn, modifier)


def _drop(fn: Any) -> Any:
    """Mark a function TorchScript must not look at."""
    return marked(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: Any) -> Any:
    """Mark a method that scripted modules have as it is."""
    return marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


_overloaded_fns: dict[str, list[Any]] = {}
_overloaded_methods: dict[str, list[Any]] = {}


def _overload(func: Any) -> Any:
    """A declaration of a function for other types of arguments: it is kept, and the last definition runs."""
    _overloaded_fns.setdefault(f"{func.__module__}.{func.__qualname__}", []).append(func)
    return func


def _overload_method(func: Any) -> Any:
    """A declaration of a method for other types of arguments: it is kept, and the last definition runs."""
    _overloaded_methods.setdefault(f"{func.__module__}.{func.__qualname__}", []).append(func)
    return func


def interface(obj: Any) -> Any:
    """The class itself, marked as one that only declares methods."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    bases = len(obj.__mro__)
    if bases > 2 and not (bases == 3 and issubclass(obj, Module)):
        raise RuntimeError(
            "TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or "
            "'nn.Module'."
        )
    obj.__torch_script_interface__ = True  # type: ignore[attr-defined]
    return obj


def is_scripting() -> bool:
    """False: Python runs the program."""
    return False


def is_tracing() -> bool:
    """Whether a program made by `torch.jit.trace` runs: what it does is what it did when it was traced."""
    return tracing.get()


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def _unwrap_optional(x: Any) -> Any:
    """The value, which must not be None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


class Attribute(NamedTuple):
    """A value with a type, for attributes of scripted modules."""

    value: Any
    type: Any


def is_final(ann: Any) -> bool:
    """Whether an annotation says that a value never changes."""
    return getattr(ann, "__origin__", ann) is Final


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Callable[..., Any]:
    """A function that is one of two, by the value of a flag."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__module__, fn.__name__ = module_name or fn.__module__, func_name or fn.__name__
    return fn


class BroadcastingListCls:
    """An annotation for a list that may be given as one number."""

    def __getitem__(self, types: Any) -> None:
        """Nothing is checked."""


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
