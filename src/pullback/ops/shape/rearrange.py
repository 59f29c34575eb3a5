"""The same elements elsewhere: flip, roll, rot90, repeat, tile, triangles, and diagonals as matrices."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._arrays.memory import row_major
from pullback._arrays.sizes import LARGEST, allocated, check_ints, check_storage, counted, in_torch_words
from pullback._dtype import dtype, named_dtype
from pullback._dtype import int64 as long
from pullback._op.define import Array, function, linear, op
from pullback._op.out import exact
from pullback._runtime import messages
from pullback._tensor import Tensor, fresh, normal_dim, strided
from pullback.autograd.tracebacks import trim
from pullback.kernels.numpy.index import strided as windows
from pullback.kernels.numpy.math.direct import concatenate
from pullback.kernels.numpy.math.numbers import ZERO
from pullback.kernels.numpy.tables import lower
from pullback.ops.create.filled import int_of
from pullback.ops.create.like import array_like
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import inferred, ints, ravel, reshape_to, zeros_of
from pullback.ops.shape.slicing import diagonal, diagonal_backward, two_dims

# ------------------------------------------------------------------ flip


def each_once(dims: Any, ndim: int) -> list[int]:
    """Dimensions counted from the front, none of them twice."""
    out: list[int] = []
    for dim in dims:
        dim = normal_dim(dim, ndim)
        if dim in out:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        out.append(dim)
    return out


@op(
    vmap="given_dims",
    packed="moved",
    space=None,
    name="flip",
    self=lambda grad, dims: flip_dims(grad, dims),
    result=linear,
)
def flip_dims(self: Array, dims: Any) -> Array:
    """The elements in reverse order along dimensions."""
    turned = each_once(dims, self.ndim)
    if self.ndim < 2:
        return self[::-1].copy() if turned and self.ndim else self.copy()
    backwards, forwards = slice(None, None, -1), slice(None)
    out = array_like(self, self.dtype)
    out[...] = self[tuple([backwards if d in turned else forwards for d in range(self.ndim)])]
    return out


@function(raw=True, space=None, name="flip")
def flip_method(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Reverse the order of the elements along dimensions, given as separate ints or as a tuple. Returns a copy."""
    if dims is None and not order:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    return flip_dims(self, ints("flip", "dims", order if dims is None else (dims,)))


@function(method=False, numpy=("flip",))
def flip(self: Array, dims: Any) -> Array:
    """Reverse the order of the elements along the dimensions in the tuple `dims`. Returns a copy."""
    if not isinstance(dims, (tuple, list)):
        kind = messages.type_name(dims)
        raise TypeError(f"flip(): argument 'dims' (position 2) must be tuple of ints, not {kind}")
    return flip_dims(self, ints("flip", "dims", (dims,)))


@function()
def fliplr(self: Array) -> Array:
    """Flip a tensor left to right: reverse its second dimension. Takes two dimensions or more; returns a copy."""
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip_dims(self, (1,))


@function()
def flipud(self: Array) -> Array:
    """Flip a tensor upside down: reverse its first dimension. Takes one dimension or more; returns a copy."""
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip_dims(self, (0,))


# ------------------------------------------------------------------ roll and rot90


def check_roll(self: Array, shifts: Any, dims: Any) -> None:
    """Raise torch's errors for shifts that do not belong to the dims."""
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for dim in dims if self.size else ():
        if not self.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        normal_dim(dim, self.ndim)


@op(
    vmap="rolled",
    packed="moved",
    space=None,
    name="roll",
    check=check_roll,
    self=lambda grad, shifts, dims: roll_dims(grad, tuple([-s for s in shifts]), dims),
    result=linear,
)
def roll_dims(self: Array, shifts: Any, dims: Any) -> Array:
    """Shift along dimensions; what leaves at one end comes in at the other."""
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise ValueError("as many shifts as dims")
    if not dims:
        return rolled(self.reshape(-1), shifts[0], 0).reshape(self.shape) if self.ndim != 1 else rolled(self, *shifts)
    out = self
    for shift, dim in zip(shifts, dims if self.size else (), strict=bool(self.size)):
        out = rolled(out, shift, normal_dim(dim, self.ndim))
    return out


