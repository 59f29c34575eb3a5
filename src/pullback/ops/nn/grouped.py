"""Products of several pairs of matrices that lie side by side in larger ones: grouped_mm."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY, float64, int32
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.ops.shape.dims import transpose
from pullback.ops.supported import refuse_gradient


def grad_of_left(grad: Any, mat2: Any, offs: Any, self_sym_sizes: Any, self_sym_strides: Any) -> Any:
    """The gradient of the left matrices: again a grouped product; the layout is saved as torch does."""
    return grouped(grad, transpose(mat2, -2, -1), offs)


def grad_of_right(grad: Any, self: Any, offs: Any, mat2_sym_sizes: Any, mat2_sym_strides: Any) -> Any:
    """The gradient of the right matrices."""
    return grouped(transpose(self, -2, -1), grad, offs)


@op(
    vmap="entries",
    space=None,
    name="_grouped_mm",
    node="GroupedMmBackward0",
    self=grad_of_left,
    mat2=grad_of_right,
    result=lambda self_t, mat2_t, self, mat2, offs: grouped(self_t, mat2, offs) + grouped(self, mat2_t, offs),
)
def grouped(self: Array, mat2: Array, offs: Array | None) -> Array:
    """The products group by group; a matrix of two dimensions is cut where `offs` says a group ends."""
    if offs is None:
        return np.matmul(self, mat2).astype(self.dtype, copy=False)
    ends = offs.tolist()
    parts = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    if self.ndim == mat2.ndim == 2:
        found = [np.matmul(self[:, part], mat2[part]) for part in parts]
        return np.stack(found).astype(self.dtype, copy=False)
    out = np.zeros((self.shape[-2], mat2.shape[-1]), self.dtype)
    for group, part in enumerate(parts):
        if self.ndim == 2:
            out[part] = np.matmul(self[part], mat2[group])
        else:
            out[:, part] = np.matmul(self[group], mat2[:, part])
    return out


@function(raw=True, space="nn.functional", method=False)
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Multiply matrices group by group.

    Two 3-D batches `(G, M, K)` and `(G, K, N)` give `(G, M, N)`. A 2-D matrix is cut into groups that end where the
    int32 tensor `offs` `(G,)` says: the rows of `mat_a` `(M, K)` against `(G, K, N)`, or the columns of `mat_b`
    `(K, N)` against `(G, M, K)`, both giving `(M, N)`; of two 2-D matrices the common dimension is cut, which gives
    `(G, M, N)`.
    `bias` is not implemented, and `out_dtype` has to be the dtype of `mat_a`.
    """
    refuse_gradient("_grouped_mm", bias=bias)
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if not matrix.dtype.is_floating_point or matrix.dtype is float64:
            kind = matrix.dtype.scalar_type
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {kind}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (mat_a.ndim == 2 or mat_b.ndim == 2) is not (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and offs.dtype is not int32:
        raise RuntimeError("Offsets have to be int32")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if mat_b.dtype is not mat_a.dtype:
        names = (mat_b.dtype.c_type, FROM_NUMPY[mat_a._array.dtype].c_type)
        raise RuntimeError(f"Expected out tensor to have dtype {names[0]}, but got {names[1]} instead")
    if bias is not None:
        raise NotImplementedError("grouped_mm(bias=...) is not implemented; add the bias to the result")
    return grouped(mat_a, mat_b, offs)


def needs_float8(name: str) -> None:
    """Publish a function of 8-bit floats, which do not exist here."""

    def refuse(*args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError(f"{name} multiplies matrices of 8-bit floats, which do not exist here; use matmul")

    refuse.__name__, refuse.__doc__ = name, "Raise NotImplementedError: it needs 8-bit floats, which do not exist here."
    function(raw=True, space="nn.functional", method=False, name=name)(refuse)


needs_float8("scaled_mm")
needs_float8("scaled_grouped_mm")
