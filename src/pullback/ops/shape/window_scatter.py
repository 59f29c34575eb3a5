"""Copies of a tensor with a window overwritten: select_scatter, slice_scatter, diagonal_scatter, as_strided_scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._op.out import exact
from pullback._runtime import messages
from pullback.kernels.numpy.index import strided
from pullback.ops.shape.reshape import ints, zeros_of
from pullback.ops.shape.slicing import (
    as_strided_backward,
    as_strided_of,
    check_as_strided,
    diagonal,
    geometry_of,
    select_int,
    slice_,
    window_geometry,
)
from pullback.ops.supported import complex_valued


def overwritten(self: Array, src: Array, window: Any) -> Array:
    """A copy of self, with `src` in the window that `window` finds in it."""
    out = strided.copied_memory(self)
    part = window(out)
    if part.shape != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{messages.shape_text(src.shape)}, slice size = {messages.shape_text(part.shape)}"
        )
    part[...] = src
    return out


@op(
    packed="moved",
    self=lambda grad, dim, index: select_scatter(grad, zeros_of(grad, without(grad.shape, dim)), dim, index),
    src=lambda grad, dim, index: select_int(grad, dim, index),
    result=lambda self_t, src_t, dim, index: select_scatter(self_t, src_t, dim, index),
    out=False,
)
def select_scatter(self: Array, src: Array, dim: int, index: int) -> Array:
    """Return a copy of the input with the slice at `index` along `dim` replaced by `src`.

    `src` has the shape of `input.select(dim, index)`. Gradients reach both, `src` for the replaced elements.
    """
    return overwritten(self, src, lambda out: select_int(out, dim, index))


def without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A shape less one dimension."""
    dim %= len(shape)
    return (*shape[:dim], *shape[dim + 1 :])


@op(
    packed="moved",
    out_overlap="unchecked",
    out_dtype=exact,
    self=lambda grad, dim, start, end, step: slice_scatter(
        grad, zeros_of(grad, slice_(grad, dim, start, end, step).shape), dim, start, end, step
    ),
    src=lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step),
    result=lambda self_t, src_t, dim, start, end, step: slice_scatter(self_t, src_t, dim, start, end, step),
    out_ends_history=True,
)
def slice_scatter(
    self: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Return a copy of the input with the indices `start:end:step` of dimension `dim` replaced by `src`.

    `src` has the shape of that slice. Gradients reach both, `src` for the replaced elements.
    """
    return overwritten(self, src, lambda out: slice_(out, dim, start, end, step))


@op(
    packed="moved",
    self=lambda grad, offset, dim1, dim2: diagonal_scatter(
        grad, zeros_of(grad, diagonal(grad, offset, dim1, dim2).shape), offset, dim1, dim2
    ),
    src=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    result=lambda self_t, src_t, offset, dim1, dim2: diagonal_scatter(self_t, src_t, offset, dim1, dim2),
    out=False,
)
def diagonal_scatter(self: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Return a copy of the input with a diagonal replaced by `src`.

    `src` has the shape of `input.diagonal(offset, dim1, dim2)`. Gradients reach both, `src` for the replaced elements.
    """
    return overwritten(self, src, lambda out: diagonal(out, offset, dim1, dim2))


@op(
    space=None,
    name="as_strided_scatter",
    vmap="not_strided",
    self=lambda grad, size, stride, storage_offset, self_geometry: as_strided_zeroed(
        grad, self_geometry, window_geometry(self_geometry, size, stride, storage_offset)
    ),
    src=lambda grad, size, stride, storage_offset, self_geometry: as_strided_of(
        grad, self_geometry, window_geometry(self_geometry, size, stride, storage_offset)
    ),
    result=lambda self_t, src_t, self, size, stride, storage_offset: scattered_tangent(
        self_t, src_t, geometry_of(self), size, stride, storage_offset
    ),
)
def scatter_window(self: Array, src: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """A copy, with any window onto its memory overwritten."""
    check_as_strided(self, size, stride, storage_offset)
    self = strided.copied_memory(self)
    size, stride, offset = window_geometry(geometry_of(self), size, stride, storage_offset)
    if src.shape != tuple(size):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{messages.shape_text(src.shape)}, slice size = {messages.shape_text(size)}"
        )
    if any(n > 1 and step == 0 for n, step in zip(size, stride, strict=True)):
        raise RuntimeError(messages.OVERLAP)
    strided.as_strided(self, size, stride, offset)[...] = src
    return self


def scattered_tangent(self_t: Any, src_t: Any, base: Any, size: Any, stride: Any, storage_offset: int | None) -> Any:
    """The tangent of a copy with a window overwritten, however the tangents lie in memory."""
    window = window_geometry(base, size, stride, storage_offset)
    if complex_valued(self_t) or not complex_valued(src_t):
        src_t = src_t.to(self_t.dtype)
    return as_strided_zeroed(self_t, base, window) + as_strided_backward(src_t, *base, window)


@op(
    space=None,
    node="AsStridedBackward0",
    vmap="through_windows",
    self=lambda grad, base, geometry: as_strided_zeroed(grad, base, geometry),
    result=lambda self_t, base, geometry: as_strided_zeroed(self_t, base, geometry),
)
def as_strided_zeroed(self: Array, base: Any, geometry: Any) -> Array:
    """A copy, with a window onto the memory of a tensor that lay as `base` says set to zero."""
    hidden = strided.as_strided_backward(np.ones(geometry[0], np.int64), base, geometry)
    out = self.copy()
    out[hidden != 0] = 0
    return out


@function()
def as_strided_scatter(self: Array, src: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """Return a copy of the input with the elements that `as_strided` would show replaced by `src`.

    `src` has the shape `size`; `stride` and `storage_offset` are counted in elements, and elements must not overlap.
    """
    size, stride = ints("as_strided_scatter", "size", (size,)), ints("as_strided_scatter", "stride", (stride,))
    return scatter_window(self, src, size, stride, storage_offset)
