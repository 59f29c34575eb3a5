"""Arrays of the sparse layouts: which elements are there, and their values.

    SparseArray ....... sparse_coo: indices [sparse dims, entries], values [entries, *dense dims]
    CompressedArray ... sparse_csr, _csc, _bsr, _bsc: where each row (or column) begins, the places in it, values

To an op they are arrays like any other, of a kind of its own: what it makes of them is said by its `sparse` rule
(ops/sparse/). Whatever else anybody wants of them raises: there is no memory with one place for each element.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.kinds import ForeignArray
from pullback._arrays.layout import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from pullback._device import CPU

Array = Any

COMPRESSED = {sparse_csr: (0, False), sparse_csc: (1, False), sparse_bsr: (0, True), sparse_bsc: (1, True)}
"""The compressed layouts: the dimension that is compressed, and whether values are blocks."""


class Absent(NotImplementedError, AttributeError):
    """Something was asked of a sparse array that only memory with a place for each element could answer."""


Absent.__name__ = Absent.__qualname__ = "NotImplementedError"


def refused(name: str, backend: str, kind: type[NotImplementedError] = NotImplementedError) -> NotImplementedError:
    """Torch's error for an op that a layout does not have."""
    return kind(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. There is no rule for it on sparse "
        "tensors; use to_dense() where the dense result is wanted."
    )


class EntriesArray(ForeignArray):
    """What all sparse layouts have in common. The values are an ordinary array; `shape` is that of the whole."""

    __slots__ = ("shape", "values")
    __hash__ = None  # type: ignore[assignment]  # kernels keep what has a hash
    device = CPU
    backend = "SparseCPU"
    layout: layout
    shape: tuple[int, ...]
    values: Array

    dtype = property(lambda self: self.values.dtype)
    itemsize = property(lambda self: self.values.dtype.itemsize)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    strides = property(lambda self: (0,) * len(self.shape), doc="Zeros, as torch says: no strides lead to an element.")

    base = None

    def with_values(self, values: Array) -> Any:
        """Other values at the same places."""
        raise NotImplementedError

    def to_dense(self) -> Array:
        """All elements, in row-major order."""
        raise NotImplementedError

    def uncoalesced(self) -> Any:
        """The same, as one that is not known to be in order."""
        return self

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """In another dtype."""
        return self.with_values(self.values.astype(dtype))

    def arranged(self, operands: Any) -> Any:
        """A result of a pointwise op: values have one order."""
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise refused("as_strided", self.backend)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(name, self.backend, Absent)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return answer_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise refused(function.__name__, self.backend)

    def __add__(self, other: Any) -> Any:
        return np.add(self, other)

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return np.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return np.true_divide(self, other)

    def __neg__(self) -> Any:
        return np.negative(self)


