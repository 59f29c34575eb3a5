"""Whole quotients and remainders: //, %, fmod; and what divides both of two numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import result_numpy_dtype
from pullback._op.apply import cast
from pullback._op.define import Array, Number, function, not_implemented, op
from pullback._op.inplace import augmented, make_inplace
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.math.numbers import no_zero
from pullback.ops.pointwise.arithmetic import NUMBERS, check_divisor, div_mode, floor_quotient
from pullback.ops.pointwise.power import number_of
from pullback.ops.supported import invalid_combination, refuse, with_number

# ------------------------------------------------------------------ //


@op(
    sparse="quotient_of",
    kernel="div_floor_cpu_reduced_float",
    space=None,
    name="floor_divide",
    promote=True,
    unrounded="other",
    pointwise=True,
    self=not_implemented,
    other=not_implemented,
)
def floor_divide_tensors(self: Array, other: Array) -> Array:
    """The quotient of two tensors, rounded down."""
    return floor_quotient(self, other)


@op(
    sparse="quotient_of",
    kernel="div_floor_cpu_reduced_float",
    space=None,
    name="floor_divide",
    promote=True,
    unrounded="other",
    pointwise=True,
    self=not_implemented,
)
def floor_divide_number(self: Array, other: Array | Number) -> Array:
    """The quotient by a number, rounded down."""
    return floor_quotient(self, other)


@op(kernel="div_floor_cpu_reduced_float", space=None, name="floor_divide", pointwise=True, other=not_implemented)
def floor_divide_into(self: Number, other: Array) -> Array:
    """The quotient of a number by a tensor, rounded down."""
    other, number = with_number(other, self)
    return floor_quotient(number, other)


def overload(name: str, self: Any, other: Any, tensors: Any, number: Any, into: Any = None) -> Any:
    """Call the overload for the kinds of the operands."""
    if isinstance(other, Tensor):
        if isinstance(self, Tensor):
            return tensors(self, other)
        if into is not None and isinstance(self, NUMBERS):
            return into(number_of(self), other)
    elif isinstance(other, NUMBERS) and isinstance(self, Tensor):
        return number(self, number_of(other))
    if name.endswith("_"):
        raise invalid_combination(name, (other,))
    raise invalid_combination(name, (self, other))


def foreign(other: Any) -> bool:
    """True for an operand that is neither tensor nor number: its own type may know what to do."""
    return not isinstance(other, (Tensor, *NUMBERS))


@function(out=True, out_ends_history=True)
def floor_divide(self: Array | Number, other: Array | Number) -> Array:
    """Divide elementwise and round down: floor(input / other), with broadcasting. Integers stay integers."""
    if isinstance(self, NUMBERS) and isinstance(other, NUMBERS):
        self = wrap(cast(number_of(self), result_numpy_dtype((number_of(self),))))
    if foreign(other):
        raise invalid_combination("floor_divide", (self, other))
    return overload("floor_divide", self, other, floor_divide_tensors, floor_divide_number, floor_divide_into)


@function(raw=True, space=None, method=False, operator="floordiv")
def floordiv_operator(self: Array, other: Any) -> Any:
    """self // other."""
    return NotImplemented if foreign(other) else floor_divide(self, other)


@function(raw=True, space=None, method=False, operator="rfloordiv")
def reflected_floordiv(self: Array, other: Any) -> Any:
    """other // self."""
    return NotImplemented if foreign(other) else floor_divide(other, self)


floor_divide_tensors_ = make_inplace(floor_divide_tensors.op)
floor_divide_number_ = make_inplace(floor_divide_number.op)


@function(name="floor_divide_", space=None)
def floor_divide_inplace(self: Array, other: Array | Number) -> Array:
    """In-place version of :func:`floor_divide`."""
    return overload("floor_divide_", self, other, floor_divide_tensors_, floor_divide_number_)


Tensor.__ifloordiv__ = augmented(floor_divide_inplace)  # type: ignore[attr-defined]

# ------------------------------------------------------------------ %


def quotient(self: Any, other: Any, rounding_mode: str) -> Any:
    """The whole quotient of operands as they were given, perhaps in two dtypes, in the one they share."""
    if isinstance(self, np.ndarray) and self.dtype != other.dtype:
        common = result_numpy_dtype((self, other))
        self, other = cast(self, common), cast(other, common)
    return div_mode(self, other, rounding_mode)


def python_remainder(self: Array, other: Array) -> Array:
    """The remainder with the sign of the divisor; a zero has the sign of the dividend, as in torch."""
    check_divisor("remainder_cpu", self, other)
    rest = np.remainder(self, other)
    if self.dtype.kind in "iu" or no_zero(rest):
        return rest
    return np.where(rest == 0, np.copysign(rest, self), rest)


