"""Rules: other shapes, parts and joins of sparse tensors. What is a view of a dense tensor is a new tensor here."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.declare import Op
from pullback._runtime import messages
from pullback._sparse.array import COMPRESSED, CompressedArray, SparseArray, refused
from pullback._tensor import normal_dim
from pullback.ops.sparse.rules import entries_of, is_sparse, rule, rule_of_all_layouts

Array = Any


@rule_of_all_layouts
def turned(op: Op, self: Any) -> Any:
    """A matrix transposed."""
    if type(self) is SparseArray and (self.sparse_dim > 2 or self.dense_dim):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim} sparse and "
            f"{self.dense_dim} dense dimensions"
        )
    return self if self.ndim < 2 else exchanged(op, self, 0, 1)


@rule_of_all_layouts
def exchanged(op: Op, self: Any, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    a, b = normal_dim(dim0, self.ndim), normal_dim(dim1, self.ndim)
    if type(self) is CompressedArray:
        return self if a == b else flipped(self)
    if max(a, b) >= self.sparse_dim:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {self.sparse_dim}, d0: {a}, "
            f"d1: {b}"
        )
    order = list(range(self.ndim))
    order[a], order[b] = b, a
    return self.transposed(order)


def flipped(self: CompressedArray) -> CompressedArray:
    """A compressed matrix transposed: rows are columns then."""
    if self.batch_dim or self.dense_dim:
        raise refused("transpose", self.backend)
    major, blocked = COMPRESSED[self.layout]
    other = next(one for one, facts in COMPRESSED.items() if facts == (1 - major, blocked))
    values = self.values.swapaxes(1, 2) if blocked else self.values
    return CompressedArray(other, self.compressed, self.plain, values, self.shape[::-1])


@rule
def permuted(op: Op, self: SparseArray, dims: Any) -> SparseArray:
    """All dimensions in another order."""
    order = [normal_dim(d, self.ndim) for d in dims]
    if len(order) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(order)}"
        )
    if len({*order}) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    n = self.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            "transpose(): sparse dimensions and dense ones can only be permuted among themselves; use to_dense()"
        )
    return self.transposed(order)


@rule
def widened(op: Op, self: SparseArray, dim: int) -> SparseArray:
    """With one more dimension of one element: a sparse one before the last sparse one, else a dense one."""
    dim = normal_dim(dim, self.ndim + 1)
    n = self.sparse_dim
    shape = [*self.shape[:dim], 1, *self.shape[dim:]]
    if dim <= n:
        row = np.zeros((1, self.nnz), np.int64)
        return SparseArray(np.concatenate([self.indices[:dim], row, self.indices[dim:]]), self.values, shape)
    return SparseArray(self.indices, np.expand_dims(self.values, dim - n + 1), shape, self.coalesced)


# ------------------------------------------------------------------ parts


def number_in(index: Any, size: int, dim: int) -> int:
    """An index counted from the front, or torch's error."""
    index = int(index)
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size [{size}] at dimension {dim}")
    return index + size if index < 0 else index


@rule_of_all_layouts
def part_at(op: Op, self: Any, dim: int, index: int) -> Any:
    """The part at one place of a dimension; dense if no other sparse dimension is left."""
    rows = type(self) is CompressedArray and dim == 0
    if type(self) is CompressedArray:
        self = entries_of(self).coalesce()
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normal_dim(dim, self.ndim)
    if not -self.shape[dim] <= int(index) < self.shape[dim]:
        shape = messages.shape_text(self.shape)
        raise IndexError(f"select(): index {index} out of range for tensor of size {shape} at dimension {dim}")
    at = number_in(index, self.shape[dim], dim)
    shape = [*self.shape[:dim], *self.shape[dim + 1 :]]
    n = self.sparse_dim
    if dim >= n:
        values = self.values[(slice(None),) * (dim - n + 1) + (at,)].copy()
        return SparseArray(self.indices, values, shape, self.coalesced)
    kept = np.flatnonzero(self.indices[dim] == at)
    values = self.values[kept]
    if n == 1:
        return np.asarray(values.sum(0, dtype=values.dtype))
    rest = np.delete(self.indices, dim, 0)[:, kept]
    return SparseArray(rest, values, shape, rows)


