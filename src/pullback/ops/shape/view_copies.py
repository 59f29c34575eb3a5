"""The views again, as copies: `select_copy` and its kin, for programs that must not alias memory."""

from __future__ import annotations

from operator import index
from typing import Any

from pullback._op.define import Array, function, linear, op
from pullback._op.out import exact
from pullback.ops.shape.complex_views import view_as_complex, view_as_real
from pullback.ops.shape.dims import check_permute, check_transpose, inverse, permute_dims, t, transpose
from pullback.ops.shape.join import (
    check_split,
    check_split_with_sizes,
    equal_sizes,
    filled,
    joined,
    split_into,
    split_with_sizes,
    stack,
    unbind,
)
from pullback.ops.shape.reshape import (
    check_expand,
    expand,
    inferred,
    ints,
    reshape_to,
    squeeze_all,
    squeeze_dim,
    squeeze_dims,
    unsqueeze,
    unsqueeze_where,
)
from pullback.ops.shape.slicing import (
    alias,
    as_strided_of,
    as_strided_view,
    behind_window,
    check_as_strided,
    check_select,
    check_unfold,
    geometry_of,
    select_backward,
    select_int,
    slice_,
    slice_backward,
    unfold_backward,
    unfold_windows,
    window_geometry,
)

# ------------------------------------------------------------------ shapes


