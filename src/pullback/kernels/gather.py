"""Gathering and scattering along a dimension: kernels that read or write self[..., index, ...].

The indices of `gather` and `scatter` have as many dimensions as self; those of the `index_` family are vectors that
name whole slices. Neither may be negative (except for index_fill, take and put). Values that meet at one place are
combined in the order in which they come, so results do not depend on how the work is cut up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback import _messages as messages
from pullback.kernels.index import FEW, INT32, INT64, add_rows, first_outside, is_inside, out_of_bounds, scalar_type

Array = Any
COMBINE = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def normal_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front."""
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(messages.dim_out_of_range(dim, ndim))
    return dim + limit if dim < 0 else dim


def on_copy(write: Callable[..., None], array: Array, *args: Any) -> Array:
    """What a kernel that writes into its array makes of a copy, in row-major order. Formulas may bring scalars."""
    out = array.copy() if type(array) is np.ndarray else np.array(array)
    write(out, *args)
    return out


# ------------------------------------------------------------------ gather and scatter


@lru_cache(maxsize=256)
def lines(index_shape: tuple[int, ...], dim: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The indices of the other dimensions, those before `dim` and those after it, in shapes that broadcast."""
    ndim = len(index_shape)
    dim = normal_dim(dim, ndim)
    others = [np.arange(n).reshape((n,) + (1,) * (ndim - d - 1)) for d, n in enumerate(index_shape)]
    return tuple(others[:dim]), tuple(others[dim + 1 :])


def few_places(array: Array, dim: int, index: Array) -> Any:
    """The key of few int64 indices along a dimension, for NumPy's indexing; None if they need a closer look."""
    if not 0 < index.size <= FEW or index.dtype is not INT64 or index.ndim != array.ndim:
        return None
    if min(index.reshape(-1).tolist()) < 0:
        return None
    before, after = lines(index.shape, dim)
    return (*before, index, *after)


def flat_places(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Where each element that `index` names lies in a contiguous array of this shape."""
    if len(shape) == 1:
        return index
    step, offsets = grid(shape, dim, index.shape)
    return index + offsets if step == 1 else index * step + offsets


def grid(shape: tuple[int, ...], dim: int, index_shape: tuple[int, ...]) -> tuple[int, Array]:
    """The step of `dim` in a contiguous array and the places of the lines along it."""
    lines = index_shape[:dim] + (1,) + index_shape[dim + 1 :]
    count = 1
    for n in lines:
        count *= n
    return small_grid(shape, dim, lines) if count <= 1024 else make_grid(shape, dim, lines)


def make_grid(shape: tuple[int, ...], dim: int, lines: tuple[int, ...]) -> tuple[int, Array]:
    """The places of the lines, computed."""
    steps = [1] * len(shape)
    for d in range(len(shape) - 1, 0, -1):
        steps[d - 1] = steps[d] * shape[d]
    offsets: Array = np.zeros((1,) * len(shape), INT64)
    for d, n in enumerate(lines):
        if n != 1:
            offsets = offsets + (np.arange(n) * steps[d]).reshape((n,) + (1,) * (len(shape) - d - 1))
    return steps[dim], offsets


small_grid = lru_cache(maxsize=256)(make_grid)


def along(name: str, array: Array, dim: int, index: Array) -> tuple[tuple[int, ...], int, Array]:
    """Shape of self, dim and index made ordinary: at least one dimension, int64."""
    if index.dtype is not INT64:
        if index.dtype is not INT32 and index.size:
            raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
        index = index.astype(INT64)
    dim = normal_dim(dim, array.ndim)
    shape = array.shape or (1,)
    return shape, dim, index if index.ndim else index.reshape(1)


def check_inside(index: Array, dim: int, size: int) -> None:
    """Raise torch's error for an index outside of its dimension."""
    if not is_inside(index, size):
        raise RuntimeError(out_of_bounds(first_outside(index, size), dim, size))


def gather(array: Array, dim: int, index: Array) -> Array:
    """out[i][j] = array[index[i][j]][j], for dim 0 of two."""
    key = few_places(array, dim, index)
    if key is not None:
        try:
            return array[key]
        except IndexError:
            key = None  # what is wrong is said below
    shape, dim, places = along("gather", array, dim, index)
    if not places.size:
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


def scatter_places(array: Array, dim: int, index: Array, src: Array | None) -> tuple[Array, Any]:
    """The flat places a scatter writes to, and the window of src that goes there."""
    shape, dim, index = along("scatter", array, dim, index)
    if not index.size:
        return index, None if src is None else src.reshape(-1)[:0]
    if len(shape) != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None:
        check_src(array, dim, index, src)
        if not src.ndim:
            src = src.reshape(1)
        if src.shape != index.shape:
            src = src[tuple([slice(n) for n in index.shape])]
    elif any(n > shape[d] and d != dim for d, n in enumerate(index.shape)):
        raise RuntimeError(
            f"Expected index {messages.shape_text(index.shape)} to be no larger than self "
            f"{messages.shape_text(array.shape)} apart from dimension {dim}"
        )
    check_inside(index, dim, shape[dim])
    return flat_places(shape, dim, index), src


def check_src(array: Array, dim: int, index: Array, src: Array) -> None:
    """Raise torch's error unless src has the dtype of self and every index a value in src."""
    if src.dtype is not array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
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
    """The elements in one line: the array's own memory if it lies in order, else a copy for `put_back`."""
    return array.reshape(-1)


def put_back(array: Array, flat: Array) -> None:
    """Bring what was written into `flat_of` home, if it was a copy."""
    if not array.flags.c_contiguous:
        array[...] = flat.reshape(array.shape)


def scatter_into(self: Array, dim: int, index: Array, src: Any) -> None:
    """Write src (an self, or a number of the array's dtype) where index says."""
    key = few_places(self, dim, index)
    if key is not None and (not isinstance(src, np.ndarray) or (src.shape == index.shape and src.dtype is self.dtype)):
        try:
            self[key] = src
            return
        except IndexError:
            key = None  # what is wrong is said below
    places, values = scatter_places(self, dim, index, src if isinstance(src, np.ndarray) else None)
    flat = flat_of(self)
    flat[places] = src if values is None else values
    put_back(self, flat)


def scatter_combine_into(self: Array, dim: int, index: Array, src: Any, combine: np.ufunc) -> None:
    """Combine src into the array where index says."""
    places, values = scatter_places(self, dim, index, src if isinstance(src, np.ndarray) else None)
    if places.size:
        flat = flat_of(self)
        combine.at(flat, places.reshape(-1), values.reshape(-1) if values is not None else src)
        put_back(self, flat)


def scatter_add_into(self: Array, dim: int, index: Array, src: Array) -> None:
    """Add src into the array where index says."""
    scatter_combine_into(self, dim, index, src, np.add)


def scatter_reduce_into(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> None:
    """Combine self and the elements of src that meet at one place by their sum, prod, mean, amax or amin."""
    places, values = scatter_places(self, dim, index, src)
    if not places.size:
        return
    flat, places, values = flat_of(self), places.reshape(-1), values.reshape(-1)
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


# ------------------------------------------------------------------ whole slices


def index_select(array: Array, dim: int, index: Array) -> Array:
    """The slices of the array that a vector names, in its order."""
    if index.dtype is not INT64 and index.dtype is not INT32:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    dim = normal_dim(dim, array.ndim)
    if not array.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        if index.item() != 0:
            raise IndexError("index out of range in self")
        return array.copy()
    if not index.ndim:
        index = index.reshape(1)
    if not is_inside(index, array.shape[dim]):
        raise IndexError("index out of range in self")
    if array.flags.c_contiguous:
        return array.take(index, dim)
    return np.ascontiguousarray(array[(slice(None),) * dim + (index,)])


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
    dim = normal_dim(dim, array.ndim)
    if index.dtype is not INT64 and index.dtype is not INT32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {scalar_type(index)}")
    if source.dtype is not array.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_type(array)}) and source ({scalar_type(source)}) must have the same scalar type"
        )
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {scalar_type(index)} and "
            f"size: {messages.shape_text(index.shape)}"
        )
    length = source.shape[dim] if dim < source.ndim else 1
    if index.size != length:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({length}), for dim: {dim}"
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
    dim = check_index_add("index_add_", self, dim, index, source)
    size = self.shape[dim] if self.ndim else 1
    if not is_inside(index, size):
        raise RuntimeError(out_of_bounds(first_outside(index, size), dim, size))
    if alpha != 1:
        source = source * np.asarray(alpha).astype(source.dtype)
    target, places, rows = rows_of(self, dim, index, source)
    if dim == 0 or not self.flags.c_contiguous:
        add_rows(target, places, rows)
    else:
        np.add.at(flat_of(self), flat_slices(self.shape, dim, places), source.reshape(-1))


