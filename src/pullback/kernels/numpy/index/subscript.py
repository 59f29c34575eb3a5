"""Indexing by arrays: what x[...] selects and overwrites once its views are made, and the masked ops.

`indices` is torch's: one entry per dimension, None where all of it is taken, integer arrays (negative numbers count
from the end) and bool masks, which stand for as many dimensions as they have. NumPy places the selected dimensions
where torch does, so these kernels are NumPy's own indexing plus torch's errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._arrays.element import convert_number
from pullback._arrays.kinds import answered
from pullback._arrays.memory import broadcast_view
from pullback._dtype import FROM_NUMPY
from pullback._runtime import messages
from pullback._thresholds import FEW_ROWS_TO_ADD, LONG_ROW
from pullback.kernels.compiled import room

Array = Any
INT64, INT32, BOOL, UINT8 = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_), np.dtype(np.uint8)
UINT64 = np.dtype(np.uint64)
EVERYTHING = slice(None)


# ------------------------------------------------------------------ keys


def key_of(array: Array, indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """The indices as NumPy takes them, or torch's error about them."""
    dim, key = 0, []
    for index in indices:
        if index is None:
            key.append(EVERYTHING)
            dim += 1
            continue
        kind = index.dtype
        if kind is not INT64 and kind is not BOOL and kind is not INT32:
            if kind is not UINT8:
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            index = index != 0
        if index.dtype is BOOL:
            check_mask(array.shape, index.shape, dim)
            dim += index.ndim
        else:
            dim += 1
        key.append(index)
    if dim > array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {array.ndim} (got {dim})")
    return tuple(key) if array.size else harmless(array, key)


def harmless(array: Array, key: list[Any]) -> tuple[Any, ...]:
    """The key for an array without elements: where the result has none either, torch does not look at the indices."""
    out, dim = [], 0
    for index in key:
        if index is EVERYTHING or index.dtype is BOOL:
            dim += 1 if index is EVERYTHING else index.ndim
            out.append(index)
            continue
        if index.size and not array.shape[dim]:
            raise IndexError("index is out of bounds for dimension with size 0")
        dim += 1
        out.append(np.zeros_like(index))
    return tuple(out)


def check_mask(shape: tuple[int, ...], mask: tuple[int, ...], dim: int) -> None:
    """Raise torch's error unless a mask fits the dimensions from `dim` on."""
    for i, size in enumerate(mask):
        if dim + i < len(shape) and shape[dim + i] != size:
            raise IndexError(
                f"The shape of the mask {messages.shape_text(mask)} at index {i} does not match the shape of the "
                "indexed "
                f"tensor {messages.shape_text(shape)} at index {dim + i}"
            )


def check_key(array: Array, key: tuple[Any, ...]) -> None:
    """Raise torch's error for index arrays that do not broadcast or point outside the array."""
    expanded, dims, dim = [], [], 0
    for index in key:
        if index is EVERYTHING:
            dim += 1
            continue
        parts = index.nonzero() if index.dtype is BOOL and index.ndim else (index,)
        if index.dtype is BOOL and not index.ndim:
            continue
        for part in parts:
            expanded.append(part)
            dims.append(dim)
            dim += 1
    try:
        shape = np.broadcast_shapes(*[e.shape for e in expanded])
    except ValueError:
        shown = ", ".join(messages.shape_text(e.shape) for e in expanded)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None
    if 0 in shape:
        return
    for position, (index, where) in enumerate(zip(expanded, dims, strict=True)):
        size = array.shape[where]
        outside = (index < -size) | (index >= size)
        if outside.any():
            # Torch counts the indexed dimensions only: it has moved them to the front by then.
            name = "index" if len(expanded) == 1 else f"indices[{position}]"
            said = out_of_bounds(index[outside].flat[0], position, size)
            raise IndexError(said + which_outside(index, size, -size, name))


def out_of_bounds(index: int, dim: int, size: int) -> str:
    """Torch's text about an index outside of its dimension."""
    return f"index {index} is out of bounds for dimension {dim} with size {size}"


# ------------------------------------------------------------------ reading


def index_get(array: Array, indices: Sequence[Array | None]) -> Array:
    """The elements the indices select, in new memory."""
    first = indices[0]
    if len(indices) == 1 and first.dtype is INT64 and array.size and array.ndim and array.flags.c_contiguous:
        try:
            return array.take(first, 0)
        except IndexError:
            check_key(array, (first,))
            raise
    key = key_of(array, indices)
    if len(key) == 2 and key[0] is EVERYTHING and key[1].dtype is not BOOL and array.flags.c_contiguous:
        try:
            return array.take(key[1], 1)
        except IndexError:
            check_key(array, key)
            raise
    try:
        out = array[key]
    except IndexError:
        check_key(array, key)
        raise
    # NumPy may leave the selected dimensions innermost in memory; programs count on `view` working on the result.
    return out if out.flags.c_contiguous else np.ascontiguousarray(out)


# ------------------------------------------------------------------ writing


