"""torch.sparse: products, sums and softmax of sparse tensors whose gradients are sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.layout import sparse_coo, sparse_csc, sparse_csr, strided
from pullback._dtype import FROM_NUMPY, named_dtype
from pullback._op.define import Array, Number, function, op
from pullback._runtime import messages
from pullback._sparse.array import CompressedArray, SparseArray, keys_of, scatter_add
from pullback._sparse.tensor import SparseTensor
from pullback._tensor import Tensor, normal_dim, wrap
from pullback.ops.create.cast import converted
from pullback.ops.linalg.matmul import mm
from pullback.ops.pointwise.arithmetic import conj, scaled
from pullback.ops.reduce.sums import sum_all
from pullback.ops.shape.dims import t
from pullback.ops.sparse.compressed import to_sparse
from pullback.ops.sparse.coo import coalesced, entries_in, mask_op, sparse_coo_tensor, values_op
from pullback.ops.sparse.products import plus_product as add_product
from pullback.ops.sparse.products import product
from pullback.ops.sparse.rules import reduced, times_number, values_at

# ------------------------------------------------------------------ products


@op(
    vmap="entries",
    space=None,
    name="_sparse_addmm",
    sparse="own",
    self=lambda grad, beta: scaled(grad, beta),
    mat1=lambda grad, mat1, mat2, alpha: scaled(sampled_product(grad, t(conj(mat2)), coalesced(mat1)), alpha),
    mat2=lambda grad, mat1, alpha: scaled(mm(t(conj(mat1)), grad), alpha),
)
def sparse_addmm(self: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """beta * self + alpha * (mat1 @ mat2), mat1 sparse; the gradient of mat1 has its entries."""
    return add_product(None, self, mat1, mat2, beta=beta, alpha=alpha)


@op(
    vmap="entries",
    space=None,
    sparse="own",
    self=lambda grad, mat2, mask: mm(grad, t(conj(mat2))),
    mat2=lambda grad, self, mask: mm(t(conj(self)), grad),
)
def sampled_product(self: Array, mat2: Array, mask: Array) -> Array:
    """The elements of a product of dense matrices at the places of the entries of a sparse one."""
    rows, columns = mask.coordinates() if type(mask) is CompressedArray else mask.indices
    return mask.with_values(np.einsum("ij,ij->i", self[rows], mat2.T[columns]).astype(mask.dtype, copy=False))


@op(
    vmap="entries",
    space=None,
    name="_sparse_sparse_matmul",
    sparse="own",
    self=lambda grad, self, other: mask_op(coalesced(mm(grad, t(conj(other)))), coalesced(self), False),
    other=lambda grad, self, other: mask_op(coalesced(mm(t(conj(self)), grad)), coalesced(other), False),
)
def sparse_sparse_matmul(self: Array, other: Array) -> Array:
    """The product of two sparse matrices."""
    if self.shape[1] != other.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and "
            f"{other.shape[0]}x{other.shape[1]})"
        )
    if self.dtype != other.dtype:
        kinds = [FROM_NUMPY[a.dtype].scalar_type for a in (self, other)]
        raise RuntimeError(f"sparse_matmul: both tensors must have the same dtype, but got {kinds[0]} and {kinds[1]}")
    return product(self, other)


@function(raw=True, space="sparse", method=False, name="mm")
def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: Any = None) -> Tensor:
    """The product of two matrices of which one is sparse; the gradient of that one is sparse, with its entries."""
    if reduce is not None:
        raise NotImplementedError("torch.sparse.mm with reduce= is not implemented; use scatter_reduce")
    first, second = isinstance(mat1, SparseTensor), isinstance(mat2, SparseTensor)
    if not first and not second:
        return mm(mat1, mat2)  # type: ignore[no-any-return]
    if first and second:
        return sparse_sparse_matmul(mat1, mat2)  # type: ignore[no-any-return]
    if not first:
        return t(sparse_mm(t(mat2), t(mat1)))  # type: ignore[no-any-return]
    zeros = wrap(np.zeros((mat1.shape[0], mat2.shape[-1]), mat1._array.dtype))
    return sparse_addmm(zeros, mat1, mat2, beta=0, alpha=1)  # type: ignore[no-any-return]


@function(raw=True, space="sparse", method=False, name="addmm")
def public_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), mat1 sparse; the gradient of mat1 is sparse."""
    return sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def check_outer(name: str, self: Tensor, mat: Tensor) -> None:
    """The products below know one layout each."""
    if self.layout is not sparse_coo or mat.layout is not strided:
        raise RuntimeError(f"tensor.{name}(...) can only be called on sparse tensors")


