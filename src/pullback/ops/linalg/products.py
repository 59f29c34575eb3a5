"""Products: cross, vecdot, chains of matrices; powers of a vector's elements as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY, int64, promote_types
from pullback._messages import shape_text
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor, wrap
from pullback.kernels.strided import normal_dim
from pullback.ops.arithmetic import conj, mul
from pullback.ops.contract import cheapest_splits, matmul, multiplied
from pullback.ops.join import cat
from pullback.ops.linalg.checks import check_floating, need_tensors, warn_once, written
from pullback.ops.matmul import mm, vdot
from pullback.ops.product import cumprod
from pullback.ops.rearrange import flip_dims
from pullback.ops.reduce import sum_dim
from pullback.ops.shape import common_shape, expand, unsqueeze, view_
from pullback.ops.slicing import diagonal, slice_
from pullback.ops.supported import same_dtype

# ------------------------------------------------------------------ the cross product


@op(
    space="linalg",
    method=False,
    name="linalg_cross",
    check_out=same_dtype,
    self=lambda grad, other, dim: linalg_cross(conj(other), grad, dim=dim),
    other=lambda grad, self, dim: linalg_cross(grad, conj(self), dim=dim),
    result=lambda self_t, other_t, self, other, dim: linalg_cross(self_t, other, dim=dim)
    + linalg_cross(self, other_t, dim=dim),
)
def linalg_cross(self: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross product of vectors of three elements along `dim`."""
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = normal_dim(dim, self.ndim)
    if self.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[axis]} and {other.shape[axis]}"
        )
    common_shape(self.shape, other.shape)
    if self.dtype is not other.dtype:
        names = f"{FROM_NUMPY[self.dtype].scalar_type} but found {FROM_NUMPY[other.dtype].scalar_type}"
        raise RuntimeError(f"expected scalar type {names}")
    return np.cross(self, other, axis=axis)


@function()
def cross(self: Array, other: Array, dim: int | None = None, *, out: Any = None) -> Array:
    """The cross product along `dim`, or along the first dimension of size three."""
    need_tensors("cross", input=self, other=other)
    if dim is None:
        sizes = [d for d, size in enumerate(self.shape) if size == 3]
        if self.ndim == other.ndim and not sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes[0] if sizes else -1
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in "
            "a future release."
        )
    return linalg_cross(self, other, dim=dim, out=out)


# ------------------------------------------------------------------ vectors and matrices


@function(space="linalg", method=False, name="linalg_vecdot")
def linalg_vecdot(x: Array, y: Array, *, dim: int = -1, out: Any = None) -> Array:
    """The sums of the products of the conjugate of one vector with another, along `dim`."""
    need_tensors("linalg_vecdot", x=x, y=y)
    check_floating(x._array, "linalg.vecdot")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_type} and y of type {y.dtype.scalar_type} instead"
        )
    if x.ndim == 1 == y.ndim:
        return written("linalg_vecdot", vdot(x, y), out)
    return written("linalg_vecdot", sum_dim(mul(conj(x), y), (dim,)), out)


@function(space="linalg", method=False, name="linalg_matmul")
def linalg_matmul(self: Array, other: Array, *, out: Any = None) -> Array:
    """The product of two tensors: of vectors, of matrices, or of batches of matrices, which broadcast."""
    need_tensors("linalg_matmul", input=self, other=other)
    return matmul(self, other, out=out)


@function(space="linalg", method=False, name="linalg_diagonal")
def linalg_diagonal(A: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:  # noqa: N803
    """The diagonals of matrices, as a view."""
    need_tensors("linalg_diagonal", A=A)
    return diagonal(A, offset, dim1, dim2)


# ------------------------------------------------------------------ chains of matrices


@function(space="linalg", method=False, name="linalg_multi_dot")
def linalg_multi_dot(tensors: Any, *, out: Any = None) -> Array:
    """The product of two or more matrices in the cheapest order; the first and the last may be vectors."""
    if not isinstance(tensors, (list, tuple)):
        kind = type(tensors).__name__
        raise TypeError(f"linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(tensor).__name__}")
    chain, size = checked_chain(list(tensors))
    return written("linalg_multi_dot", view_(chained(chain), size), out)


def checked_chain(tensors: list[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
    """The tensors as matrices, and the shape of their product."""
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    size: tuple[int, ...] = ()
    for which, at in (("first", 0), ("last", -1)):
        if tensors[at].ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {tensors[at].ndim}D")
        if tensors[at].ndim == 2:
            size = (*size, tensors[at].shape[at])
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if tensors[0].ndim == 1:
        tensors[0] = unsqueeze(tensors[0], 0)
    if tensors[-1].ndim == 1:
        tensors[-1] = unsqueeze(tensors[-1], -1)
    for i, tensor in enumerate(tensors):
        if tensor.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {tensor.ndim}D")
    for i, (left, right) in enumerate(zip(tensors, tensors[1:], strict=False)):
        if right.dtype is not tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype.c_type} and "
                f"tensor {i + 1} {right.dtype.c_type}"
            )
        if left.shape[1] != right.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {shape_text(shapes[i])} and "
                f"{shape_text(shapes[i + 1])} cannot be multiplied"
            )
    return tensors, size


def chained(tensors: list[Tensor]) -> Tensor:
    """The product of matrices that fit, in the cheapest order."""
    if len(tensors) == 3:
        (a, b), (c, d) = tensors[0].shape, tensors[2].shape
        if a * c * (b + d) <= b * d * (a + c):
            return mm(mm(tensors[0], tensors[1]), tensors[2])  # type: ignore[no-any-return]
        return mm(tensors[0], mm(tensors[1], tensors[2]))  # type: ignore[no-any-return]
    splits = cheapest_splits([*[m.shape[0] for m in tensors], tensors[-1].shape[1]])
    return multiplied(tensors, splits, 0, len(tensors) - 1)


# ------------------------------------------------------------------ Vandermonde matrices


@function(space="linalg", method=False, name="linalg_vander")
def linalg_vander(x: Array, *, N: int | None = None) -> Array:  # noqa: N803
    """Rows of the powers 0 to N - 1 of the elements of vectors."""
    need_tensors("linalg_vander", x=x)
    kind = x.dtype
    if kind.scalar_type in ("Bool", "Half", "BFloat16"):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {kind.scalar_type}"
        )
    size = (x.shape[-1] if x.ndim else 0) if N is None else N
    if size <= 1:
        raise RuntimeError("N must be greater than 1.")
    factors = expand(unsqueeze(x, -1), (*x.shape, size - 1))
    products = cumprod(factors, -1)
    return cat([wrap(np.ones((*x.shape, 1), products._array.dtype)), products], -1)


@function(raw=True, method=False)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Rows of the powers of a vector's elements, the highest first unless `increasing`."""
    need_tensors("vander", x=x)
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    columns = x.shape[0] if N is None else N
    if columns < 0:
        raise RuntimeError("N must be non-negative.")
    kind = promote_types(x.dtype, int64) if x.dtype.category < 2 else x.dtype
    result = wrap(np.empty((x.shape[0], columns), kind.numpy))
    if columns > 0:
        slice_(result, 1, 0, 1, 1).fill_(1)  # type: ignore[attr-defined]
    if columns > 1:
        slice_(result, 1, 1, columns, 1).copy_(unsqueeze(x, 1))  # type: ignore[attr-defined]
        powers = cumprod(slice_(result, 1, 1, columns, 1), 1)
        slice_(result, 1, 1, columns, 1).copy_(powers)  # type: ignore[attr-defined]
    return result if increasing else flip_dims(result, (1,))  # type: ignore[no-any-return]
