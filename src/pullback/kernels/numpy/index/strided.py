"""Windows onto arrays: other strides on the same memory, and the way back for gradients. Arrays only."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback._arrays.half import rounded, widened
from pullback._arrays.memory import (
    as_strided,
    element_strides,
    laid_out,
    memory_of,
    overlaps_itself,
    storage_offset,
)

Array = Any
Sizes = tuple[int, ...]
Geometry = tuple[Sizes, Sizes, int]
"""Size, stride and offset of a tensor, counted in elements from the start of its memory."""


def geometry_of(array: Array) -> Geometry:
    """How an array lies in its memory."""
    return array.shape, element_strides(array), storage_offset(array)


def restride(array: Array, shape: Sizes, strides: Sizes, start: int = 0) -> Array:
    """A window that begins `start` bytes after the first element of `array`; strides count bytes."""
    if array.flags.c_contiguous and array.size:
        try:
            return np.ndarray(shape, array.dtype, array, start, strides)
        except TypeError:  # of another kind: see _arrays/kinds.py
            return array.seen_as(shape, strides, None, start)
    if 0 in shape or not array.size:
        # Nothing to look at: the shape is all there is.
        return np.ndarray(shape, array.dtype, np.empty(0, array.dtype), 0, strides)
    itemsize = array.dtype.itemsize
    return as_strided(array, shape, [s // itemsize for s in strides], storage_offset(array) + start // itemsize)


def expand(array: Array, size: Sizes) -> Array:
    """Stretch dimensions of size one to `size`, -1 keeping a dimension as it is; raises ValueError if it cannot."""
    have, steps = array.shape, array.strides
    lead = len(size) - len(have)
    if lead < 0:
        raise ValueError("fewer sizes than dimensions")
    if size[lead:] == have and 1 not in size and array.flags.c_contiguous and array.size:
        return restride(array, size, (0,) * lead + steps)
    if not have and min(size, default=0) >= 0:
        return restride(array, size, (0,) * lead)
    sizes, strides, step = [], [], array.dtype.itemsize
    for dim in reversed(range(len(size))):
        n = size[dim]
        if dim >= lead:
            old, stride = have[dim - lead], steps[dim - lead]
        else:
            old, stride = 1, step
            if n < 0:
                raise ValueError("a new dimension needs a size")
        if n == -1:
            n = old
        if n != old:
            if old != 1 or n < 0:
                raise ValueError("only dimensions of size one can be stretched")
            stride = 0
        sizes.append(n)
        strides.append(stride)
        step = stride * n
    return restride(array, tuple(sizes[::-1]), tuple(strides[::-1]))


def unsqueeze(array: Array, dim: int) -> Array:
    """A new dimension of size one; its stride is what torch gives it, which NumPy would leave at zero."""
    shape, strides = array.shape, array.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else array.dtype.itemsize
    return restride(array, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


def with_view_strides(array: Array, out: Array) -> Array:
    """`out`, a reshaped `array`, with the strides torch gives: those of dimensions of size one are told apart there."""
    strides = view_strides(array.shape, array.strides, out.shape)
    if strides is None or strides == out.strides or not array.size:
        return out
    return restride(array, out.shape, strides)


def view_strides(shape: Sizes, strides: Sizes, size: Sizes) -> Sizes | None:
    """The strides of a view in another shape, found in runs of dimensions that are contiguous; None if it cannot be."""
    if not shape:
        return None
    out, to = [0] * len(size), len(size) - 1
    base, run, covered = strides[-1], 1, 1
    for dim in reversed(range(len(shape))):
        run *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == run * base):
            continue
        while to >= 0 and (covered < run or size[to] == 1):
            out[to] = covered * base
            covered *= size[to]
            to -= 1
        if covered != run:
            return None
        if dim:
            base, run, covered = strides[dim - 1], 1, 1
    return tuple(out) if to == -1 else None


def diagonal(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of two dimensions as a new last one, writable."""
    shape, strides = array.shape, array.strides
    rows, columns = shape[dim1], shape[dim2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = 0
    if not length:
        operator.index(offset)  # elsewhere it is a stride
    else:
        start = offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    others = [d for d in range(array.ndim) if d not in (dim1, dim2)]
    size = (*[shape[d] for d in others], length)
    return restride(array, size, (*[strides[d] for d in others], strides[dim1] + strides[dim2]), start)


def unfold(array: Array, dim: int, size: int, step: int) -> Array:
    """All windows of `size` elements along a dimension, `step` apart, as a new last dimension."""
    shape, strides = array.shape, array.strides
    if not shape:
        return restride(array, (size,), (array.dtype.itemsize,))
    count = (shape[dim] - size) // step + 1
    return restride(
        array,
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]),
    )


