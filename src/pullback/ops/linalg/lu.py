"""The LU decomposition A = P L U, packed and unpacked."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._op.define import Array, function, op
from pullback._op.named import return_type
from pullback._runtime.warnings import warn_once
from pullback.kernels.numpy.index.subscript import is_inside
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import (
    check_if_asked,
    check_kernel,
    check_two_dimensions,
    need_tensors,
    written,
)
from pullback.ops.linalg.parts import (
    first_columns,
    first_rows,
    later_columns,
    later_rows,
    mH,
    with_zero_columns,
    with_zero_rows,
)
from pullback.ops.linalg.triangular import linalg_solve_triangular
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.join import cat
from pullback.ops.shape.rearrange import tril, triu
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import same_dtype

# ------------------------------------------------------------------ the derivative, of all three forms


def from_left(L: Any, inner: Any) -> Any:
    """L^-H times a matrix."""
    return linalg_solve_triangular(mH(L), inner, upper=True, unitriangular=True)


def from_right(U: Any, inner: Any) -> Any:
    """A matrix times U^-H."""
    return linalg_solve_triangular(mH(U), inner, upper=False, left=False)


def plu_backward(grad_L: Any, grad_U: Any, P: Any, L: Any, U: Any) -> Any:
    """dA = P (dL U + L dU): L^-1 P^T dA U^-1 is L^-1 dL below the diagonal and dU U^-1 on and above it.

    The columns of a wide A beyond the square part only move U, the rows of a tall one only L.
    """
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    if grad_L is None and grad_U is None:
        return None
    grad_L = zeros_of(L, L.shape) if grad_L is None else grad_L
    grad_U = zeros_of(U, U.shape) if grad_U is None else grad_U
    L1, U1 = first_rows(L, k), first_columns(U, k)
    below, above = mH(L1) @ first_rows(grad_L, k), first_columns(grad_U, k) @ mH(U1)
    if m > n:
        L2, grad_L2 = later_rows(L, k), later_rows(grad_L, k)
        square = from_left(L1, tril(below, -1) + triu(above - mH(L2) @ grad_L2))
        return P @ from_right(U1, cat([square, grad_L2], -2))
    if m < n:
        U2, grad_U2 = later_columns(U, k), later_columns(grad_U, k)
        square = from_right(U1, tril(below - grad_U2 @ mH(U2), -1) + triu(above))
        return P @ from_left(L1, cat([square, grad_U2], -1))
    return P @ from_left(L1, from_right(U1, tril(below, -1) + triu(above)))


def plu_tangent(A_t: Any, P: Any, L: Any, U: Any) -> tuple[Any, Any]:
    """The same equation, solved for dL and dU."""
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    moved = transpose(P, -2, -1) @ A_t
    L1, U1 = first_rows(L, k), first_columns(U, k)
    inner = first_columns(first_rows(moved, k), k)
    inner = linalg_solve_triangular(L1, inner, upper=False, unitriangular=True)
    inner = linalg_solve_triangular(U1, inner, upper=True, left=False)
    below, above = tril(inner, -1), triu(inner)
    L_t, U_t = L1 @ below, above @ U1
    if m > n:
        rest = linalg_solve_triangular(U1, later_rows(moved, k), upper=True, left=False) - later_rows(L, k) @ above
        return cat([L_t, rest], -2), U_t
    if m < n:
        rest = linalg_solve_triangular(L1, later_columns(moved, k), upper=False, unitriangular=True)
        return L_t, cat([U_t, rest - below @ later_columns(U, k)], -1)
    return L_t, U_t


# ------------------------------------------------------------------ packed: L and U in one matrix


def lu_factor_backward(grad: Any, LU: Any, pivots: Any) -> Any:
    """The packed gradient is that of L below the diagonal, that of U on and above it."""
    P, L, U = lu_unpack(LU, pivots)
    k = min(LU.shape[-2:])
    return plu_backward(first_columns(grad, k), first_rows(grad, k), P, L, U)


def lu_factor_tangent(A_t: Any, LU: Any, pivots: Any) -> Any:
    """dL below the diagonal, dU on and above it."""
    P, L, U = lu_unpack(LU, pivots)
    L_t, U_t = plu_tangent(A_t, P, L, U)
    return with_zero_columns(L_t, LU.shape[-1]) + with_zero_rows(U_t, LU.shape[-2])


def factored(A: Array, pivot: bool, function: str) -> tuple[Array, Array, Array]:
    """LU, pivots and LAPACK's code, for a matrix that is fit for it."""
    check_two_dimensions(A, function)
    if A.size:
        if not pivot:
            raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
        check_kernel(A, "lu_cpu")
    return kernels.lu_factor(A)


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_lu_factor_ex",
    outputs=("LU", "pivots", "info"),
    check_out=same_dtype,
    A=lambda grad_LU, LU, pivots, pivot: lu_factor_backward(grad_LU, LU, pivots),
    result=lambda A_t, LU, pivots: (lu_factor_tangent(A_t, LU, pivots), None, None),
)
def linalg_lu_factor_ex(
    A: Array, *, pivot: bool = True, check_errors: bool | str = False
) -> tuple[Array, Array, Array]:
    """Compute the packed LU decomposition like `linalg.lu_factor`, but report singular matrices without an error.

    Returns the named tuple `(LU, pivots, info)`. `info` is an int32 for each matrix: 0, or the position (counted from
    1) of a zero on the diagonal of U. With `check_errors` that raises an error after all.
    """
    found = factored(A, pivot, "torch.lu_factor")
    check_if_asked(found[2], check_errors, "torch.linalg.lu_factor_ex")
    return found