@function(raw=True)
def smm(self: Tensor, mat: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a sparse matrix of the rows that have entries."""
    check_outer("smm", self, mat)
    empty = sparse_coo_tensor((self.shape[0], mat.shape[1]), dtype=self.dtype)
    return sspaddmm(empty, self, mat)


@function(raw=True)
def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * self + alpha * (mat1 @ mat2), self and mat1 sparse, mat2 dense; without gradients, as in torch."""
    check_outer("sspaddmm", mat1, mat2)
    if self.layout is not sparse_coo:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"sspaddmm: Argument #3: Expected dim 0 size {mat1.shape[1]}, got {mat2.shape[0]}")
    for dim, size in ((0, mat1.shape[0]), (1, mat2.shape[1])):
        if self.shape[dim] != size:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {dim} size {size}, got {self.shape[dim]}")
    one: Any = self._array
    rows = hybrid(mat1._array, mat2._array)
    width = mat2.shape[1]
    indices = np.stack([np.repeat(rows.indices[0], width), np.tile(np.arange(width), rows.nnz)])
    product = SparseArray(indices, times_number(rows.values.reshape(-1), alpha), one.shape)
    kept = SparseArray(one.indices, times_number(one.values, beta), one.shape)
    joined = np.concatenate([kept.indices, product.indices], 1), np.concatenate([kept.values, product.values])
    return wrap(SparseArray(*joined, one.shape))


@function(raw=True, method=False)
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a tensor whose first dimension alone is sparse."""
    check_outer("hspmm", mat1, mat2)
    return wrap(hybrid(mat1._array, mat2._array))


@function(raw=True, method=False)
def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`hspmm` under another name."""
    return hspmm(mat1, mat2)


def hybrid(a: Any, b: Any) -> SparseArray:
    """The rows of a product that have entries."""
    one = a.coalesce()
    rows = np.unique(one.indices[0])
    made = product(one, b)[rows]
    return SparseArray(rows[None].astype(np.int64), made, (one.shape[0], b.shape[1]))


# ------------------------------------------------------------------ sums


@op(
    vmap="entries",
    space=None,
    name="_sparse_sum",
    sparse="own",
    self=lambda grad, self, dim: spread(grad, coalesced(self), dim),
)
def sparse_sum_dim(self: Array, dim: Any) -> Array:
    """The sum along dimensions; dense if no sparse one is left."""
    return reduced(self.coalesce(), list(dim))


@op(vmap="entries", space=None, sparse="own", layout="sparse", grad=lambda grad, dim: sparse_sum_dim(grad, dim))
def spread(grad: Array, self: Array, dim: Any) -> Array:
    """The gradient of a sum along dimensions, at the entries of what was summed."""
    n = self.sparse_dim
    kept = [d for d in range(n) if d not in dim]
    if type(grad) is SparseArray:
        found = values_at(grad.coalesce(), self.indices[kept])
    else:
        found = grad[tuple(self.indices[kept])] if kept else np.broadcast_to(grad, (self.nnz, *grad.shape))
    for d in dim:
        if d >= n:
            found = np.expand_dims(found, d - n + 1)
    return self.with_values(np.broadcast_to(found, self.values.shape).copy())


