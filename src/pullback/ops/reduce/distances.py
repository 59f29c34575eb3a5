"""cdist: the distances between the rows of one matrix and those of another."""

from __future__ import annotations

from math import prod
from typing import Any

from pullback._arrays.memory import row_major
from pullback._op.define import Array, function, op
from pullback._runtime.messages import type_name
from pullback._tensor import Tensor
from pullback.kernels.numpy.linalg import cdist as kernels
from pullback.ops.linalg.matmul import bmm, mm
from pullback.ops.reduce.sums import sum_dim, zero_where
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.reshape import clone_contiguous, common_shape, expand, unsqueeze, view_
from pullback.ops.supported import SINGLE, no_derivative

MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
LARGE = 25
"""From more rows than this on, Euclidean distances are a product of matrices unless the caller says otherwise."""


@op(
    space=None,
    name="_cdist_forward",
    node="CdistBackward0",
    vmap="distances",
    x1=lambda grad, x1, x2, p, result: cdist_backward(grad, x1, x2, p, result),
    x2=lambda grad, x1, x2, p, result: cdist_backward(transpose(grad, -2, -1), x2, x1, p, transpose(result, -2, -1)),
)
def cdist_forward(x1: Array, x2: Array, p: float) -> Array:
    """The p-norms of the differences of all rows."""
    return row_major(kernels.cdist(x1, x2, p))


@op(
    vmap="leading",
    space=None,
    name="_cdist_backward",
    node="CdistBackwardBackward0",
    grad_output=lambda grad: no_derivative("_cdist_backward"),
    x1=lambda grad: no_derivative("_cdist_backward"),
    x2=lambda grad: no_derivative("_cdist_backward"),
    cdist=lambda grad: no_derivative("_cdist_backward"),
)
def cdist_backward(grad_output: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Array:
    """The gradient of the rows of x1."""
    return kernels.cdist_backward(grad_output, x1, x2, p, cdist)


@op(
    space=None,
    name="_euclidean_dist",
    node="EuclideanDistBackward0",
    vmap="distances",
    backward=lambda grad, x1, x2, result: euclidean_backward(grad, x1, x2, result),
)
def euclidean_distance(x1: Array, x2: Array) -> Array:
    """Euclidean distances by one product of matrices."""
    return kernels.euclidean(x1, x2)


def euclidean_backward(grad: Any, x1: Any, x2: Any, result: Any) -> tuple[Any, Any]:
    """Both gradients, by products of matrices; pairs at distance zero have none."""
    ratio = zero_where(grad / result, result == 0)
    product = mm if x1.ndim == 2 else bmm
    to_first = x1 * sum_dim(ratio, (-1,), True) - product(ratio, x2)
    columns = unsqueeze(sum_dim(ratio, (-2,), False), -1)
    return to_first, x2 * columns - product(transpose(ratio, -2, -1), x1)


def check_rows(x1: Tensor, x2: Tensor, p: float) -> None:
    """Torch's demands on the operands of cdist."""
    first, second = x1._array, x2._array
    if first.ndim == second.ndim == 2 and first.shape[1] == second.shape[1] and p >= 0:
        if first.dtype is second.dtype is SINGLE:  # what most calls bring
            return
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_type}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype and first.size and second.size:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_type} but found {x2.dtype.scalar_type}")
    if x1._array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"cdist\" not implemented for '{x1.dtype.scalar_type}'")


@function(raw=True, explained=True, method=False, autocast="float32")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = MODES[0]) -> Tensor:
    """Compute the distances between each row of one matrix and each row of another, for batches of matrices.

    For `x1` `(*, P, M)` and `x2` `(*, R, M)` the result is `(*, P, R)`; batches broadcast.
    The distance is the p-norm of the difference, `p` from 0 to inf.
    `compute_mode` says whether Euclidean distances may be found by a product of matrices, faster but less exact: by
    default, if P or R is more than 25; "use_mm_for_euclid_dist" always, "donot_use_mm_for_euclid_dist" never.
    """
    if not isinstance(x1, Tensor):
        raise TypeError(f"cdist(): argument 'x1' (position 1) must be Tensor, not {type_name(x1)}")
    if not isinstance(x2, Tensor):
        raise TypeError(f"cdist(): argument 'x2' (position 2) must be Tensor, not {type_name(x2)}")
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    check_rows(x1, x2, p)
    batch = common_shape(x1._array.shape[:-2], x2._array.shape[:-2])
    rows, columns = x1._array.shape[-2], x2._array.shape[-2]
    large = compute_mode == MODES[1] or (compute_mode == MODES[0] and max(rows, columns) > LARGE)
    if p != 2 or not large or not rows * columns * prod(batch) * x1._array.shape[-1]:
        return cdist_forward(x1, x2, float(p))
    if prod(batch) != 1:
        x1, x2 = flattened(x1, batch), flattened(x2, batch)
    return view_(euclidean_distance(x1, x2), (*batch, rows, columns))


def flattened(self: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A batch of matrices, broadcast to the dimensions `batch` and with these in one."""
    out = expand(self, (*batch, *self._array.shape[-2:]))
    if not out._array.flags.c_contiguous:
        out = clone_contiguous(out)
    return view_(out, (prod(batch), *self._array.shape[-2:]))
