"""Activations with corners: relu and its relatives, made of straight pieces and exponentials.

Each has a backward op of its own, as in torch: one pass over the elements, and differentiable again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.half import is_half, widened
from pullback._dtype import FROM_NUMPY, float32, int64
from pullback._op.declare import FUNCTIONAL, TORCH, publish
from pullback._op.define import Array, Number, elementwise, function, op
from pullback._op.inplace import make_inplace
from pullback._tensor import Tensor
from pullback.kernels.numpy.index.select import keep_where
from pullback.kernels.numpy.math.numbers import Constant
from pullback.kernels.numpy.norm.rows import number
from pullback.ops.pointwise.arithmetic import mul_number
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.pointwise.elementary import exp
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import refuse, wide_floats


class RealZero(Constant):
    """Zero in each dtype of real numbers; the others go back to the check."""

    def __missing__(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        if dtype.kind in "bc":
            raise TypeError("real numbers only")
        return super().__missing__(dtype)


ZEROS = RealZero(0)


def floats_only(kernel: str) -> Any:
    """The check of an op whose kernel torch has for real floats only."""

    def check(self: Array, *arguments: Any, **keywords: Any) -> None:
        refuse(kernel, self, "iubc")

    return check


def needs_floats(self: Array) -> Array:
    """The array, in float32 if it is half; anything but floats goes back to the check."""
    if self.dtype.kind not in "fV":
        raise TypeError("floats only")
    return wide_floats(self)


def narrowed(out: Array, like: Array) -> Array:
    """The result in the dtype of the input."""
    return out if out.dtype is like.dtype else out.astype(like.dtype)


# ------------------------------------------------------------------ relu, threshold


def check_relu(self: Array) -> None:
    """Torch's relu knows no bools and no complex numbers."""
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


@op(
    nested="strided",
    sparse="values",
    kernel="clamp_min_scalar_cpu",
    inplace=True,
    out=False,
    check=check_relu,
    pointwise=True,
    self=lambda grad, result: threshold_backward(grad, result, 0),
    result=lambda self_t, result: threshold_backward(self_t, result, 0),
)
def relu(self: Array) -> Array:
    """Apply the rectified linear unit: `max(0, x)`."""
    return np.maximum(ZEROS[self.dtype], self)  # the second of two zeros: -0.0 stays as it is


@op(
    sparse="above",
    space=None,
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, threshold: threshold_backward(grad, self, threshold),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, threshold: threshold_backward(grad_output_t, self, threshold),
)
def threshold_backward(grad_output: Array, self: Array, threshold: Number) -> Array:
    """The gradient where self is above the threshold."""
    below = np.less_equal(self, ZEROS[self.dtype] if threshold == 0 else threshold)
    return keep_where(np.logical_not(below), grad_output)


def functional_relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply the rectified linear unit: `max(0, x)`.

    With `inplace` the input itself is overwritten and returned.
    """
    return input.relu_() if inplace else relu(input)  # type: ignore[attr-defined]


def check_threshold(self: Array, threshold: Number, value: Number) -> None:
    """Torch's threshold knows no bools and no complex numbers."""
    refuse("threshold_cpu", self, "bc")


@op(
    nested="strided",
    method=False,
    check=check_threshold,
    self=lambda grad, self, threshold: threshold_backward(grad, self, threshold),
    result=elementwise,
)
def threshold(self: Array, threshold: Number, value: Number) -> Array:
    """Replace the elements that are not above a threshold: `x` where `x > threshold`, `value` elsewhere."""
    if self.dtype.kind in "bc":
        raise TypeError("real numbers only")
    return thresholded(self, threshold, value)


def thresholded(self: Array, threshold: Number, value: Number) -> Array:
    """What threshold computes; both numbers have to fit, the threshold of half precision into single."""
    plain = type(threshold) is not complex and self.dtype.kind == "f" and self.dtype.itemsize > 2
    if not plain or max(abs(threshold), abs(value)) > 1e38:
        dtype = FROM_NUMPY[self.dtype]
        if is_half(self.dtype):
            threshold = np.float32(exact_number(threshold, float32))
        else:
            threshold = exact_number(threshold, dtype)
        value = exact_number(value, dtype)
    return narrowed(np.where(np.less_equal(self, threshold), self.dtype.type(value), self), self)


