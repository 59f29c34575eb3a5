"""LAPACK on batches of matrices: the triangular factorizations (Cholesky, LU, LDL) and solving with them.

Each routine is written for one matrix; `mapped` runs it over a batch. Results are stored by columns, as LAPACK makes
them and torch returns them. SciPy is imported on the first call: few programs need it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._runtime.building import loaded
from pullback.kernels.numpy.linalg import batched, shapes
from pullback.kernels.numpy.math.direct import copyto
from pullback.kernels.numpy.tables import lower

Array = Any

LETTERS = {np.dtype(kind): letter for kind, letter in (("f4", "s"), ("f8", "d"), ("c8", "c"), ("c16", "z"))}
"""The first letter of LAPACK's routines for the dtypes it knows."""

INT32 = np.dtype(np.int32)


@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """A routine of LAPACK for a dtype; symmetric and orthogonal become Hermitian and unitary for complex ones."""
    if dtype.kind == "c":
        name = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}.get(name, name)
    return getattr(loaded("scipy.linalg.lapack"), LETTERS[dtype] + name)


@cache
def blas(name: str, dtype: np.dtype[Any]) -> Any:
    """A routine of BLAS for a dtype."""
    return getattr(loaded("scipy.linalg.blas"), LETTERS[dtype] + name)


def mapped(routine: Callable[..., tuple[Any, ...]], ranks: tuple[int, ...], *arrays: Array) -> list[Array]:
    """Call a routine on each item of a batch and put together what it returns.

    `ranks` says how many dimensions an item of each array has; all arrays have the same batch dimensions. Matrices are
    stacked by columns; numbers become an int32 for each item.
    """
    if arrays[0].ndim == ranks[0]:
        return [part if type(part) is np.ndarray else np.array(part, INT32) for part in routine(*arrays)]
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    if 0 in batch:  # nothing to compute, but the results have shapes: those of one item of ones
        blank = [np.ones(a.shape[a.ndim - rank :], a.dtype) for a, rank in zip(arrays, ranks, strict=True)]
        return [
            np.empty((*batch, *np.shape(part)), part.dtype if type(part) is np.ndarray else INT32)
            for part in routine(*blank)
        ]
    rows = [a.reshape((prod(batch), *a.shape[a.ndim - rank :])) for a, rank in zip(arrays, ranks, strict=True)]
    results = [routine(*items) for items in zip(*rows, strict=True)]
    return [stacked(parts, batch) for parts in zip(*results, strict=True)]


def stacked(parts: tuple[Any, ...], batch: tuple[int, ...]) -> Array:
    """The results of a batch in one array, matrices by columns."""
    first = parts[0]
    if type(first) is not np.ndarray:
        return np.array(parts, INT32).reshape(batch)
    if first.ndim == 2:
        columns = np.empty((len(parts), *first.shape[::-1]), first.dtype)
        return np.stack([part.T for part in parts], out=columns).reshape((*batch, *first.shape[::-1])).swapaxes(-1, -2)
    return np.stack(parts).reshape((*batch, *first.shape))


def by_columns(array: Array) -> Array:
    """A copy whose matrices are stored by columns."""
    return array.swapaxes(-1, -2).copy("C").swapaxes(-1, -2)


def many(array: Array) -> bool:
    """True for a batch so large that NumPy's loop over it beats one call for each matrix."""
    return array.ndim > 2 and prod(array.shape[:-2]) > 4


def identity(n: int, dtype: np.dtype[Any]) -> Array:
    """The identity, stored by columns."""
    return np.eye(n, dtype=dtype)


def diagonal(array: Array) -> Array:
    """The diagonals of matrices, as a view that can be written to if they can."""
    out = array.diagonal(0, -2, -1)
    if array.flags.writeable:
        out.flags.writeable = True
    return out


# ------------------------------------------------------------------ Cholesky