@function(raw=True, space="sparse", method=False, name="sum")
def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along dimensions; the gradient is sparse, with the entries of `input`."""
    entries_in("coalesce", input)
    if dtype is not None:
        input = converted(input, named_dtype(dtype))
    if dim is None:
        return sum_all(values_op(coalesced(input)))  # type: ignore[no-any-return]
    dims = [dim] if isinstance(dim, int) else list(dim)
    wanted = sorted({normal_dim(d, input.ndim) for d in dims})
    return sparse_sum_dim(input, tuple(wanted))  # type: ignore[no-any-return]


# ------------------------------------------------------------------ softmax


def groups_of(self: SparseArray, dim: int) -> tuple[Any, int]:
    """The number of the line along a sparse dimension that each entry lies on, and how many lines there are."""
    rest = [d for d in range(self.sparse_dim) if d != dim]
    keys = keys_of(self.indices[rest], tuple([self.shape[d] for d in rest]))
    found, group = np.unique(keys, return_inverse=True)
    return group.reshape(-1), found.size


def sums_in(self: SparseArray, dim: int, values: Any) -> Any:
    """For each entry, the sum of the values on its line."""
    if dim >= self.sparse_dim:
        return values.sum(dim - self.sparse_dim + 1, keepdims=True)
    group, count = groups_of(self, dim)
    sums = np.zeros((count, *values.shape[1:]), values.dtype)
    scatter_add(sums, group, values)
    return sums[group]


def shifted(self: SparseArray, dim: int) -> Any:
    """The values less the largest on their line."""
    if dim >= self.sparse_dim:
        return self.values - self.values.max(dim - self.sparse_dim + 1, keepdims=True)
    group, count = groups_of(self, dim)
    largest = np.full((count, *self.values.shape[1:]), -np.inf, self.dtype)
    np.maximum.at(largest, group, self.values)
    return self.values - largest[group]


@op(
    vmap="entries",
    space=None,
    name="_sparse_softmax",
    sparse="own",
    self=lambda grad, result, dim: softmax_slope(grad, result, dim),
)
def softmax_op(self: Array, dim: int) -> Array:
    """The softmax of the entries along a dimension; what is not there is minus infinity."""
    one = self.coalesce()
    powers = np.exp(shifted(one, dim))
    return one.with_values(powers / sums_in(one, dim, powers))


@op(vmap="entries", space=None, sparse="own")
def softmax_slope(grad: Array, output: Array, dim: int) -> Array:
    """The gradient of the softmax."""
    given = values_at(grad.coalesce(), output.indices) if type(grad) is SparseArray else grad[tuple(output.indices)]
    return output.with_values(output.values * (given - sums_in(output, dim, given * output.values)))


@op(
    vmap="entries",
    space=None,
    name="_sparse_log_softmax",
    sparse="own",
    self=lambda grad, result, dim: log_softmax_slope(grad, result, dim),
)
def log_softmax_op(self: Array, dim: int) -> Array:
    """Its logarithm."""
    one = self.coalesce()
    moved = shifted(one, dim)
    return one.with_values(moved - np.log(sums_in(one, dim, np.exp(moved))))


@op(vmap="entries", space=None, sparse="own")
def log_softmax_slope(grad: Array, output: Array, dim: int) -> Array:
    """The gradient of the logarithm of the softmax."""
    given = values_at(grad.coalesce(), output.indices) if type(grad) is SparseArray else grad[tuple(output.indices)]
    return output.with_values(given - np.exp(output.values) * sums_in(output, dim, given))


def along(name: str, input: Tensor, dim: int, dtype: Any) -> tuple[Tensor, int]:
    """The operand of a softmax, and its dimension."""
    if input.layout is not sparse_coo:
        backend = "CPU" if input.layout is strided else "SparseCsrCPU"
        raise NotImplementedError(f"Could not run 'aten::_sparse_{name}' with arguments from the '{backend}' backend.")
    if dtype is not None:
        input = converted(input, named_dtype(dtype))
    if FROM_NUMPY[input._array.dtype].category != 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{FROM_NUMPY[input._array.dtype].scalar_type}'")
    return input, normal_dim(dim, input.ndim)


@function(raw=True, space="sparse", method=False, name="softmax")
def sparse_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax along a dimension of the elements that are there."""
    return softmax_op(*along("softmax", input, dim, dtype))  # type: ignore[no-any-return]


@function(raw=True, space="sparse", method=False, name="log_softmax")
def sparse_log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Its logarithm."""
    return log_softmax_op(*along("log_softmax", input, dim, dtype))  # type: ignore[no-any-return]


# ------------------------------------------------------------------ diagonals


@function(raw=True, space="sparse", method=False)
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with these rows as its diagonals."""
    rows, at = diagonals._array, np.atleast_1d(offsets._array)
    rows = np.atleast_2d(rows)
    if rows.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if at.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if rows.shape[0] != at.size:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({at.size})")
    if at.dtype != np.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {FROM_NUMPY[at.dtype].scalar_type}")
    if np.unique(at).size != at.size:
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        name = messages.type_name(layout) if not hasattr(layout, "name") else layout.name
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {name}")
    height, width = int(shape[0]), int(shape[1])
    places, values = [], []
    for row, offset in zip(rows, at.tolist(), strict=True):
        begin, end = max(offset, 0), min(width, height + offset, row.size)
        columns = np.arange(begin, max(end, begin))
        places.append(np.stack([columns - offset, columns]))
        values.append(row[columns])
    made = SparseArray(np.concatenate(places, 1), np.concatenate(values), (height, width))
    out = wrap(made)
    return out if layout in (None, sparse_coo) else to_sparse(out, layout=layout)