@op(
    space=None,
    name="threshold",
    node="ThresholdBackward1",
    may_overlap="fiub",
    check=check_threshold,
    self=lambda grad, self, threshold: threshold_backward(grad, self, threshold),
    result=elementwise,
)
def threshold_overwriting(self: Array, threshold: Number, value: Number) -> Array:
    """What `threshold_` computes."""
    if self.dtype.kind in "bc":
        raise TypeError("real numbers only")
    return thresholded(self, threshold, value)


# ------------------------------------------------------------------ hardtanh, relu6


def check_hardtanh(self: Array, min_val: Number, max_val: Number) -> None:
    """Torch's demands on hardtanh."""
    if self.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if self.dtype.kind == "u" and min(whole_bounds(min_val, max_val)) < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


def whole_bounds(*bounds: Number) -> tuple[int, ...]:
    """The bounds of integers, which must be numbers of 64 bits before they are any of a narrower dtype."""
    return tuple(int(convert_number(bound, int64)) for bound in bounds)  # type: ignore[arg-type]


@op(
    space=None,
    inplace=False,
    check=check_hardtanh,
    self=lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val),
    result=elementwise,
)
def hardtanh(self: Array, min_val: Number = -1, max_val: Number = 1) -> Array:
    """Elements held between two bounds."""
    if self.dtype.kind in "bcu":
        check_hardtanh(self, min_val, max_val)
    kind = self.dtype.type
    if self.dtype.kind in "iu":
        min_val, max_val = whole_bounds(min_val, max_val)
    if self.dtype.kind != "f" or self.dtype.itemsize == 2 or max(abs(min_val), abs(max_val)) > 1e38:
        bounds = (min_val, max_val) if min_val == min_val and max_val == max_val else (np.nan, np.nan)
        min_val, max_val = (exact_number(x, FROM_NUMPY[self.dtype]) for x in bounds)
    return np.minimum(kind(max_val), np.maximum(kind(min_val), self))


@op(
    space=None,
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, min_val, max_val: hardtanh_backward(grad_output_t, self, min_val, max_val),
)
def hardtanh_backward(grad_output: Array, self: Array, min_val: Number, max_val: Number) -> Array:
    """The gradient strictly between the bounds."""
    return keep_where(np.logical_and(np.greater(self, min_val), np.less(self, max_val)), grad_output)


def functional_hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False) -> Tensor:
    """Clip elements to the range from `min_val` to `max_val`: a tanh made of straight lines.

    With `inplace` the input itself is overwritten and returned.
    """
    if min_val > max_val:  # type: ignore[operator]
        raise ValueError("min_val cannot be greater than max_val")
    return hardtanh_(input, min_val, max_val) if inplace else hardtanh(input, min_val, max_val)


