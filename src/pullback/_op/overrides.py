"""Who decides about a call: modes, subclasses of Tensor and foreign classes with `__torch_function__`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pullback._foreign import ForeignTensor, PackedTensor
from pullback._lazy import LazyTensor
from pullback._modes import classes_told, modes
from pullback._op.declare import Op, spaces
from pullback._op.still import Still, any_still
from pullback._tensor import Parameter, Tensor, new

torch_function_enabled: ContextVar[bool] = ContextVar("torch_function_enabled", default=True)

function_modes: ContextVar[tuple[Any, ...]] = ContextVar("function_modes", default=())
"""The modes that are asked about every call, the innermost last."""

OTHERS = (ForeignTensor, PackedTensor)
"""Classes of this library: programs take their tensors for plain ones."""


class Modes:
    """Stands for the modes where a class is expected that decides about a call."""


def overrides(kind: type) -> bool:
    """Whether a class has a `__torch_function__` of its own."""
    if kind is Tensor or kind is Parameter or kind is LazyTensor or kind is Still or issubclass(kind, OTHERS):
        return False
    handler = getattr(kind, "__torch_function__", None)
    if handler is None or handler is disabled_torch_function:
        return False
    return not (issubclass(kind, Parameter) and handler is Tensor.__torch_function__)


def overloaded(args: Any) -> list[Any]:
    """One argument of each class that may decide, subclasses before their bases, otherwise in the order given."""
    found: list[Any] = []
    for arg in args:
        for item in arg if type(arg) in (list, tuple) else (arg,):
            kind = type(item)
            if overrides(kind) and not any(type(other) is kind for other in found):
                place = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
                found.insert(place, item)
    return found


def overriding_class(args: tuple[Any, ...]) -> type | None:
    """The class whose __torch_function__ is asked first about this call; None for plain tensors."""
    found = None
    for arg in args:
        for item in arg if type(arg) in (list, tuple) else (arg,):
            kind = type(item)
            if overrides(kind) and (found is None or (kind is not found and issubclass(kind, found))):
                found = kind
    return found if found is not None and torch_function_enabled.get() else None


def deciding_class(args: tuple[Any, ...]) -> type | None:
    """Who decides about a call of an op: a mode, an overriding class, or that of batched tensors, in any case."""
    if modes.dual_level >= 0 and any_still(args):
        return Still  # type: ignore[no-any-return]
    if function_modes.get():
        return Modes
    kind = overriding_class(args)
    if kind is None and not torch_function_enabled.get():
        for arg in args:
            for item in arg if type(arg) in (list, tuple) else (arg,):
                if hasattr(type(item), "run_op"):
                    return type(item)
    return kind


def dispatch(op: Op, kind: type, args: tuple[Any, ...], out: Any) -> Any:
    """Let the class decide; only it and the op know what comes back."""
    if hasattr(kind, "run_op"):
        return kind.run_op(op, args, out)
    positional, kwargs = as_called(op, args)
    if out is not None:
        kwargs["out"] = out
    let_functions_ask()
    published = [spaces[space][op.name] for space in ("torch", "nn.functional") if op.name in spaces.get(space, ())]
    return decide((*published, op.call)[0], positional, kwargs, f"torch.{op.name}")


def let_functions_ask() -> None:
    """From now on functions ask too, not only ops. Attached by ops/interop/overriding.py, which knows them all."""
    raise NotImplementedError("import pullback.ops.interop.overriding first")


def let_class_be_told(cls: Any) -> None:
    """A class with `__torch_dispatch__` is told of ops from now on. Attached by the facade, which loads who tells."""
    raise NotImplementedError("import pullback first")


def disabled_torch_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_dispatch__` of Tensor: ops run as for plain tensors, and give plain tensors."""
    before = classes_told.get()
    try:
        classes_told.set(False)
        return func(*args, **(kwargs or {}))
    finally:
        classes_told.set(before)


def is_told(kind: type) -> bool:
    """Whether a class is told of ops of its instances: whether it has a `__torch_dispatch__` of its own."""
    if kind is Tensor or kind is Parameter or not classes_told.get():
        return False
    return getattr(kind, "__torch_dispatch__", disabled_torch_dispatch) is not disabled_torch_dispatch


def as_called(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an op as a caller writes them, without those left at their defaults."""
    given = list(zip(op.params, args, strict=True))
    kwargs = {p.name: a for p, a in given if p.keyword_only and a is not p.default}
    positional = [(p, a) for p, a in given if not p.keyword_only]
    while positional and positional[-1][1] is positional[-1][0].default:
        positional.pop()
    return tuple([a for _, a in positional]), kwargs


def decide(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """What the innermost mode, or a class among the arguments, makes of a call."""
    items = overloaded((*args, *kwargs.values()))
    result = ask(function, args, kwargs, items)
    if result is not NotImplemented:
        return result
    asked = [f"mode object {mode}" for mode in function_modes.get()[-1:]]
    asked += [f"tensor subclass {type(item)}" for item in items]
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "".join([f"  - {one}\n" for one in asked])
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def ask(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], items: list[Any]) -> Any:
    """Ask the innermost mode, then the class of each item, until one answers; NotImplemented if none does."""
    kinds = tuple([type(item) for item in items])
    stack = function_modes.get()
    if stack:
        before = function_modes.get()
        try:
            function_modes.set(stack[:-1])
            result = stack[-1].__torch_function__(function, kinds, args, kwargs)
        finally:
            function_modes.set(before)
        if result is not NotImplemented:
            return result
    for item in items if torch_function_enabled.get() else ():
        result = item.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def default_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run the function as for plain tensors and give its results this class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    result = disabled_torch_function(func, types, args, kwargs)
    return result if cls is Tensor else converted(result, cls)


def disabled_torch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of a class that decides nothing: its results are plain tensors."""
    before = torch_function_enabled.get()
    try:
        torch_function_enabled.set(False)
        return func(*args, **(kwargs or {}))
    finally:
        torch_function_enabled.set(before)


def converted(result: Any, cls: type) -> Any:
    """The same results with their tensors in another class."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return alias_as(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[converted(r, cls) for r in result])
    if type(result) in (tuple, list):
        return type(result)([converted(r, cls) for r in result])
    return result


def as_subclass(self: Tensor, cls: Any) -> Any:
    """The same tensor, memory and history, as an instance of another class."""
    out = new(cls)
    for slot in ("_array", "_requires_grad", "_edge", "_grad", "_counter", "_view", "_extra", "_detached_at"):
        setattr(out, slot, getattr(self, slot))
    return out


def alias_of(tensor: Tensor) -> Tensor:
    """A view of the whole tensor. Attached by ops/shape/slicing.py, which has the op."""
    raise NotImplementedError("import pullback.ops.shape.slicing first")


def alias_as(self: Tensor, cls: Any) -> Any:
    """A view of this tensor as an instance of another class; gradients flow through it."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    before = torch_function_enabled.get()
    try:
        torch_function_enabled.set(False)
        return as_subclass(alias_of(self), cls)
    finally:
        torch_function_enabled.set(before)


Tensor.__torch_function__ = classmethod(default_torch_function)
Tensor.__torch_dispatch__ = staticmethod(disabled_torch_dispatch)
Tensor.as_subclass = alias_as
