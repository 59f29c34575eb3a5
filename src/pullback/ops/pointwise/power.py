"""Powers with their operator and its reflected form."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.half import is_half, rounded, widened
from pullback._arrays.memory import row_major
from pullback._dtype import FLOAT, FROM_NUMPY, complex128, float64
from pullback._op.define import Array, Number, elementwise, function, op
from pullback._op.inplace import augmented, make_inplace
from pullback._op.out import exactly
from pullback._tensor import Tensor
from pullback.kernels import complex_functions
from pullback.ops.create.cast import recast
from pullback.ops.pointwise.arithmetic import NUMBERS, conj, real_part, where_tensors
from pullback.ops.pointwise.compare import logical_and
from pullback.ops.pointwise.elementary import log
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import SINGLE, complex_valued, invalid_combination, inverse, refuse, with_number

# ------------------------------------------------------------------ pow


@op(
    sparse="power_of",
    kernel="pow",
    space=None,
    name="pow",
    node="PowBackward0",
    self=lambda grad, self, exponent: power_number_backward(grad, self, exponent),
    result=elementwise,
)
def power_number(self: Array, exponent: Number) -> Array:
    """Each element to a power that is a number."""
    kind = self.dtype.kind
    if kind in "iub" and type(exponent) is int and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if kind == "b" and type(exponent) is bool:
        return self.copy() if exponent else np.ones(self.shape, np.bool_)
    if kind in "iu" and isinstance(exponent, int):
        exact_number(exponent, FROM_NUMPY[self.dtype])
    self, value = with_number(self, exponent)
    simple = SIMPLE_POWERS.get(exponent) if self.dtype.char != "e" or exponent in (0, 1, 2) else None
    if simple is not None and (self.dtype.kind not in "iu" or exponent == 2):
        return simple(self)
    if abs(exponent) > 65504 and self.dtype.itemsize == 2:
        exact_number(exponent, FROM_NUMPY[self.dtype])
    return np.power(self, value) if self.dtype.kind != "c" else complex_functions.power(self, value)


SIMPLE_POWERS: dict[Any, Any] = {
    0: np.ones_like,
    0.5: np.sqrt,
    1: np.positive,
    2: np.square,
    3: lambda self: self * self * self,
    -0.5: lambda self: inverse_root(self, 64),
    -1: inverse,
    -2: lambda self: inverse(np.square(self)),
}
"""The powers torch computes with products and roots, which also decides their values at -0.0 and -inf.

