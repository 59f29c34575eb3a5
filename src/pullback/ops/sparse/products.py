"""Rules: products of matrices of which some are sparse. scipy computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.layout import sparse_csr
from pullback._dtype import FROM_NUMPY
from pullback._op.declare import Op
from pullback._runtime.building import loaded
from pullback._sparse.array import CompressedArray, SparseArray, refused
from pullback.ops.sparse.rules import compressed_from, entries_of, is_sparse, rule, rule_of_all_layouts

Array = Any


def scipy_of(self: Any, dtype: Any) -> Any:
    """A sparse matrix as scipy has it, the entries in their order."""
    sparse = loaded("scipy.sparse")
    if self.ndim != 2 or self.dense_dim or (type(self) is CompressedArray and self.batch_dim):
        raise RuntimeError(f"addmm: matrices expected, got {self.sparse_dim}D tensor")
    if type(self) is CompressedArray and not self.blocked:
        made = sparse.csc_array if self.by_column else sparse.csr_array
        return made((self.values.astype(dtype, copy=False), self.plain, self.compressed), shape=self.shape)
    entries = entries_of(self) if type(self) is CompressedArray else self
    places = (entries.indices[0], entries.indices[1])
    return sparse.coo_array((entries.values.astype(dtype, copy=False), places), shape=entries.shape).tocsr()


def check_product(self: Any, mat2: Any) -> None:
    """Torch's demands on two matrices."""
    for one, name in ((self, "self"), (mat2, "mat2")):
        if one.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if self.shape[1] != mat2.shape[0] and is_sparse(self) and not is_sparse(mat2):
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {self.shape[1]}, got {mat2.shape[0]}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    if self.dtype != mat2.dtype:
        kinds = [FROM_NUMPY[one.dtype].scalar_type for one in (self, mat2)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")


def product(a: Any, b: Any) -> Any:
    """The product of two matrices: sparse if both are, in the layout of the first."""
    wide = np.dtype(np.float32) if is_half(a.dtype) else a.dtype
    left, right = [scipy_of(m, wide) if is_sparse(m) else m.astype(wide, copy=False) for m in (a, b)]
    made = left @ right
    if not (is_sparse(a) and is_sparse(b)):
        return np.ascontiguousarray(made, a.dtype)
    made = made.tocsr()
    made.sort_indices()
    values = made.data.astype(a.dtype, copy=False)
    begins, columns = made.indptr.astype(np.int64), made.indices.astype(np.int64)
    one = CompressedArray(sparse_csr, begins, columns, values, made.shape)
    if type(a) is SparseArray:
        return entries_of(one)
    return one if a.layout is sparse_csr else compressed_from(entries_of(one), a.layout)


@rule_of_all_layouts
def matrix_product(op: Op, self: Any, mat2: Any) -> Any:
    """The product of two matrices."""
    check_product(self, mat2)
    return product(self, mat2)


@rule_of_all_layouts
def matrix_vector(op: Op, self: Any, vec: Any) -> Any:
    """A matrix times a vector."""
    if is_sparse(vec):
        raise refused("mv", vec.backend)
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.size:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return product(self, vec[:, None])[:, 0]


@rule_of_all_layouts
def plus_product(op: Any, self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * (mat1 @ mat2), self dense."""
    if is_sparse(self):
        raise RuntimeError("addmm_sparse_dense: expected strided result tensor, got tensor with layout Sparse")
    check_product(mat1, mat2)
    made = product(mat1, mat2)
    if is_sparse(made):
        made = made.to_dense()
    kind = made.dtype.type
    out = made if alpha == 1 else made * kind(alpha)
    if self.ndim > 2 or np.broadcast_shapes(self.shape, out.shape) != out.shape:
        raise RuntimeError(
            f"The expanded size of the tensor ({out.shape[-1]}) must match the existing size ({self.shape[-1]}) at "
            f"non-singleton dimension {out.ndim - 1}.  Target sizes: {list(out.shape)}.  Tensor sizes: "
            f"{list(self.shape)}"
        )
    return out if beta == 0 else out + (self if beta == 1 else self * kind(beta))


@rule
def products(op: Op, self: Any, mat2: Any) -> Any:
    """Products of the matrices of two batches, the first sparse."""
    if not is_sparse(self) or is_sparse(mat2):
        raise refused("bmm", "SparseCPU")
    if self.ndim != 3 or mat2.ndim != 3 or self.dense_dim or self.shape[0] != mat2.shape[0]:
        raise RuntimeError("bmm_sparse: Tensors 'self' and 'mat2' must be batches of as many matrices")
    if self.shape[2] != mat2.shape[1]:
        raise RuntimeError("bmm_sparse: inner sizes of the matrices must agree")
    out = np.empty((self.shape[0], self.shape[1], mat2.shape[2]), self.dtype)
    for at in range(self.shape[0]):
        kept = self.indices[0] == at
        one = SparseArray(self.indices[1:, kept], self.values[kept], self.shape[1:])
        out[at] = product(one, mat2[at])
    return out
