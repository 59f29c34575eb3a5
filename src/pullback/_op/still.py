"""The tangent of what does not move: zero, whatever it is multiplied by.

Rules are sums of terms, one for each input: `self_t * other + other_t * self`. A term whose tangent is absent must drop
out, also where the other factor is infinite and zeros would make it NaN. So absent tangents are of a class that absorbs
products and disappears in sums; every other op sees zeros. Torch's ZeroTensor does the same in the same ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._device import CPU, device
from pullback._dtype import result_numpy_dtype
from pullback._modes import is_grad_enabled
from pullback._op.declare import Op, called
from pullback._tensor import PRISTINE, Tensor, new, wrap
from pullback.autograd.view import wants_grad

LOWEST = {bool: "bool", int: "int64", float: "int64", complex: "complex64"}
"""The dtype of a number's tangent: one that decides nothing about the result's beyond real or complex."""


class Still(Tensor):
    """Zeros with a shape and a dtype, of which an op may know that they are zeros."""

    __slots__ = ("number", "place")
    __hash__ = Tensor.__hash__

    @classmethod
    def run_op(cls, op: Op, args: tuple[Any, ...], out: Any) -> Any:
        """An op of a rule called with absent tangents."""
        one, other = (*args, None)[:2]
        still, rule = (type(one) is Still, type(other) is Still), op.absent_tangent
        if (rule == "product" and any(still)) or (rule == "quotient" and still[0]):
            dtype = result_numpy_dtype([read(one), read(other)])
            return recorded(zero(shape_of(one, other), dtype, place_among(args)), op, args)
        if rule == "inner":
            return recorded(zero((), one._array.dtype, place_among(args)), op, args)
        if rule in ("sum", "difference") and not all(still) and alike(one, other):
            alpha = args[2]
            if still[1]:
                return recorded(one.clone(), op, args)
            other = other if type(alpha) is int and alpha == 1 else other * alpha
            return recorded(other.clone() if rule == "sum" else -other, op, args)
        place = place_among(args)
        result = called(op, [zeros(arg, place) for arg in args])
        if op.view and isinstance(result, Tensor):
            return zero(result._array.shape, result._array.dtype, place)
        return result


def recorded(value: Tensor, op: Op, args: tuple[Any, ...]) -> Tensor:
    """The value with the history it has if it is computed from zeros: it does not move, but it is differentiable."""
    if is_grad_enabled() and any(isinstance(arg, Tensor) and wants_grad(arg) for arg in args):
        place = place_among(args)
        computed = called(op, [zeros(arg, place) for arg in args])
        value._requires_grad, value._edge = computed._requires_grad, computed._edge
    return value


def zero(shape: tuple[int, ...], dtype: Any, place: device, number: bool = False) -> Still:
    """A tangent that is absent, of what lies on a device."""
    out = new(Still)
    out._array = np.zeros(shape, dtype)
    out._requires_grad = False
    out._edge = out._grad = out._view = out._extra = out._detached_at = None
    out._counter = PRISTINE
    out.number, out.place = number, place
    return out  # type: ignore[no-any-return]


def absent(value: Any) -> Any:
    """The tangent of an input that has none; what is no number and no tensor is itself."""
    if isinstance(value, Tensor):
        return zero(value._array.shape, value._array.dtype, value.device)
    return zero((), LOWEST[type(value)], CPU, True) if type(value) in LOWEST else value


def place_among(values: Any) -> device:
    """Where the tensors among values lie: on the host if there are none."""
    for value in values:
        if type(value) in (list, tuple):
            place = place_among(value)
        else:
            place = value.place if type(value) is Still else value.device if isinstance(value, Tensor) else CPU
        if place is not CPU:
            return place
    return CPU


def zeros(value: Any, place: device = CPU) -> Any:
    """The zeros as any op takes them, in lists too, on a device."""
    if type(value) is Still:
        if value.number:
            return 0j if value._array.dtype.kind == "c" else 0
        # That of a truth value is a number: derivatives subtract it, which truth values refuse.
        dtype = np.dtype(np.uint8) if value._array.dtype.kind == "b" else value._array.dtype
        out = wrap(made_on(place, np.zeros, value._array.shape, dtype))
        out._requires_grad, out._edge = value._requires_grad, value._edge
        return out
    return type(value)([zeros(item, place) for item in value]) if type(value) in (list, tuple) else value


def any_still(args: tuple[Any, ...]) -> bool:
    """Whether an absent tangent is among the arguments of a call."""
    return any(type(item) is Still for arg in args for item in (arg if type(arg) in (list, tuple) else (arg,)))


def read(operand: Any) -> Any:
    return operand._array if isinstance(operand, Tensor) else operand


def shape_of(one: Any, other: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*[operand._array.shape for operand in (one, other) if isinstance(operand, Tensor)])


def alike(one: Any, other: Any) -> bool:
    """Whether the sum of a tensor and an absent tangent has the shape and dtype of the tensor."""
    tensor, still = (other, one) if type(one) is Still else (one, other)
    if not isinstance(tensor, Tensor) or shape_of(one, other) != tensor._array.shape:
        return False
    return bool(result_numpy_dtype([read(tensor), read(still)]) == tensor._array.dtype)