def answer_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc makes of arrays of which some are sparse. Attached by ops/sparse/, which has the rules."""
    raise NotImplementedError("import pullback.ops first")


class SparseArray(EntriesArray):
    """Entries by their coordinates; there may be several for one element, whose sum it is."""

    __slots__ = ("coalesced", "indices")
    layout = sparse_coo
    indices: Array
    coalesced: bool

    def __init__(self, indices: Array, values: Array, shape: Any, coalesced: bool = False) -> None:
        self.indices, self.values, self.shape = indices, values, tuple([int(n) for n in shape])
        self.coalesced = coalesced or values.shape[0] < 2

    sparse_dim = property(lambda self: self.indices.shape[0])
    dense_dim = property(lambda self: self.values.ndim - 1)
    nnz = property(lambda self: self.values.shape[0])

    def with_values(self, values: Array) -> SparseArray:
        """Other values at the same places."""
        return SparseArray(self.indices, values, self.shape, self.coalesced)

    def copy(self, order: str = "C") -> SparseArray:
        """A copy, entry by entry."""
        return SparseArray(self.indices.copy(), self.values.copy(), self.shape, self.coalesced)

    def coalesce(self) -> SparseArray:
        """The same with one entry for each element, in order."""
        if self.coalesced:
            return self
        keys = self.keys()
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.ones(keys.size, bool)
        np.not_equal(keys[1:], keys[:-1], first[1:])
        indices = self.indices[:, order[first]]
        return SparseArray(indices, segment_sums(self.values[order], first), self.shape, True)

    def uncoalesced(self) -> SparseArray:
        """The same, as one that is not known to be in order."""
        return SparseArray(self.indices, self.values, self.shape)

    def keys(self) -> Array:
        """A number for each entry, in the order of the elements."""
        return keys_of(self.indices, self.shape)

    def to_dense(self) -> Array:
        """All elements."""
        out = np.zeros(self.shape, self.dtype)
        add_entries(out, self)
        return out

    def transposed(self, order: list[int]) -> SparseArray:
        """The dimensions in another order, sparse ones among themselves and dense ones among themselves."""
        n = self.sparse_dim
        dense = [d - n for d in order[n:]]
        values = self.values.transpose(0, *[d + 1 for d in dense]) if dense != sorted(dense) else self.values
        kept = self.coalesced and order[:n] == list(range(n))
        return SparseArray(self.indices[order[:n]], values, [self.shape[d] for d in order], kept)


class CompressedArray(EntriesArray):
    """Entries row by row, or column by column; where values are blocks, rows and columns are of blocks."""

    __slots__ = ("compressed", "layout", "plain")
    backend = "SparseCsrCPU"
    layout: layout
    compressed: Array
    plain: Array

    def __init__(self, layout: layout, compressed: Array, plain: Array, values: Array, shape: Any) -> None:
        self.layout, self.compressed, self.plain, self.values = layout, compressed, plain, values
        self.shape = tuple([int(n) for n in shape])

    nnz = property(lambda self: self.plain.shape[-1])
    by_column = property(lambda self: COMPRESSED[self.layout][0] == 1)
    blocked = property(lambda self: COMPRESSED[self.layout][1])
    batch_dim = property(lambda self: self.compressed.ndim - 1)
    dense_dim = property(lambda self: self.values.ndim - self.compressed.ndim - (2 if self.blocked else 0))
    sparse_dim = 2

    def block(self) -> tuple[int, int]:
        """The shape of a block."""
        at = self.compressed.ndim
        return tuple(self.values.shape[at : at + 2]) if self.blocked else (1, 1)  # type: ignore[return-value]

    def with_values(self, values: Array) -> CompressedArray:
        """Other values at the same places."""
        return CompressedArray(self.layout, self.compressed, self.plain, values, self.shape)

    def copy(self, order: str = "C") -> CompressedArray:
        """A copy, entry by entry."""
        parts = [a.copy() for a in (self.compressed, self.plain, self.values)]
        return CompressedArray(self.layout, *parts, self.shape)

    def coordinates(self) -> Array:
        """The rows and columns of the entries (of blocks, where values are), [2, entries]; no batches."""
        counts = np.diff(self.compressed)
        major = np.repeat(np.arange(counts.size), counts)
        plain = self.plain.astype(np.int64)
        return np.stack([plain, major] if self.by_column else [major, plain])

    def to_dense(self) -> Array:
        """All elements."""
        out = np.zeros(self.shape, self.dtype)
        for batch in np.ndindex(self.compressed.shape[:-1]):
            one = CompressedArray(
                self.layout, self.compressed[batch], self.plain[batch], self.values[batch], self.shape[self.batch_dim :]
            )
            target, (h, w) = out[batch], one.block()
            rows, columns = one.coordinates()
            if not self.blocked:
                target[rows, columns] = one.values
                continue
            grid = target.reshape(target.shape[0] // h, h, target.shape[1] // w, w, *target.shape[2:])
            grid[rows, :, columns] = one.values
        return out


def keys_of(indices: Array, shape: tuple[int, ...]) -> Array:
    """A number for each entry, in the order of the elements; ranks where the elements are too many to number."""
    sizes = shape[: indices.shape[0]]
    if math.prod([max(n, 1) for n in sizes]) < 2**63:
        keys = np.zeros(indices.shape[1], np.int64)
        for row, n in zip(indices, sizes, strict=True):
            keys = keys * n + row
        return keys
    return np.unique(indices, axis=1, return_inverse=True)[1].reshape(-1)


def segment_sums(values: Array, first: Array) -> Array:
    """Sums of neighbours, one after the other as torch adds them; `first` says where each sum begins."""
    if first.all():
        return values.copy()
    at = np.cumsum(first) - 1
    out = values[first].copy()
    if values.dtype.kind == "b":
        np.logical_or.at(out, at[~first], values[~first])
        return out
    scatter_add(out, at[~first], values[~first])
    return out


def scatter_add(out: Array, at: Array, values: Array) -> None:
    """out[at[i]] += values[i], one after the other."""
    block = math.prod(out.shape[1:])
    flat = out.reshape(-1)  # `out` is new and contiguous
    places = at if out.ndim == 1 else (at[:, None] * block + np.arange(block)).reshape(-1)
    np.add.at(flat, places, np.ascontiguousarray(values).reshape(-1))


def add_entries(out: Array, sparse: SparseArray, factor: Any = None) -> None:
    """Add the entries to a dense array, whatever its strides."""
    values = sparse.values if factor is None else sparse.values * factor
    if values.dtype.kind == "b":
        np.logical_or.at(out, tuple(sparse.indices), values)
    elif sparse.sparse_dim:
        np.add.at(out, tuple(sparse.indices), values.astype(out.dtype, copy=False))
    elif values.shape[0]:
        out += values.sum(0, dtype=out.dtype)