def flat_slices(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """The flat places of all elements of the slices a vector names."""
    lines = shape[:dim] + (index.size,) + shape[dim + 1 :]
    step, offsets = grid(shape, dim, lines)
    return (index.reshape((-1,) + (1,) * (len(shape) - dim - 1)) * step + offsets).reshape(-1)


def index_reduce_into(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> None:
    """Combine self and the slices of source that meet at one place by their prod, mean, amax or amin."""
    dim = check_index_add("index_reduce_", self, dim, index, source)
    if not is_inside(index, self.shape[dim] if self.ndim else 1):
        raise IndexError("index out of range in self")
    if not index.size:
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
    dim = check_index_copy(self, dim, index, source)
    target, places, rows = rows_of(self, dim, index, source)
    target[places] = rows


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
    if not is_inside(index, size):
        raise IndexError("index_copy_(): " + out_of_bounds(first_outside(index, size), dim, size))
    return dim


def index_fill_into(self: Array, dim: int, index: Array, value: Any) -> None:
    """Overwrite the slices that index names by one value; negative indices count from the end."""
    if index.dtype is not INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    dim = normal_dim(dim, self.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    target = self if self.ndim else self.reshape(1)
    size = target.shape[dim]
    try:
        target[(slice(None),) * dim + (index,)] = value
    except IndexError:
        raise IndexError(out_of_bounds(first_outside(index, size, -size), dim, size)) from None


# ------------------------------------------------------------------ the array as one line


def line_places(array: Array, index: Array) -> Array:
    """Indices into the flattened array, or torch's error."""
    size = array.size
    if index.size and ((index < -size) | (index >= size)).any():
        bad = first_outside(index, size, -size)
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")
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
