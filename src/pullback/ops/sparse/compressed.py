"""Tensors of the compressed layouts (sparse_csr, _csc, _bsr, _bsc), and conversions between all layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.layout import layout as Layout
from pullback._arrays.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from pullback._dtype import defaults
from pullback._op.declare import spaces
from pullback._op.define import Array, function, op
from pullback._runtime import messages
from pullback._sparse.array import COMPRESSED, CompressedArray, SparseArray
from pullback._sparse.tensor import NAMES, SparseTensor
from pullback._tensor import Tensor, wrap
from pullback.ops.create import data
from pullback.ops.create.cast import converted
from pullback.ops.create.data import as_dtype, as_tensor, finished
from pullback.ops.sparse.coo import (
    as_size,
    copying,
    dense_of,
    entries_at,
    mask_op,
    to_dense_op,
    to_entries,
    to_entries_of,
    wrong_layout,
)
from pullback.ops.sparse.rules import compressed_from, entries_from, entries_of

# ------------------------------------------------------------------ making them


@op(
    vmap="entries",
    space=None,
    name="sparse_compressed_tensor",
    layout="sparse",
    sparse="own",
    values=lambda grad, result: entries_at(grad, result),
)
def compressed_op(compressed: Array, plain: Array, values: Array, size: Any, layout: Any) -> Array:
    """A compressed tensor from its parts, whose memory it shares."""
    return CompressedArray(layout, compressed, plain, values, size)


def check_parts(made: CompressedArray) -> None:
    """What torch checks if it is told to check invariants."""
    by, at = ("ccol", "row") if made.by_column else ("crow", "col")
    compressed, plain, values = made.compressed, made.plain, made.values
    batch = made.batch_dim
    if compressed.dtype != plain.dtype or compressed.dtype.kind != "i":
        raise RuntimeError(f"{by}_indices and {at}_indices must be of one integer dtype, int32 or int64")
    if compressed.ndim < 1 or plain.ndim != compressed.ndim or values.ndim < plain.ndim + 2 * made.blocked:
        raise RuntimeError(
            f"{by}_indices, {at}_indices and values must have as many batch dimensions, got {compressed.ndim - 1}, "
            f"{plain.ndim - 1} and values of {values.ndim} dimensions"
        )
    if plain.shape != values.shape[: plain.ndim] or compressed.shape[:-1] != plain.shape[:-1]:
        raise RuntimeError(f"number of specified elements in {at}_indices and values must match")
    block, size = made.block(), made.shape
    if len(size) != batch + 2 + made.dense_dim or size[:batch] != compressed.shape[:-1]:
        raise RuntimeError(f"size must have the dimensions of batches, matrices and values, got {list(size)}")
    if size[batch + 2 :] != values.shape[batch + 1 + 2 * made.blocked :]:
        raise RuntimeError("dense dimensions of values must be those of size")
    if size[batch] % block[0] or size[batch + 1] % block[1]:
        raise RuntimeError(f"tensor sparse size {list(size[batch : batch + 2])} must be divisible by {list(block)}")
    grid = size[batch] // block[0], size[batch + 1] // block[1]
    lines, places = (grid[1], grid[0]) if made.by_column else grid
    if compressed.shape[-1] != lines + 1:
        name = "ncols" if made.by_column else "nrows"
        raise RuntimeError(
            f"`{by}_indices.shape[-1] == {name} + 1` is not satisfied: {compressed.shape[-1]} is not {lines + 1}"
        )
    if (compressed[..., 0] != 0).any():
        raise RuntimeError(f"`{by}_indices[..., 0] == 0` is not satisfied.")
    if (compressed[..., -1] != made.nnz).any():
        raise RuntimeError(f"`{by}_indices[..., -1] == nnz` is not satisfied.")
    if (np.diff(compressed) < 0).any() or (np.diff(compressed) > places).any():
        raise RuntimeError(
            f"`0 <= {by}_indices[..., 1:] - {by}_indices[..., :-1] <= {'nrows' if made.by_column else 'ncols'}` is "
            "not satisfied."
        )
    if ((plain < 0) | (plain >= places)).any():
        raise RuntimeError(f"`0 <= {at}_indices < {'nrows' if made.by_column else 'ncols'}` is not satisfied.")


def inferred(compressed: Any, plain: Any, values: Any, layout: Layout) -> tuple[int, ...]:
    """The least size that has room for the indices."""
    major, blocked = COMPRESSED[layout]
    batch = compressed.ndim - 1
    block = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    lines = compressed.shape[-1] - 1
    places = int(plain.max(initial=-1)) + 1
    grid = (places, lines) if major else (lines, places)
    sizes = (grid[0] * block[0], grid[1] * block[1])
    return (*compressed.shape[:-1], *sizes, *values.shape[batch + 1 + 2 * blocked :])


def make(name: str, layout: Layout, parts: tuple[Any, ...], size: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """A compressed tensor from its parts."""
    values = as_tensor(parts[2], dtype=as_dtype(name, dtype))
    compressed, plain = [as_tensor(part)._array for part in parts[:2]]
    if size is None:
        size = inferred(compressed, plain, values._array, layout)
    made = CompressedArray(layout, compressed, plain, values._array, as_size(name, size, 4))
    check_parts(made)
    if requires_grad or not values.requires_grad:
        return finished(name, made, requires_grad)
    return compressed_op(wrap(compressed), wrap(plain), values, made.shape, layout)  # type: ignore[no-any-return]


def constructor(layout: Layout) -> None:
    """Publish the function that makes tensors of one layout."""
    name = f"{layout.name}_tensor"

    def construct(
        compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: Any = None,
    ) -> Tensor:  # fmt: skip
        return make(name, layout, (compressed_indices, plain_indices, values), size, dtype, requires_grad)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"A tensor of layout {layout.name}: where each line begins, the places in it, the values."
    function(raw=True, method=False, overridable=False)(construct)


for one in COMPRESSED:
    constructor(one)


@function(raw=True, method=False, overridable=False)
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of a compressed layout from its parts."""
    if layout not in COMPRESSED:
        got = "none" if layout is None else NAMES.get(layout.name, layout.name)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    parts = (compressed_indices, plain_indices, values)
    return make("sparse_compressed_tensor", layout, parts, size, dtype, requires_grad)


