"""The products of the array API standard that every library has; `linalg` has the rest."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.array_api.dtypes import operands

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The product of matrices, or of stacks of them."""
    return torch.matmul(*operands(x1, x2))


def matrix_transpose(x: torch.Tensor, /) -> torch.Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def tensordot(x1: torch.Tensor, x2: torch.Tensor, /, *, axes: Any = 2) -> torch.Tensor:
    """The product summed over several dimensions."""
    one, other = operands(x1, x2)
    return torch.tensordot(one, other, axes)


def vecdot(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The scalar product along a dimension; the first operand counts conjugated."""
    one, other = operands(x1, x2)
    if one.shape[axis] != other.shape[axis]:
        raise ValueError(f"the vectors have {one.shape[axis]} and {other.shape[axis]} elements")
    return torch.sum(torch.conj(one) * other, axis, dtype=one.dtype)
