"""Distances between the rows of one matrix and those of another, and their derivative, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf, prod
from typing import Any

import numpy as np

from pullback._thresholds import DISTANCES_AT_A_TIME, FEW_DISTANCES
from pullback.kernels.numpy.linalg.pairs import pair_slope
from pullback.kernels.numpy.norm.rows import sums

AnyArray = np.ndarray[Any, Any]


def batch_shape(x1: AnyArray, x2: AnyArray) -> tuple[int, ...]:
    """The dimensions before the last two, broadcast."""
    first, second = x1.shape[:-2], x2.shape[:-2]
    return first if first == second else np.broadcast_shapes(first, second)


def blocks(x1: AnyArray, x2: AnyArray) -> Iterator[slice]:
    """Ranges of rows of x1 whose differences from x2 fit into a block."""
    rows = x1.shape[-2]
    step = max(1, DISTANCES_AT_A_TIME // max(1, prod(batch_shape(x1, x2)) * x2.shape[-2] * x1.shape[-1]))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def cdist(x1: AnyArray, x2: AnyArray, p: float) -> AnyArray:
    """The p-norms of the differences of all rows."""
    if p == 2 and x1.ndim == x2.ndim == 2 and 0 < x1.size * len(x2) <= FEW_DISTANCES:
        size = np.subtract(x1[:, None, :], x2)
        squares = np.multiply(size, size, size).reshape(-1, x1.shape[1])
        return np.sqrt(sums(squares)).reshape(len(x1), len(x2))
    out = np.zeros((*batch_shape(x1, x2), x1.shape[-2], x2.shape[-2]), x1.dtype)
    if not x1.shape[-1]:
        return out
    for rows in blocks(x1, x2):
        size = x1[..., rows, None, :] - x2[..., None, :, :]
        out[..., rows, :] = norm(size if p == 2 else np.abs(size), p)
    return out


def norm(size: AnyArray, p: float) -> AnyArray:
    """The p-norm along the last dimension of absolute values."""
    if p == 0:
        return np.add.reduce(np.minimum(np.ceil(size), 1), axis=-1)  # counts what is not zero; a nan stays one
    if isinf(p):
        return np.fmax.reduce(size, axis=-1, initial=0)  # nan is no candidate, as in torch
    if p == 1:
        return np.add.reduce(size, axis=-1)
    if p == 2:
        return np.sqrt(np.add.reduce(size * size, axis=-1))
    return np.power(np.add.reduce(np.power(size, p), axis=-1), 1 / p)


def cdist_backward(grad: AnyArray, x1: AnyArray, x2: AnyArray, p: float, distance: AnyArray) -> AnyArray:
    """The gradient of the rows of x1; pairs at distance zero have none."""
    if (
        p == 2
        and x1.ndim == x2.ndim == 2
        and 0 < x1.size * len(x2) <= FEW_DISTANCES
        and distance.item(distance.argmin()) > 0
    ):
        ratio = np.divide(grad, distance)
        return np.matmul(ratio[:, None, :], np.subtract(x1[:, None, :], x2))[:, 0]
    out = np.zeros((*batch_shape(x1, x2), *x1.shape[-2:]), x1.dtype)
    for rows in blocks(x1, x2):
        slope = pair_slope(x1[..., rows, None, :] - x2[..., None, :, :], p, distance[..., rows, :, None])
        out[..., rows, :] = np.einsum("...rci,...rc->...ri", slope, grad[..., rows, :])
    return out


def euclidean(x1: AnyArray, x2: AnyArray) -> AnyArray:
    """Euclidean distances by one product of matrices: |a|**2 - 2 a b + |b|**2."""
    first, second = (np.add.reduce(x * x, axis=-1, keepdims=True) for x in (x1, x2))
    left = np.concatenate([x1 * -2, first, np.ones_like(first)], axis=-1)
    right = np.concatenate([x2, np.ones_like(second), second], axis=-1)
    return np.sqrt(np.maximum(np.matmul(left, right.swapaxes(-1, -2)), 0))
