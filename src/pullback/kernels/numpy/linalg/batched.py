"""The triangular algorithms for many small matrices at once: each step is taken for the whole batch.

One call of LAPACK for each matrix costs more than it computes when matrices are small and many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
INT32 = np.dtype(np.int32)


def worth_it(count: int, n: int) -> bool:
    """True if n steps over a batch are quicker than a call of LAPACK for each of its matrices."""
    return count > 4 and count > 2 * n


def lu_factor(self: Array) -> tuple[Array, Array, Array]:
    """LU with partial pivoting: packed factors by columns, pivots from 1, and the first zero on U's diagonal or 0."""
    m, n = self.shape[-2:]
    rows = self.reshape((-1, m, n))
    lu = np.empty((len(rows), n, m), self.dtype).swapaxes(-1, -2)
    lu[...] = rows
    items = np.arange(len(rows))
    pivots, info = np.empty((len(rows), min(m, n)), INT32), np.zeros(len(rows), INT32)
    for j in range(min(m, n)):
        column = lu[:, j:, j]
        size = np.abs(column.real) + np.abs(column.imag) if lu.dtype.kind == "c" else np.abs(column)
        chosen = size.argmax(1) + j
        pivots[:, j] = chosen + 1
        here = lu[:, j].copy()
        lu[:, j] = lu[items, chosen]
        lu[items, chosen] = here
        pivot = lu[:, j, j]
        zero = pivot == 0
        if zero.any():
            info[zero & (info == 0)] = j + 1
            pivot = np.where(zero, 1, pivot)
        if j + 1 < m:
            lu[:, j + 1 :, j] /= pivot[:, None]
            lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    batch = self.shape[:-2]
    packed = lu.swapaxes(-1, -2).reshape((*batch, n, m)).swapaxes(-1, -2)
    return packed, pivots.reshape((*batch, min(m, n))), info.reshape(batch)


def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """Substitution, row by row; X A = B is solved as A^T X^T = B^T. Batches broadcast."""
    if not left:
        return solve_triangular(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unitriangular).swapaxes(-1, -2)
    n, k = b.shape[-2:]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*batch, k, n), b.dtype).swapaxes(-1, -2)
    x[...] = b
    for i in reversed(range(n)) if upper else range(n):
        if not unitriangular:
            x[..., i, :] /= a[..., i, i, None]
        rest = slice(0, i) if upper else slice(i + 1, n)
        if rest.start < rest.stop:
            x[..., rest, :] -= a[..., rest, i, None] * x[..., None, i, :]
    return x
