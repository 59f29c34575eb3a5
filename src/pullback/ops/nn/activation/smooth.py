"""Smooth activations: gelu, silu, mish, softplus, logsigmoid; and the shrinking and hard ones made of pieces.

Each has a backward op of its own, as in torch: one pass over the elements, and differentiable again.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number, finfo
from pullback._arrays.memory import row_major
from pullback._dtype import FROM_NUMPY, float64
from pullback._op.define import Array, Number, elementwise, not_implemented, op
from pullback._op.out import found
from pullback._tensor import Tensor
from pullback.kernels.jit.small.choose import pointwise
from pullback.kernels.numpy.index.select import keep_where
from pullback.kernels.numpy.math.numbers import ONE, ZERO, Constant
from pullback.ops.nn.activation.piecewise import floats_only, narrowed, needs_floats
from pullback.ops.pointwise.arithmetic import abs, conj
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.pointwise.elementary import exp, sigmoid
from pullback.ops.pointwise.special import erf
from pullback.ops.pointwise.trigonometric import tanh
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import refuse, wide_floats

THREE, SIX = Constant(3), Constant(6)

# ------------------------------------------------------------------ gelu

SLOPE, CUBIC = sqrt(2 / pi), 0.044715
"""tanh(SLOPE * (x + CUBIC * x**3)) is nearly erf(x / sqrt(2))."""


def check_gelu(self: Array, *, approximate: str) -> None:
    """Torch's demands on gelu."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    refuse("GeluKernelImpl", self, "iubc")


@op(
    nested="strided",
    space="nn.functional",
    method=False,
    check=check_gelu,
    self=lambda grad, self, approximate: gelu_backward(grad, self, approximate),
    result=elementwise,
    out_dtype=found,
)
def gelu(self: Array, *, approximate: str = "none") -> Array:
    """Apply the Gaussian error linear unit: `x * Phi(x)`, where `Phi` is the normal distribution function.

    With `approximate='tanh'` it is `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.
    """
    x = needs_floats(self)
    if approximate == "tanh":
        return narrowed(0.5 * x * (1 + np.tanh(SLOPE * (x + CUBIC * x * x * x))), self)
    if approximate != "none":
        raise ValueError(approximate)
    return narrowed(0.5 * x * (1 + erf(x * sqrt(0.5))), self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self, approximate: gelu_backward(grad, self, approximate),
    self=lambda grad, grad_output, self, approximate: grad * grad_output * gelu_curvature(self, approximate),
    result=lambda grad_output_t, self_t, grad_output, self, approximate: (
        gelu_backward(grad_output_t, self, approximate) + self_t * grad_output * gelu_curvature(self, approximate)
    ),
)
def gelu_backward(grad_output: Array, self: Array, approximate: str) -> Array:
    """The gradient times the slope of gelu."""
    x = wide_floats(self)
    if approximate == "tanh":
        bend = np.tanh(SLOPE * (x + CUBIC * x * x * x))
        slope = 0.5 * (1 + bend) + 0.5 * x * (1 - bend * bend) * SLOPE * (1 + 3 * CUBIC * x * x)
    else:
        slope = 0.5 * (1 + erf(x * sqrt(0.5))) + x * np.exp(-0.5 * x * x) * sqrt(0.5 / pi)
    return narrowed(grad_output * slope, grad_output)


def gelu_curvature(self: Any, approximate: str) -> Any:
    """The second derivative of gelu."""
    if approximate == "none":
        return (2 - self * self) * exp(self * self * -0.5) * sqrt(0.5 / pi)
    squared = self * self
    bend = tanh((self + squared * self * CUBIC) * SLOPE)
    steep = (squared * (3 * CUBIC) + 1) * SLOPE
    turn = -bend * steep * steep + self * (3 * CUBIC * SLOPE)
    return (1 - bend * bend) * (steep + self * turn)


# ------------------------------------------------------------------ silu, mish


def check_silu(self: Array) -> None:
    """silu is defined for complex numbers too."""
    refuse("silu_cpu", self, "iub")


