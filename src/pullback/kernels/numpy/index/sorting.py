"""Sorting and selecting along one dimension of an array. nan counts as larger than everything."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE
from pullback._arrays.memory import row_major
from pullback._thresholds import FEW_TO_SORT, LONG_FOR_TOPK, LONG_TO_SORT, MANY_TO_SORT
from pullback.kernels.compiled import room
from pullback.kernels.numpy.index.along import take_along
from pullback.kernels.numpy.reduce.scan import check_scalar_dim, reversed_along

Array = Any


def ordered(array: Array) -> Array:
    """The array in a dtype that NumPy sorts as torch does: bfloat16, which is none of NumPy's, as float32."""
    return array.astype(SINGLE) if array.dtype.kind == "V" else array


def argsort(array: Array, dim: int, descending: bool = False) -> Array:
    """The indices that sort the array along `dim`; equal elements keep their order."""
    array = ordered(array)
    if not array.ndim:
        check_scalar_dim(array, dim)
        return np.zeros((), np.int64)
    if array.size >= MANY_TO_SORT and (made := by_digits(array, dim, descending)) is not None:
        return made[1]
    if not -array.ndim <= dim < array.ndim:  # NumPy takes the least of its integers for all dimensions
        raise np.exceptions.AxisError(dim, array.ndim)
    if not descending:
        return array.argsort(dim, "stable")
    if array.ndim == 1 and array.dtype.kind == "f" and array.size:
        order = np.negative(array).argsort(dim, "stable")
        last = array[order[-1]]
        if last == last:  # nan would come first
            return order
    order = reversed_along(array, dim).argsort(dim, "stable")
    return (array.shape[dim] - 1) - reversed_along(order, dim)


def by_digits(array: Array, dim: int, descending: bool) -> tuple[Array, Array] | None:
    """`sort` compiled, or None."""
    if (
        not -array.ndim <= dim < array.ndim
        or array.shape[dim] < LONG_TO_SORT
        or (compiled := room("rows.selection")) is None
    ):
        return None
    made: tuple[Array, Array] | None = compiled.sort(array, dim, descending)
    return made


def sort(array: Array, dim: int, descending: bool = False) -> tuple[Array, Array]:
    """The sorted elements along `dim` and where they were."""
    if array.size >= MANY_TO_SORT and (made := by_digits(array, dim, descending)) is not None:
        return made
    order = argsort(array, dim, descending)
    if array.ndim == 1:
        return array.take(order), order
    return (take_along(array, dim, order, True) if array.ndim else array.copy()), order


def along(array: Array, dim: int, start: int, stop: int) -> Array:
    """The elements from one place to another along `dim`."""
    return array[(slice(None),) * (dim % array.ndim) + (slice(start, stop),)]