def rolled(array: Array, shift: int, dim: int = 0) -> Array:
    """A copy shifted along one dimension."""
    if not array.size:
        return array.copy()
    size = array.shape[dim]
    shift %= size
    if array.ndim == 1:
        return concatenate((array[size - shift :], array[: size - shift]))
    at = (slice(None),) * dim
    out = np.empty(array.shape, array.dtype)
    out[(*at, slice(shift, None))] = array[(*at, slice(0, size - shift))]
    out[(*at, slice(0, shift))] = array[(*at, slice(size - shift, None))]
    return out


@function(numpy=("roll",))
def roll(self: Array, shifts: Any, dims: Any = ()) -> Array:
    """Shift elements cyclically: those pushed out at one end come back at the other.

    `shifts` and `dims` are ints or tuples of equal length; a positive shift moves towards larger indices.
    Without `dims` the flattened tensor is rolled and the shape restored afterwards.
    """
    if isinstance(shifts, bool):
        raise TypeError("roll(): argument 'shifts' (position 1) must be tuple of ints, not bool")
    shifts = (shifts,) if type(shifts) is int else ints("roll", "shifts", (shifts,))
    dims = () if dims is None or dims == () else ints("roll", "dims", (dims,))
    return roll_dims(self, shifts, dims)


def check_rot90(self: Array, k: int = 1, dims: Any = (0, 1)) -> None:
    """Raise torch's errors for planes that are none."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    first, second = normal_dim(dims[0], self.ndim), normal_dim(dims[1], self.ndim)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")


@op(packed="moved", check=check_rot90, self=lambda grad, k, dims: rot90(grad, -k, dims), result=linear)
def rot90(self: Array, k: int = 1, dims: Any = (0, 1)) -> Array:
    """Rotate a tensor by `k` times 90 degrees in the plane of two dimensions.

    Positive `k` turns from the first towards the second of `dims`, negative `k` the other way. Returns a copy.
    """
    check_rot90(self, k, dims)
    first, second = index(dims[0]), index(dims[1])
    k = index(k) % 4
    if k == 0:
        return self.copy()
    if k == 2:
        return flip_dims(self, dims)
    return flip_dims(self, (second,) if k == 1 else (first,)).swapaxes(first, second)


# ------------------------------------------------------------------ repeat


def check_repeat(self: Array, repeats: Any) -> None:
    """Raise torch's errors for repeats that cannot be."""
    if len(repeats) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    sizes = [n * m for n, m in zip((1,) * (len(repeats) - self.ndim) + self.shape, repeats, strict=True)]
    check_storage(sizes, self.dtype.itemsize)


@op(
    packed="moved",
    space=None,
    name="repeat",
    check=check_repeat,
    vmap="repeated",
    self=lambda grad, repeats, self_sym_sizes: repeat_backward(grad, repeats, self_sym_sizes),
    result=linear,
)
def repeat_dims(self: Array, repeats: Any) -> Array:
    """Copies of a tensor side by side."""
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    sizes = [n * m for n, m in zip(shape, repeats, strict=False)]
    if len(repeats) < self.ndim or min(sizes, default=0) < 0:
        raise ValueError("no such repeats")
    if 0 in sizes:  # whatever the repeats of no elements are, also negative
        return np.empty(sizes, self.dtype)
    doubled = tuple([m for pair in zip(repeats, shape, strict=True) for m in pair])
    spread = tuple([m for n in shape for m in (1, n)])
    out = np.empty(doubled, self.dtype)
    out[...] = self.reshape(spread)
    return out.reshape(sizes)


def repeat_backward(grad: Any, repeats: Any, sizes: tuple[int, ...]) -> Any:
    """The copies added up."""
    if 0 in repeats:
        return zeros_of(grad, sizes)
    lead = len(repeats) - len(sizes)
    spread: list[int] = []
    copies: list[int] = []
    for times, size in zip(repeats[lead:], sizes, strict=True):
        if times != 1:
            copies.append(len(spread))
            spread.append(times)
        spread.append(size)
    if 0 in sizes and not 0 <= min(repeats) <= max(repeats) < 1 << 31:  # more often than arrays can be large
        inferred(spread, 0)
        return zeros_of(grad, sizes)
    if lead:
        grad = sum_dim(grad, tuple(range(lead)))
    return sum_dim(reshape_to(grad, tuple(spread)), tuple(copies)) if copies else grad