def index_put_into(self: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> None:
    """Overwrite the selected elements, or add to them, each value as often as its place is named."""
    if not accumulate and values.size == 1 and all_masks(indices):
        values = one_element(values, self, indices)
    elif values.dtype is not self.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_type(self)} for the destination and {scalar_type(values)} for the source."
        )
    key = key_of(self, indices)
    try:
        if accumulate:
            add_selected(self, key, values)
        else:
            self[key] = values
    except (IndexError, TypeError, ValueError):
        check_key(self, key)
        shape = self[key].shape
        while values.ndim > len(shape) and values.shape[0] == 1:
            values = values[0]
        try:
            values = broadcast_view(values, shape)
        except ValueError:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {messages.shape_text(values.shape)} cannot be broadcast to "
                f"indexing result of shape {messages.shape_text(shape)}"
            ) from None
        index_put_into(self, indices, values, accumulate)


def all_masks(indices: Sequence[Array | None]) -> bool:
    """True if what is selected is selected by masks only."""
    return all([index is None or index.dtype is BOOL or index.dtype is UINT8 for index in indices])


def one_element(values: Array, array: Array, indices: Sequence[Array | None]) -> Array:
    """The one value torch fills a mask with, in the dtype of the array: here, and only here, it may have another."""
    if any([index is not None and index.dtype is UINT8 for index in indices]):
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    if values.dtype is array.dtype:
        return values.reshape(())
    return np.asarray(convert_number(values.item(), FROM_NUMPY[array.dtype]), array.dtype)


def add_selected(array: Array, key: tuple[Any, ...], values: Array) -> None:
    """array[key] += values, counting places named several times. Adds in the order of the values."""
    if len(key) == 1 and key[0].dtype is not BOOL and key[0].ndim:
        index = key[0]
        tail = array.shape[1:]
        values = np.broadcast_to(values, (*index.shape, *tail)).reshape(index.size, *tail)
        index = index.reshape(-1)
        negative = index < 0
        if negative.any():
            index = np.where(negative, index + array.shape[0], index)
        if index.size and not is_inside(index, array.shape[0]):
            raise IndexError
        add_rows(array, index, values)
    elif all(index is EVERYTHING or index.dtype is BOOL for index in key):
        array[key] += values  # a mask names no place twice
    elif array.flags.c_contiguous and array.size:
        places = np.arange(array.size).reshape(array.shape)[key]
        np.add.at(array.reshape(-1), places.reshape(-1), np.broadcast_to(values, places.shape).reshape(-1))
    else:
        np.add.at(array, key, values)


def add_rows(array: Array, index: Array, rows: Array) -> None:
    """array[index[k]] += rows[k] for every k, in order; the indices are inside and not negative."""
    if not rows.size:
        return
    compiled = room("rows.scatter")
    if compiled is not None and compiled.add_rows(array, index, rows):
        return
    if array.ndim == rows.ndim == 1:
        np.add.at(array, index, rows)
        return
    width = rows[0].size
    if width >= LONG_ROW or index.size <= FEW_ROWS_TO_ADD or not array.flags.c_contiguous:
        add = np.add
        for k, row in enumerate(index.tolist()):
            target = array[row, ...]
            add(target, rows[k], target)
        return
    if width > 1:
        index = (index[:, None] * width + np.arange(width)).reshape(-1)
    np.add.at(array.reshape(-1), index, rows.reshape(-1))


@answered(meta=lambda index, size: True)
def is_inside(index: Array, size: int) -> bool:
    """True if all indices are at least zero and below `size`. As unsigned numbers the negative ones are huge."""
    if not index.size:
        return True
    unsigned = (index if index.dtype is INT64 else index.astype(INT64)).view(UINT64)
    return bool(unsigned.item(unsigned.argmax()) < size)


def first_outside(index: Array, size: int, lowest: int = 0) -> int:
    """The first index that is not inside."""
    return int(index[(index < lowest) | (index >= size)].flat[0])


def which_outside(index: Array, size: int, lowest: int = 0, name: str = "index") -> str:
    """What is added to an error about an index that is not inside: where it stands, and what it may be."""
    place = np.unravel_index(np.argmax((index < lowest) | (index >= size)), index.shape)
    shown = f"{name}[{', '.join(str(i) for i in place)}]" if place else name
    allowed = f"it may be from {lowest} to {size - 1}" if size > 0 else "there is nothing to choose from"
    return f"\n  {shown} is {index[place]}; {allowed}"


# ------------------------------------------------------------------ masks


@answered(meta=lambda array, mask, source: None)
def masked_scatter_into(array: Array, mask: Array, source: Array) -> None:
    """Overwrite the elements where a mask of its shape is True by those of `source`, in order."""
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    array[mask] = source.reshape(-1)[:count]


def nonzero(array: Array) -> Array:
    """The places of the elements that are not zero, one row each; the columns are contiguous, as in torch."""
    if not array.ndim:
        return np.zeros((int(bool(array)), 0), INT64)
    return np.array(array.nonzero(), INT64).reshape(array.ndim, -1).T


def scalar_type(array: Array) -> str:
    """Torch's name of an array's dtype in error texts: Float, Long, ..."""
    return FROM_NUMPY[array.dtype].scalar_type
