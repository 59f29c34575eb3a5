"""linear_cross_entropy: a last layer and its loss in one call."""

from __future__ import annotations

from math import prod
from typing import Any

from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.ops.nn.linear import linear
from pullback.ops.nn.loss.classes import cross_entropy
from pullback.ops.shape.reshape import reshape_to


@function(raw=True, space="nn.functional", method=False)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Compute the cross entropy of a linear layer's outputs and the targets.

    It is `cross_entropy(linear(input, linear_weight, linear_bias), target)`, where `input` is `(N, in_features)` or
    `(in_features,)` and `linear_weight` is `(C, in_features)`, or `(C, d1, ..., in_features)` for logits of
    `(N, C, d1, ...)`; `linear_bias` has the same shape without `in_features`. `weight`, `reduction`, `ignore_index` and
    `label_smoothing` are those of `cross_entropy`. `options` (computing in chunks) is not implemented.
    """
    if options is not None:
        raise NotImplementedError(
            "linear_cross_entropy(options=...) computes in chunks to save memory, which is not implemented; leave "
            "options out, the numbers are the same"
        )
    check_linear_loss(input, linear_weight, linear_bias)
    classes, *rest = linear_weight.shape[:-1]
    shape = (*input.shape[:-1], classes, *rest)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if rest:
        rows = prod(rest) * classes
        linear_weight = reshape_to(linear_weight, (rows, input.shape[-1]))
        linear_bias = None if linear_bias is None else reshape_to(linear_bias, (rows,))
    logits = reshape_to(linear(input, linear_weight, linear_bias), shape)
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )


def check_linear_loss(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    """Torch's demands on the shapes of the layer."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
