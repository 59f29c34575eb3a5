"""Subclasses of Tensor: `__torch_function__`, and results that keep the subclass."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pullback._op.declare import Op
from pullback._tensor import Parameter, Tensor, new

torch_function_enabled: ContextVar[bool] = ContextVar("torch_function_enabled", default=True)


def overriding_class(args: tuple[Any, ...]) -> type | None:
    """The class whose __torch_function__ decides about this call; None for plain tensors."""
    found = None
    for arg in args:
        for item in arg if type(arg) in (list, tuple) else (arg,):
            kind = type(item)
            if kind is Tensor or kind is Parameter or not hasattr(kind, "__torch_function__"):
                continue
            if issubclass(kind, Parameter) and kind.__torch_function__ is Tensor.__torch_function__:
                continue
            if found is None or (kind is not found and issubclass(kind, found)):
                found = kind
    return found if found is not None and torch_function_enabled.get() else None


def deciding_class(args: tuple[Any, ...]) -> type | None:
    """The class that decides about a call of an op: an overriding one, or that of batched tensors, in any case."""
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
    kinds = tuple(dict.fromkeys(type(a) for a in args if hasattr(type(a), "__torch_function__")))
    kwargs = {p.name: a for p, a in zip(op.params, args, strict=True) if p.keyword_only}
    if out is not None:
        kwargs["out"] = out
    positional = tuple([a for p, a in zip(op.params, args, strict=True) if not p.keyword_only])
    result = kind.__torch_function__(op.call, kinds, positional, kwargs)  # type: ignore[attr-defined]
    if result is NotImplemented:
        shown = ", ".join(k.__name__ for k in kinds)
        raise TypeError(
            f"Multiple dispatch failed for 'torch.{op.name}'; all __torch_function__ handlers returned NotImplemented: "
            f"{shown}"
        )
    return result


def default_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run the function as for plain tensors and give its results this class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    token = torch_function_enabled.set(False)
    try:
        result = func(*args, **(kwargs or {}))
    finally:
        torch_function_enabled.reset(token)
    return result if cls is Tensor else converted(result, cls)


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
    for slot in ("_array", "_requires_grad", "_edge", "_grad", "_counter", "_view", "_extra"):
        setattr(out, slot, getattr(self, slot))
    return out


def alias_of(tensor: Tensor) -> Tensor:
    """A view of the whole tensor. Attached by ops/slicing.py, which has the op."""
    raise NotImplementedError("import pullback.ops.slicing first")


def alias_as(self: Tensor, cls: Any) -> Any:
    """A view of this tensor as an instance of another class; gradients flow through it."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    token = torch_function_enabled.set(False)
    try:
        return as_subclass(alias_of(self), cls)
    finally:
        torch_function_enabled.reset(token)


Tensor.__torch_function__ = classmethod(default_torch_function)
Tensor.as_subclass = alias_as