def empty_compressed(size: tuple[int, ...], layout: Layout, kind: Any) -> CompressedArray:
    """One without entries."""
    if len(size) != 2 or COMPRESSED[layout][1]:
        raise RuntimeError(f"torch.empty: Only 2D sparse CSR and CSC tensors are supported here, got size {list(size)}")
    lines = size[COMPRESSED[layout][0]]
    return CompressedArray(layout, np.zeros(lines + 1, np.int64), np.empty(0, np.int64), np.empty(0, kind), size)


def without_entries(name: str, layout: Any, shape: Any, target: Any, requires_grad: bool, dense: int = 0) -> Tensor:
    """A sparse tensor of zeros, none of which is there; the last `dense` dimensions are dense."""
    kind = defaults.numpy if target is None else target.numpy
    if layout is not sparse_coo:
        return finished(name, empty_compressed(tuple(shape), layout, kind), requires_grad)
    places, values = np.empty((len(shape) - dense, 0), np.int64), np.empty((0, *shape[len(shape) - dense :]), kind)
    return finished(name, SparseArray(places, values, shape, True), requires_grad)


data.without_entries = without_entries


def part(name: str, column: bool, first: bool) -> None:
    """Publish one of the functions that give the indices of a compressed tensor."""
    wanted = f"sparse {'column' if column else 'row'} compressed"

    def method(self: Tensor) -> Tensor:
        if self.layout not in COMPRESSED or self._array.by_column is not column:  # type: ignore[attr-defined]
            raise wrong_layout(name, wanted, self)
        return wrap(self._array.compressed if first else self._array.plain)  # type: ignore[attr-defined]

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The indices of a {wanted} tensor."
    function(raw=True, space=None)(method)
    spaces["torch"][f"{name}_copy"] = copying(f"{name}_copy", method)