LU_FACTOR = return_type("linalg_lu_factor", ("LU", "pivots"))
LU_WITH_INFO = return_type("_lu_with_info", ("LU", "pivots", "info"))


@function(space="linalg", method=False, name="linalg_lu_factor")
def linalg_lu_factor(A: Array, *, pivot: bool = True, out: Any = None) -> Any:
    """Compute the LU decomposition in packed form, to solve systems with `linalg.lu_solve`.

    Returns the named tuple `(LU, pivots)`. `LU` `(*, m, n)` holds U on and above its diagonal, and L below.
    `pivots` `(*, min(m, n))` says, counted from 1, with which row each row was exchanged. See `lu_unpack`.
    A zero on the diagonal of U raises an error, and so does `pivot=False` on the CPU.
    """
    need_tensors("linalg_lu_factor", A=A)
    packed, pivots, _ = linalg_lu_factor_ex(A, pivot=pivot, check_errors="torch.linalg.lu_factor")
    return written("linalg_lu_factor_ex", LU_FACTOR(packed, pivots), out)


@function(raw=True)
def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Compute the LU decomposition in packed form; deprecated in favour of `linalg.lu_factor`.

    Returns `(LU, pivots)`, or with `get_infos` `(LU, pivots, infos)`, where a nonzero info marks a singular matrix.
    """
    need_tensors("_lu_with_info", input=A)
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
        "get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    found = linalg_lu_factor_ex(A, pivot=pivot)
    result = LU_WITH_INFO(*found) if get_infos else tuple(found)[:2]
    return written("lu", result, out)


# ------------------------------------------------------------------ unpacked


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_lu",
    outputs=("P", "L", "U"),
    constants=("P",),
    check_out=same_dtype,
    A=lambda grad_L, grad_U, P, L, U, pivot: plu_backward(grad_L, grad_U, P, L, U),
    result=lambda A_t, P, L, U: (None, *plu_tangent(A_t, P, L, U)),
)
def linalg_lu(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    """Compute the LU decomposition with row interchanges, `A = P @ L @ U`, of matrices `(*, m, n)`.

    Returns the named tuple `(P, L, U)`: a permutation matrix `(*, m, m)`, a lower triangle `(*, m, k)` with ones on the
    diagonal, and an upper triangle `(*, k, n)`, for `k = min(m, n)`.
    `pivot=False`, a decomposition without interchanges, raises an error on the CPU.
    """
    packed, pivots, _ = factored(A, pivot, "linalg.lu")
    return unpacked(packed, pivots, True, pivot)


def unpacked(LU: Array, pivots: Array, data: bool, permute: bool) -> tuple[Array, Array, Array]:
    """P, L and U of a packed decomposition; nothing for what was not asked for."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    P = L = U = np.empty(0, LU.dtype)
    if permute:
        order = kernels.permutation(pivots, m)
        P = np.zeros((*LU.shape[:-2], m, m), LU.dtype)
        np.put_along_axis(P, order[..., None, :], 1, -2)
    if data:
        L = row_major(np.tril(LU[..., :k], -1))
        kernels.diagonal(L)[...] = 1
        U = row_major(np.triu(LU[..., :k, :]))
    return P, L, U


def lu_unpack_backward(grad_L: Any, grad_U: Any, rows: int, columns: int) -> Any:
    """L's gradient below the diagonal, U's on and above it."""
    lower = None if grad_L is None else with_zero_columns(tril(grad_L, -1), columns)
    upper = None if grad_U is None else with_zero_rows(triu(grad_U), rows)
    if lower is None or upper is None:
        return upper if lower is None else lower
    return lower + upper


@op(
    vmap="matrices",
    method=False,
    outputs=("P", "L", "U"),
    constants=("P",),
    check_out=same_dtype,
    LU_data=lambda grad_L, grad_U, LU_data_sym_argsize_minus_2, LU_data_sym_argsize_minus_1: lu_unpack_backward(
        grad_L, grad_U, LU_data_sym_argsize_minus_2, LU_data_sym_argsize_minus_1
    ),
    result=lambda LU_data_t, unpack_data: (
        None,
        tril(first_columns(LU_data_t, min(LU_data_t.shape[-2:])), -1) if unpack_data else None,
        triu(first_rows(LU_data_t, min(LU_data_t.shape[-2:]))) if unpack_data else None,
    ),
)
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """Unpack an LU decomposition that `linalg.lu_factor` returned into P, L and U.

    Returns the named tuple `(P, L, U)` of shapes `(*, m, m)`, `(*, m, k)` and `(*, k, n)`, for `k = min(m, n)`.
    With `unpack_data=False` L and U are empty; with `unpack_pivots=False` P is.
    """
    check_two_dimensions(LU_data, "torch.lu_unpack")
    if unpack_pivots:
        if LU_pivots.dtype != np.int32:
            raise RuntimeError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
                "function is intended to be used with the output produced by torch.linalg.lu_factor"
            )
        batch, count = LU_data.shape[:-2], min(LU_data.shape[-2:])
        if not LU_pivots.size:  # nothing is exchanged
            LU_pivots = np.broadcast_to(np.arange(1, count + 1, dtype=np.int32), (*batch, count))
        in_range = is_inside(LU_pivots - 1, LU_data.shape[-2])
        if not in_range or LU_pivots.shape != (*batch, count):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the "
                "result of lu_factor?"
            )
    return unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)
