"""Eigenvalues and eigenvectors, of Hermitian and of general matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback.kernels.numpy.linalg import spectral as kernels
from pullback.ops.linalg.checks import (
    castable,
    check_info,
    check_kernel,
    check_square,
    need_tensors,
    scalar_type,
    written,
)
from pullback.ops.linalg.parts import column, diagonal_of, differences, mH, real, real_like, row, zero_diagonal
from pullback.ops.linalg.solve import linalg_solve_ex
from pullback.ops.linalg.svd import depends_on_phase, may_differentiate, skew
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.rearrange import diag_embed
from pullback.ops.supported import complex_valued


def check_gauge(inner: Any, name: str) -> None:
    """An error if the loss depends on the phase of the eigenvectors, which nothing determines."""
    if complex_valued(inner) and depends_on_phase(diagonal_of(inner)):
        raise RuntimeError(
            f"{name}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined."
        )


def need_vectors(V: Any) -> None:
    """An error if the eigenvectors were not computed."""
    if V is None:
        raise RuntimeError("The derivative of eigenvalues needs the eigenvectors, which were not computed.")


# ------------------------------------------------------------------ Hermitian matrices


def eigh_backward(grad_L: Any, grad_V: Any, L: Any, V: Any) -> Any:
    """V^H dA V has dL on its diagonal, and off it the rotation of V times the differences of eigenvalues."""
    need_vectors(V)
    if grad_V is None:
        return None if grad_L is None else (V * row(grad_L)) @ mH(V)
    inner = mH(V) @ grad_V
    check_gauge(inner, "linalg_eigh")
    inner = zero_diagonal(0.5 * skew(inner) / differences(L))
    if grad_L is not None:
        inner = inner + diag_embed(grad_L)
    return V @ (inner @ mH(V))


def eigh_tangent(self_t: Any, L: Any, V: Any) -> tuple[Any, Any]:
    """The same equation, solved for dL and dV."""
    inner = mH(V) @ (self_t @ V)
    return real(diagonal_of(inner)), V @ zero_diagonal(inner / differences(L))


@op(
    space=None,
    name="linalg_eigh",
    outputs=("eigenvalues", "eigenvectors"),
    vmap="singular_values",
    self=lambda grads, eigenvalues, eigenvectors: eigh_backward(*grads, eigenvalues, eigenvectors),
    result=lambda self_t, eigenvalues, eigenvectors: eigh_tangent(self_t, eigenvalues, eigenvectors),
)
def eigh_parts(self: Array, UPLO: str = "L", compute_v: bool = True) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian matrices given by one triangle."""
    check_square(self, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel(self, "linalg_eigh_cpu")
    values, vectors, info = kernels.eigh(self, UPLO.upper() == "L", compute_v)
    check_info(info, "linalg.eigh")
    return values, vectors


@function(space="linalg", method=False, name="linalg_eigh", autocast="float32")
def linalg_eigh(self: Array, UPLO: str = "L", *, out: Any = None) -> Any:
    """Compute eigenvalues and eigenvectors of symmetric or Hermitian matrices `(*, n, n)`.

    Returns the named tuple `(eigenvalues, eigenvectors)`: L, real `(*, n)` in ascending order, and Q, unitary
    `(*, n, n)` with the vectors as columns, so that `A = Q @ diag(L) @ Q.mH`.
    Only the triangle that `UPLO` names, "L" or "U", is read.
    Eigenvectors are unique only up to a phase; their gradient does not exist for repeated eigenvalues.
    """
    need_tensors("linalg_eigh", input=self)
    return written("_linalg_eigh", eigh_parts(self, UPLO), out)


@function(space="linalg", method=False, name="linalg_eigvalsh", autocast="float32")
def linalg_eigvalsh(self: Array, UPLO: str = "L", *, out: Any = None) -> Array:
    """Compute the eigenvalues of symmetric or Hermitian matrices `(*, n, n)`, in ascending order.

    The result is real, of shape `(*, n)`. Only the triangle that `UPLO` names, "L" or "U", is read.
    """
    need_tensors("linalg_eigvalsh", input=self)
    return written("_linalg_eigh", eigenvalues_h(self, UPLO), out)


def eigenvalues_h(self: Any, UPLO: str = "L") -> Any:
    """The eigenvalues, with vectors only where a derivative will need them."""
    return eigh_parts(self, UPLO, may_differentiate(self))[0]


# ------------------------------------------------------------------ general matrices


def eig_backward(grad_L: Any, grad_V: Any, L: Any, V: Any, dtype: Any) -> Any:
    """V^-1 dA V has dL on its diagonal, and off it the change of V times the differences of eigenvalues.

    Eigenvectors have norm one, so what would change their length is projected away first.
    """
    need_vectors(V)
    if grad_V is None:
        if grad_L is None:
            return None
        return real_like(linalg_solve_ex(mH(V), column(grad_L) * mH(V))[0], dtype)
    inner = mH(V) @ grad_V
    check_gauge(inner, "linalg_eig")
    inner = inner - mH(V) @ (V * row(real(diagonal_of(inner))))
    inner = zero_diagonal(inner / conj(differences(L)))
    if grad_L is not None:
        inner = inner + diag_embed(grad_L)
    return real_like(linalg_solve_ex(mH(V), inner @ mH(V))[0], dtype)


def eig_tangent(self_t: Any, L: Any, V: Any) -> tuple[Any, Any]:
    """The same equation, solved for dL and dV."""
    moved = self_t if complex_valued(self_t) else self_t + 0j
    inner = linalg_solve_ex(V, moved @ V)[0]
    V_t = V @ zero_diagonal(inner / differences(L))
    return diagonal_of(inner), V_t - V * row(real(sum_dim(conj(V) * V_t, (-2,))))


@op(
    space=None,
    name="linalg_eig",
    outputs=("eigenvalues", "eigenvectors"),
    vmap="singular_values",
    self=lambda grads, self_dtype, eigenvalues, eigenvectors: eig_backward(
        *grads, eigenvalues, eigenvectors, self_dtype
    ),
    result=lambda self_t, eigenvalues, eigenvectors: eig_tangent(self_t, eigenvalues, eigenvectors),
)
def eig_parts(self: Array, compute_v: bool = True) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of square matrices."""
    if FROM_NUMPY[self.dtype].category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_type(self)}")
    name = "eig" if compute_v else "eigvals"
    check_square(self, f"linalg.{name}")
    check_kernel(self, "linalg_eig_out_cpu")
    if not np.isfinite(self).all():
        raise RuntimeError(f"torch.linalg.{name}: input tensor should not contain infs or NaNs.")
    return kernels.eig(self, compute_v)


@function(space="linalg", method=False, name="linalg_eig", autocast="float32", out_by_rows="filled")
def linalg_eig(self: Array, *, out: Any = None) -> Any:
    """Compute eigenvalues and eigenvectors of square matrices `(*, n, n)`.

    Returns the named tuple `(eigenvalues, eigenvectors)`, always complex: `(*, n)` in no particular order, and
    `(*, n, n)` with vectors of norm 1 as columns, so that `A @ V = V @ diag(L)`.
    Eigenvectors are unique only up to a phase; their gradient does not exist for repeated eigenvalues.
    """
    need_tensors("linalg_eig", input=self)
    return written("linalg_eig", eig_parts(self), out, castable("torch.linalg.eig", "eigenvalues", "eigenvectors"))


@function(space="linalg", method=False, name="linalg_eigvals", autocast="float32", out_ends_history=True)
def linalg_eigvals(self: Array, *, out: Any = None) -> Array:
    """Compute the eigenvalues of square matrices `(*, n, n)`.

    The result is always complex, of shape `(*, n)`, in no particular order.
    """
    need_tensors("linalg_eigvals", input=self)
    values = eig_parts(self, may_differentiate(self))[0]
    return written("linalg_eigvals", values, out, castable("torch.linalg.eigvals", "eigenvalues"))
