"""Losses of classifiers: nll_loss and cross_entropy."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor, wrap
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.loss import nll as kernels
from pullback.kernels.numpy.reduce.dims import total
from pullback.ops.index.masked import masked_fill
from pullback.ops.nn.activation.softmax import log_softmax_rows
from pullback.ops.nn.loss.reduction import reduction_code
from pullback.ops.nn.number import over, plus, times
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import add, div, mul, neg
from pullback.ops.pointwise.compare import eq
from pullback.ops.reduce.sums import sum_all, sum_dim
from pullback.ops.shape.reshape import reshape_to, zeros_of
from pullback.ops.supported import refuse, refuse_gradient

LONG = np.dtype(np.int64)

# ------------------------------------------------------------------ nll_loss


def check_nll(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> None:
    """Torch's demands on a row of log probabilities and the class of each."""
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    check_nll_dtypes(self, target, weight, self.shape[-1])


def check_nll_2d(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> None:
    """Torch's demands on images of log probabilities."""
    if target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    if (self.shape[0], *self.shape[2:]) != target.shape:
        raise RuntimeError(f"size mismatch (got input: {shape_text(self.shape)} , target: {shape_text(target.shape)}")
    check_nll_dtypes(self, target, weight, self.shape[1])


def check_nll_dtypes(self: Array, target: Array, weight: Array | None, classes: int) -> None:
    """Targets are integers, weights are one for each class."""
    if target.dtype != np.int64 and target.dtype != np.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {FROM_NUMPY[target.dtype].scalar_type}")
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {shape_text(weight.shape)}"
        )
    if weight is not None and weight.dtype is not self.dtype:
        kinds = f"{FROM_NUMPY[self.dtype].scalar_type} but found {FROM_NUMPY[weight.dtype].scalar_type}"
        raise RuntimeError(f"expected scalar type {kinds}")
    refuse("nll_loss_out_frame", self, "iubc")


