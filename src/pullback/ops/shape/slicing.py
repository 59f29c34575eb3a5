"""Parts of a tensor that share its memory: select, slice, narrow, diagonal, unfold, as_strided."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.memory import as_strided as window
from pullback._arrays.sizes import LARGEST, check_ints, check_window
from pullback._lazy import stored
from pullback._op import overrides
from pullback._op.define import Array, function, linear, op
from pullback._op.out import exactly
from pullback._op.results import node_class
from pullback._runtime import messages
from pullback._tensor import Tensor, new, normal_dim
from pullback.autograd import view as views
from pullback.autograd.node import Edge
from pullback.autograd.numbering import numbers
from pullback.kernels.numpy.index import strided
from pullback.ops.shape.reshape import ints, zeros_of

ALL = (slice(None),)


@op(nested="shape", vmap="leading", view=True, space=None, self=lambda grad: grad, result=linear)
def alias(self: Array) -> Array:
    """The tensor itself as a new view."""
    return self[...]


# ------------------------------------------------------------------ one index


def check_select(self: Array, dim: int, index: int) -> None:
    """Raise torch's errors for an index that does not exist."""
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normal_dim(dim, self.ndim)
    if not -self.shape[dim] <= index < self.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {messages.shape_text(self.shape)} at dimension "
            f"{dim}"
        )


@op(
    sparse="part_at",
    view=True,
    space=None,
    name="select",
    check=check_select,
    self=lambda grad, self_sym_sizes, dim, index: select_backward(grad, self_sym_sizes, dim, index),
    result=linear,
)
def select_int(self: Array, dim: int, index: int) -> Array:
    """One index along a dimension, which goes away."""
    if dim == 0:
        return self[index, ...]
    ndim = self.ndim
    if not -ndim <= dim < ndim:
        raise np.exceptions.AxisError(dim, ndim)
    return self[(*ALL * (dim % ndim), index, ...)]


@op(space=None, grad_output=lambda grad, dim, index: select_int(grad, dim, index), result=linear)
def select_backward(grad_output: Array, input_sizes: Any, dim: int, index: int) -> Array:
    """Zeros, with the gradient at one index."""
    out = np.zeros(input_sizes, grad_output.dtype)
    out[(*ALL * (dim % len(input_sizes)), index, ...)] = grad_output
    return out


@function()
def select(self: Array, dim: int, index: int) -> Array:
    """Select one index along a dimension, which is removed from the result.

    `select(x, 1, 3)` is `x[:, 3]`. Returns a view.
    """
    if type(index) is not int:
        if isinstance(index, float):
            raise TypeError("select(): argument 'index' (position 2) must be int, not float")
        index = as_index(index)
    return select_int(self, dim, index)


# ------------------------------------------------------------------ ranges


def part(dim: int, ndim: int, start: int | None, end: int | None, step: int) -> tuple[Any, ...]:
    """The index that takes a range along a dimension."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return (*ALL * wrapped_dim(dim, ndim), slice(start, end, step))


def wrapped_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front, of a tensor that has some."""
    if not -ndim <= dim < ndim:
        if ndim == 0:
            raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(messages.dim_out_of_range(dim, ndim))
    return dim % ndim


@op(
    view=True,
    space=None,
    name="slice",
    self=lambda grad, self_sym_sizes, dim, start, end, step: slice_backward(
        grad, self_sym_sizes, dim, start, end, step
    ),
    result=linear,
)
def slice_(self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    """A range of a dimension."""
    if dim == 0 and step > 0 and self.ndim:
        return self[start:end:step]
    return self[part(dim, self.ndim, start, end, step)]


@op(
    space=None,
    grad_output=lambda grad, dim, start, end, step: slice_(grad, dim, start, end, step),
    result=linear,
)
def slice_backward(
    grad_output: Array, input_sizes: Any, dim: int, start: int | None, end: int | None, step: int
) -> Array:
    """Zeros, with the gradient in a range."""
    out = np.zeros(input_sizes, grad_output.dtype)
    out[part(dim, len(input_sizes), start, end, step)] = grad_output
    return out


@function()
def narrow(self: Array, dim: int, start: Any, length: int) -> Array:
    """Take `length` consecutive indices of dimension `dim`, beginning at `start`.

    `start` is an int or an integer tensor without dimensions; negative values count from the end. Returns a view.
    """
    return slice_(self, dim, *narrowed(self, dim, start, length))


def narrowed(self: Any, dim: int, start: Any, length: int) -> tuple[int, int]:
    """The range narrow stands for, or torch's error."""
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start._array)
    size = self.shape[normal_dim(dim, self.ndim)]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    if start < 0:
        start += size
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return start, start + length