@rule
def parts_at(op: Op, self: SparseArray, dim: int, index: Array) -> SparseArray:
    """The parts at several places of a dimension."""
    dim = normal_dim(dim, self.ndim)
    if is_sparse(index) or index.ndim > 1 or index.dtype.kind not in "iu":
        raise IndexError("index_select(): index must be 1-D and of integers")
    size = self.shape[dim]
    wanted = np.atleast_1d(index).astype(np.int64)
    outside = wanted[(wanted < -size) | (wanted >= size)]
    if outside.size:
        raise IndexError(
            f"index_select(): index contains {outside[0]} that is out of range for tensor of size "
            f"{messages.shape_text(self.shape)} at dimension {dim}"
        )
    wanted = np.where(wanted < 0, wanted + size, wanted)
    shape = [*self.shape[:dim], wanted.size, *self.shape[dim + 1 :]]
    n = self.sparse_dim
    if dim >= n:
        return SparseArray(self.indices, self.values.take(wanted, dim - n + 1), shape, self.coalesced)
    # For each place asked for, the entries there, in their order.
    order = np.argsort(self.indices[dim], kind="stable")
    there = self.indices[dim][order]
    begin, end = np.searchsorted(there, wanted), np.searchsorted(there, wanted, "right")
    counts = end - begin
    at = np.repeat(begin - np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64), counts)
    found = order[at + np.arange(at.size)] if at.size else np.empty(0, np.int64)
    indices = self.indices[:, found]
    indices[dim] = np.repeat(np.arange(wanted.size), counts)
    return SparseArray(indices, self.values[found], shape)


@rule
def stretch(op: Op, self: SparseArray, dim: int, start: int, length: int) -> SparseArray:
    """A stretch of one dimension."""
    dim = normal_dim(dim, self.ndim)
    size = self.shape[dim]
    if not 0 <= start <= size or length < 0 or start + length > size:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    shape = [*self.shape[:dim], length, *self.shape[dim + 1 :]]
    n = self.sparse_dim
    if dim >= n:
        part = (slice(None),) * (dim - n + 1) + (slice(start, start + length),)
        return SparseArray(self.indices, self.values[part].copy(), shape, self.coalesced)
    kept = (self.indices[dim] >= start) & (self.indices[dim] < start + length)
    indices = self.indices[:, kept]
    indices[dim] -= start
    return SparseArray(indices, self.values[kept], shape, self.coalesced)


@rule_of_all_layouts
def all_parts(op: Op, self: SparseArray, dim: int = 0) -> list[Any]:
    """The parts along a dimension."""
    dim = normal_dim(dim, self.ndim)
    return [part_at(op, self, dim, at) for at in range(self.shape[dim])]


# ------------------------------------------------------------------ joins


@rule
def joined(op: Op, tensors: list[Any], dim: int = 0) -> SparseArray:
    """Tensors one after the other."""
    for position, one in enumerate(tensors):
        if not is_sparse(one):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
    first = tensors[0]
    dim = normal_dim(dim, first.ndim)
    for position, one in enumerate(tensors):
        sizes = [[n for d, n in enumerate(a.shape) if d != dim] for a in (first, one)]
        if one.ndim != first.ndim or sizes[0] != sizes[1]:
            raise RuntimeError(
                f"All tensors must have the same shape: {messages.shape_text(first.shape)} (except in the concatenating"
                f" dimension), but found shape: {messages.shape_text(one.shape)}"
            )
        if one.sparse_dim != first.sparse_dim:
            raise RuntimeError(
                "All tensors must have the same sparse_dim and dense_dim: "
                f"{first.sparse_dim}, {first.dense_dim}, but tensor at position {position} has {one.sparse_dim}, "
                f"{one.dense_dim}."
            )
    sizes = [one.shape[dim] for one in tensors]
    shape = [*first.shape[:dim], sum(sizes), *first.shape[dim + 1 :]]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    indices = np.concatenate([one.indices for one in tensors], 1)
    n = first.sparse_dim
    if dim < n:
        indices[dim] += np.repeat(starts, [one.nnz for one in tensors])
        return SparseArray(indices, np.concatenate([one.values for one in tensors]), shape)
    values = np.zeros((indices.shape[1], *shape[n:]), first.dtype)
    at = 0
    for start, one in zip(starts, tensors, strict=True):
        part = (slice(None),) * (dim - n) + (slice(start, start + one.shape[dim]),)
        values[(slice(at, at + one.nnz), *part)] = one.values
        at += one.nnz
    return SparseArray(indices, values, shape)


@rule
def stacked(op: Op, tensors: list[Any], dim: int = 0) -> SparseArray:
    """Tensors along a new dimension."""
    for position, one in enumerate(tensors):
        if not is_sparse(one):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
    dim = normal_dim(dim, tensors[0].ndim + 1)
    return joined(op, [widened(op, one, dim) for one in tensors], dim)
