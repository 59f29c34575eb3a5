"""The `index_` family: kernels that read or write the whole slices along a dimension that a vector of indices names."""

from __future__ import annotations

from math import prod
from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.kinds import answered
from pullback._arrays.memory import contiguous_strides, memory_of, storage_offset
from pullback._dtype import FROM_NUMPY
from pullback._runtime import messages
from pullback.kernels.jit.small.choose import Placing
from pullback.kernels.numpy.index.gather import (
    COMBINE,
    divide_by_count,
    flat_of,
    identity,
    line_starts,
    normal_dim,
)
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

Array = Any


def index_select(array: Array, dim: int, index: Array) -> Array:
    """The slices of the array that a vector names, in its order."""
    dim = as_index(normal_dim(dim, array.ndim))
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype is not INT64 and index.dtype is not INT32:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not array.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        if not is_inside(index, 1):
            raise IndexError("index out of range in self" + which_outside(index, 1))
        return array.copy()
    if not index.ndim:
        index = index.reshape(1)
    if not is_inside(index, array.shape[dim]):
        raise outside(array, dim, index)
    if array.flags.c_contiguous:
        return array.take(index, dim)
    return np.ascontiguousarray(array[(slice(None),) * dim + (index,)])


def outside(array: Array, dim: int, index: Array) -> Exception:
    """Torch's error for indices of slices that are not there: the second dimension has a kernel of its own."""
    size = array.shape[dim]
    if array.ndim > 1 and not size:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    if array.ndim > 1 and (dim == 1 or not array.size):
        wrong = first_outside(index, size)
        said = f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}"
        return RuntimeError(said + which_outside(index, size))
    return IndexError("index out of range in self" + which_outside(index, size))


def no_room(array: Array, dim: int, index: Array, where: str = "") -> Exception:
    """Torch's error for writing slices of an array that has none: it looks at the memory as if there were some."""
    sizes = [index.size if d == dim else n for d, n in enumerate(array.shape)]
    steps = [0 if d == dim else step for d, step in enumerate(contiguous_strides(array.shape))]
    offset, held = storage_offset(array), memory_of(array).nbytes
    needed = (offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True)) + 1) * array.itemsize
    if needed <= held:  # a part of more, or what was larger before
        return IndexError(where + out_of_bounds(first_outside(index, 0), dim, 0) + which_outside(index, 0))
    return RuntimeError(
        f"setStorage: sizes {sizes}, strides {steps}, storage offset {offset}, and itemsize {array.itemsize} requiring "
        f"a storage size of {needed} are out of bounds for storage of size {held}"
    )


def rows_of(array: Array, dim: int, index: Array, source: Array) -> tuple[Array, Array, Array]:
    """The array with `dim` in front, the index as a vector, and the source as rows for it."""
    if not array.ndim:
        array, source = array.reshape(1), source.reshape(1)
    if not source.ndim:
        source = source.reshape(1)
    if dim:
        array, source = np.moveaxis(array, dim, 0), np.moveaxis(source, dim, 0)
    return array, index.reshape(-1), source


def check_index_add(name: str, array: Array, dim: int, index: Array, source: Array) -> int:
    """Torch's rules for index_add and index_reduce; gives the dimension counted from the front."""
    if array.ndim == source.ndim == index.ndim == 1 and index.dtype is INT64 and source.dtype is array.dtype:
        if index.size == source.size and (dim == 0 or dim == -1):
            return 0
    dim = normal_dim(dim, array.ndim)
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {scalar_type(index)} "
            "and "
            f"size: {messages.shape_text(index.shape)}"
        )
    if index.dtype is not INT64 and index.dtype is not INT32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {scalar_type(index)}")
    if source.dtype is not array.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_type(array)}) and source ({scalar_type(source)}) must have the same scalar type"
        )
    length = source.shape[dim] if dim < source.ndim else 1
    if index.size != length:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({length}), for dim: "
            f"{dim}"
        )
    mine, its = array.shape[:dim] + array.shape[dim + 1 :], source.shape[:dim] + source.shape[dim + 1 :]
    if array.ndim != source.ndim or mine != its:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{messages.shape_text(array.shape)} source.shape = {messages.shape_text(source.shape)}"
        )
    return dim