def nll_rule(
    grad: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    """The gradient of the log probabilities."""
    backward = nll_loss_2d_backward if self.ndim == 4 else nll_loss_backward
    return backward(grad, self, target, weight, reduction, ignore_index, total_weight)


@op(
    space=None,
    name="nll_loss",
    node="NllLossBackward0",
    outputs=("output", "total_weight"),
    visible=1,
    constants=("total_weight",),
    check=check_nll,
    vmap="likelihood",
    self=nll_rule,
    result=lambda self_t, target, weight, reduction, ignore_index: (
        nll_loss_rows(self_t, target, weight, reduction, ignore_index),
        None,
    ),
)
def nll_loss_rows(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Any:
    """Minus the log probability of each row's class."""
    if weight is not None or self.ndim != 2 or target.ndim != 1 or self.dtype.kind != "f" or target.dtype is not LONG:
        check_nll(self, target, weight, reduction, ignore_index)
    return kernels.nll_loss(self, target, weight, reduction, ignore_index)


@op(
    vmap="entries",
    space=None,
    name="nll_loss2d",
    node="NllLoss2DBackward0",
    outputs=("output", "total_weight"),
    visible=1,
    constants=("total_weight",),
    check=check_nll_2d,
    self=nll_rule,
    result=lambda self_t, target, weight, reduction, ignore_index: (
        nll_loss_2d(self_t, target, weight, reduction, ignore_index),
        None,
    ),
)
def nll_loss_2d(self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int) -> Any:
    """Minus the log probability of each pixel's class."""
    check_nll_2d(self, target, weight, reduction, ignore_index)
    return kernels.nll_loss(self, target, weight, reduction, ignore_index)


@op(
    space=None,
    vmap="likelihood_backward",
    grad_output=lambda grad, target, weight, reduction, ignore_index: loss_of(
        grad, target, weight, reduction, ignore_index
    ),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, target, weight, reduction, ignore_index, total_weight: nll_loss_backward(
        grad_output_t, self, target, weight, reduction, ignore_index, total_weight
    ),
)
def nll_loss_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    """The gradient of the log probabilities: minus the weight at each target, zero elsewhere."""
    return kernels.nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


@op(
    vmap="entries",
    space=None,
    node="NllLoss2DBackwardBackward0",
    grad_output=lambda grad, target, weight, reduction, ignore_index: loss_of(
        grad, target, weight, reduction, ignore_index
    ),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, target, weight, reduction, ignore_index, total_weight: nll_loss_2d_backward(
        grad_output_t, self, target, weight, reduction, ignore_index, total_weight
    ),
)
def nll_loss_2d_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    """The same for images."""
    return kernels.nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


def loss_of(grad: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The loss is linear, so the derivative of its gradient is the loss again."""
    loss = nll_loss_2d if grad.ndim == 4 else nll_loss_rows
    found = loss(grad, target, weight, reduction, ignore_index)
    return found[0] if type(found) is tuple else found


def nll_loss_nd(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    """nll_loss for any number of dimensions: the classes are dimension 1 (0 for a single row)."""
    if type(ignore_index) in (float, complex):
        kind = type(ignore_index).__name__
        raise TypeError(f"nll_loss_nd(): argument 'ignore_index' (position 5) must be int, not {kind}")
    shape = input._array.shape
    ndim = len(shape)
    if ndim == 2 and weight is None and target._array.shape == shape[:1]:  # what most calls bring
        return nll_loss_rows(input, target, None, reduction, ignore_index)
    if ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {ndim})")
    if ndim != 1 and (target.ndim == 0 or input.shape[0] != target.shape[0]):
        sizes = f"({input.shape[0]}) to match target batch_size ({target.shape[0] if target.ndim else 0})"
        raise ValueError(f"Expected input batch_size {sizes}.")
    if ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if weight is not None:
        if wants_grad(weight):  # not asked of what a batch holds: inside vmap torch computes it by other ops
            refuse_gradient("nll_loss_forward" if ndim <= 2 else "nll_loss2d_forward", weight=weight)
    if ndim <= 2:
        return nll_loss_rows(input, target, weight, reduction, ignore_index)
    if ndim == 4:
        return nll_loss_2d(input, target, weight, reduction, ignore_index)
    n, c, *rest = input.shape
    if tuple(target.shape[1:]) != tuple(rest):
        raise RuntimeError(f"Expected target size {[n, *rest]}, got {list(target.shape)}")
    flat = prod(rest)
    images = reshape_to(input, (n, c, 1, flat) if flat else (n, c, 0, 0))
    loss = nll_loss_2d(images, reshape_to(target, (n, *images.shape[2:])), weight, reduction, ignore_index)
    return reshape_to(loss, (n, *rest)) if reduction == 0 else loss


@function(space="nn.functional", method=False, autocast="float32")
def nll_loss(
    self: Array,
    target: Array,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """Compute the negative log likelihood of target classes: `-weight[target] * input[target]`.

    `input` holds log probabilities, as `log_softmax` makes them: `(C,)`, `(N, C)` or `(N, C, d1, ...)`; `target` holds
    class indices, of the same shape without `C`. `weight` `(C,)` rescales the classes, and targets equal to
    `ignore_index` count for nothing. `reduction` is 'mean' (divided by the weights of the targets that count), 'sum' or
    'none' (the shape of `target`); `size_average` and `reduce` are its older, deprecated spelling.
    """
    return nll_loss_nd(self, target, weight, reduction_code(reduction, size_average, reduce), ignore_index)


# ------------------------------------------------------------------ cross_entropy


@function(space="nn.functional", method=False, autocast="float32")
def cross_entropy(
    self: Array,
    target: Array,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """Compute the cross entropy between logits and target classes.

    `input` holds unnormalized scores: `(C,)`, `(N, C)` or `(N, C, d1, ...)`. `target` holds class indices, of the same
    shape without `C`, or class probabilities, of the same shape with it. The loss is `-log_softmax(input)[target]`, or
    `-sum(target * log_softmax(input))` over the classes.
    `weight` `(C,)` rescales the classes; targets equal to `ignore_index` count for nothing; `label_smoothing` mixes the
    target with that much of the uniform distribution. `reduction` is 'mean' (for indices: divided by the weights of the
    targets that count), 'sum' or 'none'; `size_average` and `reduce` are its older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    # A number of NumPy would make the loss float64; what is not above zero, NaN too, smoothes nothing in torch.
    label_smoothing = max(0.0, float(label_smoothing))
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    class_dim = 0 if self._array.ndim == 1 else 1
    if self._array.shape == target._array.shape:
        if not target.dtype.is_floating_point:
            kind = target.dtype.scalar_type
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {kind}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return probability_loss(self, target, weight, code, label_smoothing, class_dim)
    if weight is None and label_smoothing == 0.0 and arrays_of(self) is not None and type(target) is Tensor:
        if target._array.dtype is LONG:
            loss = unrecorded(kernels.cross_entropy, self._array, target._array, code, ignore_index)
            if loss is not None:
                return loss
    log_probabilities = log_softmax_rows(self, class_dim)
    if label_smoothing > 0.0:
        return smoothed_loss(log_probabilities, target, weight, code, ignore_index, label_smoothing, class_dim)
    return nll_loss_nd(log_probabilities, target, weight, code, ignore_index)


def class_weights(weight: Tensor, like: Tensor, class_dim: int) -> Tensor:
    """The weights of the classes, shaped to multiply a tensor that has them along one dimension."""
    shape = [1] * like.ndim
    shape[class_dim] = weight.shape[0]
    return reshape_to(weight, tuple(shape))


def probability_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, smoothing: float, class_dim: int
) -> Tensor:
    """The cross entropy between logits and probabilities."""
    terms = log_softmax_rows(self, class_dim)
    classes = self.shape[class_dim]
    if smoothing > 0.0:
        target = plus(times(target, 1 - smoothing), smoothing / classes)
    terms = mul(terms, target)
    if weight is not None:
        terms = mul(terms, class_weights(weight, self, class_dim))
    if reduction == 0:
        return neg(sum_dim(terms, (class_dim,)))
    loss = neg(sum_all(terms))
    return loss if reduction == 2 else over(loss, self.numel() // classes if self.numel() else 0)


def smoothed_loss(
    terms: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
    class_dim: int,
) -> Tensor:
    """(1 - smoothing) times the loss of the target class, and the rest shared by all classes."""
    loss = nll_loss_nd(terms, target, weight, reduction, ignore_index)
    weighted = terms if weight is None else mul(terms, class_weights(weight, terms, class_dim))
    spread = neg(sum_dim(weighted, (class_dim,)))
    ignored = eq(target, ignore_index)
    spread = masked_fill(spread, ignored, 0.0)
    if reduction == 1:
        spread = div(sum_all(spread), counted(terms, target, weight, ignored))
    elif reduction == 2:
        spread = sum_all(spread)
    return add(times(loss, 1 - smoothing), times(spread, smoothing / terms.shape[class_dim]))


def counted(terms: Tensor, target: Tensor, weight: Tensor | None, ignored: Tensor) -> Tensor:
    """What the mean divides by: how many targets count, or the sum of their weights."""
    counts = np.logical_not(ignored._array)
    if weight is None:
        return wrap(np.add.reduce(counts, axis=None, dtype=np.int64).astype(terms._array.dtype))
    weights = weight._array[np.where(counts, target._array, 0)]
    return wrap(total(np.where(counts, weights, weights.dtype.type(0)), None, False))
