"""Sparse tensors in pickles and files: their layout and their parts, as torch writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.layout import layout as Layout
from pullback._arrays.layout import sparse_coo, strided
from pullback._sparse.array import COMPRESSED, CompressedArray, SparseArray
from pullback._sparse.tensor import SparseParameter, SparseTensor
from pullback._tensor import Tensor, wrap
from pullback.ops.sparse import namespace as namespace  # whoever reads a sparse tensor needs all that is about them
from pullback.ops.sparse import writing as writing
from pullback.ops.sparse.compressed import check_parts
from pullback.ops.sparse.coo import check_indices, check_size, in_order

LAYOUTS = {f"torch.{one.name}": one for one in (strided, sparse_coo, *COMPRESSED)}


def layout_named(name: Any) -> Layout:
    """The layout of a name."""
    if name not in LAYOUTS:
        raise ValueError(f"there is no layout {name!r}")
    return LAYOUTS[name]


def parts_of(tensor: Any) -> tuple[Layout, tuple[Any, ...]]:
    """The layout of a sparse tensor and its parts, as tensors without history."""
    array = tensor._array
    if type(array) is SparseArray:
        return array.layout, (wrap(array.indices), wrap(array.values), tensor.shape, array.coalesced)
    return array.layout, (wrap(array.compressed), wrap(array.plain), wrap(array.values), tensor.shape)


def rebuild_sparse(layout: Any, parts: Any) -> Tensor:
    """A sparse tensor from its parts; every part is checked, because a file may say anything."""
    if not isinstance(layout, Layout) or layout is strided or type(parts) is not tuple or len(parts) not in (3, 4):
        raise ValueError("a sparse tensor needs a layout and its parts")
    count = 2 if layout is sparse_coo else 3
    for part in parts[:count]:
        if not isinstance(part, Tensor) or part.layout is not strided or part.is_meta:  # type: ignore[attr-defined]
            raise ValueError("the parts of a sparse tensor are dense tensors")
    size = tuple(parts[count])
    if not all([type(n) is int and n >= 0 for n in size]):
        raise ValueError("the size of a sparse tensor must be whole numbers, none negative")
    arrays = [part._array for part in parts[:count]]
    if layout is not sparse_coo:
        made = CompressedArray(layout, *arrays, size)
        check_parts(made)
        return wrap(made)
    indices, values = arrays
    if indices.dtype != np.int64:
        raise ValueError("the indices of a sparse tensor must be int64")
    check_indices(indices, values)
    check_size(indices, values, size)
    coalesced = len(parts) == 4 and bool(parts[3])
    if coalesced and not in_order(indices, size):
        raise ValueError("the file says that a sparse tensor is coalesced, which it is not")
    return wrap(SparseArray(indices, values, size, coalesced))


def remade(layout: Any, parts: Any, requires_grad: bool, parameter: bool, attributes: Any) -> Tensor:
    """A sparse tensor from its pickle."""
    out = rebuild_sparse(layout_named(layout), parts)
    if parameter:
        out = SparseParameter(out, requires_grad)
    elif requires_grad:
        out.requires_grad_(True)  # type: ignore[attr-defined]
    if attributes:
        out.__dict__.update(attributes)
    return out


def reduce_sparse(self: Any, protocol: Any) -> Any:
    """`pickle`: the layout and the parts."""
    layout, parts = parts_of(self)
    kept = isinstance(self, SparseParameter) and self.requires_grad
    attributes = dict(self.__dict__) if self.__dict__ else None
    return remade, (f"torch.{layout.name}", parts, kept, isinstance(self, SparseParameter), attributes)


SparseTensor.__reduce_ex__ = reduce_sparse  # type: ignore[method-assign, assignment]