as_itself = exactly(
    "Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message be improved?  If "
    "so, please report an enhancement request to PyTorch.)"
)


def check_narrow_copy(self: Array, dim: int, start: int, length: int) -> None:
    """narrow_copy words two errors in its own way."""
    if self.ndim and dim >= self.ndim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if self.ndim and length < 0:
        size = self.shape[normal_dim(dim, self.ndim)]
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")


@op(
    sparse="stretch",
    packed="moved",
    check=check_narrow_copy,
    self=lambda grad, self_sym_sizes, dim, start, length: narrow_backward(grad, self_sym_sizes, dim, start, length),
    result=linear,
    out_dtype=as_itself,
)
def narrow_copy(self: Array, dim: int, start: int, length: int) -> Array:
    """Take `length` consecutive indices of dimension `dim` from `start` on, as a copy in new memory."""
    return self[part(dim, self.ndim, *narrowed(self, dim, start, length), 1)].copy()


def narrow_backward(grad: Any, sizes: tuple[int, ...], dim: int, start: int, length: int) -> Any:
    """Zeros, with the gradient where narrow took it from."""
    if start < 0:
        start += sizes[dim]
    return slice_backward(grad, sizes, dim, start, start + length, 1)


# ------------------------------------------------------------------ diagonals and windows


def two_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """Two different dimensions counted from the front."""
    first, second = normal_dim(dim1, ndim), normal_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


