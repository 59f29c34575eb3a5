"""Losses of yes-or-no questions: binary cross entropy of probabilities and of logits."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import is_half, rounded, widened
from pullback._dtype import FROM_NUMPY, promote_types
from pullback._modes import in_transform
from pullback._op.define import Array, function, op
from pullback._runtime.messages import cannot_cast, shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.math.numbers import ONE, ZERO, Constant
from pullback.ops.nn.activation.smooth import log_sigmoid
from pullback.ops.nn.loss.reduction import apply_reduction, reduced, reduction_code, share
from pullback.ops.pointwise.arithmetic import div_number, refuse_bools
from pullback.ops.pointwise.bounds import clamp_min_number as clamp_min
from pullback.ops.pointwise.elementary import exp, log, log1p, sigmoid
from pullback.ops.shape.reshape import common_shape, expand
from pullback.ops.supported import moves, refuse, refuse_gradient

# ------------------------------------------------------------------ of probabilities

LOG_LIMIT = -100.0
"""Logarithms of probabilities are not taken below this, so that a sure mistake has a finite loss."""
LIMITS = Constant(LOG_LIMIT)
EPSILON = float(np.float32(1e-12))
"""What keeps the derivative's denominator away from zero."""


def within_one(x: Array) -> bool:
    """True if all elements lie between 0 and 1."""
    return bool(((x >= 0) & (x <= 1)).all())


def check_probabilities(self: Array, target: Array, weight: Array | None, reduction: int) -> None:
    """Torch's demands on probabilities and targets."""
    if self.dtype is not target.dtype:
        kinds = f"{FROM_NUMPY[target.dtype].scalar_type} but expected {FROM_NUMPY[self.dtype].scalar_type}"
        raise RuntimeError(f"Found dtype {kinds}")
    refuse("binary_cross_entropy", self, "biuc")
    if not within_one(self):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if not within_one(target):
        raise RuntimeError("all elements of target should be between 0 and 1")
    if weight is not None and weight.dtype.kind == "c":
        kind = promote_types(FROM_NUMPY[self.dtype], FROM_NUMPY[weight.dtype])
        raise RuntimeError(cannot_cast(kind.scalar_type, FROM_NUMPY[self.dtype].scalar_type))


@op(
    space=None,
    name="binary_cross_entropy",
    check=check_probabilities,
    pointwise=True,
    untraced=("forward",),
    self=lambda grad, self, target, weight, reduction: binary_cross_entropy_backward(
        grad, self, target, weight, reduction
    ),
    target=lambda grad, self, target, weight, reduction: target_grad(grad, self, target, weight, reduction),
    result=lambda self_t, target_t, self, target, weight, reduction: apply_reduction(
        binary_cross_entropy_backward(self_t, self, target, weight, 0) + target_grad(target_t, self, target, weight, 0),
        reduction,
    ),
)
def binary_loss(self: Array, target: Array, weight: Array | None, reduction: int) -> Array:
    """-(target * log(self) + (1 - target) * log(1 - self))."""
    check_probabilities(self, target, weight, reduction)
    low = LIMITS[self.dtype]
    loss = np.multiply(np.subtract(target, ONE[target.dtype]), np.maximum(np.log1p(np.negative(self)), low))
    loss = np.subtract(loss, np.multiply(target, np.maximum(np.log(self), low)))
    loss = loss if weight is None else loss * weight
    return reduced(loss.astype(self.dtype, copy=False), reduction)


