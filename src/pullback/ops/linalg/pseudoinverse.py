"""The pseudoinverse and the rank: what singular values below a tolerance count for zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._arrays.memory import row_major
from pullback._arrays.sizes import allocated
from pullback._modes import is_grad_enabled
from pullback._op.apply import check_broadcast
from pullback._op.define import Array, function, op
from pullback._runtime.messages import out_requires_grad, shape_text
from pullback._tensor import Tensor, wrap
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.linalg.spectral import real_of
from pullback.ops.linalg.checks import (
    LAPACK_DTYPES,
    castable,
    check_floating,
    check_matrix,
    need_tensors,
    scalar_type,
    written,
)
from pullback.ops.linalg.eigen import eigh_parts
from pullback.ops.linalg.parts import mH
from pullback.ops.linalg.svd import svd_parts
from pullback.ops.supported import invalid_combination, refuse_gradient


def tolerances(self: Array, atol: Any, rtol: Any, function: str) -> tuple[Any, Any]:
    """Absolute and relative tolerance as arrays; without either, the precision of the dtype times the larger side."""
    refuse_complex(function, atol=atol, rtol=rtol)
    absolute = None if atol is None else as_array(atol)
    if rtol is not None:
        return (0.0 if absolute is None else absolute), as_array(rtol)
    default = np.finfo(real_of(self.dtype)).eps * max(self.shape[-2:])
    if absolute is None:
        return 0.0, default
    return absolute, np.where(absolute > 0, 0.0, default)


def refuse_complex(function: str, **tolerances: Any) -> None:
    """Raise torch's error if a tolerance is a tensor of complex numbers."""
    for name, value in tolerances.items():
        if isinstance(value, complex):
            raise TypeError(f"linalg_{function}(): argument '{name}' must be float, not complex")
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(
                f"torch.linalg.{function}: {name} tensor of complex type is not supported. Got "
                f"{value.dtype.scalar_type}"
            )


def as_array(value: Any) -> Any:
    """A number or a tensor as an array."""
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def cut(values: Array, atol: Any, rtol: Any, dtype: np.dtype[Any]) -> Array:
    """The value above which a singular value counts, for each matrix."""
    largest = values.max(-1, initial=0) if values.size else np.zeros(values.shape[:-1], dtype)
    check_broadcast([atol, largest])
    check_broadcast([rtol, largest])
    return np.maximum(atol, rtol * largest)


# ------------------------------------------------------------------ the pseudoinverse


def pinv_backward(grad: Any, self: Any, result: Any) -> Any:
    """dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, the other way round."""
    m, n = self.shape[-2:]
    adjoint, turned = mH(result), mH(grad)
    if m <= n:
        inner = turned @ result
        outer = inner @ adjoint
        return -mH(result @ inner) + outer - (self @ result) @ outer + (adjoint @ result) @ (turned - inner @ self)
    inner = result @ turned
    outer = adjoint @ inner
    return -mH(inner @ result) + (turned - self @ inner) @ (result @ adjoint) + outer - (outer @ result) @ self


def pinv_tangent(self_t: Any, self: Any, result: Any) -> Any:
    """The same, forward."""
    moved, adjoint = mH(self_t), mH(result)
    first = (result @ adjoint) @ moved
    second = (moved @ adjoint) @ result
    return -(result @ self_t @ result) + first - (first @ self) @ result + second - result @ (self @ second)


