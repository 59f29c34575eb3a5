"""Distances between all pairs of rows of a matrix, and their derivative."""

from __future__ import annotations

from math import isinf
from typing import Any

import numpy as np

from pullback.kernels.numpy.index.embedding import add_rows

Array = Any


def differences(x: Array) -> tuple[Array, Array, Array]:
    """The numbers of the two rows of each pair, and the first row minus the second."""
    first, second = np.triu_indices(x.shape[0], 1)
    return first, second, x[first] - x[second]


def pdist(x: Array, p: float) -> Array:
    """The p-norm of the difference of each pair of rows."""
    if len(x) < 2 or not x.size:  # of dtypes that NumPy has no products of, too
        return np.zeros(len(x) * (len(x) - 1) // 2, x.dtype)
    difference = differences(x)[2]
    if p == 2:
        return np.sqrt(np.einsum("ij,ij->i", difference, difference))
    size = np.abs(difference)
    if p == 0:
        return np.add.reduce(np.minimum(np.ceil(size), 1), axis=1)  # counts what is not zero; a nan stays one
    if isinf(p):
        return np.maximum.reduce(size, axis=1, initial=0)
    if p == 1:
        return np.add.reduce(size, axis=1)
    return np.power(np.add.reduce(np.power(size, p), axis=1), 1 / p)


def pdist_backward(grad: Array, x: Array, p: float, distance: Array) -> Array:
    """The gradient of the rows; pairs at distance zero have none."""
    first, second, difference = differences(x)
    moved = pair_gradient(grad[:, None], difference, p, distance[:, None])
    return add_rows(moved, first, x.shape[0]) - add_rows(moved, second, x.shape[0])


def pair_gradient(grad: Array, difference: Array, p: float, distance: Array) -> Array:
    """What the gradient of the distance of a pair makes of each coordinate of the difference.

    It is zero without asking the gradient where there is no slope, as at distance zero.
    """
    zero = difference.dtype.type(0)
    if p == 0:
        return np.zeros_like(difference)
    if p == 2:
        return np.where(distance == 0, zero, grad * (difference / distance))
    size, sign = np.abs(difference), np.sign(difference)
    if p == 1:
        return grad * sign
    if isinf(p):
        return grad * (sign * (1 - np.minimum(np.ceil(np.abs(size - distance)), 1)))  # NaN at infinite distances
    slope = sign * np.power(size, p - 1) / np.power(distance, p - 1)
    return np.where((distance == 0) | ((difference == 0) & (p < 1)), zero, grad * slope)
