"""Losses of scores that should differ by a margin, hard (multi_margin, multilabel_margin) or soft."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._dtype import FROM_NUMPY, result_numpy_dtype
from pullback._op.define import Array, function, not_implemented, op
from pullback._runtime.messages import cannot_cast, shape_text, size_mismatch
from pullback._tensor import Tensor
from pullback.kernels.numpy.index.subscript import which_outside
from pullback.kernels.numpy.loss import margin as kernels
from pullback.ops.nn.activation.smooth import log_sigmoid
from pullback.ops.nn.loss.reduction import (
    apply_reduction,
    legacy_reduction,
    reduced,
    reduction_code,
    refuse_narrow,
    share,
)
from pullback.ops.pointwise.arithmetic import check_neg
from pullback.ops.pointwise.elementary import exp
from pullback.ops.reduce.sums import mean_all, sum_all
from pullback.ops.supported import moves, refuse_gradient


def check_vector_or_matrix(self: Array) -> None:
    """Rows of scores, or a single one."""
    if self.ndim > 2 or (self.ndim == 2 and not self.shape[1]) or (self.ndim == 1 and not self.shape[0]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape_text(self.shape)}"
        )


def check_long(target: Array) -> None:
    """Classes are numbered by int64."""
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {FROM_NUMPY[target.dtype].scalar_type}")


def spread(slopes: Array, grad: Array, reduction: int, shape: tuple[int, ...]) -> Array:
    """The slopes of each row times the gradient its loss receives."""
    factor = np.reshape(grad, (-1, 1)) if reduction == 0 else grad
    factor = factor / max(slopes.shape[0], 1) if reduction == 1 else factor
    return np.reshape(slopes * factor, shape).astype(slopes.dtype, copy=False)


# ------------------------------------------------------------------ multi_margin_loss


def check_multi_margin(self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int) -> None:
    """Torch's demands on scores, targets and weights."""
    check_vector_or_matrix(self)
    samples, classes = self.shape if self.ndim == 2 else (1, max(self.size, 1))
    if target.ndim > 1 or target.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{samples}], but got {shape_text(target.shape)}. Input has shape "
            f"{shape_text(self.shape)}."
        )
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {shape_text(weight.shape)}")
    refuse_narrow("multi_margin_loss_cpu_kernel", self)
    check_long(target)
    if weight is not None and weight.dtype is not self.dtype:
        kinds = [FROM_NUMPY[a.dtype].scalar_type for a in (self, weight)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    if target.size and (target.min() < 0 or target.max() >= classes):
        raise RuntimeError("target out of range" + which_outside(target, classes, 0, "target"))


@op(
    vmap="entries",
    space=None,
    name="multi_margin_loss",
    check=check_multi_margin,
    self=lambda grad, self, target, p, margin, weight, reduction: multi_margin_backward(
        grad, self, target, p, margin, weight, reduction
    ),
)
def multi_margin(self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int) -> Array:
    """max(0, margin - x[target] + x[other]) ** p, summed over the other classes, over their number."""
    check_multi_margin(self, target, p, margin, weight, reduction)
    rows = as_rows(self)
    loss = kernels.multi_margin(rows, np.reshape(target, -1), p, margin, weight)
    return loss.reshape(target.shape) if reduction == 0 else reduced(loss, reduction)


@op(vmap="entries", space=None, name="multi_margin_loss_backward", grad_output=not_implemented, self=not_implemented)
def multi_margin_backward(
    grad_output: Array, self: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: int
) -> Array:
    """The gradient of the scores."""
    rows = as_rows(self)
    slopes = kernels.multi_margin_backward(rows, np.reshape(target, -1), p, margin, weight)
    return spread(slopes, grad_output, reduction, self.shape)


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the multi-class hinge loss: `sum over i != y of max(0, margin - x[y] + x[i]) ** p / C`.

    `input` holds scores, `(N, C)` or `(C,)`, and `target` the classes `y`, `(N,)` or a single one; `p` is 1 or 2.
    `weight` `(C,)` multiplies the losses of each class. `reduction` is 'mean', 'sum' or 'none' (one loss per sample);
    `size_average` and `reduce` are its older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if isinstance(margin, complex):
        margin = exact_number(margin, input.dtype)
    refuse_gradient("multi_margin_loss", weight=weight)
    return multi_margin(input, target, p, margin, weight, code)


# ------------------------------------------------------------------ multilabel_margin_loss


def check_multilabel(self: Array, target: Array, reduction: int) -> None:
    """Torch's demands on scores and lists of targets."""
    check_vector_or_matrix(self)
    if target.shape != self.shape:
        raise RuntimeError(
            f"inconsistent target size: {shape_text(target.shape)} for input of size: {shape_text(self.shape)}"
        )
    refuse_narrow("multilabel_margin_loss_forward_out_frame", self)
    check_long(target)
    classes = max(self.shape[-1:], default=1)
    if target.size and (target.min() < -1 or target.max() >= classes):
        raise RuntimeError("argument #2 'target' is out of range" + which_outside(target, classes, -1, "target"))


def as_rows(array: Array) -> Array:
    """A matrix of one row, if it is not a matrix."""
    return array if array.ndim == 2 else np.reshape(array, (1, -1))


@op(
    vmap="entries",
    space=None,
    name="multilabel_margin_loss",
    outputs=("output", "is_target"),
    visible=1,
    check=check_multilabel,
    self=lambda grad, self, target, reduction, is_target: multilabel_margin_backward(
        grad, self, target, reduction, is_target
    ),
)
def multilabel_margin(self: Array, target: Array, reduction: int) -> Any:
    """max(0, 1 - x[target] + x[other]), summed over targets and other classes, over the number of classes."""
    check_multilabel(self, target, reduction)
    counts = kernels.target_counts(as_rows(target))
    loss = kernels.multilabel_margin(as_rows(self), counts)
    found = reduced(loss, reduction) if loss.size or reduction == 0 else np.zeros((), self.dtype)
    if reduction == 0 and self.ndim < 2:
        found = np.reshape(found, ())
    return found, np.reshape((counts > 0).astype(self.dtype), self.shape)


@op(
    vmap="entries",
    space=None,
    name="multilabel_margin_loss_backward",
    grad_output=not_implemented,
    self=not_implemented,
)
def multilabel_margin_backward(
    grad_output: Array, self: Array, target: Array, reduction: int, is_target: Array
) -> Array:
    """The gradient of the scores."""
    slopes = kernels.multilabel_margin_backward(as_rows(self), kernels.target_counts(as_rows(target)))
    return spread(slopes, grad_output, reduction, self.shape)


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the hinge loss for several labels per sample: `sum over j, i of max(0, 1 - x[j] + x[i]) / C`.

    Here `j` runs over the labels of a sample and `i` over all other classes. `input` holds scores, `(N, C)` or `(C,)`;
    `target`, of the same shape, lists the labels of each row, which end at the first -1. `reduction` is 'mean', 'sum'
    or 'none' (one loss per sample); `size_average` and `reduce` are its older, deprecated spelling.
    """
    return multilabel_margin(input, target, reduction_code(reduction, size_average, reduce))


# ------------------------------------------------------------------ soft margins


def check_soft_margin(self: Array, target: Array, reduction: int) -> None:
    """Torch's demands on scores and signs."""
    kind = FROM_NUMPY[self.dtype]
    if kind.category < 2:
        raise RuntimeError(cannot_cast("Float", kind.scalar_type))
    if target.dtype.kind == "c" != self.dtype.kind:
        made = FROM_NUMPY[result_numpy_dtype((self, target))]
        raise RuntimeError(cannot_cast(made.scalar_type, kind.scalar_type))
    for dim in range(1, min(self.ndim, target.ndim) + 1):
        a, b = self.shape[-dim], target.shape[-dim]
        if a != b and 1 not in (a, b):
            raise RuntimeError(size_mismatch(a, b, max(self.ndim, target.ndim) - dim))
    whole = np.broadcast_shapes(self.shape, target.shape)
    if whole != self.shape:
        mine, its = shape_text(self.shape), shape_text(whole)
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {its}")


@op(
    space=None,
    name="soft_margin_loss",
    check=check_soft_margin,
    pointwise=True,
    self=lambda grad, self, target, reduction: soft_margin_loss_backward(grad, self, target, reduction),
    result=lambda self_t, self, target, reduction: apply_reduction(
        soft_margin_loss_backward(self_t, self, target, 0), reduction
    ),
)
def soft_margin(self: Array, target: Array, reduction: int) -> Array:
    """log(1 + exp(-target * self))."""
    check_soft_margin(self, target, reduction)
    signs = target.astype(self.dtype) if target.dtype.kind in "bu" else target  # of which there are no negatives
    loss = np.log1p(np.exp(np.multiply(np.negative(signs), self)))
    return reduced(loss.astype(self.dtype, copy=False), reduction)


def in_dtype_of(self: Any, target: Any) -> Any:
    """Signs that are integers in the dtype of the scores: NumPy would multiply by them in double precision."""
    if isinstance(target, Tensor):
        return target
    return target.astype(self.dtype) if target.dtype.kind == "i" else target


@op(
    vmap="unreduced_backward",
    space=None,
    pointwise=True,
    untraced=("grad_output",),
    grad_output=lambda grad, self, target, reduction: apply_reduction(
        soft_margin_loss_backward(grad, self, target, 0), reduction
    ),
    self=lambda grad, grad_output, self, target, reduction: soft_margin_curve(
        grad, grad_output, self, target, reduction
    ),
    result=lambda grad_output_t, self_t, grad_output, self, target, reduction: (
        soft_margin_loss_backward(grad_output_t, self, target, reduction)
        + soft_margin_curve(self_t, grad_output, self, target, reduction)
    ),
)
def soft_margin_loss_backward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
    """-target * sigmoid(-target * self), shared out; NaN where the exponential is infinite, as torch computes it."""
    check_neg(target)
    target = in_dtype_of(self, target)
    odds = exp(-target * self)
    slope = -(target * odds) / (1 + odds) * share(grad_output, reduction, self.shape)
    return slope.astype(self.dtype, copy=False)


def soft_margin_curve(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    """How that changes with the scores."""
    target = in_dtype_of(self, target)
    odds = exp(-target * self)
    return grad * share(grad_output, reduction, self.shape) * target * target * odds / ((1 + odds) * (1 + odds))


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the logistic loss of scores and signs: `log(1 + exp(-target * input))`.

    `target` holds 1 or -1 for each element of `input`. `reduction` is 'mean', 'sum' or 'none' (one loss per element);
    `size_average` and `reduce` are its older, deprecated spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    refuse_gradient("soft_margin_loss", target=target)
    if moves(input) and moves(target):
        raise NotImplementedError(
            "Trying to use forward AD with soft_margin_loss_backward that does not support it because it has not been "
            "implemented yet."
        )
    return soft_margin(input, target, code)


@function(raw=True, space="nn.functional", method=False)
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the binary cross entropy of `sigmoid(input)` and the labels, averaged over the classes.

    `input` holds logits and `target` zeros and ones, both `(N, C)`; `weight` `(C,)` rescales the classes.
    `reduction` is 'mean', 'sum' or 'none' (one loss per sample); `size_average` and `reduce` are its older, deprecated
    spelling.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.ndim - 1) / input.shape[-1]
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return mean_all(loss) if reduction == "mean" else sum_all(loss)
