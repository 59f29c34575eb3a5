"""Joining tensors and taking them apart again: cat, stack and their kin; unbind, split, chunk."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY, can_cast
from pullback._op.define import Array, explain, function, linear, op
from pullback._op.out import no_overlap
from pullback._runtime import messages
from pullback._tensor import Tensor, normal_dim
from pullback.kernels.numpy.math.direct import concatenate
from pullback.ops.shape.reshape import ints, zeros_of
from pullback.ops.shape.slicing import select_int, slice_
from pullback.ops.supported import invalid_combination

# ------------------------------------------------------------------ cat


def check_parts(tensors: Any, dim: int) -> None:
    """Every part must be a tensor."""
    for nr, tensor in enumerate(tensors if isinstance(tensors, (tuple, list)) else ()):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {nr} in argument 0, but got {messages.type_name(tensor)}")


ALL_DIMENSIONS = -(2**31)
"""The number NumPy takes for all dimensions of what it joins."""


def check_cat(tensors: list[Array], dim: int) -> None:
    """Raise torch's errors for tensors that cannot be joined."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    if type(dim) is not int:
        raise TypeError(f"cat(): argument 'dim' must be int, not {type(dim).__name__}")
    for nr, array in enumerate(tensors):
        if array.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {nr}) cannot be concatenated")
    counted = [(nr, array.shape) for nr, array in enumerate(tensors) if array.shape != (0,)]
    if not counted:
        return
    first = counted[0][1]
    dim = normal_dim(dim, len(first))
    for nr, shape in counted[1:]:
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for d, (n, m) in enumerate(zip(first, shape, strict=True)):
            if n != m and d != dim:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for "
                    f"tensor number {nr} in the list."
                )


def castable(name: str, target: Any, array: Array, lone: bool) -> None:
    """Torch's error for an `out` to which what is joined cannot be cast."""
    if not can_cast(FROM_NUMPY[array.dtype], target.dtype):
        kind = target.dtype.scalar_type
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {kind}")


@op(
    vmap="joined",
    sparse="joined",
    packed="moved",
    method=False,
    promote=True,
    check_out=no_overlap,
    out_dtype=castable,
    check_operands=check_parts,
    aliases=("concat", "concatenate"),
    check=check_cat,
    autocast="widest",
    numpy=("concatenate",),
    backward=lambda grad, tensors_shapes, dim, wants: cat_backward(grad, tensors_shapes, dim, wants),
    result=linear,
)
def cat(tensors: list[Array], dim: int = 0) -> Array:
    """Concatenate tensors along an existing dimension.

    All tensors must have the same sizes except in dimension `dim`, where the sizes add up:
    `(2, 3)` and `(4, 3)` give `(6, 3)` with `dim=0`. Empty tensors of shape `(0,)` are skipped.
    Mixed dtypes are promoted to a common one.
    """
    try:
        return in_rows(tensors, dim)
    except ValueError:
        # Once upon a time every empty tensor had the shape (0,); it still joins with anything.
        some = [array for array in tensors if array.shape != (0,)]
        if len(some) == len(tensors):
            raise
        return in_rows(some, dim) if some else tensors[0].copy()


def in_rows(tensors: list[Array], dim: int) -> Array:
    """The same, of tensors whose shapes fit."""
    if dim == ALL_DIMENSIONS:
        raise np.exceptions.AxisError(dim, tensors[0].ndim)
    out = concatenate(tensors, dim)
    return out if out.flags.c_contiguous or channels_are_last(tensors) else np.ascontiguousarray(out)


def channels_are_last(tensors: list[Array]) -> bool:
    """Whether all are images with their channels last in memory, an order that joining keeps; no other is kept."""
    return all(a.ndim in (4, 5) and a.transpose(0, *range(2, a.ndim), 1).flags.c_contiguous for a in tensors)


def cat_backward(grad: Any, shapes: list[tuple[int, ...]], dim: int, wants: tuple[bool, ...]) -> tuple[Any, ...]:
    """Each tensor's part of the gradient."""
    out: list[Any] = []
    dim = dim % grad.ndim
    start = 0
    for shape, wanted in zip(shapes, wants, strict=True):
        if shape == (0,):
            out.append(zeros_of(grad, (0,)) if wanted else None)
            continue
        end = start + shape[dim]
        out.append(slice_(grad, dim, start, end) if wanted else None)
        start = end
    return tuple(out)


# ------------------------------------------------------------------ stack and unbind


