"""Running sums, products and extremes along one dimension of an array."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._thresholds import LARGE_SCAN
from pullback.kernels.compiled import room

Array = Any

SINGLE, DOUBLE, INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
WIDER = {"e": np.float32, "f": np.float64, "F": np.complex128}
"""Running sums are kept in a wider type than the elements', as torch keeps them."""
HOWS = {np.add: "add", np.multiply: "mul"}
"""What compiled kernels call ufuncs."""


def reversed_along(array: Array, dim: int) -> Array:
    """A view of the array that runs backwards along `dim`."""
    index = [slice(None)] * array.ndim
    index[dim] = slice(None, None, -1)
    return array[tuple(index)]


def check_scalar_dim(array: Array, dim: int) -> None:
    """Raise if a 0-d array is asked for a dimension other than 0 and -1."""
    if not array.ndim and dim not in (0, -1):
        raise np.exceptions.AxisError(dim, 0)


def compiled_sums(ufunc: np.ufunc, array: Array, dim: int, reverse: bool) -> Array | None:
    """A running sum or product by compiled kernels, or None."""
    compiled = room("rows.scan") if ufunc in HOWS else None
    return None if compiled is None else compiled.running(HOWS[ufunc], array, dim, reverse)


def from_zero(ufunc: np.ufunc, array: Array) -> Array:
    """Running sums that began with zero, where NumPy's begin with the first element: none is the negative zero."""
    if ufunc is np.add and array.dtype.kind in "fc":
        np.add(array, 0.0, array)
    return array


def accumulate(ufunc: np.ufunc, array: Array, dim: int, reverse: bool = False) -> Array:
    """A running reduction along `dim` in the array's dtype, forwards or backwards."""
    if dim is None:  # NumPy takes it for the dimension of a vector
        raise TypeError("a running sum needs a dimension")
    dtype = array.dtype
    if dtype is SINGLE and not reverse and array.ndim:
        if array.size < LARGE_SCAN or (made := compiled_sums(ufunc, array, dim, False)) is None:
            return from_zero(ufunc, ufunc.accumulate(array.astype(DOUBLE, "C"), dim)).astype(SINGLE)
        return made
    if array.size >= LARGE_SCAN and (made := compiled_sums(ufunc, array, dim, reverse)) is not None:
        return made
    if not array.ndim:
        check_scalar_dim(array, dim)
        return array.copy()
    wider = WIDER.get(dtype.char) or (np.float32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype)
    if reverse:
        out = np.empty(array.shape, wider)  # written from the end: no tensor has negative strides
        ufunc.accumulate(reversed_along(array, dim), dim, wider, reversed_along(out, dim))
        from_zero(ufunc, out)
        return out if wider is dtype else out.astype(dtype)
    if wider is dtype:
        return row_major(from_zero(ufunc, ufunc.accumulate(array, dim, dtype)))
    return row_major(from_zero(ufunc, ufunc.accumulate(array.astype(wider), dim)).astype(dtype))


@lru_cache(maxsize=64)
def counting(length: int, after: int) -> Array:
    """0, 1, 2, ... along a dimension with as many dimensions of size one after it."""
    return np.arange(length).reshape((-1,) + (1,) * after)


def running_extreme(ufunc: np.ufunc, array: Array, dim: int) -> tuple[Array, Array]:
    """The extreme so far along `dim` and the last index at which it was reached; nan stays."""
    if array.dtype.kind == "V":
        values, places = running_extreme(ufunc, array.astype(SINGLE), dim)
        return values.astype(array.dtype), places
    if not array.ndim:
        check_scalar_dim(array, dim)
        return array.copy(), np.zeros((), np.int64)
    if array.size >= LARGE_SCAN and (compiled := room("rows.scan")) is not None:
        made: tuple[Array, Array] | None = compiled.running_extreme(ufunc is np.maximum, array, dim)
        if made is not None:
            return made
    values = row_major(ufunc.accumulate(array, dim))
    places = counting(array.shape[dim], array.ndim - 1 - dim % array.ndim)
    reached = np.equal(array, values)
    if np.count_nonzero(reached) == array.size:
        return values, places.copy() if array.ndim == 1 else np.broadcast_to(places, array.shape).copy()
    if array.dtype.kind == "f":
        np.logical_or(reached, np.isnan(array), reached)
    return values, row_major(np.maximum.accumulate(np.multiply(places, reached), dim))


def running_logsumexp(array: Array, dim: int, reverse: bool) -> Array:
    """The logarithm of the running sum of exponentials along `dim`, forwards or backwards."""
    if array.dtype.kind != "c" or not array.ndim:
        if array.size >= LARGE_SCAN and (compiled := room("rows.scan")) is not None:
            made = compiled.running_logsumexp(array, dim, reverse)
            if made is not None:
                return made
        return accumulate(np.logaddexp, array, dim, reverse)
    if reverse:
        return row_major(reversed_along(running_logsumexp(reversed_along(array, dim), dim, False), dim))
    rows = np.moveaxis(array.astype(np.complex128), dim, 0)
    out = np.empty_like(rows)
    total = None
    for i, row in enumerate(rows):
        total = out[i] = row if total is None else complex_logaddexp(total, row)
    return row_major(np.moveaxis(out, 0, dim).astype(array.dtype))


def complex_logaddexp(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)), by the one with the larger real part."""
    swap = (b.real > a.real) | (np.isnan(b.real) & ~np.isnan(a.real))
    high, low = np.where(swap, b, a), np.where(swap, a, b)
    total = high + np.log1p(np.exp(low - high))
    same = np.isinf(high.real) & (high.real == low.real)
    return np.where(same, np.where(high.real < 0, high, np.log(np.exp(a) + np.exp(b))), total)


def recurrence(factor: Array, value: Array, dim: int, reverse: bool) -> Array:
    """y[k] = value[k] + factor[k] * y[k - 1] along `dim`, or from the end with y[k + 1]."""
    dtype = np.result_type(factor.dtype, value.dtype)
    factors, values = np.moveaxis(factor, dim, 0), np.moveaxis(value, dim, 0)
    out = np.empty(values.shape, dtype)
    steps = range(len(values) - 1, -1, -1) if reverse else range(len(values))
    before = None
    for k in steps:
        before = out[k] = values[k] if before is None else values[k] + factors[k] * before
    return np.moveaxis(out, 0, dim)


def shifted(array: Array, dim: int, by: int, fill: float) -> Array:
    """The elements moved one place along `dim` (by = 1 or -1), with `fill` where nothing moved to."""
    out = np.empty_like(array)
    to, source, vacated = [slice(None)] * array.ndim, [slice(None)] * array.ndim, [slice(None)] * array.ndim
    to[dim], source[dim] = (slice(1, None), slice(None, -1)) if by == 1 else (slice(None, -1), slice(1, None))
    vacated[dim] = slice(None, 1) if by == 1 else slice(-1, None)
    out[tuple(to)] = array[tuple(source)]
    out[tuple(vacated)] = fill
    return out
