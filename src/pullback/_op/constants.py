"""Python numbers as arrays: `x * 2.0` is faster with a cached 0-d array than with the float itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._dtype import FROM_NUMPY
from pullback._runtime.quiet import quiet

CACHE_LIMIT = 4096
INFINITY = float("inf")
cache: dict[tuple[Any, np.dtype[Any]], np.ndarray[Any, Any]] = {}


def constant(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """The number as a 0-d array of `dtype`; None if a result would need another dtype, or it is not a number."""
    kind = type(value)
    if kind is float or kind is int:
        array = cache.get((value, dtype))
        if array is not None:
            return array
    elif kind is not bool and kind is not complex:
        return None
    category = FROM_NUMPY[dtype].category
    if category < 2:
        if kind is float or kind is complex or (kind is int and category == 0):
            return None
        if kind is int and not -(1 << 31) <= value < 1 << 31:
            return None
        if kind is int and dtype.itemsize < 4:
            return None
    elif kind is complex and category < 3:
        return None
    if kind is int and abs(value) >= 1 << 53:
        return None
    array = quiet().run(np.asarray, value, dtype)
    # Zeros of either sign are equal keys, and numbers in integer arrays are equal to floats that do not fit there.
    if category >= 2 and (kind is float or kind is int) and value and value == value:
        if dtype.itemsize < 8 and np.isinf(array) and abs(value) != INFINITY:
            return None  # some ops refuse a number that overflows
        if len(cache) >= CACHE_LIMIT:
            cache.clear()
        array.flags.writeable = False
        cache[value, dtype] = array
    return array


exact: dict[tuple[Any, np.dtype[Any]], np.ndarray[Any, Any]] = {}


def unrounded(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """`constant` for an operand that torch reads in float32 beside half precision: None if half would round it."""
    kind = type(value)
    if kind is float or kind is int:
        array = exact.get((value, dtype))
        if array is not None:
            return array
    array = constant(value, dtype)
    if array is None or (is_half(dtype) and value == value and float(array) != value):
        return None
    if (value, dtype) in cache:
        if len(exact) >= CACHE_LIMIT:
            exact.clear()
        exact[value, dtype] = array
    return array


def in_formula(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """The same for a derivative: the number in float32 if half would round it; results are fitted to their edges."""
    array = unrounded(value, dtype)
    return constant(value, SINGLE) if array is None and is_half(dtype) else array