@op(
    space=None,
    name="remainder",
    node="RemainderBackward1",
    promote=True,
    pointwise=True,
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * quotient(self, other, "floor"),
    result=lambda self_t, other_t, self, other: self_t - other_t * quotient(self, other, "floor"),
)
def remainder_tensors(self: Array, other: Array) -> Array:
    """The remainder of two tensors, with the sign of the divisor."""
    return python_remainder(self, other)


@op(
    space=None,
    name="remainder",
    node="RemainderBackward0",
    promote=True,
    pointwise=True,
    self=lambda grad: grad,
    result=lambda self_t: self_t.clone(),
)
def remainder_number(self: Array, other: Array | Number) -> Array:
    """The remainder by a number."""
    return python_remainder(self, other)


@op(space=None, name="remainder", pointwise=True, other=not_implemented)
def remainder_into(self: Number, other: Array) -> Array:
    """The remainder of a number by a tensor."""
    other, number = with_number(other, self)
    return python_remainder(number, other)


@function(out=True, out_tensor_first=True)
def remainder(self: Array | Number, other: Array | Number) -> Array:
    """Compute the remainder of a division, with the sign of the divisor, as Python's `%`.

    This is `input - other * floor(input / other)`, elementwise with broadcasting; either argument may be a number.
    Integers cannot be divided by zero; for floats the result is nan.
    """
    if type(self) is type(other) is Tensor:
        return remainder_tensors(self, other)
    return overload("remainder", self, other, remainder_tensors, remainder_number, remainder_into)


@function(raw=True, space=None, method=False, operator="mod")
def mod_operator(self: Array, other: Any) -> Any:
    """self % other."""
    return NotImplemented if foreign(other) else remainder(self, other)


@function(raw=True, space=None, method=False, operator="rmod")
def reflected_mod(self: Array, other: Any) -> Any:
    """other % self."""
    return NotImplemented if foreign(other) else remainder(other, self)


remainder_tensors_ = make_inplace(remainder_tensors.op)
remainder_number_ = make_inplace(remainder_number.op)


@function(name="remainder_", space=None)
def remainder_inplace(self: Array, other: Array | Number) -> Array:
    """In-place version of :func:`remainder`."""
    return overload("remainder_", self, other, remainder_tensors_, remainder_number_)


Tensor.__imod__ = augmented(remainder_inplace)  # type: ignore[attr-defined]

# ------------------------------------------------------------------ fmod


def c_remainder(self: Array, other: Array) -> Array:
    """The remainder with the sign of the dividend."""
    check_divisor("fmod_cpu", self, other)
    return np.fmod(self, other)


@op(
    space=None,
    name="fmod",
    node="FmodBackward1",
    promote=True,
    pointwise=True,
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * quotient(self, other, "trunc"),
    result=lambda self_t, other_t, self, other: self_t - other_t * quotient(self, other, "trunc"),
)
def fmod_tensors(self: Array, other: Array) -> Array:
    """The remainder of two tensors, with the sign of the dividend."""
    return c_remainder(self, other)


@op(
    space=None,
    name="fmod",
    node="FmodBackward0",
    promote=True,
    pointwise=True,
    self=lambda grad: grad,
    result=lambda self_t: self_t.clone(),
)
def fmod_number(self: Array, other: Array | Number) -> Array:
    """The remainder by a number, with the sign of the dividend."""
    return c_remainder(self, other)


@function(out=True)
def fmod(self: Array, other: Array | Number) -> Array:
    """Compute the remainder of a division, with the sign of the dividend, as C's `fmod`.

    This is `input - other * trunc(input / other)`, elementwise with broadcasting.
    Integers cannot be divided by zero; for floats the result is nan.
    """
    if type(self) is type(other) is Tensor:
        return fmod_tensors(self, other)
    return overload("fmod", self, other, fmod_tensors, fmod_number)


fmod_tensors_ = make_inplace(fmod_tensors.op)
fmod_number_ = make_inplace(fmod_number.op)


@function(name="fmod_", space=None)
def fmod_inplace(self: Array, other: Array | Number) -> Array:
    """In-place version of :func:`fmod`."""
    return overload("fmod_", self, other, fmod_tensors_, fmod_number_)


# ------------------------------------------------------------------ common divisors and multiples


@op(inplace=True, promote=True, pointwise=True, untraced=True, out_name="aten::gcd")
def gcd(self: Array, other: Array) -> Array:
    """Compute the greatest common divisor of integers elementwise, with broadcasting; gcd(0, 0) is 0."""
    refuse("gcd_cpu", self, "bfcV")
    return np.gcd(self, other)


@op(inplace=True, promote=True, pointwise=True, untraced=True, out_name="aten::lcm")
def lcm(self: Array, other: Array) -> Array:
    """Compute the least common multiple of integers elementwise, with broadcasting; 0 if either is 0."""
    refuse("lcm_cpu", self, "bfcV")
    multiple = np.lcm(self, other)
    # Where it overflows, the sign goes last; numbers of less than 32 bits are multiplied as 32, and lose it in the end.
    return np.abs(multiple) if multiple.dtype.itemsize >= 4 else multiple
