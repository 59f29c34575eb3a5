"""Functions of one element: exponentials, logarithms, roots, rounding, and what they need."""

from __future__ import annotations

import builtins
import math
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.element import exact_number, finfo
from pullback._arrays.half import is_half, rounded, widened
from pullback._dtype import FROM_NUMPY, defaults
from pullback._op.apply import cast
from pullback._op.declare import FUNCTIONAL, Publication, publish
from pullback._op.define import Array, elementwise, function, op
from pullback._op.inplace import make_inplace
from pullback._op.out import exactly, found
from pullback.kernels import complex_functions
from pullback.kernels.jit.small.choose import pointwise
from pullback.kernels.numpy.math.numbers import ONE, PI, ZERO, no_zero
from pullback.ops.pointwise.arithmetic import conj, mul_number, real_part, where_tensors
from pullback.ops.pointwise.compare import isfinite, logical_and
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import DOUBLE, SINGLE, complex_valued, floating, inverse, refuse, wide_floats

LN_2, LN_10 = math.log(2), math.log(10)
FLOAT_ONES = {dtype: ONE[dtype] for dtype in (SINGLE, DOUBLE)}

# ------------------------------------------------------------------ exponentials and logarithms


@op(inplace=True, floats=True, foreach="unary", self=lambda grad, result: grad * conj(result), result=elementwise)
def exp(self: Array) -> Array:
    """Compute the exponential e**x of each element."""
    return np.exp(self)


@op(
    kernel="exp2",
    inplace=True,
    floats=True,
    also=("special.exp2",),
    self=lambda grad, result: mul_number(grad * conj(result), LN_2),
    result=elementwise,
)
def exp2(self: Array) -> Array:
    """Compute two to the power of each element, 2**x."""
    return np.exp2(self)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    foreach="unary",
    also=("special.expm1",),
    self=lambda grad, result: grad * (conj(result) + 1),
    result=elementwise,
)
def expm1(self: Array) -> Array:
    """Compute exp(x) - 1 of each element, accurate for x near zero too."""
    return np.expm1(self)


@op(inplace=True, floats=True, foreach="unary", self=lambda grad, self: grad / conj(self), result=elementwise)
def log(self: Array) -> Array:
    """Compute the natural logarithm of each element: -inf at zero, and nan for negative real numbers."""
    return np.log(self)


@op(inplace=True, floats=True, foreach="unary", self=lambda grad, self: grad / (conj(self) * LN_2), result=elementwise)
def log2(self: Array) -> Array:
    """Compute the logarithm to base 2 of each element: -inf at zero, and nan for negative real numbers."""
    return np.log2(self)


@op(inplace=True, floats=True, foreach="unary", self=lambda grad, self: grad / (conj(self) * LN_10), result=elementwise)
def log10(self: Array) -> Array:
    """Compute the logarithm to base 10 of each element: -inf at zero, and nan for negative real numbers."""
    return np.log10(self)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    node="Log1PBackward0",
    of_complex=complex_functions.log1p,
    foreach="unary",
    also=("special.log1p",),
    self=lambda grad, self: grad / conj(self + 1),
    result=elementwise,
)
def log1p(self: Array) -> Array:
    """Compute log(1 + x) of each element, accurate for x near zero too."""
    return np.log1p(self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, output: sigmoid_backward(grad, conj(output)),
    output=lambda grad, grad_output, output: conj(grad) * grad_output * conj(1 - 2 * output),
    result=lambda grad_output_t, output_t, grad_output, output: (
        sigmoid_backward(grad_output_t, output) + grad_output * conj(output_t * (1 - 2 * output))
    ),
)
def sigmoid_backward(grad_output: Array, output: Array) -> Array:
    """The gradient of sigmoid, from its result."""
    if is_half(output.dtype):
        if output.dtype.kind == "f":  # torch rounds float16 at every step, and bfloat16 once
            return grad_output * (1 - output) * output
        return sigmoid_backward(widened(grad_output), widened(output)).astype(output.dtype)
    return grad_output * conj((1 - output) * output)


