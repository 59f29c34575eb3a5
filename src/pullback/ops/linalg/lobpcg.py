"""lobpcg: a few extreme eigenpairs of large symmetric matrices."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.linalg import lobpcg as kernels
from pullback.ops.linalg.eigen import eigh_parts
from pullback.ops.linalg.parts import column, mT, row
from pullback.ops.random.draw import randn

PRECISION = {np.dtype(np.float32): 1.2e-07, np.dtype(np.float64): 2.23e-16}


@op(vmap="leading", space=None)
def no_gap(self: Array, largest: bool) -> Array:
    """Infinity where an eigenvalue meets itself among all eigenvalues, which rise: no part of its vector's change."""
    out = np.zeros(self.shape, self.dtype)
    m, k = self.shape[-2:]
    for i in range(k):
        out[..., m - 1 - i if largest else i, i] = inf
    return out


def lobpcg_backward(grad_E: Any, grad_X: Any, A: Any, B: Any, E: Any, X: Any, largest: bool) -> Any:
    """An eigenvector moves along every other one by what couples them, divided by the gap between their eigenvalues."""
    if B is not None:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    out = None if grad_E is None else (X * row(grad_E)) @ mT(X)
    if grad_X is None:
        return out
    values, vectors = eigh_parts(A)
    gaps = row(E) - column(values)
    moved = vectors @ ((mT(vectors) @ grad_X) / (gaps + no_gap(gaps, largest))) @ mT(X)
    return moved if out is None else out + moved


@op(
    vmap="entries",
    space=None,
    name="lobpcg",
    node="LOBPCGAutogradFunctionBackward",
    outputs=("E", "X"),
    A=lambda grad_E, grad_X, A, B, E, X, largest: lobpcg_backward(grad_E, grad_X, A, B, E, X, largest),
)
def lobpcg_parts(
    A: Array, B: Array | None, guess: Array, iK: Array | None, k: int, niter: int, tol: float, largest: bool
) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of each matrix of a batch."""
    m, n = guess.shape[-2:]
    batch = A.shape[:-2]
    flat, guesses = A.reshape((-1, m, m)), guess.reshape((-1, m, n))
    others = [None] * len(flat) if B is None else B.reshape((-1, m, m))
    found = [kernels.lobpcg(a, b, x, iK, k, niter, tol, largest) for a, b, x in zip(flat, others, guesses, strict=True)]
    values, vectors = (np.stack(parts) if parts else np.empty(0) for parts in zip(*found, strict=True))
    return values.reshape((*batch, k)).astype(A.dtype), vectors.reshape((*batch, m, k)).astype(A.dtype)


@function(raw=True, method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the `k` largest eigenvalues of symmetric matrices, or with `largest=False` the smallest, by iteration.

    Solves `A @ x = lambda * B @ x` for positive-definite `B` (None is the identity) by the LOBPCG method.
    Returns `(E, X)` of shapes `(*, k)` and `(*, m, k)` for `A` of shape `(*, m, m)`, where m is at least 3 times k.
    `X` is the first guess `(*, m, n)`, random by default; `iK` a preconditioner.
    The search ends after `niter` steps, 1000 by default, or when the relative residuals are below `tol`.
    `method` and the `ortho_` parameters choose between torch's ways to keep a basis orthonormal; here there is one.
    """
    if tracker is not None:
        raise NotImplementedError(
            "lobpcg(tracker=...) is not supported: call lobpcg with a small niter and look between"
        )
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if A._array.dtype not in PRECISION:
        raise NotImplementedError(f"lobpcg of {A.dtype}: use float32 or float64, or linalg.eigh")
    if A.requires_grad or (B is not None and B.requires_grad):
        A, B = (A + mT(A)) / 2, None if B is None else (B + mT(B)) / 2
    if X is None:
        guesses = [randn(m, n, dtype=A.dtype)._array for _ in range(int(np.prod(A.shape[:-2])))]
        X = wrap(np.stack(guesses).reshape((*A.shape[:-2], m, n)))
    found = lobpcg_parts(
        A,
        B,
        X,
        iK,
        k,
        1000 if niter is None else niter,
        PRECISION[A._array.dtype] ** 0.5 if tol is None else tol,
        True if largest is None else largest,
    )
    return tuple(found)  # type: ignore[return-value]