@op(
    view=True,
    numpy=("diagonal",),
    self=lambda grad, self_sym_sizes, offset, dim1, dim2: diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2),
    result=linear,
)
def diagonal(self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Return the diagonal of the matrices formed by dimensions `dim1` and `dim2`.

    The two dimensions are removed and the diagonal is appended as the last dimension of the result.
    `offset` chooses the diagonal: 0 the main one, positive ones above it, negative ones below. Returns a view.
    """
    if self.ndim != 2 or dim1 != 0 or dim2 != 1:
        return strided.diagonal(self, offset, *two_dims(self.ndim, dim1, dim2))
    rows, columns = self.shape
    if offset or not rows or not columns or not self.flags.c_contiguous:
        return strided.diagonal(self, offset, 0, 1)
    step = columns + 1
    return self.ravel()[: step * min(rows, columns) : step]


@op(
    space=None,
    grad_output=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    result=linear,
)
def diagonal_backward(grad_output: Array, input_sizes: Any, offset: int, dim1: int, dim2: int) -> Array:
    """Zeros, with the gradient on a diagonal."""
    out = np.zeros(input_sizes, grad_output.dtype)
    strided.diagonal(out, offset, *two_dims(out.ndim, dim1, dim2))[...] = grad_output
    return out


def check_unfold(self: Array, dimension: int, size: int, step: int) -> None:
    """Raise torch's errors for windows that do not fit."""
    dimension = normal_dim(dimension, self.ndim)
    most = self.shape[dimension] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > most:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {most} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")


@op(
    vmap="dims_of_vectors",
    view=True,
    space=None,
    name="unfold",
    check=check_unfold,
    self=lambda grad, self_sym_sizes, dimension, size, step: unfold_backward(
        grad, self_sym_sizes, dimension, size, step
    ),
    result=linear,
)
def unfold_windows(self: Array, dimension: int, size: int, step: int) -> Array:
    """All windows of `size` elements along a dimension, `step` apart, as a new last dimension."""
    if not 0 <= size <= (self.shape[dimension] if self.ndim else 1) or step <= 0:
        raise ValueError("windows do not fit")
    return strided.unfold(self, normal_dim(dimension, self.ndim), size, step)


@op(
    vmap="dims_of_vectors",
    space=None,
    grad_in=lambda grad, dim, size, step: unfold_windows(grad, dim, size, step),
    result=linear,
)
def unfold_backward(grad_in: Array, input_sizes: Any, dim: int, size: int, step: int) -> Array:
    """Every window of a gradient added where it was taken."""
    return strided.unfold_backward(grad_in, input_sizes, normal_dim(dim, len(input_sizes)), size, step)


@function(space=None)
def unfold(self: Array, dimension: int, size: int, step: int) -> Array:
    """Return all windows of `size` elements along `dimension`, beginning `step` elements apart.

    The dimension shrinks to `(n - size) // step + 1` windows, and their elements become a new last dimension.
    Returns a view: windows that overlap share memory.
    """
    return unfold_windows(self, as_index(dimension), as_index(size), as_index(step))


# ------------------------------------------------------------------ any strides


def check_as_strided(self: Array, size: Any, stride: Any, storage_offset: int | None = None) -> None:
    """Raise torch's errors for windows that cannot be."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {messages.shape_text(stride)}"
        )
    if storage_offset is not None and as_index(storage_offset) < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if min(size, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={messages.shape_text(size)} and "
            f"strides={messages.shape_text(stride)}"
        )
    check_ints("as_strided", {"size": size, "stride": stride, "storage_offset": storage_offset})
    check_window(size, stride, storage_offset or 0, self.dtype.itemsize)


@op(
    view=True,
    space=None,
    name="as_strided",
    check=check_as_strided,
    vmap="strided",
    self=lambda grad, size, stride, storage_offset, self_geometry: behind_window(
        grad, self_geometry, window_geometry(self_geometry, size, stride, storage_offset)
    ),
    result=lambda self_t, self, size, stride, storage_offset: window_tangent(
        self_t, geometry_of(self), window_geometry(geometry_of(self), size, stride, storage_offset)
    ),
)
def as_strided_view(self: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """Any window onto the memory of a tensor."""
    if min(stride, default=0) < 0 or min(size, default=0) < 0:
        raise ValueError("no such window")
    # A window that shows nothing does not read it.
    if storage_offset is not None and not 0 <= as_index(storage_offset) <= LARGEST:
        raise ValueError("no such window")
    return window(self, size, stride, storage_offset)


def behind_window(grad: Any, base: strided.Geometry, geometry: strided.Geometry) -> Any:
    """The gradient of what a window shows; nothing moves behind one that shows nothing."""
    return as_strided_backward(grad, *base, geometry) if 0 not in grad.shape else zeros_of(grad, base[0])


def window_tangent(self_t: Any, base: strided.Geometry, geometry: strided.Geometry) -> Any:
    """The tangent of a window: the same window onto a tangent that lies like its tensor, so that writes reach it."""
    if type(self_t) is Tensor:
        size, stride, start = geometry_of(self_t)
        offset = start + geometry[2] - base[2]
        last = offset + strided.span(geometry[0], geometry[1])
        if (size, stride) == base[:2] and offset >= 0 and last <= strided.span_of_memory(self_t._array):
            return as_strided_view(self_t, geometry[0], geometry[1], offset)
    return as_strided_of(self_t, base, geometry)


def geometry_of(self: Any) -> strided.Geometry:
    """How a tensor or array lies in its memory."""
    return strided.geometry_of(stored(self) if isinstance(self, Tensor) else self)


def window_geometry(base: strided.Geometry, size: Any, stride: Any, storage_offset: int | None) -> strided.Geometry:
    """The geometry of a window, whose offset is its base's if none was given."""
    return size, stride, base[2] if storage_offset is None else storage_offset


@op(
    space=None,
    node="AsStridedBackward0",
    vmap="through_windows",
    grad_output=lambda grad, size, stride, storage_offset, window_geometry: as_strided_of(
        grad, (size, stride, storage_offset), window_geometry
    ),
    result=linear,
)
def as_strided_backward(grad_output: Array, size: Any, stride: Any, storage_offset: int, window_geometry: Any) -> Array:
    """The gradient of a tensor of this size and stride from that of a window onto its memory."""
    return strided.as_strided_backward(grad_output, (size, stride, storage_offset), window_geometry)


@op(
    space=None,
    node="AsStridedBackward0",
    vmap="through_windows",
    self=lambda grad, base, geometry: as_strided_backward(grad, *base, geometry),
    result=linear,
)
def as_strided_of(self: Array, base: Any, geometry: Any) -> Array:
    """What a window would show of a tensor if it lay in memory as `base` says."""
    return strided.as_strided_of(self, base, geometry)


@function()
def as_strided(self: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """View the memory of a tensor with any shape, strides and offset.

    `size` is the shape of the result, `stride` the steps of each dimension and `storage_offset` the place of the
    first element in the storage (by default that of the input), all counted in elements.
    Elements may appear several times; writing to such a view is ill-defined.
    """
    size, stride = ints("as_strided", "size", (size,)), ints("as_strided", "stride", (stride,))
    return as_strided_view(self, size, stride, storage_offset)


def regenerate(tensor: Tensor, base: Tensor) -> Edge:
    """The edge of a view whose base was written to: its window onto the base, as as_strided would record it."""
    node = new(node_class(as_strided_view.op))
    node.hooks = None
    node.edges = (views.edge_of(base),)
    node.sequence_nr = numbers.next()
    node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
    node.size_, node.stride_, node.storage_offset_ = strided.geometry_of(stored(tensor))
    node.self_geometry_ = geometry_of(base)
    return node


views.regenerate = regenerate
overrides.alias_of = alias
