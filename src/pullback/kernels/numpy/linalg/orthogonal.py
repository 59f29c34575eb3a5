"""LAPACK on batches of matrices: QR, Householder reflections, least squares."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback.kernels.numpy.linalg import shapes
from pullback.kernels.numpy.linalg.spectral import none, real_of
from pullback.kernels.numpy.linalg.triangular import INT32, by_columns, identity, lapack, many, mapped
from pullback.kernels.numpy.math.direct import copyto
from pullback.kernels.numpy.tables import lower

Array = Any

BLOCK = 64
"""So many columns at a time LAPACK multiplies by, if it is given memory for them."""


@answered(meta=shapes.reflections)
def geqrf(self: Array) -> tuple[Array, Array]:
    """R above the diagonal and the reflections that make Q below it, with their factors tau."""
    routine = lapack("geqrf", self.dtype)

    def factor_one(a: Array) -> tuple[Array, Array]:
        if not a.size:
            return a.copy("F"), np.empty(0, a.dtype)
        reflections, tau, _, _ = routine(a)
        return reflections, tau

    reflections, tau = mapped(factor_one, (2,), self)
    return reflections, tau


@answered(meta=shapes.qr)
def qr(self: Array, mode: str) -> tuple[Array, Array]:
    """Q and R: `reduced` to the smaller side, `complete`, or only `r`."""
    if many(self):
        if mode == "r":
            return none(self), by_columns(np.linalg.qr(self, "r"))
        q, r = np.linalg.qr(self, mode)
        return by_columns(q), by_columns(r)
    geqrf, orgqr = lapack("geqrf", self.dtype), lapack("orgqr", self.dtype)
    m, n = self.shape[-2:]
    k, work = min(m, n), BLOCK * max(m, n)

    def factor_one(a: Array) -> tuple[Array, Array]:
        rows = m if mode == "complete" else k
        if not a.size:
            q = none(a) if mode == "r" else identity(m, a.dtype)[:, :rows].copy("F")
            return q, np.zeros((rows, n), a.dtype)
        reflections, tau, _, _ = geqrf(a, lwork=work)
        r = reflections[:rows].copy("F")
        copyto(r, 0, where=lower(rows, n, -1))
        if mode == "r":
            return none(a), r
        if rows > n:
            padded = np.zeros((m, m), a.dtype, "F")
            padded[:, :n] = reflections
            return orgqr(padded, tau, lwork=work)[0], r
        return orgqr(reflections[:, :rows], tau, lwork=work)[0], r

    q, r = mapped(factor_one, (2,), self)
    return (none(self) if mode == "r" else q), r


@answered(meta=shapes.like_first)
def householder_product(self: Array, tau: Array) -> Array:
    """The first columns of the product of the reflections stored below the diagonal."""
    orgqr = lapack("orgqr", self.dtype)

    def multiply_one(a: Array, tau: Array) -> tuple[Array]:
        if not a.size:
            return (a.copy("F"),)
        return (orgqr(a, tau)[0] if tau.size else identity(len(a), a.dtype)[:, : a.shape[1]].copy("F"),)

    return mapped(multiply_one, (2, 1), self, tau)[0]


@answered(meta=shapes.like_third)
def ormqr(self: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """The product of all reflections (or its conjugate transpose) times a matrix, from the left or the right."""
    routine = lapack("ormqr", self.dtype)
    adjoint = ("C" if self.dtype.kind == "c" else "T") if transpose else "N"

    def multiply_one(a: Array, tau: Array, c: Array) -> tuple[Array]:
        if not c.size or not tau.size:
            return (c.copy("F"),)
        lwork = BLOCK * max(c.shape)
        return (routine("L" if left else "R", adjoint, a[:, : len(tau)], tau, c, lwork)[0],)

    return mapped(multiply_one, (2, 1, 2), self, tau, other)[0]


# ------------------------------------------------------------------ least squares


@answered(meta=shapes.lstsq)
def lstsq(a: Array, b: Array, rcond: float, driver: str) -> tuple[Array, Array, Array, Array]:
    """The solution stacked on what is left of b, the rank (-1 if not found), singular values and LAPACK's code.

    The rows below the first n hold the residuals of a tall system of full rank.
    """
    m, n = a.shape[-2:]
    solve = DRIVERS[driver]

    def solve_one(a: Array, b: Array) -> tuple[Array, int, Array, int]:
        tall = np.zeros((max(m, n), b.shape[1]), b.dtype, "F")
        tall[:m] = b
        if not a.size:
            left = n == 0 and driver != "gels"  # all of it, which torch's gels does not say
            return tall if left else np.zeros_like(tall), 0, np.empty(0, real_of(a.dtype)), 0
        if not b.size:  # LAPACK wants a right-hand side; without one torch's finds no rank
            _, _, s, info = solve(a, np.zeros((max(m, n), 1), b.dtype, "F"), rcond)
            return tall, 0, s, info
        return solve(a, tall, rcond)

    if a.ndim > 2 or b.ndim > 2:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    x, rank, s, info = mapped(solve_one, (2, 2), a, b)
    return x, rank, s, info


def gels(a: Array, b: Array, rcond: float) -> tuple[Array, int, Array, int]:
    """By QR: a must have full rank."""
    lwork = int(lapack("gels_lwork", a.dtype)(*a.shape, b.shape[1])[0].real)
    _, x, info = lapack("gels", a.dtype)(a, b, lwork=lwork)
    return x, -1, none(a), info


@lru_cache(maxsize=256)
def gelsy_work(m: int, n: int, columns: int, dtype: np.dtype[Any]) -> int:
    """How much memory LAPACK asks for a problem of this size."""
    return int(lapack("gelsy_lwork", dtype)(m, n, columns, 0.0)[0].real)


def gelsy(a: Array, b: Array, rcond: float) -> tuple[Array, int, Array, int]:
    """By QR with column pivoting."""
    lwork = gelsy_work(*a.shape, b.shape[1], a.dtype)
    _, x, _, rank, info = lapack("gelsy", a.dtype)(a, b, np.zeros((a.shape[1], 1), INT32), rcond, lwork)
    return x, rank, none(a), info


def gelsd(a: Array, b: Array, rcond: float) -> tuple[Array, int, Array, int]:
    """By singular values, divide and conquer."""
    if not np.isfinite(a).all():
        return (*without_end(a, b), 1)
    sizes = lapack("gelsd_lwork", a.dtype)(*a.shape, b.shape[1], cond=rcond)
    sizes = [max(1, int(np.real(size))) for size in sizes[:-1]]
    x, s, rank, info = lapack("gelsd", a.dtype)(a, b, *sizes, cond=rcond)
    return x, rank, s, info


def gelss(a: Array, b: Array, rcond: float) -> tuple[Array, int, Array, int]:
    """By singular values."""
    if not np.isfinite(a).all():
        return (*without_end(a, b), 0)
    lwork = int(lapack("gelss_lwork", a.dtype)(*a.shape, b.shape[1])[0].real)
    _, x, s, rank, _, info = lapack("gelss", a.dtype)(a, b, cond=rcond, lwork=lwork)
    return x, rank, s, info


def without_end(a: Array, b: Array) -> tuple[Array, int, Array]:
    """What torch finds by the singular values of what is not finite, with which LAPACK's may come to no end."""
    return np.full_like(b, np.nan), 0, np.full(min(a.shape), np.nan, real_of(a.dtype))


DRIVERS = {"gels": gels, "gelsy": gelsy, "gelsd": gelsd, "gelss": gelss}