@op(
    space=None,
    name="linalg_pinv",
    vmap="pseudoinverse",
    self=lambda grad, self, result: pinv_backward(grad, self, result),
    result=lambda self_t, self, result: pinv_tangent(self_t, self, result),
)
def pinv_parts(self: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    """The pseudoinverse, leaving out singular values below the tolerances."""
    if self.ndim < 2 or self.dtype not in LAPACK_DTYPES:
        raise RuntimeError(
            f"linalg.pinv({scalar_type(self)}{{{shape_text(self.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if not self.size:
        return np.empty((*self.shape[:-2], self.shape[-1], self.shape[-2]), self.dtype)
    absolute, relative = tolerances(self, atol, rtol, "pinv")
    if hermitian:
        values, vectors = eigh_parts(self)
        size = np.absolute(values)
        left, right = vectors, vectors.swapaxes(-1, -2).conj()
    else:
        left, values, right = svd_parts(self)
        size = values
        left, right = right.swapaxes(-1, -2).conj(), left.swapaxes(-1, -2).conj()
    kept = size > cut(size, absolute, relative, real_of(self.dtype))[..., None]
    inverse = np.where(kept, 1 / values, 0).astype(values.dtype)
    return row_major(np.matmul(left * inverse[..., None, :], right))


@function(space="linalg", method=False, name="linalg_pinv", autocast="rounded")
def linalg_pinv(
    self: Array, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Array:
    """Compute the Moore-Penrose pseudoinverse of matrices `(*, m, n)`; the result has the shape `(*, n, m)`.

    Singular values not above `max(atol, rtol * largest)` count as zero; the tolerances are numbers or tensors `(*)`.
    By default `atol` is 0 and `rtol` the precision times `max(m, n)`, or 0 if `atol` is positive.
    `rcond` is an older name of `rtol`.
    With `hermitian` the matrices are taken to be Hermitian and eigenvalues are used instead, which is faster.
    """
    if not isinstance(self, Tensor):
        raise invalid_combination("linalg_pinv", (self,))
    refuse_mixture("linalg_pinv", self, atol, rtol)
    refuse_complex("pinv", rcond=rcond, atol=atol, rtol=rtol)
    relative = rtol if rcond is None else rcond
    absolute = 0.0 if rcond is not None and atol is None else atol
    refuse_gradient("linalg_pinv", atol=absolute, rtol=relative)
    return written("linalg_pinv", pinv_parts(self, absolute, relative, hermitian), out, castable("linalg.pinv"))


def refuse_mixture(name: str, self: Any, *tolerances: Any) -> None:
    """Raise unless tolerances are all numbers, or all tensors; a tensor without dimensions counts as either."""
    kinds = {isinstance(value, Tensor) for value in tolerances if value is not None and getattr(value, "ndim", 1)}
    if len(kinds) > 1:
        raise invalid_combination(name, (self, *tolerances))


@function(autocast="float32")
def pinverse(self: Array, rcond: float = 1e-15) -> Array:
    """Compute the pseudoinverse of matrices `(*, m, n)`: `linalg.pinv`, with `rcond` as relative tolerance."""
    need_tensors("pinverse", input=self)
    return pinv_parts(self, 0.0, rcond, False)


# ------------------------------------------------------------------ the rank


@op(vmap="pseudoinverse", space=None, name="linalg_matrix_rank")
def rank_of(self: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    """How many singular values of each matrix are above the tolerances."""
    check_matrix(self, "torch.linalg.matrix_rank", "input")
    if self.dtype not in LAPACK_DTYPES and rtol is None:  # there is no tolerance for it
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not self.size:
        tolerances(self, atol, rtol, "matrix_rank")
        return np.zeros(self.shape[:-2], np.int64)
    if self.dtype not in LAPACK_DTYPES:
        if not hermitian:
            check_floating(self, "linalg.svd")
        kernel = "linalg_eigh_cpu" if hermitian else "linalg_svd_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(self)}'")
    absolute, relative = tolerances(self, atol, rtol, "matrix_rank")
    values = np.absolute(eigh_parts(self, "L", False)[0]) if hermitian else svd_parts(self, False, False)[1]
    threshold = cut(values, absolute, relative, real_of(self.dtype))
    return np.count_nonzero(values > threshold[..., None], axis=-1)


@function(space="linalg", method=False, name="linalg_matrix_rank", autocast="float32")
def linalg_matrix_rank(
    self: Array, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Array:
    """Compute the rank of matrices `(*, m, n)`: the number of their singular values above a tolerance.

    The tolerance is `max(atol, rtol * largest)`; by default `atol` is 0 and `rtol` the precision times `max(m, n)`, or
    0 if `atol` is positive. `tol` is an older name of `atol`. The result is int64, of shape `(*)`.
    With `hermitian` the absolute values of eigenvalues are used instead, which is faster.
    """
    if not isinstance(self, Tensor):
        raise invalid_combination("linalg_matrix_rank", (self,))
    refuse_mixture("linalg_matrix_rank", self, atol, rtol)
    if tol is not None:
        atol, rtol = tol, 0.0
    if isinstance(out, Tensor) and is_grad_enabled() and wants_grad(out):
        raise RuntimeError(out_requires_grad("sum"))
    ranks = rank_of(self, atol, rtol, hermitian)
    if tol is None and not self._array.size:  # the same for each entry of a batch, and nobody's
        ranks = wrap(made_on(self.device, allocated, np.zeros, ranks._array.shape, np.int64))
    return written("linalg_matrix_rank", ranks, out, castable("torch.linalg.matrix_rank"))