def sigmoid_of_few(self: Array) -> Array:
    """The sigmoid of a few numbers, with an exponential that is rounded once.

    A gradcheck of four float32 numbers sees how exp is rounded, and is to see what it sees in torch.
    """
    exponential = np.exp(np.negative(self).astype(np.float64)).astype(self.dtype)
    return np.reciprocal(np.add(exponential, ONE[self.dtype]))


@op(
    kernel="sigmoid_cpu_reduced_float",
    inplace=True,
    floats=True,
    foreach="unary",
    also=("special.expit",),
    self=lambda grad, result: sigmoid_backward(grad, result),
    result=elementwise,
    few=sigmoid_of_few,
)
def sigmoid(self: Array) -> Array:
    """Apply the logistic sigmoid to each element: 1 / (1 + exp(-x)), between 0 and 1."""
    one = FLOAT_ONES.get(self.dtype)
    if one is None or not self.ndim:
        return inverse(np.add(np.exp(np.negative(wide_floats(self))), 1)).astype(self.dtype, copy=False)
    out = np.negative(self)
    np.exp(out, out)
    np.add(out, one, out)
    return np.reciprocal(out, out)


@op(
    inplace=True,
    floats=True,
    also=("special.logit",),
    self=lambda grad, self, eps: logit_backward(grad, self, eps),
    result=elementwise,
)
def logit(self: Array, eps: float | None = None) -> Array:
    """Compute the logit of each element, log(x / (1 - x)): the inverse of `sigmoid`.

    With `eps` the elements are first clamped to `[eps, 1 - eps]`; without it, those outside `[0, 1]` give nan.
    """
    if eps is None and self.ndim and (self.dtype is SINGLE or self.dtype is DOUBLE):
        out = np.subtract(ONE[self.dtype], self)
        np.true_divide(self, out, out)
        return np.log(out, out)
    refuse("logit_cpu", self, "c")
    x = floating(self)  # half precision is rounded at every step, as torch does it here
    if eps is not None:
        low, high = (x.dtype.type(exact_number(edge, FROM_NUMPY[x.dtype])) for edge in (eps, 1 - eps))
        x = np.where(x < low, low, np.where(x > high, high, x))
    return np.log(np.true_divide(x, np.subtract(ONE[x.dtype], x)))


def logit_backward(grad: Any, self: Any, eps: float | None) -> Any:
    """The gradient of logit: none where it was clamped, and not a number outside [0, 1] where nothing clamps."""
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    inside = logical_and(self >= low, self <= high)
    return where_tensors(inside, grad / (self * (1.0 - self)), math.nan if eps is None else 0.0)


publish("sigmoid", sigmoid, FUNCTIONAL)

# ------------------------------------------------------------------ roots


@op(sparse="values", nested="strided", inplace=True, floats=True, foreach="unary",
    self=lambda grad, result: grad / (2 * conj(result)), result=elementwise)  # fmt: skip
def sqrt(self: Array) -> Array:
    """Compute the square root of each element; nan for negative real numbers."""
    return np.sqrt(self)


# ------------------------------------------------------------------ rounding


def check_rounding(name: str) -> Any:
    """Complex numbers are not rounded."""

    def check(self: Array) -> None:
        if self.dtype.kind == "c" and name != "round":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        refuse(f"{name}_vml_cpu", self, "bc")

    return check


def flat(grad: Any) -> Any:
    """The gradient of a step function."""
    return zeros_of(grad, grad.shape)


@op(
    sparse="values",
    inplace=True,
    check=check_rounding("floor"),
    untraced=("self",),
    foreach="unary",
    self=lambda grad: flat(grad),
    result=elementwise,
    out_dtype=found,
)
def floor(self: Array) -> Array:
    """Round each element down: to the largest integer not above it. The dtype stays the same."""
    return self.copy("K") if self.dtype.kind in "iu" else np.floor(real_numbers(self))


