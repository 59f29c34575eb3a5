"""ctc_loss: the loss of a sequence of labels whose times are not known."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._op.define import Array, function, not_implemented, op
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.sequence import ctc as kernels
from pullback.ops.nn.loss.reduction import reduction_code, refuse_narrow
from pullback.ops.pointwise.arithmetic import div
from pullback.ops.pointwise.bounds import where
from pullback.ops.pointwise.compare import eq
from pullback.ops.reduce.sums import mean_all, sum_all
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze
from pullback.ops.supported import invalid_combination

WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def check_ctc(
    log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool
) -> None:
    """Torch's demands on ctc_loss."""
    if not log_probs.size:
        raise RuntimeError("log_probs tensor must not be empty")
    refuse_narrow("ctc_loss_cpu", log_probs)
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' "
            f"{WHERE}"
        )
    if not 1 <= targets.ndim <= 2:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {WHERE}"
        )
    steps, samples, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != samples:
            raise RuntimeError(f"{name} must be of size batch_size")
    for length in target_lengths:
        if length < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {length} {WHERE}")
    check_target_sizes(targets, target_lengths, samples)
    for length in input_lengths:
        if length < 0:
            raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {length} {WHERE}")
        if length > steps:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {length} {WHERE}")


def check_target_sizes(targets: Array, lengths: Any, samples: int) -> None:
    """There must be as many targets as their lengths say."""
    if targets.ndim == 1:
        if targets.size != sum(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size {targets.size} for argument "
                f"#2 'targets' {WHERE}"
            )
        return
    if targets.shape[0] != samples:
        raise RuntimeError(
            f"Expected tensor to have size {samples} at dimension 0, but got size {targets.shape[0]} for argument #2 "
            f"'targets' {WHERE}"
        )
    longest = max(lengths, default=0)
    if targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
            f"argument #2 'targets' {WHERE}"
        )


@op(
    vmap="entries",
    space=None,
    name="_ctc_loss",
    node="CtcLossBackward0",
    outputs=("result0", "result1"),
    visible=1,
    check=check_ctc,
    log_probs=lambda grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity: (
        ctc_loss_backward(
            grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
        )
    ),
)
def sample_losses(
    log_probs: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool
) -> Any:
    """The negative log likelihood of each sample's labels."""
    check_ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return kernels.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank)


@op(vmap="entries", space=None, name="_ctc_loss_backward", grad_output=not_implemented, log_probs=not_implemented)
def ctc_loss_backward(
    grad_output: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    neg_log_likelihood: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The gradient of the log probabilities, taken to come from a log_softmax."""
    return kernels.ctc_loss_backward(
        grad_output,
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        neg_log_likelihood,
        log_alpha,
        blank,
        zero_infinity,
    )


def lengths_of(name: str, lengths: Any) -> tuple[int, ...]:
    """Lengths given as a tensor or as numbers."""
    if not isinstance(lengths, Tensor):
        return tuple([int(length) for length in lengths])
    if lengths._array.dtype.kind not in "iub":
        raise RuntimeError(f"{name} must be integral")
    return tuple(lengths._array.reshape(-1).tolist())


@function(raw=True, method=False, autocast="float32")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the connectionist temporal classification loss of label sequences.

    As `nn.functional.ctc_loss`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    if isinstance(input_lengths, Tensor) is not isinstance(target_lengths, Tensor):
        given = (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        raise invalid_combination("ctc_loss", given)
    blank = index(blank)
    inputs, labels = lengths_of("input_lengths", input_lengths), lengths_of("target_lengths", target_lengths)
    batched = log_probs.ndim == 3
    if not batched:
        log_probs = unsqueeze(log_probs, 1)
    loss = sample_losses(log_probs, targets, inputs, labels, blank, zero_infinity)
    if zero_infinity:
        loss = where(eq(loss, float("inf")), wrap(np.zeros((), loss._array.dtype)), loss)
    if reduction == 1:
        return mean_all(
            div(loss, wrap(made_on(loss.device, np.asarray, np.maximum(labels, 1).astype(loss._array.dtype))))
        )
    if reduction == 2:
        return sum_all(loss)
    return loss if batched else squeeze_dim(loss, 0)


@function(raw=True, space="nn.functional", method=False, name="ctc_loss")
def functional_ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the connectionist temporal classification loss of label sequences.

    It is minus the log probability of a target, summed over all the ways to stretch it, with blanks, over the time
    steps.
    `log_probs` is `(T, N, C)` or `(T, C)`, as `log_softmax` makes it; `targets` is `(N, S)`, or 1-D with all targets
    end to end; `input_lengths` and `target_lengths` have one length per sample; `blank` is the label of blanks.
    `reduction` is 'mean' (losses are first divided by the target lengths), 'sum' or 'none' (`(N,)`); `zero_infinity`
    replaces infinite losses, of targets that are too long, and their gradients by zero.
    """
    code = reduction_code(reduction)
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code, zero_infinity)
