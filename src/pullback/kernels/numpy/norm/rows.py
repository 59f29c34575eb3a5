"""Sums over the rows of small matrices, and arrays that are kept.

NumPy takes a microsecond to set up a reduction and another to broadcast its result. For some hundred floats a product
with a matrix of ones does both at once in a third of the time: every element is the sum of its row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._thresholds import LONGEST_ROW, MOST_IN_ROWS

AnyArray = np.ndarray[Any, Any]

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def are_few(x: AnyArray) -> bool:
    """True for a small matrix of floats whose rows lie one after the other: what the functions below are for."""
    dtype = x.dtype
    return (
        x.ndim == 2
        and 0 < x.size <= MOST_IN_ROWS
        and (dtype is SINGLE or dtype is DOUBLE)
        and x.shape[1] <= LONGEST_ROW
        and x.flags.c_contiguous
    )


def read_only(array: AnyArray) -> AnyArray:
    """An array that is kept, and so must not be written."""
    array.flags.writeable = False
    return array


@lru_cache(256)
def filled(count: int, value: float, dtype: np.dtype[Any]) -> AnyArray:
    """A vector of equal elements."""
    return read_only(np.full(count, value, dtype))


@lru_cache(256)
def square(length: int, value: float, dtype: np.dtype[Any]) -> AnyArray:
    """A square matrix of equal elements."""
    return read_only(np.full((length, length), value, dtype))


@lru_cache(256)
def number(value: float, dtype: np.dtype[Any]) -> AnyArray:
    """A number as an array without dimensions: NumPy takes twice as long over a Python number."""
    return read_only(np.array(value, dtype))


def sums(x: AnyArray) -> AnyArray:
    """The sum of each row."""
    return x.dot(filled(x.shape[1], 1.0, x.dtype))


def spread_sums(x: AnyArray) -> AnyArray:
    """For every element the sum of its row."""
    return x.dot(square(x.shape[1], 1.0, x.dtype))