def topk(array: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """The k largest or smallest elements along `dim`, in order, and where they are."""
    if array.dtype.kind == "V":
        values, order = topk(ordered(array), k, dim, largest)
        return values.astype(array.dtype), order
    if not array.ndim:
        check_scalar_dim(array, dim)
        return array.copy(), np.zeros((), np.int64)
    length = array.shape[dim]
    if array.size > FEW_TO_SORT and (compiled := room("rows.selection")) is not None:
        made: tuple[Array, Array] | None = compiled.topk(array, k, dim, largest)
        if made is not None:
            return made
    if array.size >= MANY_TO_SORT and (made := by_digits(array, dim, largest)) is not None:
        return along(made[0], dim, 0, k).copy(), along(made[1], dim, 0, k).copy()
    if length > LONG_FOR_TOPK and 0 < k < length // 8:
        return topk_of_many(array, k, dim, largest)
    if array.ndim == 1:
        order = argsort(array, dim, largest)[:k].copy()
        return array.take(order), order
    order = along(argsort(array, dim, largest), dim, 0, k).copy()
    return take_along(array, dim, order, True), order


def topk_of_many(array: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """The same when k is small: select first, then sort only what was selected."""
    length = array.shape[dim]
    split = array.argpartition(length - k if largest else k - 1, dim)
    if largest:
        split = reversed_along(split, dim)
    chosen = np.sort(along(split, dim, 0, k), dim)
    values, order = sort(take_along(array, dim, chosen, True), dim, largest)
    return values, take_along(chosen, dim, order, True)


def at_rank(array: Array, dim: int, rank: Array | int, keepdim: bool) -> tuple[Array, Array]:
    """The element of a given rank along `dim` (one rank, or one for each row) and where it is."""
    if array.dtype.kind == "V":
        values, indices = at_rank(ordered(array), dim, rank, keepdim)
        return values.astype(array.dtype), indices
    if not array.ndim:
        check_scalar_dim(array, dim)
        return array.copy(), np.zeros((), np.int64)
    order = argsort(array, dim)
    if type(rank) is not int:
        shape = list(array.shape)
        shape[dim] = 1
        indices = take_along(order, dim, np.broadcast_to(rank, shape), True)
    elif array.ndim == 1 and not keepdim:
        at = order[rank]
        return array[at], at
    else:
        indices = along(order, dim, rank, rank + 1).copy()
    values = take_along(array, dim, indices, True)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return row_major(values), row_major(indices)


def median(array: Array, ignore_nan: bool) -> Array:
    """The median of all elements, the lower of two; nan if one is nan, unless those are ignored."""
    if array.dtype.kind == "V":
        return median(ordered(array), ignore_nan).astype(array.dtype)
    if array.size >= MANY_TO_SORT and array.dtype.char in "fdil":
        numbers = array.size
        if array.dtype.kind == "f":
            numbers = int(np.count_nonzero(array == array))
            if numbers < array.size and not (ignore_nan and numbers):
                return array.dtype.type(np.nan)
        rank = (numbers - 1) // 2
        return np.partition(array, rank, None)[rank]
    line = np.sort(array, axis=None) if array.ndim != 1 else array.copy()
    if array.ndim == 1:
        line.sort()
    last = line.size - 1
    if array.dtype.kind == "f" and line[last] != line[last]:  # nan is sorted to the end
        if not ignore_nan:
            return line[last]
        last = int(np.count_nonzero(line == line)) - 1
    return line[max(last, 0) // 2]


def median_place(array: Array, ignore_nan: bool) -> tuple[Array, Array]:
    """The median of a vector and where it is."""
    order = argsort(array, 0)
    rank = (array.size - 1) // 2
    last = array[order[-1]]
    if last != last:
        numbers = int(np.count_nonzero(array == array))
        rank = max(numbers - 1, 0) // 2 if ignore_nan else numbers  # the first nan comes right after the numbers
    at = order[rank]
    return array[at], at


def median_rank(array: Array, dim: int | None, ignore_nan: bool) -> Array | int:
    """The rank of the median, the lower of two; where there is nan, the rank of a nan unless it is ignored."""
    length = array.size if dim is None else array.shape[dim] if array.ndim else 1
    if array.dtype.kind in "iub":
        return (length - 1) // 2
    numbers = np.add.reduce(array == array, dim, np.int64, None, True)
    if ignore_nan:
        return np.maximum(numbers - 1, 0) // 2
    # The first nan has the rank of the number of elements that are not nan.
    return np.where(numbers < length, numbers, (length - 1) // 2)


def mode(array: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent element along `dim`, the smallest of several, and the last index it has."""
    if not array.ndim:
        check_scalar_dim(array, dim)
        return array.copy(), np.zeros((), np.int64)
    values, order = sort(np.moveaxis(array, dim, -1), -1)
    places = np.arange(values.shape[-1])
    starts = np.ones(values.shape, bool)
    starts[..., 1:] = values[..., 1:] != values[..., :-1]
    run = places - np.maximum.accumulate(np.where(starts, places, 0), -1)
    indices = take_along(order, -1, run.argmax(-1), False)
    if keepdim:
        indices = np.expand_dims(indices, dim)
    return take_along(array, dim, indices, keepdim), indices
