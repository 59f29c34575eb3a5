"""Joining and splitting along named directions: hstack and hsplit, vstack, dstack, meshgrid, block_diag."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pullback._dtype import defaults
from pullback._op.define import Array, function, op
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, fresh, normal_dim
from pullback.ops.shape.join import cat, check_parts
from pullback.ops.shape.reshape import expand, reshape_to, unsqueeze, view_
from pullback.ops.shape.slicing import slice_
from pullback.ops.supported import all_tensors, invalid_combination, listed

# ------------------------------------------------------------------ at least so many dimensions


def at_least_1d(tensor: Any) -> Any:
    """One dimension or more."""
    return tensor if tensor.ndim else reshape_to(tensor, (1,))


def at_least_2d(tensor: Any) -> Any:
    """Two dimensions or more; a vector becomes a row."""
    if tensor.ndim == 0:
        return reshape_to(tensor, (1, 1))
    return unsqueeze(tensor, 0) if tensor.ndim == 1 else tensor


def at_least_3d(tensor: Any) -> Any:
    """Three dimensions or more; a vector becomes a row of a thin block."""
    if tensor.ndim == 0:
        return reshape_to(tensor, (1, 1, 1))
    if tensor.ndim == 1:
        return unsqueeze(unsqueeze(tensor, 0), -1)
    return unsqueeze(tensor, -1) if tensor.ndim == 2 else tensor


def of_each(make: Any, tensors: tuple[Any, ...]) -> Any:
    """The result for one tensor, or a tuple for several."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return make(tensors[0])
    return tuple([make(tensor) for tensor in listed(tensors)])


