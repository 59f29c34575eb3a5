"""Tensors of the layout sparse_coo: made from indices and values, taken apart again, and from and to dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.layout import sparse_coo, strided
from pullback._dtype import defaults
from pullback._op.declare import spaces
from pullback._op.define import Array, function, op
from pullback._runtime import messages
from pullback._sparse.array import CompressedArray, SparseArray
from pullback._sparse.tensor import NAMES, SparseTensor
from pullback._tensor import Tensor, wrap
from pullback.ops.create.data import as_dtype, as_tensor, finished
from pullback.ops.sparse.rules import entries_from, entries_of, values_at

# ------------------------------------------------------------------ between values, entries and elements


@op(
    vmap="entries",
    space=None,
    name="_sparse_coo_tensor_with_dims_and_tensors",
    layout="sparse",
    sparse="own",
    values=lambda grad, indices: elements_at(grad, indices),
)
def entries_op(indices: Array, values: Array, size: Any, is_coalesced: Any = None) -> Array:
    """A sparse tensor from its parts, whose memory it shares."""
    return SparseArray(indices, values, size, bool(is_coalesced))


@op(
    vmap="entries",
    space=None,
    sparse="own",
    self=lambda grad, indices, self_sym_sizes: entries_op(indices, grad, self_sym_sizes),
)
def elements_at(self: Array, indices: Array) -> Array:
    """The elements of a tensor, dense or sparse, at some places."""
    return values_at(self.coalesce(), indices) if type(self) is SparseArray else self[tuple(indices)]


@op(vmap="entries", space=None, name="coalesce", sparse="own", self=lambda grad: grad)
def coalesce_op(self: Array) -> Array:
    """The same with one entry for each element."""
    return self.coalesce()


@op(vmap="entries", space=None, name="values", sparse="own", self=lambda grad, self: with_values(self, grad))
def values_op(self: Array) -> Array:
    """The values."""
    return self.values


@op(vmap="entries", space=None, sparse="own", layout="sparse", values=lambda grad, self: entries_at(grad, self))
def with_values(self: Array, values: Array) -> Array:
    """Other values at the places of a sparse tensor."""
    return self.with_values(values)


@op(vmap="entries", space=None, sparse="own", self=lambda grad, mask: with_values(mask, grad))
def entries_at(self: Array, mask: Array) -> Array:
    """The elements of a tensor, dense or sparse, at the places of the entries of another."""
    return masked(self, mask).values


def masked(self: Any, mask: Any) -> Any:
    """The elements of an array at the places of the entries of a sparse one."""
    if type(mask) is CompressedArray:
        if mask.batch_dim:
            raise NotImplementedError("sparse_mask with a mask of batches of matrices is not implemented")
        rows, columns = places = mask.coordinates()
        if mask.blocked:
            (h, w), dense = mask.block(), self if type(self) is np.ndarray else self.to_dense()
            grid = dense.reshape(dense.shape[0] // h, h, dense.shape[1] // w, w, *dense.shape[2:])
            return mask.with_values(grid[rows, :, columns])
        if type(self) is CompressedArray:
            self = entries_of(self)
        found = values_at(self.coalesce(), places) if type(self) is SparseArray else self[rows, columns]
        return mask.with_values(found)
    if type(self) is CompressedArray:
        self = entries_of(self)
    found = values_at(self.coalesce(), mask.indices) if type(self) is SparseArray else self[tuple(mask.indices)]
    return mask.with_values(found)


@op(
    vmap="entries",
    space=None,
    name="sparse_mask",
    sparse="own",
    layout="sparse",
    self=lambda grad, mask, dense: dense_of(mask_op(grad, mask, False)) if dense else mask_op(grad, mask, False),
)
def mask_op(self: Array, mask: Array, dense: bool) -> Array:
    """The elements of a tensor at the places of the entries of another; `dense` says which kind of tensor it is."""
    return masked(self, mask)


@op(
    vmap="entries",
    space=None,
    name="to_dense",
    sparse="own",
    self=lambda grad, self, masked_grad: masked_by(grad, self) if masked_grad else as_sparse_as(grad, self),
)
def to_dense_op(self: Array, masked_grad: bool) -> Array:
    """All elements."""
    return self.to_dense()


def masked_by(grad: Any, self: Any) -> Any:
    """The gradient of the entries that are there."""
    mask = coalesced(self)
    return mask_op(grad, mask, not isinstance(grad, SparseTensor))


def as_sparse_as(grad: Any, self: Any) -> Any:
    """The gradient of all elements, in the layout of a sparse tensor."""
    if isinstance(grad, SparseTensor):
        return grad
    if type(self._array) is SparseArray:
        return to_entries_of(grad, self._array.sparse_dim)
    return grad.to_sparse(layout=self.layout, blocksize=self._array.block() if self._array.blocked else None)


def dense_of(grad: Any) -> Any:
    """A gradient as a dense tensor."""
    return to_dense_op(grad, True) if isinstance(grad, SparseTensor) else grad


def coalesced(self: Any) -> Any:
    """A sparse tensor with one entry for each element; itself if it is such."""
    return self if type(self._array) is not SparseArray or self._array.coalesced else coalesce_op(self)


@op(
    vmap="entries",
    space=None,
    name="to_sparse",
    node="ToSparseBackward1",
    layout="sparse",
    self=lambda grad: dense_of(grad),
)
def to_entries(self: Array) -> Array:
    """The elements that are not zero."""
    return entries_from(self, self.ndim)


@op(vmap="entries", space=None, name="to_sparse", layout="sparse", self=lambda grad: dense_of(grad))
def to_entries_of(self: Array, sparse_dim: int) -> Array:
    """The parts that are not zero, by their first dimensions."""
    return entries_from(self, sparse_dim)


# ------------------------------------------------------------------ making them


def check_indices(indices: Any, values: Any) -> None:
    """Torch's demands on the parts."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {messages.shape_text(indices.shape)}")
    if values.ndim == 0 or indices.shape[1] != values.shape[0]:
        count = values.shape[0] if values.ndim else 1
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{count}"
        )


