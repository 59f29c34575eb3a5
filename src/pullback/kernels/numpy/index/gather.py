"""Gathering and scattering along a dimension: kernels that read or write self[..., index, ...].

The indices of `gather` and `scatter` have as many dimensions as self and may not be negative; those of take and put
count through the whole array. Values that meet at one place are combined in the order in which they come, so results
do not depend on how the work is cut up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import is_half, widened
from pullback._arrays.kinds import answered
from pullback._runtime import messages
from pullback._tensor import normal_dim
from pullback.kernels.jit.small.choose import Placing
from pullback.kernels.numpy.index.subscript import (
    INT32,
    INT64,
    add_rows,
    first_outside,
    is_inside,
    out_of_bounds,
    scalar_type,
    which_outside,
)
from pullback.kernels.numpy.tables import kept

Array = Any
COMBINE = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def on_copy(write: Callable[..., None], array: Array, *args: Any) -> Array:
    """What a kernel that writes into its array makes of a copy, in row-major order. Formulas may bring scalars."""
    out = array.copy() if type(array) is np.ndarray else np.array(array)
    write(out, *args)
    return out


# ------------------------------------------------------------------ gather and scatter


def flat_places(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Where each element that `index` names lies in a contiguous array of this shape."""
    if len(shape) == 1:
        return index
    starts = line_starts(shape, dim, index.shape[:dim] + (1,) + index.shape[dim + 1 :])
    step = prod(shape[dim + 1 :])
    return index + starts if step == 1 else index * step + starts


@kept
def line_starts(shape: tuple[int, ...], dim: int, counts: tuple[int, ...]) -> Array:
    """Where the lines along `dim` begin in a contiguous array, the first so many of them in each other dimension."""
    starts: Array = np.zeros((1,) * len(shape), INT64)
    for d, n in enumerate(counts):
        if n != 1:
            starts = starts + (np.arange(n) * prod(shape[d + 1 :])).reshape((n,) + (1,) * (len(shape) - d - 1))
    return starts


def along(name: str, array: Array, dim: int, index: Array) -> tuple[tuple[int, ...], int, Array]:
    """Shape of self, dim and index made ordinary: at least one dimension, int64."""
    dim = normal_dim(dim, array.ndim)
    if index.dtype is not INT64:
        if index.dtype is not INT32 and index.size:
            raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
        index = index.astype(INT64)
    shape = array.shape or (1,)
    return shape, dim, index if index.ndim else index.reshape(1)


def check_inside(index: Array, dim: int, size: int) -> None:
    """Raise torch's error for an index outside of its dimension."""
    if not is_inside(index, size):
        raise RuntimeError(out_of_bounds(first_outside(index, size), dim, size) + which_outside(index, size))


def gather(array: Array, dim: int, index: Array) -> Array:
    """out[i][j] = array[index[i][j]][j], for dim 0 of two."""
    return GATHER.head(array, dim, index)


def gather_any(array: Array, dim: int, index: Array) -> Array:
    """The same by NumPy."""
    shape, dim, places = along("gather", array, dim, index)
    if not places.size:
        operator.index(dim)  # elsewhere it counts sizes, and so is one
        return np.empty(index.shape, array.dtype)
    if len(shape) != places.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, n in enumerate(places.shape):
        if n > shape[d] and d != dim:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {messages.shape_text(index.shape)} to be no "
                f"larger than self {messages.shape_text(array.shape)} apart from dimension {dim}"
            )
    check_inside(places, dim, shape[dim])
    return array.reshape(-1).take(flat_places(shape, dim, places)).reshape(index.shape)


GATHER = Placing(gather_any, "fdl?", lambda compiled, *given: compiled.gathering(*given))


def scatter_places(array: Array, dim: int, index: Array, src: Array | None) -> tuple[Array, Any]:
    """The flat places a scatter writes to, and the window of src that goes there."""
    shape, dim, index = along("scatter", array, dim, index)
    if src is not None and src.dtype is not array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        operator.index(dim)
        return index.reshape(-1), None if src is None else src.reshape(-1)[:0]
    if len(shape) != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None:
        if index.ndim > 1 or src.shape != index.shape:  # else there is nothing that could not fit
            check_src(array, dim, index, src)
            src = (src if src.ndim else src.reshape(1))[tuple([slice(n) for n in index.shape])]
    elif any(n > shape[d] and d != dim for d, n in enumerate(index.shape)):
        raise RuntimeError(
            f"Expected index {messages.shape_text(index.shape)} to be no larger than self "
            f"{messages.shape_text(array.shape)} apart from dimension {dim}"
        )
    check_inside(index, dim, shape[dim])
    return flat_places(shape, dim, index), src


