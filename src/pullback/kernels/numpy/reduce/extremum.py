"""Largest and smallest elements of arrays. Where an element is nan, it is the extremum."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._arrays.memory import row_major
from pullback._thresholds import SMALL_FOR_EXTREMUM
from pullback.kernels.numpy.reduce import dims as reduce

Array = Any


@answered(meta=lambda array, axis, keepdim: row_major(np.maximum.reduce(array, axis, None, None, keepdim)))
def largest(array: Array, axis: Any, keepdim: bool) -> Array:
    """The largest elements over some dimensions."""
    if array.ndim == 1 and array.size <= SMALL_FOR_EXTREMUM:
        at = array.argmax()
        return array[at : at + 1].copy() if keepdim else array[at]
    if axis is None and not keepdim and array.size <= SMALL_FOR_EXTREMUM:
        return array.reshape(-1)[array.argmax()]
    return row_major(reduce.largest(array, axis, keepdim))


@answered(meta=lambda array, axis, keepdim: row_major(np.minimum.reduce(array, axis, None, None, keepdim)))
def smallest(array: Array, axis: Any, keepdim: bool) -> Array:
    """The smallest elements over some dimensions."""
    if array.ndim == 1 and array.size <= SMALL_FOR_EXTREMUM:
        at = array.argmin()
        return array[at : at + 1].copy() if keepdim else array[at]
    if axis is None and not keepdim and array.size <= SMALL_FOR_EXTREMUM:
        return array.reshape(-1)[array.argmin()]
    return row_major(reduce.smallest(array, axis, keepdim))