def check_stack(tensors: list[Array], dim: int) -> None:
    """Raise torch's errors for tensors that cannot be stacked."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    normal_dim(dim, len(first) + 1)
    for nr, array in enumerate(tensors):
        if array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {messages.shape_text(first)} at entry 0 and "
                f"{messages.shape_text(array.shape)} at entry {nr}"
            )


@op(
    vmap="new_dims",
    sparse="stacked",
    packed="moved",
    method=False,
    promote=True,
    check=check_stack,
    autocast="widest",
    numpy=("stack",),
    backward=lambda grad, dim, wants: tuple([select_int(grad, dim, i) if w else None for i, w in enumerate(wants)]),
    result=linear,
)
def stack(tensors: list[Array], dim: int = 0) -> Array:
    """Stack tensors of equal shape along a new dimension.

    The new dimension is inserted at position `dim` of the result and has one entry per tensor:
    `k` tensors of shape `(2, 3)` give `(k, 2, 3)` with `dim=0` and `(2, 3, k)` with `dim=-1`.
    """
    shape = tensors[0].shape
    ndim = len(shape) + 1
    if not -ndim <= dim < ndim:
        raise np.exceptions.AxisError(dim, ndim)
    if dim == 0:
        out = np.empty((len(tensors), *shape), tensors[0].dtype)
        for i, array in enumerate(tensors):
            if array.shape != shape:
                raise ValueError("different shapes")
            out[i] = array
        return out
    dim = dim % ndim
    out = np.empty((*shape[:dim], len(tensors), *shape[dim:]), tensors[0].dtype)
    at = (slice(None),) * dim
    for i, array in enumerate(tensors):
        if array.shape != shape:
            raise ValueError("different shapes")
        out[(*at, i, ...)] = array
    return out


@op(
    sparse="all_parts",
    view=True,
    variadic=True,
    self=lambda grads, dim: stack(filled(grads), dim),
    result=linear,
)
def unbind(self: Array, dim: int = 0) -> list[Array]:
    """Take a tensor apart along a dimension.

    Returns a tuple with one view for each index of `dim`; the views no longer have that dimension.
    """
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {normal_dim(dim, 0)} but tensor has no dimensions")
    if dim == 0:
        return [self[i, ...] for i in range(len(self))]
    at = (slice(None),) * normal_dim(dim, self.ndim)
    return [self[(*at, i, ...)] for i in range(self.shape[dim])]


def filled(grads: Any) -> list[Any]:
    """Gradients of equal shape, zeros for those that did not arrive."""
    like = next(grad for grad in grads if grad is not None)
    return [zeros_of(like, like.shape) if grad is None else grad for grad in grads]


# ------------------------------------------------------------------ split


def check_split(self: Array, split_size: int, dim: int = 0) -> None:
    """Raise torch's errors for pieces of a size that cannot be."""
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    size = self.shape[normal_dim(dim, self.ndim)]
    if split_size == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")


def check_split_with_sizes(self: Array, split_sizes: Any, dim: int = 0) -> None:
    """Raise torch's errors for sizes that do not make up the dimension."""
    if self.ndim == 0:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    size = self.shape[normal_dim(dim, self.ndim)]
    shown = messages.shape_text(split_sizes)
    if min(split_sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={shown}"
        )
    if builtin_sum(split_sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={shown}"
        )


builtin_sum = sum


def pieces(array: Array, sizes: Any, dim: int) -> list[Array]:
    """Consecutive parts of an array along a dimension."""
    out, start = [], 0
    if dim == 0:
        for size in sizes:
            out.append(array[start : start + size])
            start += size
        return out
    if dim == 1:
        for size in sizes:
            out.append(array[:, start : start + size])
            start += size
        return out
    at = (slice(None),) * normal_dim(dim, array.ndim)
    for size in sizes:
        out.append(array[(*at, slice(start, start + size))])
        start += size
    return out