def unfold_backward(grad: Array, sizes: Sizes, dim: int, size: int, step: int) -> Array:
    """Add every window of a gradient where `unfold` took it from."""
    if not sizes:
        return np.add.reduce(grad)
    out = np.zeros(sizes, grad.dtype)
    if step >= size:
        unfold(out, dim, size, step)[...] = grad
    else:
        count = grad.shape[dim]
        for i in range(size):
            out[(slice(None),) * dim + (slice(i, i + (count - 1) * step + 1, step),)] += grad[..., i]
    return out


# ------------------------------------------------------------------ as_strided and back


def positions(size: Sizes, stride: Sizes, offset: int) -> Array:
    """Where in memory each element of a window lies."""
    where = np.array(offset)
    for n, s in zip(size, stride, strict=True):
        where = where[..., None] + np.arange(n) * s
    return where


def overlapping(size: Sizes, stride: Sizes) -> bool:
    """True if two elements of a window may share memory: some stride does not clear what lies inside it."""
    reach = 0
    for s, n in sorted((s, n) for s, n in zip(stride, size, strict=True) if n != 1):
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


def span(size: Sizes, stride: Sizes) -> int:
    """How many elements of memory a window reaches over."""
    return 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def as_strided_backward(grad: Array, base: Geometry, window: Geometry) -> Array:
    """The gradient of a tensor of geometry `base` from that of a window onto its memory.

    Elements seen several times by the window collect all their gradients. Elements the base itself shows several
    times share what their memory collected.
    """
    (base_size, base_stride, base_offset), (size, stride, offset) = base, window
    if 0 in size or 0 in base_size:
        return np.zeros(base_size, grad.dtype)
    start = min(base_offset, offset)
    length = max(base_offset + span(base_size, base_stride), offset + span(size, stride)) - start
    memory = np.zeros(length, grad.dtype)
    if overlapping(size, stride):
        memory = widened(memory)
        np.add.at(memory, positions(size, stride, offset - start), widened(grad))
        memory = rounded(memory, grad.dtype)
    else:
        as_strided(memory, size, stride, offset - start)[...] = grad
    if overlapping(base_size, base_stride):
        seen = np.zeros(length, np.int64)
        np.add.at(seen, positions(base_size, base_stride, base_offset - start), 1)
        memory = (memory / np.maximum(seen, 1)).astype(grad.dtype)
    return as_strided(memory, base_size, base_stride, base_offset - start)


def as_strided_of(array: Array, base: Geometry, window: Geometry) -> Array:
    """What the window would show if `array` lay in memory with the geometry `base`: a copy."""
    (base_size, base_stride, base_offset), (size, stride, offset) = base, window
    if 0 in size or 0 in base_size:
        return np.zeros(size, array.dtype)
    start = min(base_offset, offset)
    length = max(base_offset + span(base_size, base_stride), offset + span(size, stride)) - start
    memory = np.zeros(length, array.dtype)
    if overlapping(base_size, base_stride):
        where = positions(base_size, base_stride, base_offset - start)
        seen = np.zeros(length, np.int64)
        np.add.at(seen, where, 1)
        np.add.at(memory, where, array)
        memory = (memory / np.maximum(seen, 1)).astype(array.dtype)
    else:
        as_strided(memory, base_size, base_stride, base_offset - start)[...] = array
    return as_strided(memory, size, stride, offset - start).copy()


def copied_memory(array: Array) -> Array:
    """A copy that lies in a copy of the memory as the array does in it; one that overlaps itself is spread out."""
    if overlaps_itself(array) or not array.size:
        return laid_out(array.copy(), [array])
    shape, strides, start = geometry_of(array)
    return as_strided(as_strided(array, (span_of_memory(array),), (1,), 0).copy(), shape, strides, start)


def span_of_memory(array: Array) -> int:
    """How many elements the memory holds that an array looks at."""
    return memory_of(array).nbytes // array.dtype.itemsize
