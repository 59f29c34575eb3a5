"""LAPACK on batches of matrices: singular values, eigenvalues, and the exponential."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._thresholds import SMALL_MATRIX
from pullback.kernels.numpy.linalg import shapes
from pullback.kernels.numpy.linalg.triangular import INT32, by_columns, lapack, many, mapped

Array = Any

REAL = {"f": np.dtype(np.float32), "d": np.dtype(np.float64), "F": np.dtype(np.float32), "D": np.dtype(np.float64)}
COMPLEX = {char: np.dtype(np.complex64 if char in "fF" else np.complex128) for char in REAL}


def real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real dtype of the same precision."""
    return REAL[dtype.char]


def endless(a: Array) -> bool:
    """True for a matrix that holds infinities, which LAPACK may divide for ever; one with a NaN it refuses itself."""
    return bool(np.isinf(a).any() and not np.isnan(a).any())


def none(self: Array) -> Array:
    """What stands for vectors nobody asked for."""
    return np.empty(0, self.dtype)


# ------------------------------------------------------------------ singular values


@answered(meta=shapes.svd)
def svd(self: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, Array]:
    """U, the singular values in falling order, V^H, and LAPACK's code for each matrix: 0 where all went well.

    U and V^H are None if nobody asked for them.
    """
    finite = bool(np.isfinite(self).all())
    if finite and many(self):
        try:
            return svd_by_numpy(self, full_matrices, compute_uv)
        except np.linalg.LinAlgError:
            pass  # one of them failed: LAPACK's own code says which and how
    gesdd = lapack("gesdd", self.dtype)

    def decompose_one(a: Array) -> tuple[Array, Array, Array, int]:
        if not a.size:
            return empty_svd(a, full_matrices, compute_uv)
        lost = not finite and endless(a)
        u, s, vh, info = gesdd(np.zeros_like(a) if lost else a, compute_uv=compute_uv, full_matrices=full_matrices)
        if lost:
            u[...], s[...], vh[...] = np.nan, np.nan, np.nan
        return (u, s, vh, info) if compute_uv else (none(a), s, none(a), info)

    u, s, vh, info = mapped(decompose_one, (2,), self)
    return (u, s, vh, info) if compute_uv else (None, s, None, info)


def svd_by_numpy(self: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, Array]:
    """The same for large batches."""
    info = np.zeros(self.shape[:-2], INT32)
    if not compute_uv:
        return None, np.linalg.svd(self, compute_uv=False), None, info
    u, s, vh = np.linalg.svd(self, full_matrices)
    return by_columns(u), s, by_columns(vh), info


def empty_svd(a: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array, int]:
    """A matrix without elements has no singular values; its vectors are those of the identity."""
    m, n = a.shape
    s = np.empty(0, real_of(a.dtype))
    if not compute_uv:
        return none(a), s, none(a), 0
    u = np.eye(m, m if full_matrices else 0, dtype=a.dtype)
    vh = np.eye(n if full_matrices else 0, n, dtype=a.dtype)
    return by_columns(u), s, by_columns(vh), 0


# ------------------------------------------------------------------ eigenvalues


@answered(meta=shapes.eigh)
def eigh(self: Array, lower: bool, compute_v: bool) -> tuple[Array, Array, Array]:
    """Eigenvalues in rising order and eigenvectors of Hermitian matrices, of which one triangle is looked at."""
    finite = bool(np.isfinite(self).all())
    if finite and many(self):
        try:
            return eigh_by_numpy(self, lower, compute_v)
        except np.linalg.LinAlgError:
            pass  # one of them failed: LAPACK's own code says which and how
    syevd = lapack("syevd", self.dtype)

    def decompose_one(a: Array) -> tuple[Array, Array, int]:
        if not a.size:
            return np.empty(0, real_of(a.dtype)), a.copy("F"), 0
        if finite or not endless(a):
            return syevd(a, compute_v=compute_v, lower=lower)  # type: ignore[no-any-return]
        return np.full(len(a), np.nan, real_of(a.dtype)), np.full_like(a, np.nan, order="F"), 0

    values, vectors, info = mapped(decompose_one, (2,), self)
    return values, vectors if compute_v else None, info


def eigh_by_numpy(self: Array, lower: bool, compute_v: bool) -> tuple[Array, Array, Array]:
    """The same for large batches."""
    info, triangle = np.zeros(self.shape[:-2], INT32), "L" if lower else "U"
    if not compute_v:
        return np.linalg.eigvalsh(self, triangle), None, info
    values, vectors = np.linalg.eigh(self, triangle)
    return values, by_columns(vectors), info


@answered(meta=shapes.eig)
def eig(self: Array, compute_v: bool) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of square matrices, complex even where they are real."""
    kind = COMPLEX[self.dtype.char]
    if not compute_v:
        return np.linalg.eigvals(self).astype(kind), None
    values, vectors = np.linalg.eig(self)
    return values.astype(kind), by_columns(vectors.astype(kind))


# ------------------------------------------------------------------ the exponential

DEGREE = 16
RADIUS = {np.dtype(np.float64): 0.75, np.dtype(np.float32): 2.5}
"""The largest norm for which the Taylor polynomial of that degree is exact to the last digit."""
COEFFICIENTS = [1.0 / factorial(k) for k in range(DEGREE + 1)]


@answered(meta=shapes.same)
def matrix_exp(self: Array) -> Array:
    """The exponential: halved until its norm is small, by its Taylor polynomial, then squared as often.

    Small matrices of single precision are computed in double: the squarings cost the small elements their digits.
    """
    if not self.size:
        return self.copy()
    if self.shape[-1] == 1:
        return np.exp(self)
    if self.dtype.char not in "dD" and (self.shape[-1] <= SMALL_MATRIX or self.dtype.char not in "fF"):
        return matrix_exp(self.astype("D" if self.dtype.char == "F" else "d")).astype(self.dtype)
    rows = self.reshape((-1, *self.shape[-2:]))
    norms = np.abs(rows).sum(axis=-2).max(axis=-1)
    halvings = np.zeros(len(rows), np.intp)
    large = np.isfinite(norms) & (norms > RADIUS[real_of(self.dtype)])
    halvings[large] = np.ceil(np.log2(norms[large] / RADIUS[real_of(self.dtype)])).astype(np.intp)
    scale = np.ldexp(np.ones(len(rows), real_of(self.dtype)), -halvings).astype(real_of(self.dtype))
    out = taylor(rows * scale[:, None, None])
    for done in range(int(halvings.max())):
        again = halvings > done
        if again.all():
            out = out @ out
        else:
            out[again] = out[again] @ out[again]
    return out.reshape(self.shape)


def taylor(a: Array) -> Array:
    """The Taylor polynomial of exp, in powers of a^4: six products instead of fifteen."""
    identity = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    powers = (identity, a, a2, a2 @ a)
    fourth = a2 @ a2
    out: Array = None
    for start in range(DEGREE - 4, -1, -4):
        block = sum(power * a.dtype.type(COEFFICIENTS[start + k]) for k, power in enumerate(powers))
        higher = fourth * a.dtype.type(COEFFICIENTS[DEGREE]) if out is None else fourth @ out
        out = higher + block
    return out