def index_add_into(self: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> None:
    """Add alpha times the slices of source where index says."""
    if alpha == 1:
        INDEX_ADD.head(self, dim, index, source)
    else:
        index_add_any(self, dim, index, source, alpha)


def index_add_any(self: Array, dim: int, index: Array, source: Array, alpha: Any = 1) -> None:
    """The same by NumPy."""
    dim = check_index_add("index_add_", self, dim, index, source)
    if self.ndim > 1 and not self.size:
        return  # torch does not look at the indices
    size = self.shape[dim] if self.ndim else 1
    if not is_inside(index, size):
        if self.ndim <= 1 or 0 < dim < self.ndim - 1 or alpha != 1:  # torch has another kernel, with another error
            raise IndexError("index out of range in self" + which_outside(index, size))
        raise RuntimeError(out_of_bounds(first_outside(index, size), dim, size) + which_outside(index, size))
    if alpha != 1:
        source = source * np.asarray(exact_number(alpha, FROM_NUMPY[source.dtype]), source.dtype)
    elif is_half(self.dtype) and self.ndim > 1 and dim in (0, self.ndim - 1):
        # Torch takes these for a scatter, which adds in float32; others are rounded after each addition.
        wide = self.astype(SINGLE)
        index_add_into(wide, dim, index, source.astype(SINGLE))
        self[...] = wide
        return
    target, places, rows = rows_of(self, dim, index, source)
    if dim == 0 or not self.flags.c_contiguous:
        add_rows(target, places, rows)
    else:
        np.add.at(flat_of(self), flat_slices(self.shape, dim, places), source.reshape(-1))


INDEX_ADD = Placing(index_add_any, "fdl", lambda compiled, dtype, rest: compiled.scattering(dtype, True, True, rest))


def flat_slices(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """The flat places of all elements of the slices a vector names."""
    along = index.reshape((-1,) + (1,) * (len(shape) - dim - 1))
    starts = line_starts(shape, dim, shape[:dim] + (1,) + shape[dim + 1 :])
    return (along * prod(shape[dim + 1 :]) + starts).reshape(-1)


@answered(meta=lambda *args: None)
def index_reduce_into(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> None:
    """Combine self and the slices of source that meet at one place by their prod, mean, amax or amin."""
    dim = check_index_add("index_reduce_", self, dim, index, source)
    size = self.shape[dim] if self.ndim else 1
    if not is_inside(index, size):
        raise IndexError("index out of range in self" + which_outside(index, size))
    if not index.size:
        return
    if self.ndim == 1 and reduce == "mean" and is_half(self.dtype):
        # Torch adds the elements of vectors in float32, and rounds slices after each addition.
        wide = self.astype(SINGLE)
        index_reduce_into(wide, dim, index, source.astype(SINGLE), reduce, include_self)
        self[...] = wide
        return
    target, places, rows = rows_of(self, dim, index, source)
    if not include_self:
        target[places] = identity(reduce, self.dtype)
    combine = COMBINE[reduce]
    if target.ndim == 1:
        combine.at(target, places, rows)
    else:
        for k, row in enumerate(places.tolist()):
            combine(target[row], rows[k], out=target[row])
    if reduce == "mean":
        count = np.bincount(places, minlength=target.shape[0])
        divide_by_count(target, count.reshape((-1,) + (1,) * (target.ndim - 1)), include_self)


def index_copy_into(self: Array, dim: int, index: Array, source: Array) -> None:
    """Overwrite the slices that index names by those of source."""
    INDEX_COPY.head(self, dim, index, source)


def index_copy_any(self: Array, dim: int, index: Array, source: Array) -> None:
    """The same by NumPy."""
    dim = check_index_copy(self, dim, index, source)
    if not self.size:
        return
    target, places, rows = rows_of(self, dim, index, source)
    target[places] = rows


INDEX_COPY = Placing(
    index_copy_any, "fdl?", lambda compiled, dtype, rest: compiled.scattering(dtype, False, True, rest)
)


def check_index_copy(array: Array, dim: int, index: Array, source: Array) -> int:
    """Torch's rules for index_copy; gives the dimension counted from the front."""
    dim = normal_dim(dim, array.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != array.ndim and source.ndim and array.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({array.ndim})"
        )
    if index.dtype is not INT64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_type(index)}")
    if source.dtype is not array.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {scalar_type(array)} and "
            f"(source) {scalar_type(source)}"
        )
    mine, its = array.shape[:dim] + array.shape[dim + 1 :], source.shape[:dim] + source.shape[dim + 1 :]
    if mine != its:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, its))} at "
            "dimension 0."
        )
    if source.ndim and index.size != source.shape[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({source.shape[dim]})"
        )
    size = array.shape[dim] if array.ndim else 1
    if index.size and not size and source.size:
        raise no_room(array, dim, index, "index_copy_(): ")
    if not is_inside(index, size) and array.size:  # slices without elements may lie anywhere
        said = "index_copy_(): " + out_of_bounds(first_outside(index, size), dim, size)
        raise IndexError(said + which_outside(index, size))
    return dim


def check_index_fill(index: Array) -> None:
    """Raise unless it is of integers of 64 bits."""
    if index.dtype != INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")


def index_fill_into(self: Array, dim: int, index: Array, value: Any) -> None:
    """Overwrite the slices that index names by one value; negative indices count from the end."""
    dim = normal_dim(dim, self.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    target = self if self.ndim else self.reshape(1)
    size = target.shape[dim]
    if not target.size:
        if index.size and 0 not in self.shape[:dim] + self.shape[dim + 1 :]:
            raise no_room(self, dim, index)
        return  # slices without elements may lie anywhere
    try:
        target[(slice(None),) * dim + (index,)] = value
    except IndexError:
        said = out_of_bounds(first_outside(index, size, -size), dim, size)
        raise IndexError(said + which_outside(index, size, -size)) from None