@function(raw=True, space=None)
def repeat(self: Tensor, *times: Any, repeats: Any = None) -> Tensor:
    """Repeat a tensor along each dimension, copying its elements.

    There must be at least as many counts as dimensions; surplus ones add new dimensions in front.
    Shape `(2, 3)` repeated `(4, 1, 2)` times is `(4, 2, 6)`. To stretch without copying there is `expand`.
    """
    try:
        return repeat_dims(self, ints("repeat", "repeats", times if repeats is None else (repeats,)))
    except Exception as error:
        trim(error)
        raise


@function(raw=True, explained=True, numpy=("tile",))
def tile(input: Tensor, *times: Any, dims: Any = None) -> Tensor:
    """Build a tensor by repeating the input along each dimension, as NumPy's `tile`.

    `dims` are the counts, the last one for the last dimension: missing ones are 1, and surplus ones add new dimensions
    in front. Returns a copy.
    """
    counts = ints("tile", "dims", times if dims is None else (dims,))
    return repeat_dims(input, (1,) * (input.ndim - len(counts)) + counts)


# ------------------------------------------------------------------ triangles


def check_matrix(name: str, array: Array) -> None:
    """Triangles need two dimensions."""
    if array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@op(
    vmap="leading",
    packed="moved_complex",
    kernel="tril",
    inplace=True,
    out_overlap="unchecked",
    numpy=("tril",),
    self=lambda grad, diagonal: tril(grad, diagonal),
    result=linear,
    out_dtype=exact,
)
def tril(self: Array, diagonal: int = 0) -> Array:
    """Return the lower triangle of matrices `(..., n, m)`, with zeros above it.

    Keeps the elements at row `i` and column `j` with `j - i <= diagonal`: 0 ends at the main diagonal,
    positive values keep diagonals above it, negative ones drop some below.
    """
    check_matrix("tril", self)
    return zeroed_where(self, kept=True, diagonal=diagonal)


@op(
    vmap="leading",
    packed="moved_complex",
    kernel="triu",
    inplace=True,
    out_overlap="unchecked",
    numpy=("triu",),
    self=lambda grad, diagonal: triu(grad, diagonal),
    result=linear,
    out_dtype=exact,
)
def triu(self: Array, diagonal: int = 0) -> Array:
    """Return the upper triangle of matrices `(..., n, m)`, with zeros below it.

    Keeps the elements at row `i` and column `j` with `j - i >= diagonal`: 0 begins at the main diagonal,
    positive values drop diagonals above it, negative ones keep some below.
    """
    check_matrix("triu", self)
    return zeroed_where(self, kept=False, diagonal=diagonal - 1)


def zeroed_where(self: Array, kept: bool, diagonal: int) -> Array:
    """The matrices with zeros above a diagonal, or on and below it."""
    rows, columns = self.shape[-2:]
    diagonal = index(diagonal)
    if not self.size:
        return self.copy()
    mask = lower(rows, columns, diagonal)
    zero = ZERO[self.dtype]
    if self.ndim > 2:
        return row_major(np.where(mask, self, zero) if kept else np.where(mask, zero, self))
    out = self.copy()
    np.putmask(out, np.logical_not(mask) if kept else mask, zero)
    return out


def refuse_grad(requires_grad: bool) -> None:
    """Raise if indices are to have gradients."""
    if requires_grad:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


