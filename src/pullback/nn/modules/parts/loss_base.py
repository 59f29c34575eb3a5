"""What all losses have in common: the reduction, and for some a weight."""

from __future__ import annotations

from pullback import Tensor
from pullback.nn.modules.module import Layer
from pullback.ops.nn.loss.reduction import legacy_reduction


class _Loss(Layer):
    """A loss and what becomes of the losses of all elements: 'none', 'mean' or 'sum'."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction
        if size_average is not None or reduce is not None:
            self.reduction = legacy_reduction(size_average, reduce)


class _WeightedLoss(_Loss):
    """A loss with a weight for each class, or each element."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