part("crow_indices", False, True)
part("col_indices", False, False)
part("ccol_indices", True, True)
part("row_indices", True, False)

# ------------------------------------------------------------------ from one layout to another


def converter(layout: Layout) -> Any:
    """The op that makes tensors of a compressed layout; it goes by the name of the layout."""

    def convert(self: Array, blocksize: Any, source: Any) -> Array:
        return compressed_of(self, layout, blocksize)

    convert.__name__ = convert.__qualname__ = f"convert_to_{layout.name}"
    convert.__doc__ = f"The same elements in the layout {layout.name}."
    back = lambda grad, source: in_layout(grad, source)
    return op(vmap="entries", space=None, name=f"to_{layout.name}", layout="sparse", sparse="own", self=back)(convert)


def compressed_of(self: Any, layout: Layout, blocksize: Any) -> CompressedArray:
    """An array of any layout in a compressed one."""
    if type(self) is CompressedArray and self.layout is layout and (not self.blocked or self.block() == blocksize):
        return self
    if COMPRESSED[layout][1]:
        return blocks_of(self if type(self) is np.ndarray else self.to_dense(), layout, blocksize)
    if type(self) is CompressedArray and self.blocked:
        raise RuntimeError(
            f"sparse_compressed_to_{layout.name}: expected SparseCsr or SparseCsc layout but got "
            f"{NAMES[self.layout.name]}"
        )
    entries = entries_of(self) if type(self) is CompressedArray else self
    if type(entries) is np.ndarray:
        if entries.ndim != 2:
            return batches_of(entries, layout)
        entries = entries_from(entries, 2)
    if entries.sparse_dim != 2:
        raise RuntimeError(f"{layout.name} needs a matrix, but got {entries.sparse_dim} sparse dimensions")
    return compressed_from(entries, layout)