@in_torch_words
def triangle_indices(name: str, row: int, col: int, offset: int, dtype: dtype) -> Tensor:
    """The coordinates of a triangle, row by row: memory for them, and not for the matrix, is needed."""
    given = []
    for position, (what, value) in enumerate((("row", row), ("col", col), ("offset", offset)), 1):
        n = int_of(value)
        if n is None:
            kind = messages.type_name(value)
            raise TypeError(f"{name}(): argument '{what}' (position {position}) must be int, not {kind}")
        given.append(n)
    row, col, offset = given
    for what, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{what} must be non-negative, got{n}")
    check_ints(name, {"row": row, "col": col, "offset": offset})
    dtype = named_dtype(dtype)
    if dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_type}'")
    offset = max(min(offset, col), -row)
    if name == "tril_indices":
        first, last = min(max(-offset, 0), row), row
        rows = counted(last - first) + first
        begin, end = np.zeros_like(rows), np.minimum(rows + (offset + 1), col)
    else:
        first, last = 0, min(row, max(col - offset, 0))
        rows = counted(last - first)
        begin, end = np.maximum(rows + offset, 0), np.full_like(rows, col)
    lengths = end - begin
    total = sum(lengths.tolist()) if lengths.size and int(lengths.max()) > LARGEST // lengths.size else lengths.sum()
    check_storage((2, int(total)), dtype.itemsize)
    out = allocated(np.empty, (2, int(total)), np.dtype(np.int64))
    out[0] = np.repeat(rows, lengths)
    out[1] = np.arange(int(total)) - np.repeat(np.cumsum(lengths) - lengths - begin, lengths)
    return fresh(out.astype(dtype.numpy, copy=False))


@function(raw=True, explained=True, method=False)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype = long, device: Any = None, layout: Any = strided,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the indices of the lower triangle of a `row` by `col` matrix.

    The result has shape `(2, k)`: row indices first, column indices second, ordered row by row.
    `offset` moves the diagonal that bounds the triangle, as `diagonal` of `tril`.
    """
    refuse_grad(requires_grad)
    return fresh(made_on(device, np.asarray, triangle_indices("tril_indices", row, col, offset, dtype or long)._array))


@function(raw=True, explained=True, method=False)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype = long, device: Any = None, layout: Any = strided,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the indices of the upper triangle of a `row` by `col` matrix.

    The result has shape `(2, k)`: row indices first, column indices second, ordered row by row.
    `offset` moves the diagonal that bounds the triangle, as `diagonal` of `triu`.
    """
    refuse_grad(requires_grad)
    return fresh(made_on(device, np.asarray, triangle_indices("triu_indices", row, col, offset, dtype or long)._array))


# ------------------------------------------------------------------ diagonals as matrices


@op(
    vmap="new_dims",
    packed="moved",
    self=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    result=linear,
    out=False,
)
def diag_embed(self: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Put the last dimension on the diagonal of new matrices, with zeros elsewhere.

    `(..., n)` becomes `(..., n + |offset|, n + |offset|)`. `offset` chooses the diagonal (positive: above the main
    one), `dim1` and `dim2` the places of the two new dimensions in the result.
    """
    ndim = self.ndim + 1
    first, second = two_dims(ndim, dim1, dim2)
    side = self.shape[-1] + abs(offset)
    others = iter(self.shape[:-1])
    out = allocated(np.zeros, [side if d in (first, second) else next(others) for d in range(ndim)], self.dtype)
    windows.diagonal(out, offset, first, second)[...] = self
    return out


@op(
    packed="moved",
    method=False,
    node="DiagonalBackward0_copy",
    self=lambda grad, self_sym_sizes, offset, dim1, dim2: diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2),
    result=linear,
    out_dtype=exact,
    out_ends_history=True,
)
def diagonal_copy(self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Return the diagonal of dimensions `dim1` and `dim2` as the last dimension, like `diagonal` but in new memory."""
    return windows.diagonal(self, offset, *two_dims(self.ndim, dim1, dim2)).copy()


@function(out=True, numpy=("diag",), out_dtype=exact, out_ends_history=True)
def diag(self: Array, diagonal: int = 0) -> Array:
    """Extract a diagonal of a matrix, or build a matrix from its diagonal.

    A matrix gives a vector with the elements of its diagonal; a vector of size `n` gives a square matrix of size
    `n + |diagonal|` with zeros elsewhere. `diagonal` is 0 for the main one, positive above and negative below it.
    """
    if self.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    return diag_embed(self, diagonal) if self.ndim == 1 else diagonal_copy(self, diagonal)


@function()
def diagflat(self: Array, offset: int = 0) -> Array:
    """Flatten a tensor and put its elements on the diagonal of a square matrix of zeros.

    The matrix has size `numel + |offset|`; `offset` chooses the diagonal, positive ones lie above the main one.
    """
    return diag_embed(ravel(self), offset)
