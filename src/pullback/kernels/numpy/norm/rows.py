"""Arrays of equal numbers that are kept for the next call: a number beside an array, for one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def read_only(array: AnyArray) -> AnyArray:
    """An array that is kept, and so must not be written."""
    array.flags.writeable = False
    return array


@lru_cache(256)
def filled(count: int, value: float, dtype: np.dtype[Any]) -> AnyArray:
    """A vector of equal elements."""
    return read_only(np.full(count, value, dtype))


@lru_cache(256)
def number(value: float, dtype: np.dtype[Any]) -> AnyArray:
    """A number as an array without dimensions: NumPy takes twice as long over a Python number."""
    return read_only(np.array(value, dtype))