@function(nested="jagged", raw=True, explained=True, space=None, method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply a relu that is cut off at 6: `min(max(0, x), 6)`.

    With `inplace` the input itself is overwritten and returned.
    """
    return hardtanh_(input, 0, 6) if inplace else hardtanh(input, 0, 6)


# ------------------------------------------------------------------ leaky_relu


@op(
    space=None,
    check=floats_only("leaky_relu_cpu"),
    self=lambda grad, self, negative_slope: leaky_relu_backward(grad, self, negative_slope),
    result=elementwise,
)
def leaky_relu(self: Array, negative_slope: Number = 0.01) -> Array:
    """Negative elements times a small slope."""
    x = needs_floats(self)
    if 0 < negative_slope <= 1:  # type: ignore[operator]
        return narrowed(np.maximum(x, np.multiply(x, number(float(negative_slope), x.dtype))), self)  # type: ignore[arg-type]
    return narrowed(np.where(np.greater(x, 0), x, x * float(negative_slope)), self)


@op(
    space=None,
    name="leaky_relu",
    node="LeakyReluBackward1",
    check=floats_only("leaky_relu_cpu"),
    self=lambda grad, result, negative_slope: leaky_relu_from_result(grad, result, negative_slope),
    result=elementwise,
)
def leaky_relu_overwriting(self: Array, negative_slope: Number = 0.01) -> Array:
    """What `leaky_relu_` computes."""
    x = needs_floats(self)
    return narrowed(np.where(np.greater(x, 0), x, x * float(negative_slope)), self)


@op(
    space=None,
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, negative_slope: leaky_relu_backward(grad, self, negative_slope),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, negative_slope: leaky_relu_backward(grad_output_t, self, negative_slope),
)
def leaky_relu_backward(grad_output: Array, self: Array, negative_slope: Number) -> Array:
    """The gradient, times the slope where self is not positive."""
    return np.where(np.greater(self, 0), grad_output, mul_number(grad_output, negative_slope))


def leaky_relu_from_result(grad: Any, result: Any, negative_slope: Number) -> Any:
    """The result has the sign of what was overwritten, unless the slope is negative."""
    if negative_slope < 0:  # type: ignore[operator]
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This "
            "is caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead. File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place "
            "leakRelu backward calculation with negative slope"
        )
    return leaky_relu_backward(grad, result, negative_slope)


def functional_leaky_relu(input: Tensor, negative_slope: Number = 0.01, inplace: bool = False) -> Tensor:
    """Apply the leaky relu: `x` where positive, `negative_slope * x` elsewhere.

    With `inplace` the input itself is overwritten and returned.
    """
    return leaky_relu_(input, negative_slope) if inplace else leaky_relu(input, negative_slope)


# ------------------------------------------------------------------ elu, selu, celu


@op(
    space=None,
    check=floats_only("elu_cpu"),
    self=lambda grad, self, alpha, scale, input_scale: elu_backward(grad, alpha, scale, input_scale, False, self),
    result=elementwise,
)
def elu(self: Array, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Array:
    """scale * self where positive, scale * alpha * (exp(input_scale * self) - 1) elsewhere."""
    x = needs_floats(self)
    if alpha == 1 and scale == 1 and input_scale == 1:
        zero = ZEROS[x.dtype]
        return narrowed(np.add(np.maximum(zero, x), np.expm1(np.minimum(zero, x))), self)
    negative = np.expm1(np.minimum(0, x) * input_scale) * float(alpha * scale)
    return narrowed(np.where(np.less_equal(x, 0), negative, x * float(scale)), self)


@op(
    space=None,
    name="elu",
    node="EluBackward1",
    check=floats_only("elu_cpu"),
    self=lambda grad, result, alpha, scale, input_scale: elu_from_result(grad, alpha, scale, input_scale, result),
    result=elementwise,
)
def elu_overwriting(self: Array, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Array:
    """What `elu_` computes."""
    return elu(self, alpha, scale, input_scale)


@op(
    space=None,
    check=floats_only("elu_cpu"),
    self=lambda grad, self, alpha: elu_backward(grad, alpha, 1, 1.0 / alpha, False, self),
    result=elementwise,
)
def celu(self: Array, alpha: Number = 1.0) -> Array:
    """Apply the continuously differentiable elu: `x` where positive, `alpha * (exp(x / alpha) - 1)` elsewhere.

    Its slope has no jump at zero, whatever `alpha`.
    """
    return elu(self, alpha, 1, 1.0 / nonzero(alpha))


@op(
    space=None,
    name="celu",
    node="CeluBackward1",
    check=floats_only("elu_cpu"),
    self=lambda grad, result, alpha: elu_from_result(grad, alpha, 1, 1.0 / alpha, result),
    result=elementwise,
)
def celu_overwriting(self: Array, alpha: Number = 1.0) -> Array:
    """What `celu_` computes."""
    return elu(self, alpha, 1, 1.0 / nonzero(alpha))


def nonzero(alpha: Number) -> Number:
    """The alpha of celu, which divides."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return alpha


@op(
    space=None,
    pointwise=True,
    grad_output=lambda grad, alpha, scale, input_scale, is_result, self_or_result: elu_backward(
        grad, alpha, scale, input_scale, is_result, self_or_result
    ),
    self_or_result=lambda grad, grad_output, alpha, scale, input_scale, is_result, self_or_result: elu_curvature(
        grad * grad_output, alpha, scale, input_scale, is_result, self_or_result
    ),
    result=lambda grad_output_t, self_or_result_t, grad_output, alpha, scale, input_scale, is_result, self_or_result: (
        elu_backward(grad_output_t, alpha, scale, input_scale, is_result, self_or_result)
        + elu_curvature(self_or_result_t * grad_output, alpha, scale, input_scale, is_result, self_or_result)
    ),
)
def elu_backward(
    grad_output: Array, alpha: Number, scale: Number, input_scale: Number, is_result: bool, self_or_result: Array
) -> Array:
    """The gradient of elu, from its input or from its result."""
    like, grad_output, x = grad_output, widened(grad_output), widened(self_or_result)
    if is_result:
        negative = grad_output * float(input_scale) * (x + float(alpha * scale))
    else:
        factor = float(input_scale * alpha * scale)
        negative = grad_output * factor * np.exp(np.minimum(x, 0) * float(input_scale))
    return narrowed(np.where(np.greater(x, 0), grad_output * float(scale), negative), like)  # nan is not positive


def elu_curvature(
    product: Any, alpha: Number, scale: Number, input_scale: Number, is_result: bool, self_or_result: Any
) -> Any:
    """The second derivative: only the exponential bends."""
    if is_result:
        bent = product * input_scale
    else:
        bent = product * exp(self_or_result * input_scale) * (alpha * scale * input_scale * input_scale)
    return where(self_or_result >= 0, 0, bent)  # as in torch, zero itself counts as straight


def elu_from_result(grad: Any, alpha: Number, scale: Number, input_scale: Number, result: Any) -> Any:
    """The gradient where the input has been overwritten; a negative alpha makes its sign unknown."""
    if alpha < 0:  # type: ignore[operator]
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
        )
    return elu_backward(grad, alpha, scale, input_scale, True, result)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def functional_elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Apply the exponential linear unit: `x` where positive, `alpha * (exp(x) - 1)` elsewhere.

    With `inplace` the input itself is overwritten and returned.
    """
    return elu_(input, alpha) if inplace else elu(input, alpha)


def functional_celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Apply the continuously differentiable elu: `x` where positive, `alpha * (exp(x / alpha) - 1)` elsewhere.

    Its slope has no jump at zero, whatever `alpha`. With `inplace` the input itself is overwritten and returned.
    """
    return celu_(input, alpha) if inplace else celu(input, alpha)


