"""The extension `linalg` of the array API standard."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import linalg
from pullback.array_api.dtypes import operands
from pullback.array_api.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from pullback.array_api.statistics import sum_dtype

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def cholesky(x: torch.Tensor, /, *, upper: bool = False) -> torch.Tensor:
    """The triangular matrix whose product with its own transpose is x."""
    return linalg.cholesky(x, upper=upper)


def cross(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The cross product of vectors of three elements."""
    one, other = operands(x1, x2)
    return linalg.cross(one, other, dim=axis)


def det(x: torch.Tensor, /) -> torch.Tensor:
    """The determinant."""
    return linalg.det(x)


def diagonal(x: torch.Tensor, /, *, offset: int = 0) -> torch.Tensor:
    """A diagonal of the last two dimensions."""
    return linalg.diagonal(x, offset=offset)


def eig(x: torch.Tensor, /) -> Any:
    """Eigenvalues and eigenvectors of any square matrix: (eigenvalues, eigenvectors), complex."""
    return linalg.eig(x)


def eigh(x: torch.Tensor, /) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix: (eigenvalues, eigenvectors)."""
    return linalg.eigh(x)


def eigvals(x: torch.Tensor, /) -> torch.Tensor:
    """The eigenvalues of any square matrix, complex."""
    return linalg.eigvals(x)


def eigvalsh(x: torch.Tensor, /) -> torch.Tensor:
    """The eigenvalues of a Hermitian matrix."""
    return linalg.eigvalsh(x)


def inv(x: torch.Tensor, /) -> torch.Tensor:
    """The inverse of a matrix."""
    return linalg.inv(x)


def matrix_norm(x: torch.Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> torch.Tensor:
    """The norm of matrices."""
    return linalg.matrix_norm(x, ord=ord, keepdim=keepdims)


def matrix_power(x: torch.Tensor, n: int, /) -> torch.Tensor:
    """A matrix multiplied by itself n times."""
    return linalg.matrix_power(x, n)


def matrix_rank(x: torch.Tensor, /, *, rtol: Any = None) -> torch.Tensor:
    """How many singular values are not small beside the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The products of all pairs of elements of two vectors."""
    return torch.outer(*operands(x1, x2))


def pinv(x: torch.Tensor, /, *, rtol: Any = None) -> torch.Tensor:
    """The pseudo-inverse of a matrix."""
    return linalg.pinv(x, rtol=rtol)


def qr(x: torch.Tensor, /, *, mode: str = "reduced") -> Any:
    """An orthonormal matrix and an upper triangular one whose product is x: (Q, R)."""
    return linalg.qr(x, mode=mode)


def slogdet(x: torch.Tensor, /) -> Any:
    """The sign of the determinant and the logarithm of its size: (sign, logabsdet)."""
    return linalg.slogdet(x)


def solve(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """The solution of a system of linear equations; x2 is one vector, or matrices."""
    matrix, right = operands(x1, x2)
    if right.ndim == 1:
        return linalg.solve(matrix, right.unsqueeze(-1)).squeeze(-1)
    # Dimensions in front, or torch might read a matrix as a stack of vectors.
    return linalg.solve(matrix, right[(None,) * (matrix.ndim - right.ndim)])


def svd(x: torch.Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition: (U, S, Vh)."""
    return linalg.svd(x, full_matrices=full_matrices)


def svdvals(x: torch.Tensor, /) -> torch.Tensor:
    """The singular values."""
    return linalg.svdvals(x)


def trace(x: torch.Tensor, /, *, offset: int = 0, dtype: Any = None) -> torch.Tensor:
    """The sum of a diagonal of the last two dimensions."""
    return torch.sum(linalg.diagonal(x, offset=offset), -1, dtype=sum_dtype(x, dtype))


def vector_norm(x: torch.Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> torch.Tensor:
    """The norm of vectors, along some dimensions, all by default."""
    if axis == ():
        return linalg.vector_norm(x.unsqueeze(-1), ord=ord, dim=-1)
    return linalg.vector_norm(x, ord=ord, dim=axis, keepdim=keepdims)