def batches_of(dense: Any, layout: Layout) -> CompressedArray:
    """Matrices in a batch, each with as many entries."""
    if dense.ndim < 2:
        raise RuntimeError(f"to_{layout.name}: expected a matrix or a batch of matrices, got {dense.ndim} dimension")
    flat = dense.reshape(-1, *dense.shape[-2:])
    made = [compressed_from(entries_from(matrix, 2), layout) for matrix in flat]
    if len({one.nnz for one in made}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    lead = dense.shape[:-2]
    stacked = [
        np.stack([getattr(one, name) for one in made]).reshape(*lead, -1) for name in ("compressed", "plain", "values")
    ]
    return CompressedArray(layout, *stacked, dense.shape)


def blocks_of(dense: Any, layout: Layout, blocksize: Any) -> CompressedArray:
    """A dense matrix in blocks, those without a nonzero left out."""
    h, w = blocksize
    rows, columns = dense.shape[:2]
    if h <= 0 or w <= 0 or rows % h or columns % w:
        raise RuntimeError(
            f"dense_to_{layout.name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
            f"({h},{w})"
        )
    grid = dense.reshape(rows // h, h, columns // w, w, *dense.shape[2:]).swapaxes(1, 2)
    there = (grid != 0).any(tuple(range(2, grid.ndim)))
    numbered = SparseArray(np.stack(np.nonzero(there)).astype(np.int64), np.arange(there.sum()), there.shape, True)
    lines = compressed_from(numbered, layout)
    blocks = grid[there][lines.values]
    return CompressedArray(layout, lines.compressed, lines.plain, np.ascontiguousarray(blocks), dense.shape)


convert = {one: converter(one) for one in COMPRESSED}


@op(vmap="entries", space=None, name="to_sparse", node="ToSparseBackward1", layout="sparse", sparse="own",
    self=lambda grad, source, blocksize: in_layout(grad, source, blocksize))  # fmt: skip
def to_coordinates(self: Array, source: Any, blocksize: Any) -> Array:
    """A compressed tensor as entries."""
    return entries_of(self)


def in_layout(grad: Any, wanted: Any, blocksize: Any = None) -> Any:
    """A gradient in the layout of the tensor it is of, as torch gives it."""
    if wanted is strided:
        return dense_of(grad)
    if not isinstance(grad, SparseTensor) or grad.layout is wanted:
        return grad
    if wanted is sparse_coo:
        return to_coordinates(grad, grad.layout, blocksize)
    return convert[wanted](grad, blocksize, grad.layout)


@function(raw=True, space=None)
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """All elements, in a tensor that is strided: itself if it is."""
    if self.layout is strided:
        return converted(self, dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    return to_dense_op(self, masked_grad is not False)  # type: ignore[no-any-return]


@function(raw=True, space=None)
def to_sparse(
    self: Tensor, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Tensor:
    """The same elements in a sparse layout; `sparse_dim` says how many of the first dimensions are sparse."""
    if isinstance(sparse_dim, Layout):
        sparse_dim, layout = None, sparse_dim
    if layout is not None and layout is not sparse_coo:
        if layout is strided:
            return to_dense(self)
        return to_compressed(self, layout, blocksize, dense_dim)
    if self.layout is sparse_coo:
        if sparse_dim not in (None, self._array.sparse_dim):  # type: ignore[attr-defined]
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                "supported"
            )
        return self
    if self.layout is not strided:
        if sparse_dim not in (None, 2):
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {NAMES[self.layout.name]} to Sparse with sparse_dim "
                "argument !=2 is not supported"
            )
        block = self._array.block() if self._array.blocked else None  # type: ignore[attr-defined]
        return to_coordinates(self, self.layout, block)  # type: ignore[no-any-return]
    if sparse_dim is None:
        return to_entries(self)  # type: ignore[no-any-return]
    if not 0 <= sparse_dim <= self.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {sparse_dim} is given"
        )
    if sparse_dim == 0 and self.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    return to_entries_of(self, sparse_dim)  # type: ignore[no-any-return]


def to_compressed(self: Tensor, layout: Layout, blocksize: Any = None, dense_dim: Any = None) -> Tensor:
    """The same elements in a compressed layout."""
    if layout not in COMPRESSED:
        raise RuntimeError(f"to_sparse: there is no conversion to layout {layout}")
    if dense_dim:
        raise NotImplementedError("compressed layouts with dense dimensions are made from their parts alone")
    if COMPRESSED[layout][1]:
        if blocksize is None:
            raise RuntimeError(f"to_{layout.name}: blocksize is required")
        block = (blocksize, blocksize) if isinstance(blocksize, int) else tuple([int(n) for n in blocksize])
    else:
        block = None
    if self.layout is layout and (block is None or self._array.block() == block):  # type: ignore[attr-defined]
        return self
    return convert[layout](self, block, self.layout)  # type: ignore[no-any-return]


@function(raw=True, space=None)
def to_sparse_coo(self: Tensor) -> Tensor:
    """The same elements in the layout sparse_coo."""
    return to_sparse(self)


@function(raw=True, space=None)
def to_sparse_csr(self: Tensor, dense_dim: Any = None) -> Tensor:
    """The same elements row by row."""
    return to_compressed(self, sparse_csr, None, dense_dim)


@function(raw=True, space=None)
def to_sparse_csc(self: Tensor, dense_dim: Any = None) -> Tensor:
    """The same elements column by column."""
    return to_compressed(self, sparse_csc, None, dense_dim)


@function(raw=True, space=None)
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: Any = None) -> Tensor:
    """The same elements in blocks, row by row."""
    return to_compressed(self, sparse_bsr, blocksize, dense_dim)


@function(raw=True, space=None)
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: Any = None) -> Tensor:
    """The same elements in blocks, column by column."""
    return to_compressed(self, sparse_bsc, blocksize, dense_dim)


Tensor._to_sparse_csr = to_sparse_csr  # type: ignore[attr-defined]


@function(raw=True, space=None)
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of the entries of a sparse tensor."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("Expected the mask of sparse_mask() to be a sparse tensor")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {messages.shape_text(self.shape)} but "
            f"mask has size {messages.shape_text(mask.shape)}"
        )
    return mask_op(self, mask, self.layout is strided)  # type: ignore[no-any-return]
