"""Dropout: in training, single values or whole channels are set to zero."""

from __future__ import annotations

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Layer):
    """The probability, and whether the input is overwritten."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Each value is dropped by itself."""

    def forward(self, input: Tensor) -> Tensor:
        """F.dropout."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Whole channels of signals are dropped."""

    def forward(self, input: Tensor) -> Tensor:
        """F.dropout1d."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Whole channels of images are dropped."""

    def forward(self, input: Tensor) -> Tensor:
        """F.dropout2d."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Whole channels of volumes are dropped."""

    def forward(self, input: Tensor) -> Tensor:
        """F.dropout3d."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Values are dropped to SELU's lower bound, so that mean and variance stay."""

    def forward(self, input: Tensor) -> Tensor:
        """F.alpha_dropout."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Whole channels are dropped to SELU's lower bound."""

    def forward(self, input: Tensor) -> Tensor:
        """F.feature_alpha_dropout."""
        return F.feature_alpha_dropout(input, self.p, self.training)
