"""Losses of regression: mse, l1, smooth_l1, huber; and kl_div between distributions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half, widened
from pullback._dtype import FROM_NUMPY, can_cast, result_numpy_dtype
from pullback._op.define import Array, function, op
from pullback._runtime import messages
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.ops.nn.loss.reduction import (
    CODES,
    apply_reduction,
    legacy_reduction,
    reduced,
    reduced_like,
    reduction_code,
    share,
)
from pullback.ops.pointwise.arithmetic import abs, div, mul, sub
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.pointwise.elementary import exp
from pullback.ops.pointwise.entropy import xlogy
from pullback.ops.pointwise.power import pow
from pullback.ops.reduce.sums import sum_all
from pullback.ops.shape.reshape import common_shape, expand
from pullback.ops.supported import refuse


def same_sizes(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both stretched to one shape, with torch's warning if that changes anything."""
    if tuple(input.shape) == tuple(target.shape):
        return input, target
    warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
    )
    shape = common_shape(tuple(input.shape), tuple(target.shape))
    return stretched(input, shape), stretched(target, shape)


def stretched(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor expanded, or itself where it has the shape already."""
    return tensor if tuple(tensor.shape) == shape else expand(tensor, shape)


def weighted(loss: Any, weight: Any, reduction: str) -> Any:
    """A loss with a weight for each element; its mean divides by the sum of the weights."""
    total = mul(loss, weight)
    if reduction == "none":
        return total
    return sum_all(total) if reduction == "sum" else div(sum_all(total), sum_all(weight))


def check_weight(self: Tensor, weight: Tensor, reduction: str) -> None:
    """A weight for each element, and a reduction that weights know."""
    if tuple(weight.shape) != tuple(self.shape):
        raise ValueError("Weights and input must have the same size.")
    if reduction not in CODES:
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


# ------------------------------------------------------------------ squared and absolute differences


def check_mse(self: Array, target: Array, reduction: int) -> None:
    """Torch's mse_loss knows floats only."""
    refuse("mse_cpu", self, "iubc")


@op(
    space=None,
    name="mse_loss",
    promote=("self", "target"),
    check=check_mse,
    pointwise=True,
    self=lambda grad, self, target, reduction: mse_loss_backward(grad, self, target, reduction),
    target=lambda grad, self, target, reduction: mse_loss_backward(grad, target, self, reduction),
    result=lambda self_t, target_t, self, target, reduction: apply_reduction(
        mse_loss_backward(self_t, self, target, 0) + mse_loss_backward(target_t, target, self, 0), reduction
    ),
)
def squared_difference(self: Array, target: Array, reduction: int) -> Array:
    """(self - target) ** 2, reduced."""
    if self.dtype.kind not in "fV":
        raise TypeError("floats only")
    difference = np.subtract(self, target)
    return reduced(np.multiply(difference, difference), reduction)


@op(
    vmap="unreduced_backward",
    space=None,
    pointwise=True,
    untraced=("grad_output",),
    grad_output=lambda grad, self, target, reduction: apply_reduction(
        mse_loss_backward(grad, self, target, 0), reduction
    ),
    self=lambda grad, grad_output, self, reduction: grad * (share(grad_output, reduction, self.shape) * 2),
    target=lambda grad, grad_output, self, reduction: grad * (share(grad_output, reduction, self.shape) * -2),
    result=lambda grad_output_t, self_t, target_t, grad_output, self, target, reduction: (
        mse_loss_backward(grad_output_t, self, target, reduction)
        + mse_loss_backward(grad_output, self_t, target_t, reduction)
    ),
)
def mse_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    """2 * (self - target), shared out."""
    if is_half(self.dtype):  # rounded at every step, as torch does it here
        factor = 2.0 / prod(self.shape) if reduction == 1 and 0 not in self.shape else 2.0
        return self.dtype.type(factor) * (self - target) * grad_output
    return (self - target) * (share(grad_output, reduction, self.shape) * 2)


@function(space="nn.functional", method=False, autocast="float32")
def mse_loss(
    self: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Array:
    """Compute the mean squared error: the mean of `(input - target) ** 2`.

    `input` and `target` should have the same shape; other shapes are broadcast, with a warning.
    `reduction` is 'mean', 'sum' or 'none' (one loss per element). `weight`, of the shape of `input`, multiplies the
    losses, and their mean is then divided by its sum. `size_average` and `reduce` are deprecated forms of `reduction`.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        check_weight(self, weight, reduction)
    self, target = same_sizes(self, target)
    if weight is not None:
        return weighted(pow(sub(self, target), 2), weight, reduction)
    return squared_difference(self, target, reduction_code(reduction))


@function(space="nn.functional", method=False, autocast="float32")
def l1_loss(
    self: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Array:
    """Compute the mean absolute error: the mean of `|input - target|`.

    `input` and `target` should have the same shape; other shapes are broadcast, with a warning.
    `reduction` is 'mean', 'sum' or 'none' (one loss per element). `weight`, of the shape of `input`, multiplies the
    losses, and their mean is then divided by its sum. `size_average` and `reduce` are deprecated forms of `reduction`.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        check_weight(self, weight, reduction)
    self, target = same_sizes(self, target)
    if weight is not None:
        return weighted(abs(sub(self, target)), weight, reduction)
    code = reduction_code(reduction)
    return apply_reduction(abs(sub(self, target)), code)


# ------------------------------------------------------------------ squared near zero, absolute far away


@op(
    space=None,
    name="smooth_l1_loss",
    node="SmoothL1LossBackward0",
    promote=("self", "target"),
    pointwise=True,
    self=lambda grad, self, target, reduction, beta: smooth_l1_backward(grad, self, target, reduction, beta),
    target=lambda grad, self, target, reduction, beta: smooth_l1_backward(grad, target, self, reduction, beta),
    result=lambda self_t, target_t, self, target, reduction, beta: apply_reduction(
        smooth_l1_backward(self_t, self, target, 0, beta) + smooth_l1_backward(target_t, target, self, 0, beta),
        reduction,
    ),
)
def smooth_l1(self: Array, target: Array, reduction: int, beta: float) -> Array:
    """Half the squared difference over beta within beta, the absolute difference minus beta / 2 beyond."""
    refuse("smooth_l1_cpu", self, "iubc")
    if is_half(self.dtype):
        # Torch rounds float16 at every step and bfloat16 once; for huber it is the other way round.
        if self.dtype.kind == "V":
            return reduced(smooth_l1(widened(self), widened(target), 0, beta).astype(self.dtype), reduction)
        beta = self.dtype.type(beta)
    z = np.abs(np.subtract(self, target))
    half = self.dtype.type(0.5) if is_half(self.dtype) else 0.5
    return reduced(np.where(z < beta, half * z * z / beta, z - half * beta).astype(self.dtype, copy=False), reduction)


@op(
    vmap="unreduced_backward",
    space=None,
    node="SmoothL1LossBackwardBackward0",
    pointwise=True,
    untraced=("grad_output", "self", "target"),
    grad_output=lambda grad, self, target, reduction, beta: apply_reduction(
        smooth_l1_backward(grad, self, target, 0, beta), reduction
    ),
    self=lambda grad, grad_output, self, target, reduction, beta: bend(
        grad, grad_output, self - target, reduction, beta, 1 / beta
    ),
    target=lambda grad, grad_output, self, target, reduction, beta: bend(
        grad, grad_output, self - target, reduction, beta, -1 / beta
    ),
    result=lambda grad_output_t, self_t, target_t, grad_output, self, target, reduction, beta: (
        smooth_l1_backward(grad_output_t, self, target, reduction, beta)
        + bend(self_t - target_t, grad_output, self - target, reduction, beta, 1 / beta)
    ),
)
def smooth_l1_backward(grad_output: Array, self: Array, target: Array, reduction: int, beta: float) -> Array:
    """The sign of the difference, or the difference over beta where that is smaller."""
    if is_half(self.dtype):
        wide = [widened(array) for array in (grad_output, self, target)]
        return smooth_l1_backward(*wide, reduction, beta).astype(self.dtype)
    difference = self - target
    grad = share(grad_output, reduction, self.shape)
    far = where(difference > 0, grad, -grad)
    return where(abs(difference) >= beta, far, difference / beta * grad)  # so nan stays nan


def bend(grad: Any, grad_output: Any, difference: Any, reduction: int, width: float, slope: float) -> Any:
    """How the gradient of a parabola with straight ends changes with the difference: not at all at the ends."""
    return where(abs(difference) < width, grad * (share(grad_output, reduction, difference.shape) * slope), 0)


@function(space="nn.functional", method=False, autocast="float32")
def smooth_l1_loss(
    self: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Array:
    """Compute the smooth L1 loss: quadratic for small differences, absolute for larger ones.

    With `d = |input - target|` it is `d ** 2 / (2 * beta)` where `d < beta` and `d - beta / 2` elsewhere; `beta=0` is
    the L1 loss. `reduction` is 'mean', 'sum' or 'none' (one loss per element); `size_average` and `reduce` are its
    older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    self, target = same_sizes(self, target)
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return apply_reduction(abs(sub(self, target)), code) if beta == 0.0 else smooth_l1(self, target, code, beta)


@op(
    space=None,
    name="huber_loss",
    pointwise=True,
    layout="own",
    self=lambda grad, self, target, reduction, delta: huber_loss_backward(grad, self, target, reduction, delta),
    target=lambda grad, self, target, reduction, delta: huber_loss_backward(grad, target, self, reduction, delta),
    result=lambda self_t, target_t, self, target, reduction, delta: apply_reduction(
        huber_loss_backward(self_t, self, target, 0, delta) + huber_loss_backward(target_t, target, self, 0, delta),
        reduction,
    ),
)
def huber(self: Array, target: Array, reduction: int, delta: float) -> Array:
    """Half the squared difference within delta, delta * (|difference| - delta / 2) beyond."""
    if self.dtype is not target.dtype:  # computed in the dtype of both, kept in that of the input
        common = result_numpy_dtype((self, target))
        if not can_cast(source := FROM_NUMPY[common], wanted := FROM_NUMPY[self.dtype]):
            raise RuntimeError(messages.cannot_cast(source.scalar_type, wanted.scalar_type))
        loss = huber(self.astype(common), target.astype(common), 0, delta)
        return reduced_like(self, loss.astype(self.dtype), reduction)
    refuse("huber_cpu", self, "iubc")
    half: Any = 0.5
    if is_half(self.dtype):
        if self.dtype.kind == "f":
            wide = huber(widened(self), widened(target), 0, delta)
            return reduced_like(self, wide.astype(self.dtype), reduction)
        half, delta = self.dtype.type(0.5), self.dtype.type(delta)
    z = np.abs(np.subtract(self, target))
    loss = np.where(z <= delta, half * z * z, delta * (z - half * delta))
    return reduced_like(self, loss.astype(self.dtype, copy=False), reduction)


@op(
    vmap="unreduced_backward",
    space=None,
    pointwise=True,
    untraced=("grad_output", "self", "target"),
    grad_output=lambda grad, self, target, reduction, delta: apply_reduction(
        huber_loss_backward(grad, self, target, 0, delta), reduction
    ),
    self=lambda grad, grad_output, self, target, reduction, delta: bend(
        grad, grad_output, self - target, reduction, delta, 1
    ),
    target=lambda grad, grad_output, self, target, reduction, delta: bend(
        grad, grad_output, self - target, reduction, delta, -1
    ),
    result=lambda grad_output_t, self_t, target_t, grad_output, self, target, reduction, delta: (
        huber_loss_backward(grad_output_t, self, target, reduction, delta)
        + bend(self_t - target_t, grad_output, self - target, reduction, delta, 1)
    ),
)
def huber_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int, delta: float) -> Array:
    """The difference, held between -delta and delta."""
    if self.dtype != target.dtype:
        kinds = [FROM_NUMPY[given.dtype].scalar_type for given in (target, self)]
        raise RuntimeError(f"Found dtype {kinds[0]} but expected {kinds[1]}")
    if is_half(self.dtype):
        delta = float(self.dtype.type(delta))
        wide = (widened(grad_output), widened(self - target), np.zeros((), SINGLE))
        return huber_loss_backward(*wide, reduction, delta).astype(self.dtype)
    difference = self - target
    grad = share(grad_output, reduction, self.shape)
    far = where(difference > 0, grad * delta, grad * -delta)
    return where(abs(difference) > delta, far, difference * grad)  # so nan stays nan


@function(space="nn.functional", method=False, autocast="float32")
def huber_loss(self: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Array:
    """Compute the Huber loss: quadratic for small differences, linear for larger ones.

    With `d = |input - target|` it is `d ** 2 / 2` where `d <= delta` and `delta * (d - delta / 2)` elsewhere: the
    smooth L1 loss times `delta`. `reduction` is 'mean', 'sum' or 'none' (one loss per element). `weight`, of the shape
    of `input`, multiplies the losses, and their mean is then divided by its sum.
    """
    if weight is not None:
        check_weight(self, weight, reduction)
    code = reduction_code(reduction)
    self, target = same_sizes(self, target)
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        return apply_reduction(mul(huber(self, target, 0, delta), weight), code)
    return huber(self, target, code, delta)


# ------------------------------------------------------------------ divergence of distributions


@function(space="nn.functional", method=False, autocast="float32")
def kl_div(
    self: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """Compute the Kullback-Leibler divergence of a target distribution from one given by log probabilities.

    Each element gives `target * (log(target) - input)`, or `exp(target) * (target - input)` with `log_target`, where
    `target` holds log probabilities too. `reduction` is 'batchmean' (the sum over `input.size(0)`, the divergence of
    the textbooks), 'mean' (over all elements, with a warning), 'sum' or 'none'; `size_average` and `reduce` are its
    older, deprecated spelling.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    batchmean = reduction == "batchmean"
    code = reduction_code("sum" if batchmean else reduction, size_average, reduce)
    loss = divergence(self, target, code, log_target=log_target)
    return div(loss, self.shape[0]) if batchmean and self.ndim != 0 else loss


@function(raw=True, method=False, name="kl_div", autocast="float32")
def divergence(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """Compute the Kullback-Leibler divergence of a target distribution from one given by log probabilities.

    As `nn.functional.kl_div`, with `reduction` as a number: 0 none, 1 mean over all elements, 2 sum.
    """
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        terms = mul(exp(target), sub(target, input))
    else:
        terms = sub(xlogy(target, target), mul(target, input))
    return apply_reduction(terms, reduction)