@op(
    nested="strided",
    space=None,
    check=check_silu,
    self=lambda grad, self: silu_gradient(grad, self),
    result=elementwise,
)
def silu(self: Array) -> Array:
    """self * sigmoid(self)."""
    if self.dtype.kind not in "fcV":
        raise TypeError("floats only")
    x = wide_floats(self)
    out = np.exp(np.negative(x))
    return narrowed(np.divide(x, np.add(out, ONE[x.dtype])), self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self: silu_backward(grad, conj(self)),
    self=lambda grad, grad_output, self: conj(grad) * grad_output * conj(silu_curvature(self)),
    result=lambda grad_output_t, self_t, grad_output, self: (
        silu_backward(grad_output_t, self) + conj(self_t) * grad_output * conj(silu_curvature(self))
    ),
)
def silu_backward(grad_output: Array, self: Array) -> Array:
    """The gradient times the slope of silu."""
    x = wide_floats(self)
    one = ONE[x.dtype]
    s = np.divide(one, np.add(np.exp(np.negative(x)), one))
    slope = np.multiply(s, np.add(np.multiply(x, np.subtract(one, s)), one))
    return narrowed(np.multiply(grad_output, slope.conjugate() if x.dtype.kind == "c" else slope), grad_output)


def silu_gradient(grad: Any, self: Any) -> Any:
    """The gradient of silu; one that can be differentiated again is written out, as in torch."""
    if not isinstance(grad, Tensor) or self.dtype.is_complex:
        return silu_backward(grad, self)
    s = sigmoid(self)
    return grad * s * (1 + self * (1 - s))


def silu_curvature(self: Any) -> Any:
    """The second derivative of silu."""
    s = sigmoid(self)
    return s * (1 - s) * (2 + self * (1 - 2 * s))


@op(
    space=None,
    check=floats_only("mish_cpu"),
    self=lambda grad, self: mish_gradient(grad, self),
    result=elementwise,
)
def mish(self: Array) -> Array:
    """self * tanh(log(1 + exp(self)))."""
    x = needs_floats(self)
    return narrowed(np.multiply(x, np.tanh(np.logaddexp(x, ZERO[x.dtype]))), self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self: mish_backward(grad, self),
    self=lambda grad, grad_output, self: grad * grad_output * mish_curvature(self),
    result=lambda grad_output_t, self_t, grad_output, self: (
        mish_backward(grad_output_t, self) + self_t * grad_output * mish_curvature(self)
    ),
)
def mish_backward(grad_output: Array, self: Array) -> Array:
    """The gradient times the slope of mish."""
    x = wide_floats(self)
    t = np.tanh(np.logaddexp(x, ZERO[x.dtype]))
    return narrowed(grad_output * (t + x * (1 - t * t) / (1 + np.exp(-x))), grad_output)


def mish_gradient(grad: Any, self: Any) -> Any:
    """The gradient of mish; one that can be differentiated again is written out, as in torch."""
    if not isinstance(grad, Tensor):
        return mish_backward(grad, self)
    t = tanh(softplus(self, 1, 20))
    return grad * (t + self * sigmoid(self) * (1 - t * t))


def mish_curvature(self: Any) -> Any:
    """The second derivative of mish."""
    s = sigmoid(self)
    t = tanh(softplus(self, 1, 20))
    flat = 1 - t * t
    return flat * s * (2 + self * (1 - s - 2 * t * s))


# ------------------------------------------------------------------ softplus, logsigmoid