@function(raw=True, explained=True, method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Turn scalars into tensors with one dimension; others are returned as they are.

    Takes one tensor, or several (or a list), for which it returns a tuple.
    """
    return of_each(at_least_1d, tensors)


@function(raw=True, explained=True, method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Add leading dimensions of size one until tensors have at least two dimensions.

    A number becomes `(1, 1)` and a vector `(1, n)`. Takes one tensor, or several (or a list), for which it
    returns a tuple.
    """
    return of_each(at_least_2d, tensors)


@function(raw=True, explained=True, method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Add dimensions of size one until tensors have at least three dimensions.

    A number becomes `(1, 1, 1)`, a vector `(1, n, 1)` and a matrix `(n, m, 1)`. Takes one tensor, or several
    (or a list), for which it returns a tuple.
    """
    return of_each(at_least_3d, tensors)


# ------------------------------------------------------------------ stacks


def some(name: str, tensors: Any) -> Any:
    """The tensors to stack; there must be some."""
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


@function(method=False, out=True, numpy=("hstack",))
def hstack(tensors: list[Array]) -> Array:
    """Stack tensors horizontally.

    Vectors are joined end to end, tensors with more dimensions along their second one; numbers count as `(1,)`.
    """
    tensors = [at_least_1d(tensor) for tensor in some("hstack", tensors)]
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@function(method=False, out=True, aliases=("row_stack",), numpy=("vstack",))
def vstack(tensors: list[Array]) -> Array:
    """Stack tensors vertically, as rows.

    Joins along the first dimension, after vectors `(n,)` have become rows `(1, n)` and numbers `(1, 1)`.
    """
    return cat([at_least_2d(tensor) for tensor in some("vstack", tensors)], 0)


@function(method=False, out=True, numpy=("dstack",))
def dstack(tensors: list[Array]) -> Array:
    """Stack tensors depthwise.

    Joins along the third dimension, after vectors `(n,)` have become `(1, n, 1)` and matrices `(n, m, 1)`.
    """
    return cat([at_least_3d(tensor) for tensor in some("dstack", tensors)], 2)


@function(method=False, out=True, numpy=("column_stack",))
def column_stack(tensors: list[Array]) -> Array:
    """Stack tensors as columns of a matrix.

    Vectors `(n,)` and numbers become columns `(n, 1)`; then everything is joined along the second dimension.
    """
    columns = [tensor if tensor.ndim > 1 else as_column(tensor) for tensor in some("column_stack", tensors)]
    return hstack(columns)


def as_column(tensor: Any) -> Any:
    """A vector or number as a matrix of one column."""
    return reshape_to(tensor, (tensor.shape[0] if tensor.ndim else 1, 1))


# ------------------------------------------------------------------ splits that may be uneven


@function(raw=True, explained=True)
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **names: Any) -> tuple[Tensor, ...]:
    """Split a tensor along `dim` into a given number of parts, or at given indices.

    An int `n` gives exactly `n` parts of nearly equal size, the larger ones first.
    A sequence of indices `[i, j]` gives the parts `[:i]`, `[i:j]` and `[j:]`. Returns a tuple of views.
    """
    wanted = names.pop("indices", names.pop("sections", names.pop("tensor_indices_or_sections", indices_or_sections)))
    if names:
        raise TypeError(f"tensor_split() got an unexpected keyword argument '{next(iter(names))}'")
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if isinstance(wanted, Tensor):
        wanted = sections_of(wanted)
    dim = normal_dim(dim, input.ndim)
    size = input.shape[dim]
    if isinstance(wanted, int):
        if wanted <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {wanted}")
        check_parts(wanted)
        small, large = divmod(size, wanted)
        bounds = [i * small + min(i, large) for i in range(wanted + 1)]
    else:
        bounds = [0, *wanted, size]
    return tuple([slice_(input, dim, start, end) for start, end in pairwise(bounds)])


def sections_of(wanted: Tensor) -> Any:
    """A tensor of indices or a number of sections as Python has them."""
    if wanted.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {wanted.ndim} dims"
        )
    if wanted._array.dtype != np.int64:
        kind = wanted.dtype.scalar_type
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {kind}")
    return wanted._array.tolist()


def given(*choices: Any) -> Any:
    """The one of several arguments that was given."""
    return next((choice for choice in choices if choice is not None), None)


def split_along(name: str, self: Tensor, wanted: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    """hsplit, vsplit and dsplit: a number of parts must divide the size."""
    if self.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {self.ndim} "
            "dimensions!"
        )
    if not isinstance(wanted, (int, tuple, list, Tensor)):
        raise invalid_combination(name, (self, wanted))
    if isinstance(wanted, int) and (wanted == 0 or self.shape[dim] % wanted):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {self.shape[dim]} "
            f"is not divisible by the split_size {wanted}!"
        )
    return tensor_split(self, wanted, dim)


@function()
def hsplit(
    self: Array, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Split a tensor horizontally: along the second dimension, or the only one of a vector.

    An int is the number of equal parts and must divide the size; a sequence gives the indices to split at.
    Returns a tuple of views.
    """
    return split_along("hsplit", self, given(indices_or_sections, sections, indices), 0 if self.ndim == 1 else 1, 1)


@function()
def vsplit(
    self: Array, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Split a tensor vertically, along the first of at least two dimensions.

    An int is the number of equal parts and must divide the size; a sequence gives the indices to split at.
    Returns a tuple of views.
    """
    return split_along("vsplit", self, given(indices_or_sections, sections, indices), 0, 2)


@function()
def dsplit(
    self: Array, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Split a tensor depthwise, along the third of at least three dimensions.

    An int is the number of equal parts and must divide the size; a sequence gives the indices to split at.
    Returns a tuple of views.
    """
    return split_along("dsplit", self, given(indices_or_sections, sections, indices), 2, 3)


# ------------------------------------------------------------------ grids and blocks


@function(raw=True, method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinate grids spanned by vectors, one for each vector.

    With `indexing="ij"`, which is the default, vectors of sizes `n` and `m` give grids of shape `(n, m)`: the first
    grid varies from row to row, the second from column to column. "xy" swaps the first two dimensions: `(m, n)`.
    The grids are views.
    """
    tensors = listed(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    check_meshgrid(tensors, indexing)
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = tuple([tensor.numel() for tensor in tensors])
    out = []
    for i, tensor in enumerate(tensors):
        own = tuple([n if j == i else 1 for j, n in enumerate(sizes)])
        out.append(expand(view_(tensor, own), sizes))
    return (out[1], out[0], *out[2:]) if swap else tuple(out)


def check_meshgrid(tensors: tuple[Tensor, ...], indexing: str | None) -> None:
    """Raise torch's errors and give its warning."""
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor}")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")


def check_block_diag(tensors: list[Array]) -> None:
    """Blocks are matrices, rows or numbers."""
    for nr, array in enumerate(tensors):
        if array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {nr} has {array.ndim} "
                "dimensions"
            )


@op(
    vmap="entries",
    space=None,
    name="block_diag",
    promote=True,
    check=check_block_diag,
    tensors=lambda grad, tensors_shapes: block_diag_backward(grad, tensors_shapes),
    result=lambda tensors_t: blocks_on_diagonal(tensors_t),
)
def blocks_on_diagonal(tensors: list[Array]) -> Array:
    """Zeros, with the blocks one after another on the diagonal."""
    check_block_diag(tensors)
    sizes = [block_size(array.shape) for array in tensors]
    out = np.zeros(np.add.reduce(np.array(sizes), axis=0), tensors[0].dtype)
    row = column = 0
    for array, (rows, columns) in zip(tensors, sizes, strict=True):
        out[row : row + rows, column : column + columns] = array
        row, column = row + rows, column + columns
    return out


def block_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The size of a block as a matrix: vectors are rows."""
    return (1,) * (2 - len(shape)) + tuple(shape)


def block_diag_backward(grad: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Each block of the gradient."""
    out, row, column = [], 0, 0
    for shape in shapes:
        rows, columns = block_size(shape)
        block = slice_(slice_(grad, 0, row, row + rows), 1, column, column + columns)
        out.append(block if len(shape) == 2 else reshape_to(block, shape))
        row, column = row + rows, column + columns
    return out


@function(raw=True, method=False)
def block_diag(*tensors: Any) -> Tensor:
    """Build a block-diagonal matrix from the given blocks, with zeros elsewhere.

    Blocks have at most two dimensions; vectors count as rows and numbers as `(1, 1)`.
    Rows and columns of the result are the sums of those of the blocks.
    """
    return blocks_on_diagonal(list(all_tensors(tensors))) if tensors else fresh(np.zeros((1, 0), defaults.numpy))
