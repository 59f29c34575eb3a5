"""Solving with an LU decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._runtime.warnings import warn_once
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import (
    check_floating,
    check_kernel,
    check_same_dtype,
    check_square,
    check_system,
    need_tensors,
    written,
)
from pullback.ops.linalg.lu import lu_unpack
from pullback.ops.linalg.parts import mH, mT
from pullback.ops.linalg.triangular import linalg_solve_triangular
from pullback.ops.shape.rearrange import tril, triu
from pullback.ops.shape.reshape import common_shape
from pullback.ops.supported import same_dtype


def lu_solve_backward(grad: Any, LU: Any, pivots: Any, X: Any, left: bool, adjoint: bool) -> Any:
    """The gradient of the packed factors.

    With R = P^T (the gradient of A) the chain goes on through A = P L U: the gradient of L is R U^H below the
    diagonal, that of U is L^H R on and above it. Where A stands transposed or on the right, the roles change.
    """
    P, L, U = lu_unpack(LU, pivots)
    grad, X = (grad, X) if left else (mH(grad), mH(X))
    if left != adjoint:
        # A X = B: the gradient of A is -(A^-H grad) X^H, and P^T A^-H grad = L^-H U^-H grad.
        inner = linalg_solve_triangular(mH(U), -(grad @ mH(X)), upper=False)
        lower = linalg_solve_triangular(mH(L), inner @ mH(U), upper=True, unitriangular=True)
        return tril(lower, -1) + triu(inner)
    # A^H X = B: the gradient of A is -X (A^-1 grad)^H, and (A^-1 grad)^H = grad^H P L^-H U^-H.
    inner = -(mT(P) @ X) @ (mH(grad) @ P)
    inner = linalg_solve_triangular(mH(L), inner, upper=True, left=False, unitriangular=True)
    upper = linalg_solve_triangular(mH(U), mH(L) @ inner, upper=False, left=False)
    return tril(inner, -1) + triu(upper)


def lu_solve_tangent(LU_t: Any, B_t: Any, LU: Any, pivots: Any, X: Any, left: bool, adjoint: bool) -> Any:
    """A dX = dB - dA X with dA = P (dL U + L dU)."""
    P, L, U = lu_unpack(LU, pivots)
    moved = P @ (tril(LU_t, -1) @ U + L @ triu(LU_t))
    moved = mH(moved) if adjoint else moved
    rest = B_t - (moved @ X if left else X @ moved)
    return linalg_lu_solve(LU, pivots, rest, left=left, adjoint=adjoint)


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_lu_solve",
    check_out=same_dtype,
    LU=lambda grad, LU, pivots, result, left, adjoint: lu_solve_backward(grad, LU, pivots, result, left, adjoint),
    B=lambda grad, LU, pivots, left, adjoint: linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint),
    result=lambda LU_t, B_t, LU, pivots, result, left, adjoint: lu_solve_tangent(
        LU_t, B_t, LU, pivots, result, left, adjoint
    ),
)
def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """Solve `A @ X = B` given the LU decomposition of `A` by `linalg.lu_factor`.

    `LU` is `(*, n, n)`, `pivots` `(*, n)` and `B` `(*, n, k)`; the result has the shape of `B`. Batches broadcast.
    With `left=False` the system is `X @ A = B`, for `B` of shape `(*, k, n)`; with `adjoint`, A is replaced by `A.mH`.
    """
    check_floating(LU, "torch.linalg.lu_solve")
    check_square(LU, "torch.linalg.lu_solve")
    check_same_dtype(LU, B, "linalg.lu_solve", "LU", "B")
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_system(LU, B, left, "linalg.lu_solve")
    if pivots.shape[-1:] != LU.shape[-1:]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{shape_text(pivots.shape)} instead"
        )
    check_kernel(LU, "linalg.lu_solve_cpu")
    batch = common_shape(B.shape[:-2], LU.shape[:-2])
    if not B.size:  # nobody looks at the pivots
        return np.empty((*batch, *B.shape[-2:]), B.dtype)
    check_pivots(pivots, LU.shape[-2])
    return kernels.lu_solve(LU, pivots, B, left, adjoint)


def check_pivots(pivots: Array, rows: int) -> None:
    """Pivots name rows: LAPACK itself would write wherever they point."""
    if not pivots.size:
        return
    if pivots.min() < 1:
        raise RuntimeError(
            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?"
        )
    if pivots.max() > rows:
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of "
            "lu_factor?"
        )


@function(autocast="float32")
def lu_solve(self: Array, LU_data: Array, LU_pivots: Array, *, out: Any = None) -> Array:
    """Solve `A @ X = input` given the LU decomposition of `A`; deprecated in favour of `linalg.lu_solve`.

    `input` is the right-hand side `(*, n, k)`; `LU_data` `(*, n, n)` and `LU_pivots` `(*, n)` are the decomposition.
    """
    need_tensors("lu_solve", input=self, LU_data=LU_data, LU_pivots=LU_pivots)
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch "
        "release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, "
        "pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return written("linalg_lu_solve", linalg_lu_solve(LU_data, LU_pivots, self), out)