@op(
    space="nn.functional",
    method=False,
    check=floats_only("softplus_cpu"),
    self=lambda grad, self, beta, threshold: softplus_backward(grad, self, beta, threshold),
    result=elementwise,
    out_dtype=found,
)
def softplus(self: Array, beta: Number = 1, threshold: Number = 20) -> Array:
    """Apply softplus, a smooth relu: `log(1 + exp(beta * x)) / beta`.

    Where `beta * x` is above `threshold`, it is `x` itself.
    """
    x = needs_floats(self)
    if isinstance(threshold, complex):
        threshold = exact_number(threshold, FROM_NUMPY[self.dtype])
    scaled = x * float(beta)
    return narrowed(np.where(scaled > threshold, x, np.log1p(np.exp(scaled)) / float(beta)), self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self, beta, threshold: softplus_backward(grad, self, beta, threshold),
    self=lambda grad, grad_output, self, beta, threshold: softplus_curvature(grad * grad_output, self, beta, threshold),
    result=lambda grad_output_t, self_t, grad_output, self, beta, threshold: (
        softplus_backward(grad_output_t, self, beta, threshold)
        + softplus_curvature(self_t * grad_output, self, beta, threshold)
    ),
)
def softplus_backward(grad_output: Array, self: Array, beta: Number, threshold: Number) -> Array:
    """The gradient times sigmoid(beta * self)."""
    scaled = wide_floats(self) * float(beta)
    power = np.exp(scaled)
    return narrowed(np.where(scaled > threshold, grad_output, grad_output * power / (power + 1)), grad_output)


def softplus_curvature(product: Any, self: Any, beta: Number, threshold: Number) -> Any:
    """product times the second derivative of softplus."""
    s = sigmoid(self * beta)
    return where(self * beta >= threshold, 0, product * s * (1 - s) * beta)


@op(
    vmap="leading",
    space="nn.functional",
    method=False,
    name="log_sigmoid",
    outputs=("output", "buffer"),
    visible=1,
    out_overlap="unchecked",
    check=floats_only("log_sigmoid_cpu"),
    self=lambda grad, self, buffer: log_sigmoid_backward(grad, self, buffer),
    result=lambda self_t, self, buffer: (log_sigmoid_backward(self_t, self, buffer), None),
)
def log_sigmoid(self: Array) -> Any:
    """Compute the logarithm of the sigmoid: `log(1 / (1 + exp(-x)))`, without overflow."""
    x = needs_floats(self)
    buffer = exponential_below_one(x)
    return row_major(narrowed(log_of_sigmoid(x, buffer), self)), narrowed(buffer, self)


@pointwise
def exponential_below_one(x: Array) -> Array:
    """exp(-|x|)"""
    return np.exp(np.negative(np.absolute(x)))


@pointwise
def log_of_sigmoid(x: Array, buffer: Array) -> Array:
    """log(sigmoid(x)) with the exponential at hand."""
    return np.subtract(np.minimum(x, ZERO[x.dtype]), np.log1p(buffer))


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self, buffer: log_sigmoid_backward(grad, self, buffer),
    self=lambda grad, grad_output, self: grad * grad_output * sigmoid(self) * (sigmoid(self) - 1),
    result=lambda grad_output_t, self_t, grad_output, self, buffer: (
        log_sigmoid_backward(grad_output_t, self, buffer) + self_t * grad_output * sigmoid(self) * (sigmoid(self) - 1)
    ),
)
def log_sigmoid_backward(grad_output: Array, self: Array, buffer: Array) -> Array:
    """The gradient times sigmoid(-self), from the exponential the forward kept."""
    z = wide_floats(buffer)
    return narrowed(grad_output * np.where(self < 0, 1 - z / (1 + z), z / (1 + z)), grad_output)


# ------------------------------------------------------------------ shrinking: nothing near zero


def check_softshrink(self: Array, lambd: Number) -> None:
    """Torch's demands on softshrink."""
    refuse("softshrink_check", self, "iubc")
    kind, number = FROM_NUMPY[self.dtype], convert_number(lambd, float64)
    if not 0 <= number <= finfo(kind).max:
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(kind).max:g}] for input dtype {kind.scalar_type}, but found {lambd:g}"
        )


@op(
    space="nn.functional",
    method=False,
    check=check_softshrink,
    self=lambda grad, self, lambd: softshrink_backward(grad, self, lambd),
    result=elementwise,
    out_dtype=found,
)
def softshrink(self: Array, lambd: Number = 0.5) -> Array:
    """Move elements towards zero by `lambd`: `x - lambd` above it, `x + lambd` below `-lambd`, and zero between."""
    check_softshrink(self, lambd)
    x = wide_floats(self)
    edge = x.dtype.type(lambd)
    out = np.where(x > edge, x - edge, np.where(x < -edge, x + edge, x * x.dtype.type(0)))
    return narrowed(out, self)


