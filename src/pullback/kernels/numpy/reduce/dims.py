"""Sums, products and extrema over dimensions: by compiled kernels for large arrays, by NumPy for others."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._thresholds import LARGE, MOST_IN_SMALL_SUM
from pullback.kernels.compiled import OnFirstUse, room

Array = Any


def reduced(how: str, array: Array, axis: Any, keepdim: bool, **more: Any) -> Array | None:
    """A reduction of a large array by compiled kernels, sums in float64 or int64; None where NumPy has to do it."""
    compiled = room("rows.reductions") if array.size >= LARGE else None
    return None if compiled is None else compiled.reduced(how, array, axis, keepdim, **more)


def total(array: Array, axis: Any, keepdim: bool) -> Array:
    """The sum over `axis`, in the array's own dtype; half precision is summed in float32 and rounded once."""
    made = reduced("sum", array, axis, keepdim, own=True)
    if made is None:
        if is_half(array.dtype):
            return total(array.astype(SINGLE), axis, keepdim).astype(array.dtype)
        return np.add.reduce(array, axis, array.dtype, None, keepdim)
    return made.astype(array.dtype, copy=False)


def column_sums(array: Array) -> Array:
    """The sum of the rows of a matrix: what `total` and NumPy give, to the bit."""
    return COLUMN_SUMS.head(array)  # type: ignore[no-any-return]


def any_sums(array: Array) -> Array:
    """The same for any matrix."""
    return np.add.reduce(array, 0) if array.size < LARGE and array.itemsize != 2 else total(array, 0, False)


COLUMN_SUMS = OnFirstUse(
    "small.sums",
    lambda compiled: compiled.column_sums("float", any_sums),
    any_sums,
    lambda array: array.size < MOST_IN_SMALL_SUM,
)


def product(array: Array, axis: Any, keepdim: bool) -> Array:
    """The product over `axis`, in the array's own dtype; that of half precision is computed in float32."""
    made = reduced("product", array, axis, keepdim, own=True)
    if made is None:
        if is_half(array.dtype):
            return product(array.astype(SINGLE), axis, keepdim).astype(array.dtype)
        return np.multiply.reduce(array, axis, array.dtype, None, keepdim)
    return made.astype(array.dtype, copy=False)


def position(name: str, array: Array, axis: int | None, keepdim: bool) -> tuple[Array, Array] | None:
    """The values and places that `argmax` or `argmin` of a large array finds; None where NumPy has to look."""
    compiled = room("rows.positions") if array.size >= LARGE else None
    return None if compiled is None else compiled.position(name[3:], array, axis, keepdim)


def centre(mean: Array, first: Array, error: float) -> Array:
    """What deviations are taken from: of equal numbers the number, from which their mean is a rounding error away."""
    return np.where(np.abs(mean - first) <= error * np.abs(first), first, mean)


def variance(array: Array, axis: Any, keepdim: bool, count: int, freedom: float) -> tuple[Array, Array] | None:
    """The variance and the mean over `axis` in float64, in two passes; None where NumPy has to do it."""
    if array.dtype.kind != "f":
        return None
    mean = reduced("sum", array, axis, keepdim)
    if mean is None:
        return None
    mean /= count
    squares = deviations(array, axis, keepdim, mean)
    if squares is None:
        return None
    over = range(array.ndim) if axis is None else [d % array.ndim for d in ((axis,) if type(axis) is int else axis)]
    first, middle, last = (
        array[tuple([slice(at(n), at(n) + 1) if d in over else slice(None) for d, n in enumerate(array.shape)])]
        for at in (lambda n: 0, lambda n: n // 2, lambda n: n - 1)
    )
    alike = ((first == middle) & (first == last)).reshape(mean.shape)
    if alike.any():  # maybe all of them are, whose mean is a rounding error away from them
        number = np.where(alike, first.astype(np.float64).reshape(mean.shape), mean)
        around = reduced("deviation", array, axis, keepdim, means=number)
        squares = np.where(alike & (around == 0), 0, squares)
    return squares / np.float64(max(freedom, 0)), mean


def deviations(array: Array, axis: Any, keepdim: bool, mean: Array) -> Array | None:
    """The sums of squared distances from the mean over `axis`."""
    squares = reduced("deviation", array, axis, keepdim, means=mean)
    if squares is None:
        return None
    # The squares were taken around the mean as the array's dtype has it.
    rounded = mean.astype(array.dtype) - mean
    count = array.size // max(mean.size, 1)
    return np.maximum(squares - count * rounded * rounded, 0)