@answered(meta=shapes.factor)
def cholesky(self: Array, upper: bool) -> tuple[Array, Array]:
    """The Cholesky factors, and for each matrix 0 or the order of the first minor that is not positive."""
    if many(self) and self.size:
        try:
            factor = np.linalg.cholesky(self, upper=upper)
            return by_columns(factor), with_nan(factor, np.zeros(self.shape[:-2], INT32))
        except np.linalg.LinAlgError:
            pass  # one of them has none: LAPACK's own code says which and why
    potrf = lapack("potrf", self.dtype)

    def factor_one(a: Array) -> tuple[Array, int]:
        if not a.size:
            return a.copy("F"), 0
        factor, info = potrf(a, not upper, clean=0)  # which SciPy does in no good order: it takes as long as the rest
        copyto(factor if upper else factor.T, 0, where=lower(*a.shape, -1))
        return factor, info

    factor, info = mapped(factor_one, (2,), self)
    return factor, with_nan(factor, info)


def with_nan(factor: Array, info: Array) -> Array:
    """LAPACK's codes, and the place of the first nan, which not every LAPACK reports: nan is not positive either."""
    if not factor.size:
        return info
    last = factor[..., -1, -1] if factor.ndim > 2 else factor[-1, -1]  # a nan spreads from its place to the end
    if np.isfinite(last).all() if factor.ndim > 2 else last == last:
        return info
    missing = np.isnan(diagonal(factor))
    return np.where((info == 0) & missing.any(-1), missing.argmax(-1) + 1, info).astype(INT32)


@answered(meta=shapes.cholesky_solved)
def cholesky_solve(b: Array, factor: Array, upper: bool) -> Array:
    """Solve with the matrix whose Cholesky factor is given."""
    return solve_triangular(
        factor, solve_triangular(factor, b, upper, True, False, upper), upper, True, False, not upper
    )


@answered(meta=shapes.factor)
def cholesky_inverse(factor: Array, upper: bool) -> tuple[Array, Array]:
    """The inverse of the matrix whose Cholesky factor is given; only its triangle is looked at."""
    potri = lapack("potri", factor.dtype)
    n = factor.shape[-1]
    below = np.tri(n, n, -1, dtype=bool)

    def invert_one(a: Array) -> tuple[Array, int]:
        if not a.size:
            return a.copy("F"), 0
        inverse, info = potri(a, lower=not upper)
        mirrored = below if upper else below.T
        return np.where(mirrored, inverse.T.conj(), inverse).copy("F"), info

    inverse, info = mapped(invert_one, (2,), factor)
    return inverse, info


# ------------------------------------------------------------------ LU


@answered(meta=shapes.factor_with_pivots)
def lu_factor(self: Array) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the pivots (from 1, int32), and 0 or the position of the first zero on U's diagonal."""
    if self.ndim > 2 and batched.worth_it(prod(self.shape[:-2]), min(self.shape[-2:])) and self.size:
        return batched.lu_factor(self)
    getrf = lapack("getrf", self.dtype) if self.size else None  # of any dtype nothing is nothing

    def factor_one(a: Array) -> tuple[Array, Array, int]:
        if getrf is None:
            return a.copy("F"), np.zeros(min(a.shape), INT32), 0
        lu, pivots, info = getrf(a)
        pivots += 1
        return lu, pivots if pivots.dtype is INT32 else pivots.astype(INT32), info

    lu, pivots, info = mapped(factor_one, (2,), self)
    return lu, pivots, info


@answered(meta=shapes.solved_with_pivots)
def lu_solve(lu: Array, pivots: Array, b: Array, left: bool = True, adjoint: bool = False) -> Array:
    """Solve A X = B (or X A = B) given the LU factorization of A, or with A's conjugate transpose.

    LAPACK's own getrs wakes all threads for the smallest system; two triangular solves do not.
    """
    order = permutation(pivots, lu.shape[-1])
    if left == adjoint:
        order = np.argsort(order, -1)
    if left and not adjoint:
        b = reordered(b, order, -2)
    elif not left and adjoint:
        b = reordered(b, order, -1)
    if left != adjoint:
        x = solve_triangular(lu, b, False, left, True, adjoint)
        return solve_triangular(lu, x, True, left, False, adjoint)
    x = solve_triangular(lu, b, True, left, False, adjoint)
    x = solve_triangular(lu, x, False, left, True, adjoint)
    return by_columns(reordered(x, order, -2)) if left else reordered(x, order, -1)


