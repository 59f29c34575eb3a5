"""Norms of matrices, the general `linalg.norm`, and condition numbers."""

from __future__ import annotations

from math import inf
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import FROM_NUMPY, promote_types
from pullback._op.declare import spaces
from pullback._op.define import Array, Number, function, op
from pullback._op.missing import MISSING, missing_dim
from pullback._op.out import each, exactly
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, normal_dim, wrap
from pullback.kernels.numpy.linalg.spectral import REAL
from pullback.kernels.numpy.norm import moments
from pullback.ops.create.cast import to
from pullback.ops.index.masked import masked_fill_value
from pullback.ops.linalg.checks import (
    castable,
    check_floating,
    check_matrix,
    check_square,
    need_tensors,
    written,
)
from pullback.ops.linalg.solve import linalg_inv_ex
from pullback.ops.linalg.svd import singular_values
from pullback.ops.pointwise.arithmetic import mul, reciprocal, true_div
from pullback.ops.pointwise.compare import gt
from pullback.ops.pointwise.elementary import nan_to_num
from pullback.ops.reduce.extremum import amax_dim, amin_dim
from pullback.ops.reduce.norms import as_number, norm_backward, norm_tangent, vector_norm_dim
from pullback.ops.reduce.sums import axes, dims_of, sum_dim
from pullback.ops.shape.dims import inverse as inverse_order
from pullback.ops.shape.dims import permute_dims
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze
from pullback.ops.shape.slicing import slice_
from pullback.ops.supported import invalid_combination

MATRIX_NORM_OUT = each(exactly("linalg.matrix_norm expected out tensor dtype {wanted} but got: {got}"))
NORM_OUT = each(exactly("linalg.norm expected out tensor dtype {wanted} but got: {got}"))

# ------------------------------------------------------------------ norms of matrices


def check_dtype(self: Tensor, dtype: Any) -> None:
    """The dtype to compute in must hold every number of the input's."""
    if dtype is None:
        return
    kind = self.dtype
    if dtype.category < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dtype should be floating point or complex, but got {dtype.scalar_type}"
        )
    if kind.category != dtype.category:
        which = "complex" if kind.category == 3 else "real"
        raise RuntimeError(
            f"linalg.matrix_norm: dtype should be {which} for {which} inputs, but got {dtype.scalar_type}"
        )
    if promote_types(kind, dtype) is not dtype:
        raise RuntimeError(
            f"linalg.matrix_norm: the dtype of the input ({kind.scalar_type}) should be convertible without narrowing "
            f"to the specified dtype ({dtype.scalar_type})"
        )