def check_size(indices: Any, values: Any, size: tuple[int, ...]) -> None:
    """What torch checks if it is told to check invariants; here an index outside would be an error in the end."""
    dims, dense = indices.shape[0], values.ndim - 1
    if len(size) != dims + dense:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {dims}, dense_dim = {dense}"
        )
    wanted = (values.shape[0], *size[dims:])
    if values.shape != wanted:
        raise RuntimeError(
            f"values has incorrect size, expected {messages.shape_text(wanted)}, got "
            f"{messages.shape_text(values.shape)}"
        )
    if indices.shape[1]:
        for dim, (least, largest) in enumerate(zip(indices.min(1).tolist(), indices.max(1).tolist(), strict=True)):
            if least < 0:
                raise RuntimeError(f"found negative index {least} for dim {dim}")
            if largest >= size[dim]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {largest}"
                )


def in_order(indices: Any, size: tuple[int, ...]) -> bool:
    """True for indices in order, each but once."""
    keys = SparseArray(indices, np.empty(indices.shape[1]), size).keys()
    return bool((np.diff(keys) > 0).all())


def as_size(name: str, size: Any, position: int) -> tuple[int, ...]:
    """A shape given as an argument."""
    if isinstance(size, (Tensor, int)) or not hasattr(size, "__iter__"):
        raise TypeError(
            f"{name}(): argument 'size' (position {position}) must be tuple of ints, not {messages.type_name(size)}"
        )
    given = tuple([int(n) for n in size])
    if min(given, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    return given


@function(raw=True, method=False, overridable=False)
def sparse_coo_tensor(
    *args: Any, indices: Any = None, values: Any = None, size: Any = None, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor with these values at these indices, a column each; or one of a size, without any."""
    name = "sparse_coo_tensor"
    target = as_dtype(name, dtype)
    if len(args) == 1 and indices is None and values is None and size is None:
        return empty_coo(as_size(name, args[0], 1), target, requires_grad)
    given = dict(zip(("indices", "values", "size"), args, strict=False))
    indices, values, size = (given.get("indices", indices), given.get("values", values), given.get("size", size))
    if indices is None and values is None and size is not None:
        return empty_coo(as_size(name, size, 1), target, requires_grad)
    if indices is None or values is None or len(args) > 3:
        raise TypeError(f"{name}() takes indices and values, or a size; got {len(args)} arguments")
    values = as_tensor(values, dtype=target)
    found = as_tensor(indices, dtype=None)
    places = found._array.astype(np.int64, copy=False)
    check_indices(places, values._array)
    if size is None:
        least = places.min(initial=0)
        if least < 0:
            dim = int(np.argmax(places.min(1) < 0))
            raise RuntimeError(f"found negative index {places[dim].min()} for dim {dim}")
        size = (*(places.max(1, initial=-1) + 1).tolist(), *values.shape[1:])
    else:
        size = as_size(name, size, 3)
    check_size(places, values._array, size)
    if is_coalesced and check_invariants and not in_order(places, size):
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    if requires_grad or not values.requires_grad:
        return finished(name, SparseArray(places, values._array, size, bool(is_coalesced)), requires_grad)
    return entries_op(wrap(places), values, size, is_coalesced)  # type: ignore[no-any-return]


def empty_coo(size: tuple[int, ...], target: Any, requires_grad: bool = False) -> Tensor:
    """A sparse tensor without entries, all its dimensions sparse."""
    kind = defaults.numpy if target is None else target.numpy
    places = np.empty((len(size), 0), np.int64)
    return finished("sparse_coo_tensor", SparseArray(places, np.empty(0, kind), size, True), requires_grad)


# ------------------------------------------------------------------ methods


def wrong_layout(name: str, wanted: str, self: Tensor) -> RuntimeError:
    """Torch's error for a tensor of another layout."""
    return RuntimeError(f"{name} expected {wanted} tensor layout but got {NAMES[self.layout.name]}")


def entries_in(name: str, self: Tensor) -> SparseArray:
    """The entries of a tensor, if it has such."""
    if self.layout is not sparse_coo:
        raise wrong_layout(name, "sparse coordinate", self)
    return self._array  # type: ignore[return-value]


def inner_entries(name: str, self: Tensor) -> SparseArray:
    """The same for functions that torch has for this layout alone."""
    if self.layout is not sparse_coo:
        backend = "CPU" if self.layout is strided else "SparseCsrCPU"
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend.")
    return self._array  # type: ignore[return-value]


@function(raw=True, space=None)
def coalesce(self: Tensor) -> Tensor:
    """The same with one entry for each element, in order; itself if it is such."""
    entries_in("coalesce", self)
    return coalesced(self)  # type: ignore[no-any-return]


@function(raw=True, space=None)
def is_coalesced(self: Tensor) -> bool:
    """Whether there is one entry for each element, in order."""
    return entries_in("is_coalesced", self).coalesced


@function(raw=True, space=None)
def indices(self: Tensor) -> Tensor:
    """The indices of a coalesced tensor, a column for each entry."""
    if not entries_in("indices", self).coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return wrap(self._array.indices)  # type: ignore[attr-defined]


@function(raw=True, space=None)
def values(self: Tensor) -> Tensor:
    """The values of the entries; of a coalesced tensor, if it is sparse_coo."""
    if self.layout is strided:
        raise wrong_layout("values", "sparse", self)
    if self.layout is sparse_coo and not self._array.coalesced:  # type: ignore[attr-defined]
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values_op(self)  # type: ignore[no-any-return]


@function(raw=True, space=None)
def _indices(self: Tensor) -> Tensor:
    """The indices, coalesced or not, without history."""
    return wrap(inner_entries("_indices", self).indices)


@function(raw=True, space=None)
def _values(self: Tensor) -> Tensor:
    """The values, coalesced or not, without history."""
    return wrap(inner_entries("_values", self).values)


@function(raw=True, space=None)
def _nnz(self: Tensor) -> int:
    """The number of entries."""
    if self.layout is strided:
        inner_entries("_nnz", self)
    return self._array.nnz  # type: ignore[attr-defined, no-any-return]


@function(raw=True, space=None)
def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Say whether there is one entry for each element, in order."""
    one = inner_entries("_coalesced_", self)
    self._array = SparseArray(one.indices, one.values, one.shape)  # type: ignore[assignment]
    self._array.coalesced = coalesced  # type: ignore[attr-defined]
    return self


@function(raw=True, space=None)
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions."""
    return 0 if self.layout is strided else self._array.sparse_dim  # type: ignore[attr-defined, no-any-return]


@function(raw=True, space=None)
def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions."""
    return self._array.ndim if self.layout is strided else self._array.dense_dim  # type: ignore[attr-defined, no-any-return]


Tensor._dimI, Tensor._dimV = sparse_dim, dense_dim


def copying(name: str, method: Any) -> Any:
    """A function that copies what a method gives."""

    def copy(input: Tensor) -> Tensor:
        return method(input).clone()  # type: ignore[no-any-return]

    copy.__name__ = copy.__qualname__ = name
    copy.__doc__ = f"A copy. {method.__doc__}"
    return copy


spaces["torch"]["values_copy"] = copying("values_copy", values)
spaces["torch"]["indices_copy"] = copying("indices_copy", indices)