@op(
    vmap="unreduced_backward",
    space=None,
    pointwise=True,
    untraced=("grad_output",),
    grad_output=lambda grad, self, target, weight, reduction: apply_reduction(
        probability_slope(grad, self, target, weight), reduction
    ),
    self=lambda grad, grad_output, self, target, weight, reduction: probability_curve(
        grad * share(grad_output, reduction, self.shape), self, target, weight
    ),
    target=lambda grad, grad_output, self, target, weight, reduction: (
        -over_variance(grad * share(grad_output, reduction, self.shape), self, weight)
    ),
    result=lambda grad_output_t, self_t, target_t, grad_output, self, target, weight, reduction: (
        probability_slope(share(grad_output_t, reduction, self.shape), self, target, weight)
        + probability_curve(self_t * share(grad_output, reduction, self.shape), self, target, weight)
        - over_variance(target_t * share(grad_output, reduction, self.shape), self, weight)
    ),
)
def binary_cross_entropy_backward(
    grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int
) -> Array:
    """The gradient of the probabilities."""
    if is_half(self.dtype):  # divided at the end, as torch does it: a share of the gradient would lose digits
        return averaged(probability_slope(grad_output, self, target, weight), reduction, self.shape)
    return probability_slope(share(grad_output, reduction, self.shape), self, target, weight)


def over_variance(grad: Any, self: Any, weight: Any) -> Any:
    """grad / (self * (1 - self)), weighted."""
    out = grad / clamp_min(self * (1 - self), EPSILON)
    return out if weight is None else out * weight


def probability_slope(grad: Any, self: Any, target: Any, weight: Any) -> Any:
    """grad times the derivative of the loss."""
    return over_variance(grad * (self - target), self, weight)


def probability_curve(grad: Any, self: Any, target: Any, weight: Any) -> Any:
    """grad times the second derivative of the loss."""
    square = self * self - 2 * self * target + target
    out = grad * square / clamp_min(self * (1 - self), EPSILON) ** 2
    return out if weight is None else out * weight