def equal_sizes(size: int, split_size: int) -> list[int]:
    """The sizes of pieces of `split_size`, the last one what is left."""
    if not split_size:
        return [0]
    if size and not size % split_size:
        return [split_size] * (size // split_size)
    count = max((size + split_size - 1) // split_size, 1)
    return [split_size] * (count - 1) + [size - split_size * (count - 1)]


@op(
    view=True,
    variadic=True,
    space=None,
    name="split",
    check=check_split,
    self=lambda grads, self_sym_sizes, split_size, dim: joined(
        grads, equal_sizes(self_sym_sizes[dim], split_size), self_sym_sizes, dim
    ),
    result=linear,
)
def split_into(self: Array, split_size: int, dim: int = 0) -> list[Array]:
    """Pieces of `split_size` along a dimension; the last may be smaller."""
    if split_size <= 0 or not self.ndim:
        check_split(self, split_size, dim)
    return pieces(self, equal_sizes(self.shape[dim], split_size), dim)


@op(
    view=True,
    variadic=True,
    check=check_split_with_sizes,
    self=lambda grads, self_sym_sizes, split_sizes, dim: joined(grads, split_sizes, self_sym_sizes, dim),
    result=linear,
)
def split_with_sizes(self: Array, split_sizes: Any, dim: int = 0) -> list[Array]:
    """Split a tensor along `dim` into consecutive pieces of the given sizes.

    `split_sizes` must add up to the size of the dimension. Returns a tuple of views.
    """
    check_split_with_sizes(self, split_sizes, dim)
    return pieces(self, split_sizes, dim)


def joined(grads: Any, split_sizes: Any, sizes: tuple[int, ...], dim: int) -> Any:
    """The gradients of pieces side by side, zeros for those that did not arrive."""
    for grad in grads:
        if grad is None:
            break
    else:
        return cat(grads, dim)
    like = next(grad for grad in grads if grad is not None)
    dim = dim % len(sizes)
    parts = []
    for grad, size in zip(grads, split_sizes, strict=True):
        parts.append(zeros_of(like, (*sizes[:dim], size, *sizes[dim + 1 :])) if grad is None else grad)
    return cat(parts, dim)


def whole_dim(tensor: Tensor, wanted: Any, dim: Any) -> int:
    """A dimension that is no plain integer, as one."""
    try:
        return index(dim)
    except TypeError:
        name = "split_with_sizes" if isinstance(wanted, (tuple, list)) else "split"
        raise invalid_combination(name, (tensor, wanted, dim)) from None


@function(raw=True)
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Split a tensor into consecutive pieces along `dim`.

    An int `split_size_or_sections` is the size of every piece; the last one is smaller if it does not divide evenly.
    A list gives the size of each piece and must add up to the size of the dimension. Returns a tuple of views.
    """
    try:
        wanted = split_size if split_size_or_sections is None else split_size_or_sections
        if type(dim) is not int:
            dim = whole_dim(tensor, wanted, dim)
        if type(wanted) is int:
            return split_into(tensor, wanted, dim)
        if isinstance(wanted, Tensor) and wanted.ndim == 0:
            return split_into(tensor, int(wanted), dim)
        if not isinstance(wanted, (tuple, list)):
            kind = type(wanted).__name__
            raise TypeError(
                f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {kind}"
            )
        return split_with_sizes(tensor, ints("split_with_sizes", "split_sizes", (wanted,)), dim)
    except Exception as error:
        explain(error, split, tensor, split_size_or_sections, dim, split_size)
        raise


@op(
    variadic=True,
    check=check_split,
    self=lambda grads, self_sym_sizes, split_size, dim: joined(
        grads, equal_sizes(self_sym_sizes[dim], split_size), self_sym_sizes, dim
    ),
    result=linear,
    out=False,
)
def unsafe_split(self: Array, split_size: int, dim: int = 0) -> list[Array]:
    """Split into pieces of size `split_size` that autograd does not treat as views of the input.

    The pieces may therefore be modified in place, on the condition that the input and the other pieces are
    no longer used. Otherwise the same as `split`.
    """
    if split_size <= 0 or not self.ndim:
        check_split(self, split_size, dim)
    return pieces(self, equal_sizes(self.shape[dim], split_size), dim)


@op(
    variadic=True,
    check=check_split_with_sizes,
    self=lambda grads, self_sym_sizes, split_sizes, dim: joined(grads, split_sizes, self_sym_sizes, dim),
    result=linear,
    out=False,
)
def unsafe_split_with_sizes(self: Array, split_sizes: Any, dim: int = 0) -> list[Array]:
    """Split into pieces of the given sizes that autograd does not treat as views of the input.

    The pieces may therefore be modified in place, on the condition that the input and the other pieces are
    no longer used. Otherwise the same as `split_with_sizes`.
    """
    check_split_with_sizes(self, split_sizes, dim)
    return pieces(self, split_sizes, dim)


MOST_PARTS = 1 << 32
"""No memory holds the handles of more tensors than these."""


def check_parts(count: int) -> None:
    """A number of parts that no memory holds is refused before the first is made."""
    if count > MOST_PARTS:
        raise RuntimeError("std::bad_alloc")


def chunk_size(self: Any, chunks: int, dim: int) -> tuple[int, int]:
    """The size of the dimension, and of a piece if it is cut into at most `chunks` equal ones."""
    if self.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self.shape[normal_dim(dim, self.ndim)]
    if not size:
        check_parts(chunks)
    return size, (size + chunks - 1) // chunks


@function()
def chunk(self: Array, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along `dim` into at most `chunks` pieces of equal size.

    Each piece has `ceil(size / chunks)` entries, the last one what is left; so there can be fewer than `chunks` pieces.
    Returns a tuple of views. `tensor_split` always gives the number asked for.
    """
    size, piece = chunk_size(self._array, chunks, dim)
    return split_into(self, piece, dim) if size else split_with_sizes(self, (0,) * chunks, dim)


@function()
def unsafe_chunk(self: Array, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into at most `chunks` pieces that autograd does not treat as views of the input.

    The pieces may therefore be modified in place, on the condition that the input and the other pieces are
    no longer used. Otherwise the same as `chunk`.
    """
    size, piece = chunk_size(self._array, chunks, dim)
    return unsafe_split(self, piece, dim) if size else unsafe_split_with_sizes(self, (0,) * chunks, dim)
