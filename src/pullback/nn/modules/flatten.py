"""Flatten and Unflatten: joining dimensions and taking one apart."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.nn.modules.module import Layer

__all__ = ["Flatten", "Unflatten"]


class Flatten(Layer):
    """Join the dimensions from start_dim to end_dim."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """flatten."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Layer):
    """Take one dimension apart."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        require_sizes(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """unflatten."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The dimension and its parts."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


def require_sizes(sizes: Any) -> None:
    """Refuse what is not a tuple or list of ints."""
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
    for position, size in enumerate(sizes):
        if not isinstance(size, int):
            raise TypeError(
                "unflattened_size must be tuple of ints, but found element of type "
                f"{type(size).__name__} at pos {position}"
            )
