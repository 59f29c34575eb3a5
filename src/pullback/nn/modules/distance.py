"""How far apart vectors are: PairwiseDistance and CosineSimilarity."""

from __future__ import annotations

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Layer

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Layer):
    """The p-norm of the difference of each pair of vectors."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """F.pairwise_distance."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Layer):
    """The cosine of the angle between vectors."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """F.cosine_similarity."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