@op(
    sparse="values",
    inplace=True,
    check=check_rounding("ceil"),
    untraced=("self",),
    foreach="unary",
    self=lambda grad: flat(grad),
    result=elementwise,
    out_dtype=found,
)
def ceil(self: Array) -> Array:
    """Round each element up: to the smallest integer not below it. The dtype stays the same."""
    return self.copy("K") if self.dtype.kind in "iu" else np.ceil(real_numbers(self))


@op(
    sparse="values",
    inplace=True,
    aliases=("fix",),
    check=check_rounding("trunc"),
    untraced=("self",),
    foreach="unary",
    self=lambda grad: flat(grad),
    result=elementwise,
    out_dtype=found,
)
def trunc(self: Array) -> Array:
    """Round each element towards zero: drop its fractional part. The dtype stays the same."""
    return self.copy("K") if self.dtype.kind in "iu" else np.trunc(real_numbers(self))


def real_numbers(self: Array) -> Array:
    """The elements, if they are real numbers and not bools; otherwise an error for `check` to word."""
    if self.dtype.kind in "bc":
        raise TypeError("not a real number")
    return self


@op(
    sparse="values",
    kernel="round_vml_cpu",
    space=None,
    name="round",
    node="RoundBackward0",
    check=check_rounding("round"),
    untraced=("self",),
    self=lambda grad: flat(grad),
    result=elementwise,
)
def round_whole(self: Array) -> Array:
    """The nearest integer, the even one of two equally near."""
    return self.copy("K") if self.dtype.kind in "iu" else np.rint(real_numbers(self))


@op(
    kernel="round_vml_cpu",
    space=None,
    name="round",
    node="RoundBackward1",
    untraced=("self",),
    self=lambda grad: flat(grad),
    result=elementwise,
)
def round_decimals(self: Array, decimals: int) -> Array:
    """The nearest multiple of ten to the power -decimals."""
    refuse("round_cpu" if decimals else "round_vml_cpu", self, "iubc")
    if decimals == 0:
        return np.rint(self)
    x = widened(self)
    scale = x.dtype.type(np.power(10.0, builtins.abs(decimals)))
    return rounded(np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale, self.dtype)


@function(out=True, foreach="unary", numpy=("rint", "round"), also=("special.round",), out_dtype=found)
def round(self: Array, *, decimals: int | None = None) -> Array:
    """Round each element to the nearest integer, and halves to the even neighbour: 2.5 becomes 2.

    `decimals` is the number of decimal places to keep; negative values round to tens, hundreds and so on.
    The dtype stays the same.
    """
    return round_whole(self) if decimals is None else round_decimals(self, index(decimals))


round_whole_ = make_inplace(round_whole.op)
round_decimals_ = make_inplace(round_decimals.op)


@function(name="round_")
def round_inplace(self: Array, *, decimals: int | None = None) -> Array:
    """In-place version of :func:`round`."""
    return round_whole_(self) if decimals is None else round_decimals_(self, index(decimals))


@op(
    sparse="values",
    kernel="frac_cpu",
    inplace=True,
    foreach="unary",
    self=lambda grad: grad,
    result=elementwise,
    out_dtype=found,
)
def frac(self: Array) -> Array:
    """Return the fractional part of each element, with its sign: x - trunc(x)."""
    if self.dtype.kind in "iubc":
        refuse("frac_cpu", self, "iubc")
    return np.subtract(self, np.trunc(self))


# ------------------------------------------------------------------ nan and infinities


NO_FLOATS = (complex, str)
"""What nobody may give for a float, not even where it would not be used."""


