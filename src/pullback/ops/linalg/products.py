"""Products of vectors and of chains of matrices; powers of a vector's elements as a matrix."""

from __future__ import annotations

from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._op.define import Array, function
from pullback._op.out import each, exactly
from pullback._runtime.messages import shape_text
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, wrap
from pullback.ops.linalg.checks import check_floating, need_tensors, written
from pullback.ops.linalg.contract import matmul
from pullback.ops.linalg.matmul import mm, vdot
from pullback.ops.pointwise.arithmetic import conj, mul
from pullback.ops.reduce.products import cumprod
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import expand, unsqueeze, view_
from pullback.ops.shape.slicing import diagonal
from pullback.ops.supported import listed

VECDOT_OUT = each(exactly("linalg.vecdot: Expected out of dtype{wanted} but found {got}"))

# ------------------------------------------------------------------ vectors and matrices


@function(space="linalg", method=False, name="linalg_vecdot", autocast="lower")
def linalg_vecdot(x: Array, y: Array, *, dim: int = -1, out: Any = None) -> Array:
    """Compute the dot products of vectors along a dimension, the first conjugated: `sum(conj(x) * y, dim)`.

    `x` and `y` broadcast against each other; the result lacks the dimension `dim`.
    """
    need_tensors("linalg_vecdot", x=x, y=y)
    dim = index(dim)
    check_floating(x._array, "linalg.vecdot")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_type} and y of type {y.dtype.scalar_type} instead"
        )
    if x.ndim == 1 == y.ndim:
        return written("linalg_vecdot", vdot(x, y), out, VECDOT_OUT)
    return written("linalg_vecdot", sum_dim(mul(conj(x), y), (dim,)), out, VECDOT_OUT)


@function(space="linalg", method=False, name="linalg_matmul")
def linalg_matmul(self: Array, other: Array, *, out: Any = None) -> Array:
    """Multiply two tensors as vectors, matrices or batches of matrices, which broadcast: the same as `matmul`."""
    need_tensors("linalg_matmul", input=self, other=other)
    return matmul(self, other, out=out)


@function(space="linalg", method=False, name="linalg_diagonal")
def linalg_diagonal(A: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Return the diagonals of matrices, as a view.

    The matrices lie in the dimensions `dim1` and `dim2`, the last two by default; the diagonals come last.
    `offset` is 0 for the main diagonal, positive above it and negative below.
    """
    need_tensors("linalg_diagonal", A=A)
    return diagonal(A, offset, dim1, dim2)


# ------------------------------------------------------------------ chains of matrices


@function(space="linalg", method=False, name="linalg_multi_dot")
def linalg_multi_dot(tensors: Any, *, out: Any = None) -> Array:
    """Multiply two or more matrices in the order that takes the fewest multiplications.

    `tensors` is a list of matrices whose sizes chain; the first may be a vector, taken as a row, and the last one too,
    taken as a column, and the result lacks their dimensions.
    """
    if not isinstance(tensors, (list, tuple)):
        kind = type(tensors).__name__
        raise TypeError(f"linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of Tensors, not {kind}")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(tensor).__name__}")
    chain, size = checked_chain(list(tensors))
    fits = each(exactly("multi_dot(): expected out tensor to have dtype {c_wanted} but got {c_got}"))
    return written("linalg_multi_dot", view_(chained(chain), size), out, fits)


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
    for i, (left, right) in enumerate(pairwise(tensors)):
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


def cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """For each run of matrices the place to cut it, by dynamic programming over the number of multiplications."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(costs)
    return split


def multiplied(matrices: Any, split: dict[tuple[int, int], int], first: int, last: int) -> Tensor:
    """The product of a run of matrices, cut where `split` says."""
    if first == last:
        return matrices[first]
    k = split[first, last]
    return mm(multiplied(matrices, split, first, k), multiplied(matrices, split, k + 1, last))


@function(raw=True, method=False)
def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the cheapest order; deprecated in favour of `linalg.multi_dot`."""
    matrices = listed(matrices)
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return written("chain_matmul", matrices[0].clone(), out)  # type: ignore[no-any-return]
    return linalg_multi_dot(matrices, out=out)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ Vandermonde matrices


@function(space="linalg", method=False, name="linalg_vander")
def linalg_vander(x: Array, *, N: int | None = None) -> Array:
    """Build Vandermonde matrices: row i holds the powers `x[i] ** 0` to `x[i] ** (N - 1)`.

    For `x` of shape `(*, n)` the result is `(*, n, N)`; `N` is n by default.
    """
    need_tensors("linalg_vander", x=x)
    kind = x.dtype
    if kind.scalar_type in ("Bool", "Half", "BFloat16"):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {kind.scalar_type}"
        )
    if not x.ndim:
        x = unsqueeze(x, 0)
    size = x.shape[-1] if N is None else N
    if size <= 1:
        raise RuntimeError("N must be greater than 1.")
    factors = expand(unsqueeze(x, -1), (*x.shape, size - 1))
    products = cumprod(factors, -1)
    return cat([wrap(made_on(x.device, np.ones, (*x.shape, 1), products._array.dtype)), products], -1)
