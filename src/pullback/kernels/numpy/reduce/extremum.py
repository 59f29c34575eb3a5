"""Largest and smallest elements of arrays. Where an element is nan, it is the extremum."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._arrays.memory import row_major
from pullback.kernels.numpy.reduce.dims import reduced

Array = Any


@answered(meta=lambda array, axis, keepdim: row_major(np.maximum.reduce(array, axis, None, None, keepdim)))
def largest(array: Array, axis: Any, keepdim: bool) -> Array:
    """The largest elements over some dimensions."""
    if (made := reduced("max", array, axis, keepdim)) is None:
        if is_of_all(array, axis):
            return element(array, array.argmax(), keepdim)
        made = np.maximum.reduce(array, axis, None, None, keepdim)
    return row_major(made)


@answered(meta=lambda array, axis, keepdim: row_major(np.minimum.reduce(array, axis, None, None, keepdim)))
def smallest(array: Array, axis: Any, keepdim: bool) -> Array:
    """The smallest elements over some dimensions."""
    if (made := reduced("min", array, axis, keepdim)) is None:
        if is_of_all(array, axis):
            return element(array, array.argmin(), keepdim)
        made = np.minimum.reduce(array, axis, None, None, keepdim)
    return row_major(made)


def is_of_all(array: Array, axis: Any) -> bool:
    """Whether it is the extremum of all elements of an array of the host: other kinds know the reduction alone."""
    return type(array) is np.ndarray and (axis is None or (array.ndim == 1 and axis != ()))


def element(array: Array, place: Any, keepdim: bool) -> Array:
    """The element at a place of the flattened array: to find it there takes a third of the time of a reduction."""
    if keepdim:
        return array.reshape(-1)[place : place + 1].reshape((1,) * array.ndim).copy()
    return array[place] if array.ndim == 1 else array.reshape(-1)[place]
