"""Losses that ask for a margin: between classes, between labels, between near and far."""

from __future__ import annotations

from collections.abc import Callable

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.distance import PairwiseDistance
from pullback.nn.modules.parts.loss_base import _Loss, _WeightedLoss

HOME = "pullback.nn.modules.loss"
"""Where checkpoints look for these classes, as torch has them there."""


# ------------------------------------------------------------------ classes and labels


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), targets 1 and -1."""

    __module__ = HOME

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.soft_margin_loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge between every right label and every wrong one."""

    __module__ = HOME

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.multilabel_margin_loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean cross entropy of yes and no over all labels."""

    __module__ = HOME

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.multilabel_soft_margin_loss."""
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The hinge between the right class and every other."""

    __module__ = HOME

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.multi_margin_loss."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


# ------------------------------------------------------------------ near and far


class HingeEmbeddingLoss(_Loss):
    """The distance where the target is 1, what lacks to the margin where it is -1."""

    __module__ = HOME

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """F.hinge_embedding_loss."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class _PairLoss(_Loss):
    """A loss of two inputs and a target, with a margin."""

    _shared_init = True

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_PairLoss):
    """1 - cosine for pairs that belong together, the cosine above the margin for others."""

    __module__ = HOME

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """F.cosine_embedding_loss."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_PairLoss):
    """The hinge of the difference of two scores that should be ordered as the target says."""

    __module__ = HOME

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """F.margin_ranking_loss."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


def check_margin(module: _Loss, margin: float) -> None:
    """Refuse a margin that asks for nothing."""
    if margin <= 0:
        raise ValueError(f"{type(module).__name__}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """The positive should be nearer to the anchor than the negative, by a margin."""

    __module__ = HOME

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        check_margin(self, margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """F.triplet_margin_loss."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of one's own."""

    __module__ = HOME

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        check_margin(self, margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """F.triplet_margin_with_distance_loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