@op(
    check=floats_only("hardshrink_cpu"),
    self=lambda grad, self, lambd: hardshrink_backward(grad, self, lambd),
    result=elementwise,
    out_dtype=found,
)
def hardshrink(self: Array, lambd: Number = 0.5) -> Array:
    """Set small elements to zero: `x` where `|x| > lambd`, zero elsewhere."""
    x = needs_floats(self)
    edge = x.dtype.type(exact_number(lambd, FROM_NUMPY[self.dtype]))
    return keep_where(np.logical_not(np.logical_and(x >= -edge, x <= edge)), self)


@op(
    space=None,
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, lambd: hardshrink_backward(grad, self, lambd),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, lambd: hardshrink_backward(grad_output_t, self, lambd),
)
def hardshrink_backward(grad_output: Array, self: Array, lambd: Number) -> Array:
    """The gradient where self is further than lambd from zero, or NaN."""
    edge = self.dtype.type(lambd)
    return keep_where(np.logical_not(np.logical_and(self >= -edge, self <= edge)), grad_output)


@op(
    space=None,
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, lambd: softshrink_backward(grad, self, lambd),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, lambd: softshrink_backward(grad_output_t, self, lambd),
)
def softshrink_backward(grad_output: Array, self: Array, lambd: Number) -> Array:
    """The same gradient, of softshrink."""
    edge = self.dtype.type(lambd)
    return keep_where(np.logical_not(np.logical_and(self >= -edge, self <= edge)), grad_output)


# ------------------------------------------------------------------ hard versions: straight lines for curves


@op(
    space=None,
    check=floats_only("hardsigmoid_cpu"),
    self=lambda grad, self: hardsigmoid_backward(grad, self),
    result=elementwise,
)
def hardsigmoid(self: Array) -> Array:
    """self / 6 + 1/2, held between 0 and 1."""
    x = needs_floats(self)
    return narrowed(np.divide(ramp(x), SIX[x.dtype]), self)


def ramp(x: Array) -> Array:
    """x + 3, held between 0 and 6."""
    dtype = x.dtype
    return np.minimum(np.maximum(np.add(x, THREE[dtype]), ZERO[dtype]), SIX[dtype])


SIXTH = float(np.float32(1 / 6))
"""Torch rounds this one to single precision, whatever the dtype."""
SIXTHS = Constant(SIXTH)


@op(
    space=None,
    pointwise=True,
    grad_output=not_implemented,
    self=not_implemented,
    result=lambda grad_output_t, self: hardsigmoid_backward(grad_output_t, self),
)
def hardsigmoid_backward(grad_output: Array, self: Array) -> Array:
    """A sixth of the gradient between -3 and 3."""
    inside = np.less(np.absolute(self), THREE[self.dtype])
    grad = wide_floats(grad_output)
    return keep_where(inside, narrowed(np.multiply(grad, SIXTHS[grad.dtype]), grad_output))


@op(
    space=None,
    check=floats_only("hardswish_cpu"),
    self=lambda grad, self: hardswish_backward(grad, self),
    result=elementwise,
)
def hardswish(self: Array) -> Array:
    """self * hardsigmoid(self)."""
    x = needs_floats(self)
    return narrowed(np.divide(np.multiply(x, ramp(x)), SIX[x.dtype]), self)


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, self: hardswish_backward(grad, self),
    self=lambda grad, grad_output, self: where(abs(self) < 3, grad * grad_output / 3, 0),
    result=lambda grad_output_t, self_t, grad_output, self: (
        hardswish_backward(grad_output_t, self) + where(abs(self) < 3, self_t * grad_output / 3, 0)
    ),
)
def hardswish_backward(grad_output: Array, self: Array) -> Array:
    """The gradient times the slope: 0, self / 3 + 1/2, or 1."""
    x = wide_floats(self)
    middle = np.where(x <= -3, 0, grad_output * (x / 3 + 0.5))
    return narrowed(np.where(x >= 3, grad_output, middle), grad_output)
