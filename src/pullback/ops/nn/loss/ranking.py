"""Losses that compare: which of two is larger, which of two is nearer, are two alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback._arrays.element import exact_number
from pullback._op.define import function
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor, wrap
from pullback.autograd.tracebacks import trim
from pullback.ops.nn.loss.reduction import apply_reduction, reduction_code
from pullback.ops.nn.loss.similarity import pairwise_distance
from pullback.ops.nn.number import minus, plus
from pullback.ops.pointwise.arithmetic import add, div, mul, neg, sub
from pullback.ops.pointwise.bounds import clamp_min, minimum, where
from pullback.ops.pointwise.compare import eq, ne
from pullback.ops.pointwise.elementary import sqrt
from pullback.ops.reduce.sums import sum_dim


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros outside the graph."""
    return wrap(np.zeros_like(tensor._array))


# ------------------------------------------------------------------ margin_ranking_loss


@function(raw=True, method=False, autocast="float32")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Compute the ranking loss of pairs of scores: `max(0, -target * (input1 - input2) + margin)`.

    As `nn.functional.margin_ranking_loss`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    loss = clamp_min(plus(mul(neg(target), sub(input1, input2)), float(margin)), 0)
    return apply_reduction(loss, reduction)


@function(raw=True, space="nn.functional", method=False, name="margin_ranking_loss")
def functional_margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the ranking loss of pairs of scores: `max(0, -target * (input1 - input2) + margin)`.

    Where `target` is 1, `input1` should be the larger by `margin`; where it is -1, `input2`. All have the same shape.
    `reduction` is 'mean', 'sum' or 'none' (one loss per pair); `size_average` and `reduce` are its older, deprecated
    spelling.
    """
    code = reduction_code(reduction, size_average, reduce)
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return margin_ranking_loss(input1, input2, target, margin, code)


# ------------------------------------------------------------------ hinge_embedding_loss


@function(raw=True, method=False, autocast="float32")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """Compute the hinge loss of distances: `input` where `target` is 1, `max(0, margin - input)` where it is -1.

    As `nn.functional.hinge_embedding_loss`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    zeros = zeros_like(input)
    if input._array.dtype.kind not in "bc":
        margin = exact_number(float(margin), input.dtype)  # type: ignore[assignment]
    apart = where(ne(target, 1), clamp_min(sub(margin, input), 0), zeros)
    loss = add(apart, where(ne(target, -1), input, zeros))
    return apply_reduction(loss, reduction)


@function(raw=True, space="nn.functional", method=False, name="hinge_embedding_loss")
def functional_hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the hinge loss of distances: `input` where `target` is 1, `max(0, margin - input)` where it is -1.

    Distances become small for pairs that belong together, and at least `margin` for the others. `reduction` is 'mean',
    'sum' or 'none' (one loss per element); `size_average` and `reduce` are its older, deprecated spelling.
    """
    return hinge_embedding_loss(input, target, margin, reduction_code(reduction, size_average, reduce))


# ------------------------------------------------------------------ cosine_embedding_loss

EPSILON = 1e-12
"""Added to squared lengths, so that no vector has length zero."""


@function(raw=True, method=False, autocast="float32")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Compute a loss of pairs of vectors: `1 - cos` where `target` is 1, `max(0, cos - margin)` where it is -1.

    As `nn.functional.cosine_embedding_loss`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{shape_text(input1.shape)} and {shape_text(input2.shape)}."
        )
    dim = (target.ndim,)
    product = sum_dim(mul(input1, input2), dim)
    squares = [plus(sum_dim(mul(x, x), dim), EPSILON) for x in (input1, input2)]
    cosine = div(product, sqrt(mul(*squares)))
    zeros = zeros_like(cosine)
    alike = where(eq(target, 1), sub(1, cosine), zeros)
    unlike = where(eq(target, -1), clamp_min(minus(cosine, margin), 0), zeros)
    return apply_reduction(add(alike, unlike), reduction)


@function(raw=True, space="nn.functional", method=False, name="cosine_embedding_loss")
def functional_cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute a loss of pairs of vectors from the cosine of their angle.

    It is `1 - cos` where `target` is 1, and `max(0, cos - margin)` where it is -1. `input1` and `input2` are `(N, D)`
    or `(D,)`, `target` is `(N,)` or a single number. `reduction` is 'mean', 'sum' or 'none' (one loss per pair);
    `size_average` and `reduce` are its older, deprecated spelling.
    """
    return cosine_embedding_loss(input1, input2, target, margin, reduction_code(reduction, size_average, reduce))


# ------------------------------------------------------------------ triplet_margin_loss


def check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    """The three have as many dimensions."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@function(raw=True, method=False, autocast="float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """Compute the triplet loss: `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    As `nn.functional.triplet_margin_loss`, with `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    check_triplet(anchor, positive, negative)
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return apply_reduction(clamp_min(sub(plus(near, margin), far), 0), reduction)


@function(raw=True, space="nn.functional", method=False, name="triplet_margin_loss")
def functional_triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the triplet loss: `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    The three are `(N, D)` or `(D,)`, and `d` is `pairwise_distance` with `p` and `eps`. With `swap`, the negative
    distance is the smaller of `d(anchor, negative)` and `d(positive, negative)`. `margin` has to be positive.
    `reduction` is 'mean', 'sum' or 'none' (one loss per triplet); `size_average` and `reduce` are its older, deprecated
    spelling.
    """
    try:
        code = reduction_code(reduction, size_average, reduce)
        if margin <= 0:
            raise ValueError(f"margin must be greater than 0, got {margin}")
        return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, space="nn.functional", method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute the triplet loss with any distance: `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    `distance_function` takes two tensors and returns their distances; without it `d` is `pairwise_distance`.
    With `swap`, the negative distance is the smaller of `d(anchor, negative)` and `d(positive, negative)`.
    `margin` has to be positive. `reduction` is 'mean', 'sum' or 'none' (one loss per triplet).
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return apply_reduction(clamp_min(sub(add(near, margin), far), 0), reduction_code(reduction))
