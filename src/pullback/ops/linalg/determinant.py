"""Determinants and their logarithms."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._op.named import return_type, returned_out
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import check_floating, check_kernel, check_square, need_tensors
from pullback.ops.linalg.parts import column, diagonal_of, identity_like, imaginary, mH, real, row
from pullback.ops.linalg.solve import linalg_solve_ex
from pullback.ops.linalg.svd import svd_parts
from pullback.ops.pointwise.arithmetic import conj, where_tensors
from pullback.ops.pointwise.elementary import log
from pullback.ops.reduce.products import product_of_others
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import complex_valued, same_dtype

# ------------------------------------------------------------------ the determinant


def regular(LU: Array) -> Array:
    """A factorization without zeros on the diagonal of U, moved by as little as possible."""
    out = LU.copy("K")
    pivots = kernels.diagonal(out)
    pivots[pivots == 0] = np.finfo(LU.dtype).eps
    return out


def det_backward(grad: Any, A: Any, LU: Any, pivots: Any, result: Any) -> Any:
    """grad times the conjugate of the determinant times A^-H: the adjugate, which singular matrices have too."""
    if 0 in A.shape:
        return zeros_of(A, A.shape)
    if A.shape[-1] == 1:
        return column(column(grad))
    scale = column(column(grad * conj(result)))
    if isinstance(A, Tensor):
        return adjugate(grad, result, A, scale)
    return kernels.lu_solve(regular(LU), pivots, scale * identity_like(A), True, True)


def adjugate(grad: Tensor, result: Tensor, A: Tensor, scale: Tensor) -> Tensor:
    """The same as a function of A: by solving, and through singular values for the matrices that are singular."""
    looked_at = type(A._array) is np.ndarray  # under vmap nobody can: then all of them go the longer way
    singular = np.absolute(result._array) < 100 * np.finfo(A._array.dtype).eps if looked_at else np.True_
    if not singular.any():
        return linalg_solve_ex(mH(A), scale * identity_like(A))[0]  # type: ignore[no-any-return]
    U, S, Vh = svd_parts(A, False)
    factor = conj(linalg_det(U) * linalg_det(Vh)) * grad
    through_svd = (U * row(column(factor) * product_of_others(S, -1))) @ Vh
    if singular.all():
        return through_svd  # type: ignore[no-any-return]
    mask = wrap(singular[..., None, None])
    solved = linalg_solve_ex(mH(where_tensors(mask, identity_like(A), A)), scale * identity_like(A))[0]
    return where_tensors(mask, through_svd, solved)  # type: ignore[no-any-return]


def det_tangent(A_t: Any, A: Any, result: Any, LU: Any, pivots: Any) -> Any:
    """The determinant times the trace of A^-1 dA."""
    if type(result._array) is not np.ndarray or (result._array != 0).all():
        solved = linalg_solve_ex(A, A_t)[0]
    else:
        solved = wrap(kernels.lu_solve(regular(LU._array), pivots._array, A_t._array))
    return result * sum_dim(diagonal_of(solved), (-1,))


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_det",
    outputs=("result", "LU", "pivots"),
    visible=1,
    constants=("LU",),
    check_out=same_dtype,
    out_name="_linalg_det",
    A=lambda grad_result, A, LU, pivots, result: det_backward(grad_result, A, LU, pivots, result),
    result=lambda A_t, A, result, LU, pivots: (det_tangent(A_t, A, result, LU, pivots), None, None),
)
def linalg_det(A: Array) -> tuple[Array, Array, Array]:
    """Compute the determinant of square matrices `(*, n, n)`; the result has the shape `(*)`."""
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    check_kernel(A, "lu_cpu")
    packed, pivots, _ = kernels.lu_factor(A)
    product = np.multiply.reduce(kernels.diagonal(packed), -1, A.dtype)
    return np.multiply(product, kernels.transpositions(pivots), dtype=A.dtype), packed, pivots


@function()
def det(self: Array) -> Array:
    """Compute the determinant of square matrices `(*, n, n)`: the same as `linalg.det`."""
    need_tensors("det", input=self)
    return linalg_det(self)


# ------------------------------------------------------------------ its logarithm


def slogdet_backward(grad_sign: Any, grad_logabsdet: Any, A: Any, LU: Any, pivots: Any, sign: Any) -> Any:
    """grad A^-H; what moves the sign of a complex determinant is at right angles to it."""
    grad = grad_logabsdet
    if complex_valued(A) and grad_sign is not None:
        turned = imaginary(conj(sign) * grad_sign)
        grad = turned if grad is None else grad + turned
    if grad is None:
        return None
    scaled = column(column(grad)) * identity_like(A)
    if isinstance(A, Tensor):
        return linalg_solve_ex(mH(A), scaled)[0]
    return kernels.lu_solve(LU, pivots, scaled, True, True)


def slogdet_tangent(A_t: Any, A: Any, sign: Any) -> tuple[Any, Any]:
    """The trace of A^-1 dA: its real part moves the logarithm, its imaginary part turns the sign."""
    trace = sum_dim(diagonal_of(linalg_solve_ex(A, A_t)[0]), (-1,))
    if complex_valued(A):
        return imaginary(trace) * sign, real(trace)
    return sign * 0, trace


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_slogdet",
    outputs=("sign", "logabsdet", "LU", "pivots"),
    visible=2,
    constants=("LU",),
    check_out=same_dtype,
    out_name="_linalg_slogdet",
    A=lambda grad_sign, grad_logabsdet, A, LU, pivots, sign: slogdet_backward(
        grad_sign, grad_logabsdet, A, LU, pivots, sign
    ),
    result=lambda A_t, A, sign: (*slogdet_tangent(A_t, A, sign), None, None),
)
def linalg_slogdet(A: Array) -> tuple[Array, Array, Array, Array]:
    """Compute the sign of the determinant and the logarithm of its absolute value, safe from overflow.

    Returns the named tuple `(sign, logabsdet)` of shape `(*)` for matrices `(*, n, n)`: `det = sign * exp(logabsdet)`.
    For complex matrices the sign is a number of absolute value 1; for singular ones it is 0 and the logarithm `-inf`.
    """
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet", half=False)
    packed, pivots, _ = kernels.lu_factor(A)
    factors = kernels.diagonal(packed)
    size = np.absolute(factors)
    signs = np.multiply.reduce(np.where(size == 0, 0, factors / size), -1, A.dtype)
    sign = np.multiply(signs, kernels.transpositions(pivots), dtype=A.dtype)
    return sign, np.add.reduce(np.log(size), -1), packed, pivots


SLOGDET = return_type("slogdet", ("sign", "logabsdet"))


@function()
def slogdet(self: Array, *, out: Any = None) -> Any:
    """Compute the sign of the determinant and the logarithm of its absolute value: the same as `linalg.slogdet`.

    Returns the named tuple `(sign, logabsdet)` of shape `(*)` for matrices `(*, n, n)`.
    """
    need_tensors("slogdet", input=self)
    found = linalg_slogdet(self, out=out)
    return SLOGDET(*found) if out is None else returned_out(SLOGDET, found)


@function()
def logdet(self: Array) -> Array:
    """Compute the logarithm of the determinant of square matrices `(*, n, n)`; the result has the shape `(*)`.

    For real matrices it is NaN where the determinant is negative, and `-inf` where it is zero.
    """
    need_tensors("logdet", input=self)
    check_square(self._array, "logdet")
    check_floating(self._array, "logdet", half=False)
    sign, logabsdet = linalg_slogdet(self)
    if complex_valued(self):
        return log(sign) + logabsdet
    return where_tensors(sign == -1, nan, logabsdet)