def reordered(array: Array, order: Array, axis: int) -> Array:
    """Rows or columns in another order, which each matrix has for itself."""
    if order.ndim == 1:
        return array.take(order, axis)
    order = order[..., None] if axis == -2 else order[..., None, :]
    batch = np.broadcast_shapes(array.shape[:-2], order.shape[:-2])
    array = np.broadcast_to(array, (*batch, *array.shape[-2:]))
    return np.take_along_axis(array, np.broadcast_to(order, (*batch, *order.shape[-2:])), axis)


def transpositions(pivots: Array) -> int:
    """(-1) to the number of row exchanges, for each matrix: the determinant of the permutation."""
    exchanged = pivots != np.arange(1, pivots.shape[-1] + 1, dtype=INT32)
    return 1 - 2 * (np.count_nonzero(exchanged, axis=-1) & 1)  # type: ignore[no-any-return]


@answered(meta=shapes.permutation)
def permutation(pivots: Array, rows: int) -> Array:
    """The row of P L U that each row of L U becomes: the exchanges of the pivots, carried out on 0, 1, 2, ..."""
    if pivots.ndim == 1:
        order = list(range(rows))
        for i, pivot in enumerate(pivots.tolist()):
            order[i], order[pivot - 1] = order[pivot - 1], order[i]
        return np.array(order, np.intp)
    orders = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    count = prod(pivots.shape[:-1])
    flat, swaps = orders.reshape(count, rows), pivots.reshape(count, pivots.shape[-1]).astype(np.intp) - 1
    items = np.arange(count)
    for i in range(pivots.shape[-1]):
        there = swaps[:, i]
        here = flat[:, i].copy()
        flat[:, i] = flat[items, there]
        flat[items, there] = here
    return orders


# ------------------------------------------------------------------ triangular systems


@answered(meta=shapes.solved)
def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unitriangular: bool, adjoint: bool = False) -> Array:
    """Solve with triangular matrices; a zero on the diagonal gives inf or nan, as dividing by it does.

    `upper` says which triangle is stored; with `adjoint` its conjugate transpose is solved with.
    """
    trsm = blas("trsm", b.dtype)

    def solve_one(a: Array, b: Array) -> tuple[Array]:
        if not b.size:
            return (b.copy("F"),)
        return (trsm(1.0, a, b, not left, not upper, 2 if adjoint else 0, unitriangular),)

    if a.ndim == 2 == b.ndim:
        return solve_one(a, b)[0]
    batch = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if batched.worth_it(prod(batch), a.shape[-1]):
        if adjoint:
            a, upper = (a.conj() if a.dtype.kind == "c" else a).swapaxes(-1, -2), not upper
        x = batched.solve_triangular(a, b, upper, left, unitriangular)
        return x if left else by_columns(x)
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    return mapped(solve_one, (2, 2), a, b)[0]


# ------------------------------------------------------------------ LDL


@answered(meta=shapes.factor_with_pivots)
def ldl_factor(self: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """L and D in the lower triangle, LAPACK's pivots, and 0 or the position of a zero in D."""
    sytrf = lapack("hetrf" if hermitian and self.dtype.kind == "c" else "sytrf", self.dtype)
    sizes = lapack("hetrf_lwork" if hermitian and self.dtype.kind == "c" else "sytrf_lwork", self.dtype)

    def factor_one(a: Array) -> tuple[Array, Array, int]:
        if not a.size:
            return a.copy("F"), np.zeros(min(a.shape), INT32), 0
        lwork = int(sizes(len(a), lower=1)[0].real)
        factors, pivots, info = sytrf(a, lower=1, lwork=max(lwork, 1))
        return np.tril(factors).copy("F"), pivots.astype(INT32), info

    factors, pivots, info = mapped(factor_one, (2,), self)
    return factors, pivots, info


@answered(meta=shapes.ldl_solved)
def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """Solve with the matrix whose LDL factorization is given."""
    sytrs = lapack("hetrs" if hermitian and b.dtype.kind == "c" else "sytrs", b.dtype)

    def solve_one(factors: Array, pivots: Array, b: Array) -> tuple[Array]:
        return (sytrs(factors, pivots, b, lower=1)[0] if b.size else b.copy("F"),)

    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors = np.broadcast_to(factors, (*batch, *factors.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    return mapped(solve_one, (2, 1, 2), factors, pivots, np.broadcast_to(b, (*batch, *b.shape[-2:])))[0]
