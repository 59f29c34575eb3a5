"""Approximate decompositions of large matrices, by products with random ones (Halko, Martinsson and Tropp, 2009)."""

from __future__ import annotations

from typing import Any

from pullback._dtype import float32
from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.ops.linalg.contract import matmul
from pullback.ops.linalg.parts import mH
from pullback.ops.linalg.qr import linalg_qr
from pullback.ops.linalg.svd import svd_parts
from pullback.ops.random.draw import randn
from pullback.ops.reduce.sums import mean_dim
from pullback.ops.shape.reshape import expand


def product(A: Any, M: Any, other: Any) -> Any:
    """(A - M) times a matrix, without making A - M."""
    return matmul(A, other) if M is None else matmul(A, other) - matmul(M, other)


def approximate_basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """Orthonormal columns that nearly span those of a tall A: products with random vectors, sharpened by iteration."""
    kind = A.dtype if A.dtype.category >= 2 else float32
    basis = linalg_qr(product(A, M, randn(A.shape[-1], q, dtype=kind, device=A.device)))[0]
    for _ in range(niter):
        basis = linalg_qr(product(mH(A), None if M is None else mH(M), basis))[0]
        basis = linalg_qr(product(A, M, basis))[0]
    return basis


@function(raw=True, method=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximate the singular value decomposition of a matrix of low rank by a randomized algorithm.

    Returns `(U, S, V)` of shapes `(*, m, q)`, `(*, q)` and `(*, n, q)` with `A` about `U @ diag(S) @ V.mH`.
    `q` is a little more than the expected rank; `niter` power iterations make it more accurate.
    If given, `M`, which broadcasts to the shape of `A`, is subtracted from it first.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    wide = A.shape[-2] < A.shape[-1]
    offset = None if M is None else expand(M, tuple(A.shape))
    if wide:
        A, offset = mH(A), None if offset is None else mH(offset)
    basis = approximate_basis(A, q, niter, offset)
    inner = matmul(mH(basis), A)
    if offset is not None:
        inner = inner - matmul(mH(basis), offset)
    U, S, Vh = svd_parts(inner)
    V, U = mH(Vh), matmul(basis, U)
    return (V, S, U) if wide else (U, S, V)


@function(raw=True, method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Find the principal components of the rows of a matrix by a randomized algorithm.

    Returns `(U, S, V)` as `svd_lowrank` does; the columns of V are the principal directions, and `A @ V[:, :k]`
    projects the m samples of `A` `(*, m, n)` on the first k of them.
    `q` is the number of components, `min(6, m, n)` by default; `niter` is the number of power iterations.
    With `center` the mean of the samples is subtracted first.
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - mean_dim(A, (-2,), True) if center else A, q, niter)  # type: ignore[no-any-return]
