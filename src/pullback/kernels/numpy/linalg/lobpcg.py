"""LOBPCG: a few extreme eigenpairs of a large symmetric matrix, by products with it alone (Knyazev, 2001).

Each step looks for the best eigenvectors in the space of the present ones X, their preconditioned residuals W and the
directions P the last step moved in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def times(matrix: Array | None, x: Array) -> Array:
    """A product with a matrix; None stands for the identity."""
    return x if matrix is None else matrix @ x


def orthonormal(space: Array, b: Array | None, keep: int) -> Array:
    """Columns that span a space and are orthonormal with respect to b; what the first `keep` nearly span is dropped."""
    for _ in range(2):  # once more, for what rounding left of the first time
        basis: list[Array] = []
        for i in range(space.shape[1]):
            v = space[:, i]
            before = size_of(v, b)
            for q in basis:
                v = v - q * (q @ times(b, v))
            after = size_of(v, b)
            if after > 1e-10 * before or i < keep:
                basis.append(v / after)
        space = np.stack(basis, axis=1)
    return space


def size_of(v: Array, b: Array | None) -> float:
    """The norm of a vector with respect to b."""
    return float(np.sqrt(max(v @ times(b, v), 0.0)))


def lobpcg(
    a: Array, b: Array | None, x: Array, preconditioner: Array | None, k: int, niter: int, tol: float, largest: bool
) -> tuple[Array, Array]:
    """The k largest (or smallest) eigenvalues of a x = e b x and their eigenvectors, from a first guess of n >= k."""
    n = x.shape[1]
    scale = 1.0 / np.linalg.norm(x)
    a_norm, b_norm = np.linalg.norm(a @ x) * scale, np.linalg.norm(times(b, x)) * scale
    space, directions = orthonormal(x, b, n), None
    iterations = 0
    while True:
        values, vectors = np.linalg.eigh(space.T @ (a @ space))
        if largest:
            values, vectors = values[::-1], vectors[:, ::-1]
        values, chosen = values[:n], vectors[:, :n]
        x = space @ chosen
        directions = space[:, n:] @ chosen[n:]
        residual = a @ x - times(b, x) * values
        error = np.linalg.norm(residual, axis=0) / (np.linalg.norm(x, axis=0) * (a_norm + np.abs(values) * b_norm))
        iterations += 1
        converged = int(np.argmin(np.append(error < tol, False)))
        if converged >= k or iterations == niter:
            return values[:k].copy(), x[:, :k].copy()
        space = orthonormal(np.concatenate([x, times(preconditioner, residual), directions], axis=1), b, n)
