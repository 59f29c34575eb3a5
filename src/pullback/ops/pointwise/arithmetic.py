"""Addition, subtraction, multiplication and division, with their operators; negation and conjugation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.half import SINGLE, is_half, rounded, with_single
from pullback._dtype import FROM_NUMPY, bool_, dtype
from pullback._op.apply import check_broadcast
from pullback._op.constants import constant
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, Number, elementwise, explain, function, linear, op
from pullback._op.inplace import make_inplace
from pullback._op.out import found
from pullback._tensor import Tensor
from pullback.kernels.numpy.math.numbers import real_sign
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import complex_valued, floating, inverse, refuse

NUMBERS = (bool, int, float, complex, np.generic)

# ------------------------------------------------------------------ what formulas of every topic use


@op(
    sparse="entries",
    space=None,
    name="conj",
    view=True,
    changes_dtype=True,
    flips="conjugate",
    self=lambda grad: conj(grad),
    result=lambda self_t: conj(self_t),
)
def conj_complex(self: Array) -> Array:
    """The complex conjugate of a complex tensor: the same memory seen through a sign."""
    return np.conjugate(self)


@function(raw=True, numpy=("conjugate",))
def conj(input: Array) -> Array:
    """Return the complex conjugate as a lazy view of the same memory; a real tensor is returned as it is."""
    try:
        kind = input.dtype
        if type(kind) is dtype:
            return conj_complex(input) if kind.is_complex else input
        return np.conjugate(input) if kind.kind == "c" else input
    except Exception as error:
        explain(error, conj, input)
        raise


@op(
    sparse="entries",
    packed="rounded",
    space=None,
    name="mul",
    node="MulBackward1",
    pointwise=True,
    absent_tangent="product",
    self=lambda grad, other: mul_number(grad, other.conjugate()),
    result=lambda self_t, other: mul_number(self_t, other),
)
def mul_number(self: Array, other: Number) -> Array:
    """Times a Python number, as torch's own formulas multiply."""
    return np.multiply(self, other) if self.dtype.itemsize != 2 else with_single(np.multiply, self, other)


@op(
    sparse="quotient_of",
    space=None,
    name="div",
    node="DivBackward1",
    pointwise=True,
    absent_tangent="quotient",
    self=lambda grad, other: div_number(grad, other.conjugate()),
    result=lambda self_t, other: div_number(self_t, other),
)
def div_number(self: Array, other: Number) -> Array:
    """Divided by a Python number, as torch's own formulas divide."""
    return np.true_divide(self, other) if self.dtype.itemsize != 2 else with_single(np.true_divide, self, other)


def scaled(grad: Any, factor: Number) -> Any:
    """grad times the conjugate of a factor; for the factor 1 that most calls have without the product."""
    return grad if factor == 1 else mul_number(grad, factor.conjugate())


# ------------------------------------------------------------------ + and -


