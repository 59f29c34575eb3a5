"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import is_half, widened, with_single
from pullback._op.declare import FUNCTIONAL, Publication, publish
from pullback._op.define import Array, elementwise, op
from pullback._op.inplace import make_inplace
from pullback.kernels.numpy.math.numbers import ONE, PI, ZERO, no_zero
from pullback.ops.pointwise.arithmetic import conj, mul_number, where_tensors
from pullback.ops.pointwise.elementary import real_numbers
from pullback.ops.pointwise.power import rsqrt
from pullback.ops.supported import DOUBLE, SINGLE, complex_valued, floating, no_derivative, wide_floats

# ------------------------------------------------------------------ circular


@op(
    nested="strided",
    sparse="values",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, self: grad * conj(cos(self)),
    result=elementwise,
)
def sin(self: Array) -> Array:
    """Compute the sine of each element, in radians."""
    return np.sin(self)


@op(
    nested="strided",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, self: grad * -conj(sin(self)),
    result=elementwise,
)
def cos(self: Array) -> Array:
    """Compute the cosine of each element, in radians."""
    return np.cos(self)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, result: grad * conj(1 + result * result),
    result=elementwise,
)
def tan(self: Array) -> Array:
    """Compute the tangent of each element, in radians."""
    return np.tan(self)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    aliases=("arcsin",),
    foreach="unary",
    numpy=("arcsin",),
    self=lambda grad, self: grad * conj(rsqrt(1 - self * self)),
    result=elementwise,
)
def asin(self: Array) -> Array:
    """Compute the inverse sine of each element: an angle between -pi/2 and pi/2; nan for real numbers with |x| > 1."""
    return np.arcsin(self)


@op(
    inplace=True,
    floats=True,
    aliases=("arccos",),
    foreach="unary",
    numpy=("arccos",),
    self=lambda grad, self: grad * -conj(rsqrt(1 - self * self)),
    result=elementwise,
)
def acos(self: Array) -> Array:
    """Compute the inverse cosine of each element: an angle between 0 and pi; nan for real numbers with |x| > 1."""
    return np.arccos(self)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    aliases=("arctan",),
    foreach="unary",
    numpy=("arctan",),
    self=lambda grad, self: grad / conj(self * self + 1),
    result=elementwise,
)
def atan(self: Array) -> Array:
    """Compute the inverse tangent of each element: an angle between -pi/2 and pi/2."""
    return np.arctan(self)


FLOAT_PI = {dtype: PI[dtype] for dtype in (SINGLE, DOUBLE)}


@op(
    inplace=True,
    floats=True,
    also=("special.sinc",),
    self=lambda grad, self: sinc_backward(grad, self),
    result=elementwise,
)
def sinc(self: Array) -> Array:
    """Compute the normalised sinc of each element: sin(pi x) / (pi x), and 1 at zero."""
    dtype = self.dtype
    if self.ndim and (dtype is SINGLE or dtype is DOUBLE):
        x = np.multiply(self, FLOAT_PI[dtype])
        out = np.sin(x)
        np.true_divide(out, x, out)
        if no_zero(x):
            return out
    else:
        x = wide_floats(self)
        x = np.multiply(x, PI[x.dtype])
        out = np.true_divide(np.sin(x), x)
    return np.where(np.equal(x, ZERO[x.dtype]), ONE[x.dtype], out).astype(dtype, copy=False)


def sinc_backward(grad: Any, self: Any) -> Any:
    """The gradient of sinc, which is flat at zero."""
    x = self * math.pi
    square = self * self * math.pi
    sine = sin(x)  # first, as in torch: near zero the second derivative depends on the order in which gradients meet
    slope = (x * cos(x) - sine) / square
    return where_tensors(square != 0, grad * conj(slope), 0)


# ------------------------------------------------------------------ hyperbolic


@op(
    sparse="values",
    kernel="sinh_cpu",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, self: grad * conj(cosh(self)),
    result=elementwise,
)
def sinh(self: Array) -> Array:
    """Compute the hyperbolic sine of each element: (exp(x) - exp(-x)) / 2."""
    return np.sinh(self)


@op(
    kernel="cosh_cpu",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, self: grad * conj(sinh(self)),
    result=elementwise,
)
def cosh(self: Array) -> Array:
    """Compute the hyperbolic cosine of each element: (exp(x) + exp(-x)) / 2."""
    return np.cosh(self)


@op(
    nested="strided",
    sparse="values",
    inplace=True,
    floats=True,
    foreach="unary",
    self=lambda grad, result: tanh_backward(grad, result),
    result=elementwise,
)
def tanh(self: Array) -> Array:
    """Compute the hyperbolic tangent of each element: (exp(x) - exp(-x)) / (exp(x) + exp(-x)), between -1 and 1."""
    return np.tanh(self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, output: tanh_backward(grad, conj(output)),
    output=lambda grad, grad_output, output: conj(grad) * grad_output * conj(output * -2),
    result=lambda grad_output_t, output_t, grad_output, output: (
        tanh_backward(grad_output_t, output) + grad_output * conj(output_t * output * -2)
    ),
)
def tanh_backward(grad_output: Array, output: Array) -> Array:
    """The gradient of tanh, from its result."""
    if is_half(output.dtype):
        return tanh_backward(widened(grad_output), widened(output)).astype(output.dtype)
    return grad_output * conj(1 - output * output)