Of float16 it computes only the first of them so.
"""


def power_number_backward(grad: Any, self: Any, exponent: Number) -> Any:
    """The gradient of a power; the zeroth is flat even at zero."""
    if exponent == 0:
        return zeros_of(grad, grad.shape)
    return grad * conj(exponent * power_number(self, exponent - 1))


@op(
    kernel="rsqrt_cpu",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, result: -0.5 * grad * conj(power_number(result, 3)),
    result=elementwise,
)
def rsqrt(self: Array) -> Array:
    """Compute the reciprocal of the square root of each element: 1 / sqrt(x)."""
    return inverse_root(self, 32)


def inverse_root(self: Array, vector: int) -> Array:
    """1 / sqrt(x). Of half precision torch rounds the root, too, if there are fewer elements than it takes at once."""
    if not is_half(self.dtype) or self.size < vector:
        return inverse(np.sqrt(self))
    return rounded(inverse(np.sqrt(widened(self))), self.dtype)


@op(
    kernel="pow",
    space=None,
    name="pow",
    node="PowBackward1",
    promote=True,
    pointwise=True,
    self=lambda grad, self, exponent: power_backward_self(grad, self, exponent),
    exponent=lambda grad, self, exponent, result: power_backward_exponent(grad, self, exponent, result),
    result=lambda self_t, exponent_t, self, exponent, result: conj(
        real_like(power_backward_self(conj(self_t), self, exponent), self)
        + real_like(power_backward_exponent(conj(exponent_t), self, exponent, result), exponent)
    ),
)
def power_tensors(self: Array, exponent: Array | Number) -> Array:
    """Each element to a power of its own."""
    kind = self.dtype.kind
    if kind in "iu":
        return whole_powers(self, exponent)
    refuse("pow", self, "b")
    if kind == "c":
        return complex_functions.power(self, exponent)
    powers = np.power(self, exponent)
    return powers if read_one_by_one(exponent) else with_powers_of_half(powers, self, exponent)


def read_one_by_one(exponent: Any) -> bool:
    """Whether NumPy reads each exponent; for one that many share it may take another function. No stand-in is asked."""
    return not isinstance(exponent, np.ndarray) or (exponent.size > 1 and 0 not in exponent.strides)


def with_powers_of_half(powers: Array, self: Array, exponent: Array) -> Array:
    """Powers as they are where NumPy has taken square roots, which are others of the negative zero and infinity."""
    half = exponent == 0.5
    if not np.logical_or.reduce(half, axis=None):
        return powers
    powers = np.asarray(powers)
    np.copyto(powers, np.abs(self), where=half & ((self == 0) | (self == -np.inf)))
    return powers


def whole_powers(self: Array, exponent: Array) -> Array:
    """Integer powers, in which 1 and -1 have inverses and other numbers' vanish."""
    negative = exponent < 0
    powers = np.power(self, np.where(negative, exponent.dtype.type(0), exponent))
    if not np.logical_or.reduce(negative, axis=None):
        return powers
    unit = np.where(self == 1, 1, np.where(self == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(negative, unit, powers).astype(self.dtype)


def real_like(change: Any, self: Any) -> Any:
    """What a real input makes of a complex change, as torch has it in forward mode too: its real part."""
    return real_part(change) if complex_valued(change) and not complex_valued(self) else change


def power_backward_self(grad: Any, self: Any, exponent: Any) -> Any:
    """The gradient for the base."""
    self, exponent = beside(self, exponent)
    return where_tensors(exponent != 0, grad * conj(exponent * power_tensors(self, exponent - 1)), 0)


def beside(self: Any, exponent: Any) -> tuple[Any, Any]:
    """Arrays in the dtypes in which torch computes with them: NumPy would choose a wider one beside whole exponents."""
    if isinstance(exponent, np.ndarray):
        if exponent.dtype.kind in "iub" and self.dtype.kind in "fc":
            return self, exponent.astype(self.dtype)
        if exponent.dtype.kind == "c" and self.dtype.kind == "f":
            return self + 0j, exponent
    return self, exponent


def power_backward_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    """The gradient for the exponent: zero to a nonnegative power stays zero when the power moves."""
    still = logical_and(self == 0, not_negative(exponent))
    if complex_valued(exponent) and not complex_valued(self):
        self = self + zeros_of(result, result.shape)
    elif isinstance(self, Tensor):
        self = recast(self, result.dtype) if self.dtype.category < FLOAT else self
    elif self.dtype.kind in "iub":  # its logarithm would be one of the default dtype
        self = self.astype(result.dtype)
    return grad * where_tensors(still == 0, conj(result * log(self)), 0)


def not_negative(exponent: Any) -> Any:
    """True for zero and positive real numbers, in whatever plane they are."""
    if not complex_valued(exponent):
        return exponent >= 0
    size = real_part(exponent)
    return logical_and(exponent == size, size >= 0)


@op(
    kernel="pow",
    space=None,
    name="pow",
    node="PowBackward2",
    pointwise=True,
    exponent=lambda grad, self, exponent, result: number_to_power_backward(grad, self, exponent, result),
    result=lambda exponent_t, self, exponent, result: conj(
        number_to_power_backward(conj(exponent_t), self, exponent, result)
    ),
    layout="row_major",
)
def number_to_power(self: Number, exponent: Array) -> Array:
    """A number to the power of each element."""
    exponent, base = with_number(exponent, self)
    refuse("pow", exponent, "b")
    if isinstance(exponent, np.ndarray):  # and no stand-in for one: compiled code lays its results out by itself
        exponent = row_major(exponent)
    if self == 2 and exponent.dtype is SINGLE:  # torch's powers of two are rounded once
        return np.exp2(exponent.astype(np.float64)).astype(SINGLE)
    if exponent.dtype.kind == "c":
        return np.ones_like(exponent) if self == 1 else complex_functions.power(base, exponent)
    return whole_powers(base, exponent) if exponent.dtype.kind in "iu" else np.power(base, exponent)


def number_to_power_backward(grad: Any, self: Number, exponent: Any, result: Any) -> Any:
    """The gradient for the exponent of a number."""
    moved = conj(result * number_log(self, complex_valued(exponent)))
    if self != 0:
        return grad * moved
    return grad * where_tensors(not_negative(exponent), 0, moved)


def number_log(base: Number, complex_plane: bool) -> Number:
    """The logarithm of a number; nan for a negative one unless the plane is complex."""
    if complex_plane or isinstance(base, complex):
        return cmath.log(base) if base else complex(-math.inf, 0)
    return math.log(base) if base > 0 else -math.inf if base == 0 else math.nan


def number_of(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


@function(out=True, foreach="binary", numpy=("power",))
def pow(self: Array | Number, exponent: Array | Number) -> Array:
    """Raise to a power elementwise: `input**exponent`, with broadcasting.

    Either argument may be a number, but not both. Integers stay integers and take no negative number as `exponent`.
    """
    if isinstance(exponent, Tensor):
        if isinstance(self, Tensor):
            return power_tensors(self, exponent)
        if isinstance(self, NUMBERS):
            return number_to_power(number_of(self), exponent)
    elif isinstance(exponent, NUMBERS) and isinstance(self, Tensor):
        return power_number(self, number_of(exponent))
    raise invalid_combination("pow", (self, exponent))


@function(raw=True, space=None, method=False, operator="pow")
def power_operator(self: Array, exponent: Any, modulo: Any = None) -> Any:
    """self ** exponent."""
    kind = type(exponent)
    if kind is int or kind is float:
        return power_number(self, exponent)
    if isinstance(exponent, Tensor):
        return power_tensors(self, exponent)
    return power_number(self, number_of(exponent)) if isinstance(exponent, NUMBERS) else NotImplemented


@function(raw=True, space=None, method=False, operator="rpow")
def reflected_power(self: Array, other: Any, modulo: Any = None) -> Any:
    """other ** self."""
    return pow(other, self) if isinstance(other, (Tensor, *NUMBERS)) else NotImplemented


power_tensors_ = make_inplace(power_tensors.op)
power_number_ = make_inplace(power_number.op)


@function(name="pow_", space=None)
def pow_inplace(self: Array, exponent: Array | Number) -> Array:
    """In-place version of :func:`pow`."""
    if isinstance(exponent, Tensor):
        return power_tensors_(self, exponent)
    return power_number_(self, number_of(exponent))


Tensor.__ipow__ = augmented(pow_inplace)  # type: ignore[attr-defined]


@function(nested="jagged", out=True)
def square(self: Array) -> Array:
    """Compute the square of each element: x**2."""
    return power_number(self, 2)


@function(name="square_")
def square_inplace(self: Array) -> Array:
    """In-place version of :func:`square`."""
    return power_number_(self, 2)


# ------------------------------------------------------------------ powers in double precision


@function(
    nested="jagged",
    out=True,
    out_dtype=exactly(
        "the output given to float_power has dtype {got} but the operation's result requires dtype {wanted}"
    ),
)
def float_power(self: Array | Number, exponent: Array | Number) -> Array:
    """Raise to a power in double precision: `input**exponent` as float64, or complex128 for complex arguments.

    Either argument may be a number, but not both; tensors are broadcast.
    """
    if not isinstance(self, Tensor) and not isinstance(exponent, Tensor):
        raise invalid_combination("float_power", (self, exponent))
    return pow(*in_double(self, exponent))


@function(name="float_power_", space=None)
def float_power_inplace(self: Array, exponent: Array | Number) -> Array:
    """In-place version of :func:`float_power`."""
    wanted = double_dtype(self, exponent)
    if self.dtype is not wanted:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.scalar_type} but the operation's result requires "
            f"dtype {wanted.scalar_type}"
        )
    return pow_inplace(self, in_double(self, exponent)[1])


def double_dtype(*values: Any) -> Any:
    """complex128 if any value is complex, else float64."""
    complex_ones = [v.dtype.is_complex if isinstance(v, Tensor) else isinstance(v, complex) for v in values]
    return complex128 if any(complex_ones) else float64


def in_double(self: Any, exponent: Any) -> list[Any]:
    """Both operands in double precision; numbers as they are."""
    if isinstance(self, Tensor) and isinstance(exponent, Tensor):
        if self._array.dtype is SINGLE and exponent._array.dtype is SINGLE:  # the usual case
            return [recast(self, float64), recast(exponent, float64)]
    wanted = double_dtype(self, exponent)
    python = complex if wanted is complex128 else float
    return [v.to(wanted) if isinstance(v, Tensor) else python(v) for v in (self, exponent)]