def check_src(array: Array, dim: int, index: Array, src: Array) -> None:
    """Raise torch's error unless every index has a value in src."""
    shape, sizes = array.shape or (1,), src.shape or (1,)
    if src.ndim:
        normal_dim(dim, src.ndim)
    if len(sizes) != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d, n in enumerate(index.shape):
        if n > sizes[d] or (n > shape[d] and d != dim):
            raise RuntimeError(
                f"Expected index {messages.shape_text(index.shape)} to be no larger than self "
                f"{messages.shape_text(array.shape)} apart from dimension {dim} and to be no larger size than src "
                f"{messages.shape_text(src.shape)}"
            )


def flat_of(array: Array) -> Array:
    """The elements in one line: the array's own memory if it is contiguous, else a copy for `put_back`."""
    return array.reshape(-1)


def put_back(array: Array, flat: Array) -> None:
    """Bring what was written into `flat_of` home, if it was a copy."""
    if flat.dtype is not array.dtype or not array.flags.c_contiguous:
        array[...] = flat.reshape(array.shape)


def scatter_into(self: Array, dim: int, index: Array, src: Any) -> None:
    """Write src (an array, or a number of the array's dtype) where index says."""
    SCATTER.head(self, dim, index, src)


def scatter_any(self: Array, dim: int, index: Array, src: Any) -> None:
    """The same by NumPy."""
    places, values = scatter_places(self, dim, index, src if isinstance(src, np.ndarray) else None)
    flat = flat_of(self)
    flat[places] = src if values is None else values
    put_back(self, flat)


SCATTER = Placing(scatter_any, "fdl?", lambda compiled, dtype, rest: compiled.scattering(dtype, False, False, rest))


def scatter_combine_into(self: Array, dim: int, index: Array, src: Any, combine: np.ufunc) -> None:
    """Combine src into the array where index says; half precision in float32, rounded once."""
    places, values = scatter_places(self, dim, index, src if isinstance(src, np.ndarray) else None)
    if places.size:
        flat = widened(flat_of(self))
        combine.at(flat, places.reshape(-1), widened(values.reshape(-1)) if values is not None else src)
        put_back(self, flat)


def scatter_add_into(self: Array, dim: int, index: Array, src: Array) -> None:
    """Add src into the array where index says."""
    SCATTER_ADD.head(self, dim, index, src)


def scatter_add_any(self: Array, dim: int, index: Array, src: Array) -> None:
    """The same by NumPy."""
    if is_half(self.dtype):
        scatter_combine_into(self, dim, index, src, np.add)
        return
    places, values = scatter_places(self, dim, index, src)
    flat = flat_of(self)
    add_rows(flat, places.reshape(-1), values.reshape(-1))
    put_back(self, flat)


SCATTER_ADD = Placing(
    scatter_add_any, "fdl", lambda compiled, dtype, rest: compiled.scattering(dtype, True, False, rest)
)


@answered(meta=lambda *args: None)
def scatter_reduce_into(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> None:
    """Combine self and the elements of src that meet at one place by their sum, prod, mean, amax or amin."""
    places, values = scatter_places(self, dim, index, src)
    if not places.size:
        return
    flat, places, values = widened(flat_of(self)), places.reshape(-1), widened(values.reshape(-1))
    if not include_self:
        flat[places] = identity(reduce, self.dtype)
    COMBINE[reduce].at(flat, places, values)
    if reduce == "mean":
        divide_by_count(flat, np.bincount(places, minlength=flat.size), include_self)
    put_back(self, flat)


def identity(reduce: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing when it is combined."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f" or dtype.kind == "V":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max


def divide_by_count(out: Array, count: Array, include_self: bool) -> None:
    """From sums to means; integers round down."""
    count = count + 1 if include_self else np.maximum(count, 1)
    divide = np.floor_divide if out.dtype.kind in "iu" else np.divide
    divide(out, count.astype(out.dtype), out)


# ------------------------------------------------------------------ the array as one line


def line_places(array: Array, index: Array) -> Array:
    """Indices into the flattened array, or torch's error."""
    size = array.size
    if index.size and ((index < -size) | (index >= size)).any():
        bad = first_outside(index, size, -size)
        said = f"out of range: tried to access index {bad} on a tensor of {size} elements."
        raise IndexError(said + which_outside(index, size, -size))
    return index


def take(array: Array, index: Array) -> Array:
    """The elements that index names, counting through the whole array."""
    if index.dtype is not INT64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_type(index)}")
    if not array.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    try:
        return array.take(index)
    except IndexError:
        line_places(array, index)
        raise


def put_into(self: Array, index: Array, source: Array, accumulate: bool) -> None:
    """Write (or add) source where index says, counting through the whole array."""
    if index.dtype is not INT64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {scalar_type(index)}")
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {scalar_type(self)} and "
            f"source.dtype = {scalar_type(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    places = line_places(self, index).reshape(-1)
    flat = flat_of(self)
    if accumulate:
        np.add.at(flat, places, source.reshape(-1))
    else:
        flat[places] = source.reshape(-1)
    put_back(self, flat)