@op(
    vmap="leading",
    packed="moved",
    node="AliasBackward0_copy",
    method=False,
    out_overlap="unchecked",
    self=lambda grad: grad,
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def alias_copy(self: Array) -> Array:
    """Copy a tensor to new memory, keeping its shape."""
    return alias(self).copy()


@op(
    packed="moved",
    node="ViewBackward0_copy",
    method=False,
    out_overlap="unchecked",
    vmap="reshaped",
    self=lambda grad, self_sym_sizes: reshape_to(grad, self_sym_sizes),
    result=lambda self_t, size: reshape_to(self_t, size),
    out_dtype=exact,
    out_ends_history=True,
)
def view_copy(self: Array, size: Any) -> Array:
    """Copy a tensor into the shape `size`, of which one may be -1; like `view`, but in new memory, for any strides."""
    return self.reshape(inferred(ints("view_copy", "size", (size,)), self.size)).copy()


@op(
    packed="moved",
    node="ExpandBackward0_copy",
    method=False,
    check=lambda self, size, *, implicit: check_expand(self, size),
    out_overlap="unchecked",
    vmap="expanded",
    self=lambda grad, self_sym_sizes: grad,
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def expand_copy(self: Array, size: Any, *, implicit: bool = False) -> Array:
    """Expand dimensions of size one to `size`, like `expand`, but write the result to new memory."""
    return expand(self, tuple(size)).copy()


@op(
    vmap="new_dims",
    packed="moved",
    node="UnsqueezeBackward0_copy",
    method=False,
    self=lambda grad, dim: squeeze_dim(grad, dim),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def unsqueeze_copy(self: Array, dim: int) -> Array:
    """Insert a dimension of size one at position `dim`, like `unsqueeze`, but in new memory."""
    return unsqueeze(self, dim).copy()


@op(
    packed="moved",
    space=None,
    name="squeeze_copy",
    node="SqueezeBackward0_copy",
    vmap="squeezed",
    self=lambda grad, self_sym_sizes: unsqueeze_where(grad, range(len(self_sym_sizes)), self_sym_sizes),
    result=linear,
)
def squeeze_all_copy(self: Array) -> Array:
    """A copy without dimensions of size one."""
    return squeeze_all(self).copy()


@op(
    packed="moved",
    space=None,
    name="squeeze_copy",
    node="SqueezeBackward1_copy",
    self=lambda grad, self_sym_sizes, dim: unsqueeze_where(grad, (dim,), self_sym_sizes),
    result=linear,
)
def squeeze_dim_copy(self: Array, dim: int) -> Array:
    """A copy without one dimension, if it has size one."""
    return squeeze_dim(self, dim).copy()


@op(
    vmap="given_dims",
    packed="moved",
    space=None,
    name="squeeze_copy",
    node="SqueezeBackward2_copy",
    self=lambda grad, self_sym_sizes, dim: unsqueeze_where(grad, dim, self_sym_sizes),
    result=linear,
)
def squeeze_dims_copy(self: Array, dim: Any) -> Array:
    """A copy without those of the given dimensions that have size one."""
    return squeeze_dims(self, dim).copy()


@function(method=False, out=True, out_dtype=exact, out_ends_history=True)
def squeeze_copy(self: Array, dim: Any = None) -> Array:
    """Remove dimensions of size one (all, or those in `dim`), like `squeeze`, but in new memory."""
    if dim is None:
        return squeeze_all_copy(self)
    return (
        squeeze_dim_copy(self, dim)
        if type(dim) is int
        else squeeze_dims_copy(self, ints("squeeze_copy", "dim", (dim,)))
    )


# ------------------------------------------------------------------ orders of dimensions


@op(
    vmap="permuted",
    packed="moved",
    node="PermuteBackward0_copy",
    method=False,
    check=check_permute,
    out_overlap="unchecked",
    self=lambda grad, dims: permute_dims(grad, inverse(dims)),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def permute_copy(self: Array, dims: Any) -> Array:
    """Reorder the dimensions as `dims` says, like `permute`, but in new memory."""
    return permute_dims(self, dims).copy()


@op(
    packed="moved",
    node="TransposeBackward0_copy",
    method=False,
    out_overlap="unchecked",
    check=check_transpose,
    self=lambda grad, dim0, dim1: transpose(grad, dim0, dim1),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def transpose_copy(self: Array, dim0: int, dim1: int) -> Array:
    """Swap the dimensions `dim0` and `dim1`, like `transpose`, but in new memory."""
    check_transpose(self, dim0, dim1)
    return transpose(self, dim0, dim1).copy()


@op(
    packed="moved",
    node="TBackward0_copy",
    method=False,
    out_overlap="unchecked",
    vmap="transposed_matrix",
    self=lambda grad: t(grad),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def t_copy(self: Array) -> Array:
    """Transpose a matrix, like `t`, but in new memory."""
    return t(self).copy()


# ------------------------------------------------------------------ parts


@op(
    packed="moved",
    node="SelectBackward0_copy",
    method=False,
    check=check_select,
    self=lambda grad, self_sym_sizes, dim, index: select_backward(grad, self_sym_sizes, dim, index),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def select_copy(self: Array, dim: int, index: int) -> Array:
    """Select one `index` along `dim`, which is removed, like `select`, but in new memory."""
    return select_int(self, dim, index).copy()


@op(
    packed="moved",
    node="SliceBackward0_copy",
    method=False,
    out_overlap="unchecked",
    self=lambda grad, self_sym_sizes, dim, start, end, step: slice_backward(
        grad, self_sym_sizes, dim, start, end, step
    ),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def slice_copy(self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    """Copy the indices `start:end:step` of dimension `dim` to new memory."""
    return slice_(self, dim, start, end, step).copy()


@op(
    vmap="dims_of_vectors",
    packed="moved",
    node="UnfoldBackward0_copy",
    method=False,
    check=check_unfold,
    self=lambda grad, self_sym_sizes, dimension, size, step: unfold_backward(
        grad, self_sym_sizes, dimension, size, step
    ),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def unfold_copy(self: Array, dimension: int, size: int, step: int) -> Array:
    """Copy all windows of `size` elements along `dimension`, `step` apart, like `Tensor.unfold`, but in new memory."""
    return unfold_windows(self, index(dimension), index(size), index(step)).copy()


@op(
    packed="moved",
    node="AsStridedBackward0_copy",
    method=False,
    check=check_as_strided,
    vmap="strided",
    self=lambda grad, size, stride, storage_offset, self_geometry: behind_window(
        grad, self_geometry, window_geometry(self_geometry, size, stride, storage_offset)
    ),
    result=lambda self_t, self, size, stride, storage_offset: as_strided_of(
        self_t, geometry_of(self), window_geometry(geometry_of(self), size, stride, storage_offset)
    ),
    out_dtype=exact,
    out_ends_history=True,
)
def as_strided_copy(self: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """Copy what `as_strided` would show for this `size`, `stride` and `storage_offset` to new memory."""
    return as_strided_view(self, size, stride, storage_offset).copy()


@op(
    packed="moved",
    node="UnbindBackward0_copy",
    method=False,
    variadic=True,
    self=lambda grads, dim: stack(filled(grads), dim),
    result=linear,
    out_dtype=exact,
)
def unbind_copy(self: Array, dim: int = 0) -> list[Array]:
    """Take a tensor apart along `dim`, like `unbind`, but return copies."""
    return [part.copy() for part in unbind(self, dim)]


@op(
    packed="moved",
    node="SplitBackward0_copy",
    method=False,
    variadic=True,
    check=check_split,
    self=lambda grads, self_sym_sizes, split_size, dim: joined(
        grads, equal_sizes(self_sym_sizes[dim], split_size), self_sym_sizes, dim
    ),
    result=linear,
)
def split_copy(self: Array, split_size: int, dim: int = 0) -> list[Array]:
    """Split a tensor into pieces of size `split_size` along `dim`, like `split`, but return copies."""
    return [part.copy() for part in split_into(self, split_size, dim)]


@op(
    node="SplitWithSizesBackward0_copy",
    method=False,
    variadic=True,
    check=check_split_with_sizes,
    self=lambda grads, self_sym_sizes, split_sizes, dim: joined(grads, split_sizes, self_sym_sizes, dim),
    result=linear,
    out_dtype=exact,
)
def split_with_sizes_copy(self: Array, split_sizes: Any, dim: int = 0) -> list[Array]:
    """Split a tensor into pieces of the given sizes along `dim`, like `split_with_sizes`, but return copies."""
    return [part.copy() for part in split_with_sizes(self, split_sizes, dim)]


# ------------------------------------------------------------------ complex numbers


@op(
    vmap="leading",
    node="ViewAsRealBackward0_copy",
    method=False,
    self=lambda grad: view_as_complex(grad),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def view_as_real_copy(self: Array) -> Array:
    """Copy a complex tensor `(...)` to pairs of real numbers `(..., 2)`; see `view_as_real`."""
    return view_as_real(self).copy()


@op(
    vmap="leading",
    node="ViewAsComplexBackward0_copy",
    method=False,
    self=lambda grad: view_as_real(grad),
    result=linear,
    out_ends_history=True,
)
def view_as_complex_copy(self: Array) -> Array:
    """Copy pairs of real numbers `(..., 2)` to complex numbers `(...)`; see `view_as_complex`."""
    return view_as_complex(self).copy()