def target_grad(grad: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    """The gradient of the targets: the difference of the two logarithms."""
    out = grad * (log1p(-self) - log(self))
    return averaged(out if weight is None else out * weight, reduction, self.shape)


def averaged(out: Any, reduction: int, shape: Any) -> Any:
    """A gradient over the number of elements, where the loss was a mean."""
    return div_number(out, prod(shape)) if reduction == 1 else out


@function(name="binary_cross_entropy", space="nn.functional", method=False, autocast="float32")
def binary_cross_entropy(
    self: Array,
    target: Array,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """Compute the binary cross entropy: `-(target * log(input) + (1 - target) * log(1 - input))`.

    `input` holds probabilities and `target` numbers between 0 and 1, of the same shape; logarithms below -100 count as
    -100. `weight` broadcasts against them and multiplies the losses. `reduction` is 'mean', 'sum' or 'none' (one loss
    per element); `size_average` and `reduce` are its older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(self.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({self.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        refuse_gradient("binary_cross_entropy", weight=weight)
        if moves(weight) and (moves(self) or moves(target)):  # the tangent would be wrong without the weight's part
            raise RuntimeError(
                "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
            )
        weight = expand(weight, common_shape(target.shape, weight.shape))
        check_weight(self, weight)
    return binary_loss(self, target, weight, code)


def check_weight(loss: Any, weight: Any) -> None:
    """Weights are multiplied into the losses, which keep their shape."""
    shape = common_shape(loss.shape, weight.shape)
    if tuple(shape) != tuple(loss.shape):
        made, wanted = shape_text(loss.shape), shape_text(shape)
        raise RuntimeError(f"output with shape {made} doesn't match the broadcast shape {wanted}")


# ------------------------------------------------------------------ of logits


@op(
    space=None,
    name="binary_cross_entropy_with_logits",
    pointwise=True,
    layout="other_first",
    untraced=("target",),
    self=lambda grad, self, target, weight, pos_weight, reduction: logit_grad(
        grad, self, target, weight, pos_weight, reduction
    ),
    target=lambda grad, self, target, weight, pos_weight, reduction: logit_target_grad(
        grad, self, weight, pos_weight, reduction
    ),
    result=lambda self_t, target_t, self, target, weight, pos_weight, reduction: apply_reduction(
        logit_grad(self_t, self, target, weight, pos_weight, 0)
        + logit_target_grad(target_t, self, weight, pos_weight, 0),
        reduction,
    ),
)
def logit_loss(self: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int) -> Array:
    """(1 - target) * self + log(1 + exp(-self)), weighted."""
    for given in (target, weight, pos_weight):
        if given is not None and given.shape != self.shape:
            common_shape(self.shape, given.shape)
    refuse("log_sigmoid_cpu", self, "iubc")
    if target.dtype.kind in "iub":
        raise RuntimeError(cannot_cast(FROM_NUMPY[self.dtype].scalar_type, FROM_NUMPY[target.dtype].scalar_type))
    # log(1 + exp(-x)), written so that the exponential never overflows.
    x = widened(self)
    loss = np.log1p(np.exp(np.negative(np.absolute(x))))
    loss = rounded(np.add(loss, np.maximum(np.negative(x), ZERO[x.dtype])), self.dtype)
    if pos_weight is not None:
        loss = loss * ((pos_weight - 1) * target + 1)
    loss = np.add(loss, np.multiply(np.subtract(ONE[target.dtype], target), self))
    # Torch writes each step over 1 - target, so the result has the dtype of the target.
    return reduced(rounded(loss if weight is None else loss * weight, target.dtype), reduction)


def logit_grad(grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The gradient of the logits: what is believed minus what is so."""
    if pos_weight is None:
        out = sigmoid(self) - target
    else:
        yes = pos_weight * target
        out = (yes + 1 - target) * sigmoid(self) - yes
    out = out * grad
    return averaged(out if weight is None else out * weight, reduction, self.shape)


def logit_target_grad(grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The gradient of the targets."""
    out = -self if pos_weight is None else first(log_sigmoid(-self)) - pos_weight * first(log_sigmoid(self))
    out = out * grad
    return averaged(out if weight is None else out * weight, reduction, self.shape)


def first(outputs: Any) -> Any:
    """The visible output of an op that also keeps a buffer: in the array reading a pair comes back."""
    return outputs[0] if type(outputs) is tuple else outputs


@function(space="nn.functional", method=False, autocast="float32")
def binary_cross_entropy_with_logits(
    self: Array,
    target: Array,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Array:
    """Compute the binary cross entropy of `sigmoid(input)` and targets, in a numerically stable way.

    The loss is `-(pos_weight * target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input)))`, where `target`
    has the shape of `input`. `weight` and `pos_weight` broadcast against it: the former multiplies all losses, the
    latter those of positive targets. `reduction` is 'mean', 'sum' or 'none' (one loss per element); `size_average` and
    `reduce` are its older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(self.shape):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({self.shape})")
    return coded_logit_loss(self, target, weight, pos_weight, code)


def composed_logit_loss(input: Any, target: Any, weight: Any, pos_weight: Any) -> Any:
    """The loss in steps, as torch takes them inside transforms: there the weights have derivatives too."""
    largest = clamp_min(-input, 0)
    loss = log(exp(-largest) + exp(-input - largest)) + largest
    if pos_weight is not None:
        loss = loss * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input + loss
    return loss if weight is None else loss * weight


@function(raw=True, method=False, name="binary_cross_entropy_with_logits", autocast="float32")
def coded_logit_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """Compute the binary cross entropy of `sigmoid(input)` and targets.

    As `nn.functional.binary_cross_entropy_with_logits`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    if in_transform.get():
        return apply_reduction(composed_logit_loss(input, target, weight, pos_weight), reduction)
    if weight is not None or pos_weight is not None:
        refuse_gradient("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
        if pos_weight is not None:
            refuse_bools(pos_weight, 1, 1)
        for given, written in ((pos_weight, input), (weight, target)):
            if given is not None:
                factor = promote_types(target.dtype, given.dtype)  # torch writes it over the logarithm, or the loss
                if factor.is_complex and input.dtype.is_floating_point and not written.is_complex():
                    kind = promote_types(written.dtype, factor)
                    raise RuntimeError(cannot_cast(kind.scalar_type, written.dtype.scalar_type))
                check_weight(expand(input, common_shape(input.shape, target.shape)), given)
    return logit_loss(input, target, weight, pos_weight, reduction)