def two_dims(self: Tensor, dim: Any, dtype: Any, half: bool) -> tuple[int, int]:
    """The two dimensions of the matrices, after all checks."""
    array = self._array
    check_matrix(array, "linalg.matrix_norm")
    check_floating(array, "linalg.matrix_norm", half)
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    first, second = (normal_dim(index(d), array.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({first}, {second})")
    check_dtype(self, dtype)
    return first, second


def matrix_norm_of(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A norm of matrices by its order: a number, "fro" or "nuc"."""
    if ord == "fro" and self._array.ndim == 2 and self._array.dtype.kind == "f" and dtype is None:
        if dim in ((-2, -1), (0, 1)):  # what most calls bring
            return vector_norm_dim(self, 2, (0, 1), keepdim)  # type: ignore[no-any-return]
    spectral = ord == "nuc" if isinstance(ord, str) else abs(ord) == 2
    if ord not in (("fro", "nuc") if isinstance(ord, str) else (1, -1, 2, -2, inf, -inf)):
        shown = ord if isinstance(ord, str) else f"{ord:g}"
        raise RuntimeError(f"linalg.matrix_norm: Order {shown} not supported.")
    first, second = two_dims(self, dim, dtype, half=not spectral)
    if ord == "fro":
        return vector_norm_dim(self, 2, (first, second), keepdim, dtype)  # type: ignore[no-any-return]
    extreme = None if isinstance(ord, str) else amax_dim if ord > 0 else amin_dim
    if extreme is amax_dim and not counted(self.shape, ord, first, second):
        shape = [
            1 if d in (first, second) else n for d, n in enumerate(self.shape) if keepdim or d not in (first, second)
        ]
        kind = self._array.dtype if dtype is None else dtype.numpy
        return wrap(made_on(self.device, np.zeros, shape, REAL.get(kind.char, kind)))
    if spectral:
        return of_singular_values(self if dtype is None else to(self, dtype), extreme, first, second, keepdim)
    if abs(ord) == inf:
        first, second = second, first
    if not keepdim and first < second:
        second -= 1  # the sum takes away a dimension in front of it
    assert extreme is not None
    return extreme(vector_norm_dim(self, 1, (first,), keepdim, dtype), (second,), keepdim)  # type: ignore[no-any-return]


def counted(shape: Any, ord: Number, first: int, second: int) -> int:
    """How many numbers the largest is sought among: singular values, columns or rows. Of none it is zero."""
    rows, columns = shape[first], shape[second]
    return min(rows, columns) if ord == 2 else columns if ord == 1 else rows  # type: ignore[no-any-return]


def of_singular_values(self: Tensor, extreme: Any, first: int, second: int, keepdim: bool) -> Tensor:
    """The largest, the smallest, or without `extreme` the sum of all."""
    order = (*(d for d in range(self.ndim) if d not in (first, second)), first, second)
    values = singular_values(permute_dims(self, order))
    result = sum_dim(values, (-1,), keepdim) if extreme is None else extreme(values, (-1,), keepdim)
    if keepdim:
        result = permute_dims(unsqueeze(result, -1), inverse_order(order))
    return result  # type: ignore[no-any-return]


@function(space="linalg", method=False, name="linalg_matrix_norm", out_copies=True)
def linalg_matrix_norm(
    self: Array, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Array:
    """Compute a norm of the matrices in two dimensions of a tensor.

    `ord` is "fro" (the root of the sum of squares), "nuc" (the sum of singular values),
    2 or -2 (the largest or smallest singular value),
    1 or -1 (the largest or smallest sum of absolute values in a column), inf or -inf (the same of the rows).
    `dim` names the two dimensions; with `keepdim` they stay, with size 1. `dtype` converts the elements first.
    """
    if out is dtype is None and isinstance(self, Tensor) and self._array.dtype.char in "fd" and self._array.ndim == 2:
        if type(ord) is str and ord == "fro" and type(dim) is tuple and dim == (-2, -1):
            return vector_norm_dim(self, 2, (0, 1), keepdim)
    need_tensors("linalg_matrix_norm", input=self)
    if ord is None:
        raise invalid_combination("linalg_matrix_norm", (self, ord))
    return written(
        "linalg_matrix_norm", matrix_norm_of(self, as_number(ord), dim, keepdim, dtype), out, MATRIX_NORM_OUT
    )


spaces["linalg"]["matrix_norm"] = linalg_matrix_norm


@function(space="linalg", method=False, name="linalg_norm", out_copies=True)
def linalg_norm(
    self: Array, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Array:
    """Compute a norm of vectors or matrices.

    Without `ord` it is the 2-norm of all elements, or of those along `dim`, as one vector.
    With `ord`, one dimension in `dim` means `linalg.vector_norm` and two mean `linalg.matrix_norm`; without `dim` the
    tensor itself must be a vector or a matrix.
    With `keepdim` the reduced dimensions stay, with size 1. `dtype` converts the elements first.
    """
    if ord is dim is dtype is out is None and isinstance(self, Tensor):
        return vector_norm_dim(self, 2, None, keepdim)
    need_tensors("linalg_norm", input=self)
    dim, ord = dims_of(dim), as_number(ord)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{', '.join(map(str, dim))}]"
        )
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
        )
    matrices = ord is not None and (len(dim) == 2 if dim is not None else self.ndim == 2)
    if matrices or isinstance(ord, str):
        result = matrix_norm_of(self, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    else:
        result = vector_norm_dim(self, 2 if ord is None else ord, dim, keepdim, dtype)
    if out is None:
        return result
    return written("linalg_norm", result, out, NORM_OUT)


# ------------------------------------------------------------------ the older functions


@op(
    space=None,
    name="norm",
    node="NormBackward1",
    self=lambda grad, self, p, result, dim, keepdim: norm_backward(grad, self, p, result, dim, keepdim),
    result=lambda self_t, self, p, result, dim, keepdim: norm_tangent(self_t, self, p, result, dim, keepdim),
)
def norm_of_dims(self: Array, p: Number, dim: Any, keepdim: bool) -> Array:
    """The p-norm over dimensions, under its older name."""
    if self.dtype.kind in "iub":
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{FROM_NUMPY[self.dtype].scalar_type} instead."
        )
    return moments.vector_norm(self, p, axes(dim, self.ndim), keepdim)


@function(raw=True, explained=True, method=False)
def frobenius_norm(input: Any, dim: Any = MISSING, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Compute the square root of the sum of squares over one or two dimensions; deprecated: see `linalg.vector_norm`.

    `dim` is a dimension or a tuple of up to two, an empty one meaning all; with `keepdim` they stay, with size 1.
    """
    need_tensors("frobenius_norm", input=input)
    if dim is MISSING:
        missing_dim("frobenius_norm")
    dim = dims_of(dim) or ()
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    warn_once(
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be removed in a future "
        "PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` instead"
    )
    return written("frobenius_norm", norm_of_dims(input, 2, dim, keepdim), out)  # type: ignore[no-any-return]


@function(raw=True, explained=True, method=False, out_copies=True)
def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Compute the sum of the singular values of matrices; deprecated in favour of `linalg.matrix_norm` with "nuc".

    `dim` names the two dimensions of the matrices; with `keepdim` they stay, with size 1.
    """
    need_tensors("nuclear_norm", input=input)
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = (-2, -1), dim
    warn_once(
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be removed in a future "
        "PyTorch release. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead"
    )
    result = matrix_norm_of(input, "nuc", dim, keepdim, None)
    return written("nuclear_norm", result, out, MATRIX_NORM_OUT)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ the condition number


def condition(self: Tensor, p: Any) -> Tensor:
    """The norm of a matrix times the norm of its inverse; by singular values where the norm is one of them."""
    array = self._array
    if p not in (("fro", "nuc") if isinstance(p, str) else (2, -2, 1, -1, inf, -inf)):
        shown = p if isinstance(p, str) else f"{p:g}"
        raise RuntimeError(f"linalg.cond got an invalid norm type: {shown}")
    if not array.size:
        return wrap(made_on(self.device, np.zeros, array.shape[:-2], REAL.get(array.dtype.char, array.dtype)))
    if not isinstance(p, str) and abs(p) == 2:
        values = singular_values(self)
        count = values.shape[-1]
        largest, smallest = slice_(values, -1, 0, 1, 1), slice_(values, -1, count - 1, count, 1)
        ratio = true_div(largest, smallest) if p == 2 else true_div(smallest, largest)
        return squeeze_dim(ratio, -1)  # type: ignore[no-any-return]
    check_square(array, f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')})")
    if p == "nuc":
        values = singular_values(self)
        return mul(sum_dim(values, (-1,)), sum_dim(reciprocal(values), (-1,)))  # type: ignore[no-any-return]
    inverse, info = linalg_inv_ex(self)
    singular = gt(unsqueeze(unsqueeze(info, -1), -1), 0)
    inverse = masked_fill_value(inverse, singular, inf)
    both = mul(matrix_norm_of(self, p, (-2, -1), False, None), matrix_norm_of(inverse, p, (-2, -1), False, None))
    return nan_to_num(both, inf, inf, inf)  # type: ignore[no-any-return]


@function(space="linalg", method=False, name="linalg_cond", autocast="float32", out_copies=True)
def linalg_cond(self: Array, p: Any = None, *, out: Any = None) -> Array:
    """Compute the condition number of matrices with respect to a norm: `norm(A) * norm(inv(A))`.

    `p` is a norm as in `linalg.matrix_norm`; None means 2, the ratio of the largest to the smallest singular value.
    For 2 and -2 the matrices may be rectangular, `(*, m, n)`. The other norms need square ones; singular ones give inf.
    """
    need_tensors("linalg_cond", input=self)
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    return written("linalg_cond", condition(self, 2 if p is None else as_number(p)), out, castable("linalg.cond"))
