"""Distances between the rows of one matrix and those of another, and their derivative, a block of rows at a time."""

from __future__ import annotations

from math import isinf
from typing import Any

import numpy as np

from pullback._thresholds import DISTANCES_AT_A_TIME
from pullback.kernels.numpy.linalg.pairs import pair_gradient

AnyArray = np.ndarray[Any, Any]


def blocks(x1: AnyArray, x2: AnyArray) -> list[slice]:
    """Ranges of rows of x1 whose differences from x2 fit into a block."""
    rows = x1.shape[-2]
    count = max(x1.size * x2.shape[-2], x2.size * rows)
    if count <= DISTANCES_AT_A_TIME:
        return [slice(rows)]
    step = max(1, DISTANCES_AT_A_TIME * rows // count)
    return [slice(start, start + step) for start in range(0, rows, step)]


def cdist(x1: AnyArray, x2: AnyArray, p: float) -> AnyArray:
    """The p-norms of the differences of all rows."""
    return joined([norm(x1[..., rows, None, :] - x2[..., None, :, :], p) for rows in blocks(x1, x2)], x1)


def joined(parts: list[AnyArray], x1: AnyArray) -> AnyArray:
    """What was computed for some rows after the other, in the dtype of x1: x2 may have another if it has no rows."""
    out = parts[0] if len(parts) == 1 else np.concatenate(parts, -2)
    return out if out.dtype is x1.dtype else out.astype(x1.dtype)


def norm(difference: AnyArray, p: float) -> AnyArray:
    """The p-norm along the last dimension."""
    if p == 2:
        return np.sqrt(np.vecdot(difference, difference))
    size = np.abs(difference)
    if p == 0:
        return np.add.reduce(np.minimum(np.ceil(size), 1), axis=-1)  # counts what is not zero; a nan stays one
    if isinf(p):
        return np.fmax.reduce(size, axis=-1, initial=0)  # nan is no candidate, as in torch
    if p == 1:
        return np.add.reduce(size, axis=-1)
    return np.power(np.add.reduce(np.power(size, p), axis=-1), 1 / p)


def cdist_backward(grad: AnyArray, x1: AnyArray, x2: AnyArray, p: float, distance: AnyArray) -> AnyArray:
    """The gradient of the rows of x1; pairs at distance zero have none."""
    if p == 2:  # its slope is the difference over the distance
        grad = np.divide(grad, distance, np.zeros(grad.shape, grad.dtype), where=distance != 0)
    parts = []
    for rows in blocks(x1, x2):
        difference, given = x1[..., rows, None, :] - x2[..., None, :, :], grad[..., rows, :]
        if p == 2:
            parts.append(np.matmul(given[..., None, :], difference)[..., 0, :])
        else:
            moved = pair_gradient(given[..., None], difference, p, distance[..., rows, :, None])
            parts.append(np.add.reduce(moved, -2))
    return joined(parts, x1)


def euclidean(x1: AnyArray, x2: AnyArray) -> AnyArray:
    """Euclidean distances by one product of matrices: |a|**2 - 2 a b + |b|**2."""
    first, second = (np.add.reduce(x * x, axis=-1, keepdims=True) for x in (x1, x2))
    left = np.concatenate([x1 * -2, first, np.ones_like(first)], axis=-1)
    right = np.concatenate([x2, np.ones_like(second), second], axis=-1)
    return np.sqrt(np.maximum(np.matmul(left, right.swapaxes(-1, -2)), 0))