@function(nested="jagged", raw=True, explained=True, space=None, method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply the scaled elu: `scale * x` where positive, `scale * alpha * (exp(x) - 1)` elsewhere.

    `alpha` is about 1.6733 and `scale` about 1.0507, chosen so that deep networks keep mean 0 and variance 1.
    With `inplace` the input itself is overwritten and returned.
    """
    return selu_(input) if inplace else elu(input, SELU_ALPHA, SELU_SCALE)


def selu_(input: Tensor) -> Tensor:
    """In-place version of :func:`selu`."""
    return elu_(input, SELU_ALPHA, SELU_SCALE)


# ------------------------------------------------------------------ names

hardtanh_ = make_inplace(hardtanh.op)
leaky_relu_ = make_inplace(leaky_relu_overwriting.op)
elu_ = make_inplace(elu_overwriting.op)
celu_ = make_inplace(celu_overwriting.op)
threshold_ = make_inplace(threshold_overwriting.op)


def functional_threshold(input: Tensor, threshold: Number, value: Number, inplace: bool = False) -> Tensor:
    """Replace the elements that are not above a threshold: `x` where `x > threshold`, `value` elsewhere.

    With `inplace` the input itself is overwritten and returned.
    """
    return threshold_(input, threshold, value) if inplace else THRESHOLD(input, threshold, value)


THRESHOLD = threshold
for name, public in (
    ("relu", functional_relu),
    ("relu_", Tensor.relu_),  # type: ignore[attr-defined]
    ("relu6", relu6),
    ("threshold", functional_threshold),
    ("threshold_", threshold_),
    ("hardtanh", functional_hardtanh),
    ("hardtanh_", hardtanh_),
    ("leaky_relu", functional_leaky_relu),
    ("leaky_relu_", leaky_relu_),
    ("elu", functional_elu),
    ("elu_", elu_),
    ("celu", functional_celu),
    ("celu_", celu_),
    ("selu", selu),
    ("selu_", selu_),
):
    publish(name, public, FUNCTIONAL)
for name, public in (
    ("relu_", Tensor.relu_),  # type: ignore[attr-defined]
    ("threshold_", threshold_),
    ("celu", celu),
    ("celu_", celu_),
    ("selu", selu),
    ("selu_", selu_),
):
    publish(name, public, TORCH)