@op(
    sparse="values",
    kernel="nan_to_num",
    inplace=True,
    may_overlap="iub",
    self=lambda grad, self: grad * isfinite(self),
    result=elementwise,
    out_dtype=exactly("nan_to_num: dtype of out: {got} should be same as input: {wanted}"),
)
def nan_to_num(
    self: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace nan and infinities by finite numbers.

    nan becomes `nan` (0 by default); positive and negative infinity become `posinf` and `neginf` (by default the
    largest and the lowest finite number of the dtype).
    """
    kind = self.dtype.kind
    traced = type(self) is not np.ndarray
    if isinstance(nan, NO_FLOATS) or isinstance(posinf, NO_FLOATS) or isinstance(neginf, NO_FLOATS):
        raise TypeError("a number that is not real")
    if kind in "iub" or no_zero(np.isfinite(self)):
        return self.copy("K")
    limits = finfo(FROM_NUMPY[self.dtype])
    values = (
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )
    if traced:
        of = self.dtype.type
        out = np.where(self == np.inf, of(values[1]), np.where(self == -np.inf, of(values[2]), self))
        return np.where(np.isnan(self), of(values[0]), out)
    result = self.copy("K")
    for part in (result.real, result.imag) if kind == "c" else (result,):
        where_nan, high, low = np.isnan(part), part == np.inf, part == -np.inf
        for mask, value in zip((where_nan, high, low), values, strict=True):
            part[mask] = value
    return result


# ------------------------------------------------------------------ angles


@op(
    nested="jagged",
    vmap="leading",
    self=lambda grad, self: angle_backward(grad, self),
    result=lambda self_t, self: real_part(self_t * conj(turn(self))) if complex_valued(self) else flat(self_t),
)
def angle(self: Array) -> Array:
    """Compute the argument of each complex number, in radians between -pi and pi.

    Real numbers have the angle 0, or pi if they are negative, and nan stays nan.
    """
    if self.dtype.kind in "iub":
        self = cast(self, defaults.numpy)
    if self.dtype.kind == "c":
        return np.arctan2(self.imag, self.real, order="C")
    return real_angle(self)


@pointwise
def real_angle(x: Any) -> Any:
    """0 or pi; of nan it is nan."""
    return np.where(np.isnan(x), x, np.where(x < 0, PI[x.dtype], ZERO[x.dtype]))


def angle_backward(grad: Any, self: Any) -> Any:
    """The gradient of angle: at right angles to a complex number, none for a real one."""
    return grad * turn(self) if complex_valued(self) else flat(grad)


def turn(self: Any) -> Any:
    """The direction in which the angle of a complex number grows, by how fast it does."""
    size = abs(self)
    return where_tensors(self != 0, self * 1j / (size * size), 0)


# ------------------------------------------------------------------ conjugates made at once


@op(
    sparse="entries",
    packed="rounded_complex",
    space=None,
    name="conj_physical",
    untraced=("self",),
    self=lambda grad: conj(grad),
    result=lambda self_t: conj_physical(self_t),
)
def conj_physical_complex(self: Array) -> Array:
    """The conjugate of a complex tensor in memory of its own."""
    return np.conjugate(self)


@op(
    vmap="leading",
    sparse="entries",
    packed="rounded_complex",
    space=None,
    name="conj_physical",
    node="ConjPhysicalBackward1",
    may_overlap="fiub",
    self=lambda grad: conj(grad),
    result=lambda self_t: conj_physical(self_t),
)
def conj_physical_written(self: Array) -> Array:
    """The conjugate that is written over a tensor."""
    return self if self.dtype.kind != "c" else np.conjugate(self)


@function(out=True, out_dtype=found, out_ends_history=True)
def conj_physical(self: Array) -> Array:
    """Compute the complex conjugate in new memory, not as a lazy view like `conj`; real tensors are returned as is."""
    return conj_physical_complex(self) if self.dtype.is_complex else self


publish("conj_physical_", make_inplace(conj_physical_written.op), Publication())