def check_alpha(self: Array, other: Array, *, alpha: Number, name: str = "add") -> None:
    """Torch's rules for the factor of `other`."""
    check_broadcast([self, other])
    kind = self.dtype.kind
    if not isinstance(alpha, NUMBERS):
        raise TypeError(f"{name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float | complex) and kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    exact_number(alpha, FROM_NUMPY[self.dtype])


def times_alpha(other: Array, alpha: Number) -> Array:
    """alpha * other without leaving the dtype, but in float32 for half: the sum is rounded once, alpha before.

    A factor that would leave the dtype is `check_alpha`'s to refuse.
    """
    kind = other.dtype
    if isinstance(alpha, np.generic):
        alpha = alpha.item()  # NumPy's numbers count as Python's
    factor = constant(alpha, kind)
    if factor is None or (isinstance(alpha, bool) and kind.kind != "b"):
        if type(alpha) is not int or kind.kind not in "iub":
            raise TypeError("not a factor for this dtype")
        factor = np.asarray(exact_number(alpha, FROM_NUMPY[kind]), kind)
    return np.multiply(other, factor, dtype=SINGLE if is_half(kind) else kind)


@op(
    nested="strided",
    sparse="sum_of",
    packed="rounded_complex",
    kernel="add_stub",
    operator="add",
    reflected=True,
    inplace=True,
    promote=True,
    check=check_alpha,
    formerly=("alpha",),
    foreach="binary_or_one",
    absent_tangent="sum",
    flops="elements",
    self=lambda grad: grad,
    other=lambda grad, alpha: scaled(grad, alpha),
    result=lambda self_t, other_t, alpha: self_t + (other_t if alpha == 1 else other_t * alpha),
)
def add(self: Array | Number, other: Array | Number, *, alpha: Number = 1) -> Array:
    """Add two tensors or numbers elementwise: `input + alpha * other`.

    Shapes are broadcast and dtypes promoted to a common one; for bools the sum is a logical or.
    """
    plain = alpha == 1 and alpha is not True
    return np.add(self, other) if plain else rounded(np.add(self, times_alpha(other, alpha)), self.dtype)


def refuse_bools(self: Any, other: Any, alpha: Number) -> None:
    """Bools are not subtracted, not even from numbers of other types."""
    bools = [isinstance(x, bool) or getattr(x, "dtype", None) is bool_ for x in (self, other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@op(
    nested="strided",
    sparse="difference",
    packed="rounded_complex",
    kernel="add_stub",
    operator="sub",
    inplace=True,
    promote=True,
    check=partial(check_alpha, name="sub"),
    check_operands=refuse_bools,
    aliases=("subtract",),
    formerly=("alpha",),
    foreach="binary",
    numpy=("subtract",),
    absent_tangent="difference",
    self=lambda grad: grad,
    other=lambda grad, alpha: scaled(-grad, alpha),
    result=lambda self_t, other_t, alpha: self_t - (other_t if alpha == 1 else other_t * alpha),
)
def sub(self: Array | Number, other: Array | Number, *, alpha: Number = 1) -> Array:
    """Subtract `other`, scaled by `alpha`, elementwise: `input - alpha * other`, with broadcasting. Not for bools."""
    plain = alpha == 1 and alpha is not True
    return np.subtract(self, other) if plain else rounded(np.subtract(self, times_alpha(other, alpha)), self.dtype)


# ------------------------------------------------------------------ *


@op(
    nested="strided",
    sparse="product_of",
    packed="rounded",
    operator="mul",
    reflected=True,
    inplace=True,
    promote=True,
    unrounded="other",
    aliases=("multiply",),
    foreach="binary_or_one",
    numpy=("multiply",),
    absent_tangent="product",
    flops="elements",
    self=lambda grad, other: grad * conj(other),
    other=lambda grad, self: grad * conj(self),
    result=lambda self_t, other_t, self, other: self_t * other + other_t * self,
)
def mul(self: Array | Number, other: Array | Number) -> Array:
    """Multiply two tensors or numbers elementwise: `input * other`, with broadcasting and a common dtype."""
    return np.multiply(self, other)


# ------------------------------------------------------------------ /


@op(
    sparse="quotient_of",
    space=None,
    name="div",
    operator="truediv",
    inplace=True,
    promote=True,
    floats=True,
    unrounded="other",
    absent_tangent="quotient",
    self=lambda grad, other: grad / conj(other),
    other=lambda grad, self, other: -grad * conj(self / other / other),
    result=lambda self_t, other_t, self, other, result: (self_t - other_t * result) / other,
)
def true_div(self: Array | Number, other: Array | Number) -> Array:
    """The quotient, in floating point."""
    return np.true_divide(self, other)


def check_div_mode(self: Array, other: Array, rounding_mode: str) -> None:
    """Torch's words for a rounding mode it does not know."""
    check_broadcast([self, other])
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )


@op(
    sparse="quotient_of",
    space=None,
    name="div",
    node="DivBackward2",
    promote=True,
    unrounded="other",
    check=check_div_mode,
    pointwise=True,
    untraced=("self", "other"),
    self=lambda grad, other, rounding_mode: zeros_of(grad, grad.shape),
    other=lambda grad, self, other, rounding_mode: zeros_of(grad, grad.shape),
    result=lambda result: zeros_of(result, result.shape),
)
def div_mode(self: Array | Number, other: Array | Number, rounding_mode: str) -> Array:
    """The quotient rounded towards zero or down."""
    if rounding_mode == "floor":
        return floor_quotient(self, other)
    if rounding_mode == "trunc":
        return trunc_quotient(self, other)
    raise ValueError(rounding_mode)


def check_divisor(kernel: str, self: Array, other: Array) -> None:
    """Integers are not divided by zero, bools not at all."""
    kind = self.dtype.kind
    if kind in "iu":
        if np.count_nonzero(other) < other.size and self.size:
            raise RuntimeError("ZeroDivisionError")
    else:
        refuse(kernel, self, "bc")


def floor_quotient(self: Array, other: Array) -> Array:
    """The quotient rounded down."""
    check_divisor("div_floor_cpu", self, other)
    return np.floor_divide(self, other)


def trunc_quotient(self: Array, other: Array) -> Array:
    """The quotient rounded towards zero."""
    check_divisor("div_trunc_cpu", self, other)
    if self.dtype.kind not in "iu":
        return np.trunc(np.true_divide(self, other))
    quotient, rest = np.divmod(self, other)
    return quotient + ((rest != 0) & ((self < 0) != (other < 0)))


@function(nested="strided", out=True, aliases=("divide",), foreach="binary_or_one", numpy=("divide", "true_divide"))
def div(self: Array, other: Array | Number, *, rounding_mode: str | None = None) -> Array:
    """Divide elementwise: `input / other`, with broadcasting.

    Integers are divided in floating point, unless `rounding_mode` is "trunc" (towards zero) or "floor" (downwards).
    """
    return true_div(self, other) if rounding_mode is None else div_mode(self, other, rounding_mode)


true_div_ = make_inplace(true_div.op)
div_mode_ = make_inplace(div_mode.op)


@function(name="div_", space=None, aliases=("divide_",))
def div_inplace(self: Array, other: Array | Number, *, rounding_mode: str | None = None) -> Array:
    """In-place version of :func:`div`."""
    return true_div_(self, other) if rounding_mode is None else div_mode_(self, other, rounding_mode)


@function(nested="strided", out=True)
def true_divide(self: Array, other: Array | Number) -> Array:
    """Divide elementwise in floating point, with broadcasting; the same as `div` without a rounding mode."""
    return true_div(self, other)


publish("true_divide_", true_div_, Publication(space=None))
Tensor.__div__, Tensor.__idiv__ = Tensor.__truediv__, Tensor.__itruediv__  # type: ignore[attr-defined]


@op(
    kernel="reciprocal_cpu",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, result: -grad * conj(result * result),
    result=elementwise,
)
def reciprocal(self: Array) -> Array:
    """Compute the reciprocal 1 / x of each element; integers give floating-point results."""
    return inverse(floating(self))


# ------------------------------------------------------------------ signs and parts


def check_neg(self: Array) -> None:
    """Bools have no negative."""
    if self.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


@op(
    nested="strided",
    sparse="entries",
    kernel="neg_cpu",
    packed="rounded_complex",
    inplace=True,
    aliases=("negative",),
    operator="neg",
    check=check_neg,
    foreach="unary",
    numpy=("negative",),
    self=lambda grad: -grad,
    result=linear,
    out_dtype=found,
)
def neg(self: Array) -> Array:
    """Negate each element: -x."""
    return np.negative(self)


@function(raw=True, explained=True, operator="pos")
def positive(input: Array) -> Array:
    """Return the input itself; an error for bools."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def check_abs(self: Array) -> None:
    """Bools have no absolute value."""
    refuse("abs_cpu", self, "b")


@op(
    nested="strided",
    sparse="values",
    kernel="abs_cpu",
    packed="rounded",
    aliases=("absolute",),
    operator="abs",
    check=check_abs,
    foreach="unary",
    numpy=("absolute", "fabs"),
    self=lambda grad, self: grad * sgn(self),
    result=lambda self_t, self: real_part(self_t * conj(sgn(self))),
)
def abs(self: Array) -> Array:
    """Compute the absolute value |x| of each element; for complex numbers the modulus, as a real tensor."""
    return np.absolute(self)


abs_real_ = make_inplace(abs.op)


@function(name="abs_")
def abs_inplace(self: Array) -> Array:
    """In-place version of :func:`abs`, for real tensors only."""
    if complex_valued(self):
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs_real_(self)


publish("absolute_", abs_inplace, Publication(space=None))


@op(vmap="leading", space=None, node="SelectBackward0", self=lambda grad: grad, result=linear)
def real_part(self: Array) -> Array:
    """The real part of a complex tensor; a real tensor as it is."""
    return self.real.copy()


def check_sign(self: Array) -> None:
    """Torch leaves the sign of complex numbers to sgn."""
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


@op(
    sparse="values",
    kernel="sign_cpu",
    inplace=True,
    check=check_sign,
    untraced=("self",),
    foreach="unary",
    self=lambda grad: zeros_of(grad, grad.shape),
    result=elementwise,
    out_dtype=found,
)
def sign(self: Array) -> Array:
    """Return the sign of each element: -1, 0 or 1, and 0 for nan."""
    return real_sign(self)


@op(
    nested="strided",
    sparse="values",
    packed="rounded_complex",
    kernel="sign_cpu",
    inplace=True,
    pointwise=True,
    untraced=("self",),
    self=lambda grad, self, result: sgn_moves(grad, self, result),
    result=lambda self_t, self, result: sgn_moves(self_t, self, result),
    out_dtype=found,
)
def sgn(self: Array) -> Array:
    """Return the sign of each element: x / |x| for complex numbers and 0 at zero; the same as `sign` for real ones."""
    if self.dtype.kind != "c":
        return real_sign(self)
    modulus = np.absolute(self)
    divisor = np.where(modulus == 0, modulus.dtype.type(1), modulus)
    out = np.empty_like(self)  # a quotient of complex numbers would overflow where the modulus is tiny
    out.real, out.imag = self.real / divisor, self.imag / divisor
    return np.where(modulus == 0, self.dtype.type(0), out)


def sgn_moves(change: Any, self: Any, result: Any) -> Any:
    """How the direction of a complex number changes: only by the part of the change at right angles to it."""
    if not complex_valued(self):
        return zeros_of(change, change.shape)
    moved = (change - result * real_part(change * conj(result))) / abs(self)
    return where_tensors(self != 0, moved, 0)


@op(
    packed="moved",
    space=None,
    name="where",
    node="WhereBackward0",
    vmap="boxed",
    promote=("self", "other"),
    check=lambda condition, self, other: check_broadcast([condition, self, other]),
    pointwise=True,
    self=lambda grad, condition: where_tensors(condition, grad, 0),
    other=lambda grad, condition: where_tensors(logical_not(condition), grad, 0),
    result=lambda condition, self_t, other_t: where_tensors(condition, self_t, other_t),
)
def where_tensors(condition: Array, self: Array | Number, other: Array | Number) -> Array:
    """Elements of self where the condition holds, of other elsewhere."""
    return np.where(condition, self, other)


@op(nested="strided", inplace=True)
def logical_not(self: Array) -> Array:
    """Return True where an element is zero (or False), and False elsewhere."""
    return np.logical_not(self)
