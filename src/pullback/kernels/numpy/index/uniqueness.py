"""The distinct elements of an array, counting them, and finding places among sorted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.sizes import bincount
from pullback.kernels.numpy.index.sorting import ordered

Array = Any


def runs(changed: Array) -> tuple[Array, Array]:
    """From flags saying where a new run starts: each element's run, and how long the runs are."""
    run = np.add.accumulate(changed, dtype=np.int64)
    run -= 1
    return run, np.bincount(run)


def starts_of_runs(values: Array) -> Array:
    """Flags saying which elements of a vector differ from the one before."""
    changed = np.ones(values.size, bool)
    np.not_equal(values[1:], values[:-1], changed[1:])
    return changed


def unique(array: Array) -> tuple[Array, Array, Array]:
    """The distinct elements in order, for each element which one it is, and how often each occurs."""
    flat = array.reshape(-1)
    order = ordered(flat).argsort(kind="stable")
    values = flat[order]
    changed = starts_of_runs(values)
    run, counts = runs(changed)
    inverse = np.empty(flat.size, np.int64)
    inverse[order] = run
    return values[changed], inverse.reshape(array.shape), counts


def unique_consecutive(array: Array) -> tuple[Array, Array, Array]:
    """The first of every run of equal elements, for each element its run, and how long the runs are."""
    flat = array.reshape(-1)
    changed = starts_of_runs(flat)
    run, counts = runs(changed)
    return flat[changed], run.reshape(array.shape), counts


def unique_slices(array: Array, dim: int, consecutive: bool) -> tuple[Array, Array, Array]:
    """The distinct slices along `dim` in order (or the first of every run of equal ones), with inverse and counts."""
    rows = np.moveaxis(array, dim, 0)
    flat = rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, 1)
    order = np.arange(len(rows)) if consecutive or not flat.shape[1] else np.lexsort(ordered(flat).T[::-1])
    in_order = flat[order]
    changed = np.ones(len(rows), bool)
    changed[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    run, counts = runs(changed)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = run
    return np.moveaxis(rows[order[changed]], 0, dim), inverse, counts


def searchsorted(boundaries: Array, values: Array, side: str) -> Array:
    """Where values belong among sorted boundaries: one row of boundaries for all, or one for each row of values."""
    boundaries, values = ordered(boundaries), ordered(values)
    if boundaries.ndim == 1:
        if (boundaries[1:] >= boundaries[:-1]).all() and not (boundaries.size and np.isnan(boundaries[-1])):
            return boundaries.searchsorted(values, side)
        return bisected(boundaries, values, side)
    if not values.size:
        return np.empty(values.shape, np.int64)
    if not boundaries.size:
        return np.zeros(values.shape, np.int64)
    rows, wanted = boundaries.reshape(-1, boundaries.shape[-1]), values.reshape(-1, values.shape[-1])
    out = np.empty(wanted.shape, np.int64)
    for place, row, value in zip(out, rows, wanted, strict=True):
        place[:] = searchsorted(row, value, side)
    return out.reshape(values.shape)


def bisected(boundaries: Array, values: Array, side: str) -> Array:
    """The same by bisection, for boundaries that are not in order or hold nan, which sends the search to the right.

    NumPy starts a search where the last one ended, so that its places among boundaries in no order are others.
    """
    start, end = np.zeros(values.shape, np.int64), np.full(values.shape, boundaries.size, np.int64)
    stops = np.greater_equal if side == "left" else np.greater
    while (start < end).any():
        middle = (start + end) // 2
        found = stops(boundaries[np.minimum(middle, boundaries.size - 1)], values) | (start >= end)
        start, end = np.where(found, start, middle + 1), np.where(found, np.minimum(end, middle), end)
    return start


def around(value: float, dtype: np.dtype[Any]) -> tuple[float, float]:
    """The ends of a range in which one number lies: one less and one more, or its neighbours where they are further."""
    if is_half(dtype):
        return value - 1, value + 1
    here, beyond = dtype.type(value), dtype.type(np.inf)
    return float(min(value - 1, np.nextafter(here, -beyond))), float(max(value + 1, np.nextafter(here, beyond)))


def histc(array: Array, bins: int, low: float, high: float) -> Array:
    """How many elements fall into each of equal bins from low to high; the last bin includes its end."""
    flat = array.reshape(-1)
    if is_half(array.dtype):  # torch rounds at every step here
        low, high = array.dtype.type(low), array.dtype.type(high)
        inside = flat[(flat >= low) & (flat <= high)]
        place = ((inside - low) * array.dtype.type(bins) / (high - low)) if low < high else np.zeros(inside.shape)
    else:
        flat = flat.astype(np.float64)
        inside = flat[(flat >= low) & (flat <= high)]
        place = (inside - low) / (high - low) * bins
    return bincount(np.minimum(place.astype(np.int64), bins - 1), None, bins).astype(array.dtype)
