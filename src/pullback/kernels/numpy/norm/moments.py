"""Means, variances and norms of arrays."""

from __future__ import annotations

import math
from math import inf, isinf
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._thresholds import LARGE
from pullback.kernels.compiled import OnFirstUse
from pullback.kernels.complex_functions import from_parts
from pullback.kernels.numpy.norm.rows import DOUBLE
from pullback.kernels.numpy.reduce import dims as reduce

Array = Any


def variance(array: Array, axis: Any, keepdim: bool, count: int, correction: float) -> tuple[Array, Array]:
    """The variance and the mean over `axis`, each in double precision."""
    if array.dtype.kind == "c":  # that of the real parts and that of the imaginary ones
        parts = [variance(part, axis, keepdim, count, correction) for part in (array.real, array.imag)]
        (real, real_mean), (imag, imag_mean) = parts
        return real + imag, from_parts(real_mean, imag_mean, np.complex128)
    if type(keepdim) is not bool:
        raise TypeError("keepdim must be True or False")
    freedom = float(max(count - correction, 0))
    made = reduce.variance(array, axis, keepdim, count, freedom) if array.size >= LARGE else None
    if made is not None:
        return made
    ndim = array.ndim
    given = range(ndim) if axis is None or not ndim else (axis,) if type(axis) is int else axis
    reduced = sorted([a % ndim for a in given])
    kept = [d for d in range(ndim) if d not in reduced]
    order = kept + reduced
    across = array if order == sorted(order) else array.transpose(order).copy()
    shape = [array.shape[d] for d in kept]
    var, mean = MOMENTS.head(across.reshape(math.prod(shape), count), freedom)
    if keepdim:
        shape = [1 if d in reduced else n for d, n in enumerate(array.shape)]
    return (var, mean) if len(shape) == 1 else (var.reshape(shape), mean.reshape(shape))


def moments_of_any(rows: Array, freedom: float) -> Array:
    """The variance of each row and its mean, in double precision."""
    wide = rows.astype(DOUBLE)
    mean = np.add.reduce(wide, 1) / np.float64(rows.shape[1])
    if count := rows.shape[1]:
        wide -= reduce.centre(mean, wide[:, 0], count * np.finfo(DOUBLE).eps)[:, None]
    return np.stack([np.add.reduce(wide * wide, 1) / np.float64(freedom), mean])


MOMENTS = OnFirstUse(
    "small.sums",
    lambda made: made.moments("float", made.moments("double", moments_of_any)),
    moments_of_any,
    lambda rows, freedom: rows.size < LARGE,
)


def vector_norm(array: Array, ord: float, axis: Any, keepdim: bool) -> Array:
    """The norm of the elements over `axis` as one vector; half precision is computed in float32."""
    dtype = array.dtype
    if dtype.itemsize == 2:
        return vector_norm(array.astype(np.float32), ord, axis, keepdim).astype(dtype)
    if array.size <= 1 or 1 in array.shape:
        lone = size_of_lone(array, ord, axis, keepdim)
        if lone is not None:
            return lone
    large = vector_norm_of_many(array, ord, axis, keepdim) if array.size >= LARGE else None
    if large is not None:
        return large
    if ord == 2:
        size = np.absolute(array) if dtype.kind == "c" else array
        square = np.multiply(size, size)
        return row_major(np.sqrt(np.add.reduce(square, axis, None, None, keepdim)))
    if ord == 0:
        real = array.real.dtype
        return row_major(np.add.reduce(array != 0, axis, real, None, keepdim))
    size = np.absolute(array)
    if ord == 1:
        return row_major(np.add.reduce(size, axis, None, None, keepdim))
    if isinf(ord):
        return row_major((np.maximum if ord == inf else np.minimum).reduce(size, axis, None, None, keepdim))
    powers = np.add.reduce(np.power(size, float(ord)), axis, None, None, keepdim)
    return row_major(np.power(powers, 1.0 / float(ord)))


def size_of_lone(array: Array, ord: float, axis: Any, keepdim: bool) -> Array | None:
    """The norm of vectors of one element, whose square might be infinite; None if they have more."""
    over = range(array.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    if axis is not None and not array.ndim:
        return None  # a dimension of what has none: torch computes it in full
    if not float(ord) or any(array.shape[dim] != 1 for dim in over):
        return None
    return np.absolute(array if keepdim else array.squeeze(tuple(over)))


NORMS = {2: "square", 1: "size", inf: "top"}
"""What is added up, or looked for, by compiled kernels."""


def vector_norm_of_many(array: Array, ord: float, axis: Any, keepdim: bool) -> Array | None:
    """The norm of a large array in one pass; None where NumPy has to do it."""
    how = NORMS.get(ord)
    made = None if how is None else reduce.reduced(how, array, axis, keepdim)
    if made is None:
        return None
    return (np.sqrt(made, made) if ord == 2 else made).astype(array.dtype, copy=False)
