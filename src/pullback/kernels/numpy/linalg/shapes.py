"""The shapes of what LAPACK's routines give, for arrays without elements (see _arrays/kinds.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
INT32 = np.dtype(np.int32)


def columns(shape: tuple[int, ...], dtype: Any) -> Array:
    """New matrices stored by columns."""
    return np.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def codes(self: Array) -> Array:
    """A number for each matrix."""
    return np.empty(self.shape[:-2], INT32)


def real(self: Array) -> Any:
    """The real dtype of the same precision."""
    return self.real.dtype


def factor(self: Array, *options: Any) -> tuple[Array, Array]:
    """A matrix for each matrix, and LAPACK's codes: Cholesky, its inverse."""
    return columns(self.shape, self.dtype), codes(self)


def factor_with_pivots(self: Array, *options: Any) -> tuple[Array, Array, Array]:
    """The same with pivots: LU, LDL."""
    pivots = np.empty((*self.shape[:-2], min(self.shape[-2:])), INT32)
    return columns(self.shape, self.dtype), pivots, codes(self)


def solved(a: Array, b: Array, *options: Any) -> Array:
    """The solutions of systems with the right-hand sides b."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return columns((*batch, *b.shape[-2:]), b.dtype)


def solved_with_pivots(a: Array, pivots: Array, b: Array, left: bool = True, adjoint: bool = False) -> Array:
    """The same from a factorization; where columns are put in order at the end, the solutions lie in rows."""
    out = solved(a, b)
    return out if left or adjoint else np.empty(out.shape, out.dtype)


def ldl_solved(a: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """The same from an LDL factorization."""
    return solved(a, b)


def cholesky_solved(b: Array, factor: Array, upper: bool) -> Array:
    """The same from a Cholesky factor."""
    return solved(factor, b)


def permutation(pivots: Array, rows: int) -> Array:
    """A row number for each row."""
    return np.empty((*pivots.shape[:-1], rows), np.intp)


def reflections(self: Array) -> tuple[Array, Array]:
    """R with reflections, and their factors."""
    return columns(self.shape, self.dtype), np.empty((*self.shape[:-2], min(self.shape[-2:])), self.dtype)


def qr(self: Array, mode: str) -> tuple[Array, Array]:
    """Q and R."""
    m, n = self.shape[-2:]
    rows = m if mode == "complete" else min(m, n)
    r = columns((*self.shape[:-2], rows, n), self.dtype)
    q = np.empty(0, self.dtype) if mode == "r" else columns((*self.shape[:-2], m, rows), self.dtype)
    return q, r


def like_first(self: Array, *others: Any) -> Array:
    """A product of reflections."""
    return columns(self.shape, self.dtype)


def like_third(self: Array, tau: Array, other: Array, *options: Any) -> Array:
    """Reflections times a matrix."""
    return columns(other.shape, other.dtype)


def lstsq(a: Array, b: Array, rcond: float, driver: str) -> tuple[Array, Array, Array, Array]:
    """Solutions, ranks, singular values, codes."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2:]
    found = min(m, n) if driver in ("gelsd", "gelss") else 0
    s = np.empty((*batch, found), real(a))
    return columns((*batch, max(m, n), b.shape[-1]), b.dtype), np.empty(batch, INT32), s, np.empty(batch, INT32)


def svd(self: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, Array]:
    """U, singular values, V^H, codes."""
    m, n = self.shape[-2:]
    k = min(m, n)
    batch = self.shape[:-2]
    s = np.empty((*batch, k), real(self))
    if not compute_uv:
        return None, s, None, codes(self)
    u = columns((*batch, m, m if full_matrices else k), self.dtype)
    return u, s, columns((*batch, n if full_matrices else k, n), self.dtype), codes(self)


def eigh(self: Array, lower: bool, compute_v: bool) -> tuple[Array, Array, Array]:
    """Eigenvalues, eigenvectors, codes."""
    return np.empty(self.shape[:-1], real(self)), columns(self.shape, self.dtype) if compute_v else None, codes(self)


def eig(self: Array, compute_v: bool) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, complex in any case."""
    kind = np.result_type(self.dtype, np.complex64)
    return np.empty(self.shape[:-1], kind), columns(self.shape, kind) if compute_v else None


def same(self: Array) -> Array:
    """A matrix of the same size, in rows."""
    return np.empty(self.shape, self.dtype)