publish("tanh", tanh, FUNCTIONAL)


@op(
    sparse="values",
    floats=True,
    aliases=("arcsinh",),
    numpy=("arcsinh",),
    self=lambda grad, self: grad * conj(rsqrt(self * self + 1)),
    result=elementwise,
)
def asinh(self: Array) -> Array:
    """Compute the inverse hyperbolic sine of each element: log(x + sqrt(x**2 + 1))."""
    return np.arcsinh(self)


@op(
    floats=True,
    aliases=("arccosh",),
    numpy=("arccosh",),
    self=lambda grad, self: grad * acosh_slope(self),
    result=elementwise,
)
def acosh(self: Array) -> Array:
    """Compute the inverse hyperbolic cosine of each element: log(x + sqrt(x**2 - 1)); nan for real numbers below 1."""
    return np.arccosh(self)


def acosh_slope(self: Any) -> Any:
    """The derivative of acosh; of real numbers the formula goes on below -1, where the function is not defined."""
    if not complex_valued(self):
        return rsqrt(self * self - 1)
    return conj(rsqrt(self + -1) * rsqrt(self + 1))  # both sums with one sign of zero, by which roots take their side


@op(
    sparse="values",
    floats=True,
    aliases=("arctanh",),
    numpy=("arctanh",),
    self=lambda grad, self: grad / conj(1 - self * self),
    result=elementwise,
)
def atanh(self: Array) -> Array:
    """Compute the inverse hyperbolic tangent: log((1 + x) / (1 - x)) / 2; nan for real numbers with |x| > 1."""
    return np.arctanh(self)


# ------------------------------------------------------------------ written over self, where torch has no derivative


@op(
    sparse="values",
    space=None,
    name="asinh",
    node="AsinhBackward1",
    floats=True,
    untraced=("self",),
    self=lambda grad: no_derivative("inplace version of asinh"),
    result=lambda self_t: no_derivative("inplace version of asinh"),
)
def asinh_written(self: Array) -> Array:
    """What `asinh_` writes."""
    return np.arcsinh(self)


@op(
    space=None,
    name="acosh",
    node="AcoshBackward1",
    floats=True,
    untraced=("self",),
    self=lambda grad: no_derivative("inplace version of acosh"),
    result=lambda self_t: no_derivative("inplace version of acosh"),
)
def acosh_written(self: Array) -> Array:
    """What `acosh_` writes."""
    return np.arccosh(self)


@op(
    sparse="values",
    space=None,
    name="atanh",
    node="AtanhBackward1",
    floats=True,
    untraced=("self",),
    self=lambda grad: no_derivative("inplace version of atanh"),
    result=lambda self_t: no_derivative("inplace version of atanh"),
)
def atanh_written(self: Array) -> Array:
    """What `atanh_` writes."""
    return np.arctanh(self)


publish("asinh_", make_inplace(asinh_written.op), Publication(aliases=("arcsinh_",)))
publish("acosh_", make_inplace(acosh_written.op), Publication(aliases=("arccosh_",)))
publish("atanh_", make_inplace(atanh_written.op), Publication(aliases=("arctanh_",)))


# ------------------------------------------------------------------ degrees

DEGREE = math.pi / 180


def times_constant(self: Array, number: float) -> Array:
    """A product with a number, which half precision reads in float32."""
    x = floating(real_numbers(self))
    return np.multiply(x, x.dtype.type(number)) if x.dtype.itemsize != 2 else with_single(np.multiply, x, number)


def check_real(name: str) -> Any:
    """Only real numbers are angles."""

    def check(self: Array) -> None:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")

    return check


@op(
    sparse="values",
    kernel="mul_cpu_reduced_float",
    inplace=True,
    floats=True,
    node="Deg2RadBackward0",
    check=check_real("deg2rad"),
    numpy=("radians",),
    self=lambda grad: mul_number(grad, DEGREE),
    result=elementwise,
)
def deg2rad(self: Array) -> Array:
    """Convert angles from degrees to radians: x pi / 180."""
    return times_constant(self, DEGREE)


@op(
    sparse="values",
    kernel="mul_cpu_reduced_float",
    inplace=True,
    floats=True,
    node="Rad2DegBackward0",
    check=check_real("rad2deg"),
    numpy=("degrees",),
    self=lambda grad: mul_number(grad, 180 / math.pi),
    result=elementwise,
)
def rad2deg(self: Array) -> Array:
    """Convert angles from radians to degrees: x 180 / pi."""
    return times_constant(self, 180 / math.pi)
