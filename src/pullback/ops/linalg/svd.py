"""The singular value decomposition A = U diag(S) V^H."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._modes import is_grad_enabled, modes
from pullback._op.define import Array, function, op
from pullback._op.named import return_type
from pullback._tensor import Tensor, wrap
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.linalg import spectral as kernels
from pullback.ops.linalg.checks import (
    check_floating,
    check_info,
    check_kernel,
    check_matrix,
    need_tensors,
    written,
)
from pullback.ops.linalg.parts import (
    column,
    diagonal_of,
    differences,
    first_columns,
    first_rows,
    imaginary,
    mH,
    plus,
    real,
    row,
    with_zero_columns,
    with_zero_rows,
    zero_diagonal,
)
from pullback.ops.shape.rearrange import diag_embed
from pullback.ops.supported import complex_valued

GAUGE = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this phase term, making it ill-defined."
)


def may_differentiate(tensor: Tensor) -> bool:
    """True if a gradient or a tangent will be asked of what is computed from this tensor."""
    return (is_grad_enabled() and wants_grad(tensor)) or (modes.dual_level >= 0 and tensor._tangent is not None)


def depends_on_phase(self: Any, other: Any = None) -> bool:
    """True if a gradient has an imaginary part where a choice of phase would turn it, that the one of other vectors of
    the same phase does not make up for but for rounding; under vmap nobody looks."""
    values, others = (x._array if isinstance(x, Tensor) else x for x in (self, other))
    turns_back = 0 if others is None else -others.imag
    return type(values) is np.ndarray and not np.allclose(values.imag, turns_back, 1e-2, 1e-2)


def skew(self: Any) -> Any:
    """X - X^H."""
    return self - mH(self)


# ------------------------------------------------------------------ the derivative


def svd_backward(grad_U: Any, grad_S: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    """U^H dA V = dS + S-weighted rotations of U and of V, which each pair of singular values shares between them.

    With E_ij = s_j^2 - s_i^2, the rotations skew(U^H gU) and skew(V^H gV) come back divided by E and weighted by S;
    what moves U or V out of the space they span comes back through the projection onto its complement.
    """
    if grad_U is None and grad_Vh is None:
        return None if grad_S is None else (U * row(grad_S)) @ Vh
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    turned_U = None if grad_U is None else skew(mH(U) @ grad_U)
    turned_V = None if grad_Vh is None else skew(Vh @ mH(grad_Vh))
    phases = None
    if complex_valued(U):
        phases = check_gauge(turned_U, turned_V, S)
    gaps = differences(S * S)
    inner = None
    if turned_U is not None:
        inner = zero_diagonal(turned_U / gaps) * row(S)
    if turned_V is not None:
        inner = plus(inner, column(S) * zero_diagonal(turned_V / gaps))
    if grad_S is not None:
        inner = inner + diag_embed(grad_S)
    if phases is not None:
        inner = inner + diag_embed(phases)
    left = U @ inner
    if m > k and grad_U is not None:
        scaled = grad_U / row(S)
        left = left + scaled - U @ (mH(U) @ scaled)
    out = left @ Vh
    if n > k and grad_Vh is not None:
        scaled = grad_Vh / column(S)
        out = out + U @ (scaled - (scaled @ mH(Vh)) @ Vh)
    return out


def check_gauge(turned_U: Any, turned_V: Any, S: Any) -> Any:
    """The gradient of the phases, that of U and V must agree on; an error if the loss depends on their choice."""
    phases = [diagonal_of(turned) for turned in (turned_U, turned_V) if turned is not None]
    if depends_on_phase(*phases):
        raise RuntimeError(GAUGE)
    return None if turned_U is None else phases[0] / (2 * S)


def svd_tangent(A_t: Any, U: Any, S: Any, Vh: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """The same equations, solved for dU, dS and dV^H; columns beyond the singular values are taken to stand still."""
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    all_U, all_V = U.shape[-1], Vh.shape[-2]
    if full_matrices:
        U, Vh = first_columns(U, k), first_rows(Vh, k)
    V = mH(Vh)
    inner = mH(U) @ (A_t @ V)
    S_t = real(diagonal_of(inner))
    inner = inner - diag_embed(S_t)
    gaps = differences(S * S)
    right, left = inner * row(S), column(S) * inner
    turn_U = (right + mH(right)) / gaps
    turn_V = (left + mH(left)) / gaps
    if complex_valued(U):
        turn_U = zero_diagonal(turn_U) + diag_embed(imaginary(diagonal_of(inner)) / S)
        turn_V = zero_diagonal(turn_V)
    U_t, V_t = U @ turn_U, V @ turn_V
    if m > k:
        outside = (A_t @ V) / row(S)
        U_t = U_t + outside - U @ (mH(U) @ outside)
    if n > k:
        outside = (mH(A_t) @ U) / row(S)
        V_t = V_t + outside - V @ (Vh @ outside)
    return with_zero_columns(U_t, all_U), S_t, with_zero_rows(mH(V_t), all_V)


def svd_full_backward(grads: Any, U: Any, S: Any, Vh: Any, k: int, full_matrices: bool) -> Any:
    """Of full matrices only the columns with a singular value have a derivative."""
    grad_U, grad_S, grad_Vh = grads[:3]
    if full_matrices:
        grad_U = None if grad_U is None else first_columns(grad_U, k)
        grad_Vh = None if grad_Vh is None else first_rows(grad_Vh, k)
        U, Vh = first_columns(U, k), first_rows(Vh, k)
    return svd_backward(grad_U, grad_S, grad_Vh, U, S, Vh)


@op(
    space=None,
    name="linalg_svd",
    outputs=("U", "S", "Vh"),
    autocast="float32",
    vmap="singular_values",
    A=lambda grads, S_sym_argsize_minus_1, full_matrices, U, S, Vh: svd_full_backward(
        grads, U, S, Vh, S_sym_argsize_minus_1, full_matrices
    ),
    result=lambda A_t, U, S, Vh, full_matrices: svd_tangent(A_t, U, S, Vh, full_matrices),
)
def svd_parts(A: Array, full_matrices: bool = False, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    """U, S and V^H, with or without the vectors beyond the singular values."""
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    check_kernel(A, "linalg_svd_cpu")
    U, S, Vh, info = kernels.svd(A, full_matrices, compute_uv)
    check_info(info, "linalg.svd")
    return U, S, Vh


def refuse_driver(driver: str | None) -> None:
    """Torch lets users choose the algorithm on GPUs only."""
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@function(space="linalg", method=False, name="linalg_svd", autocast="float32")
def linalg_svd(A: Array, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Compute the singular value decomposition `A = U @ diag(S) @ Vh` of matrices `(*, m, n)`.

    Returns the named tuple `(U, S, Vh)`. `S` has the shape `(*, k)` with `k = min(m, n)`: real, in descending order.
    `U` is `(*, m, m)` and `Vh` `(*, n, n)`, unitary; with `full_matrices=False` they are `(*, m, k)` and `(*, k, n)`.
    Singular vectors are unique only up to a phase, so only functions that do not depend on it have a gradient;
    it does not exist for repeated singular values. `driver` is for GPUs only.
    """
    need_tensors("linalg_svd", A=A)
    refuse_driver(driver)
    return written("_linalg_svd", svd_parts(A, full_matrices), out)


@function(space="linalg", method=False, name="linalg_svdvals", autocast="float32")
def linalg_svdvals(A: Array, *, driver: str | None = None, out: Any = None) -> Array:
    """Compute the singular values of matrices `(*, m, n)`, in descending order.

    The result is real and has the shape `(*, min(m, n))`; its gradient is always stable. `driver` is for GPUs only.
    """
    need_tensors("linalg_svdvals", A=A)
    refuse_driver(driver)
    return written("_linalg_svd", singular_values(A), out)


@op(vmap="matrices", space=None, name="linalg_svd")
def values_alone(A: Array) -> Array:
    """The singular values of floating point matrices, when nobody will differentiate them."""
    _, S, _, info = kernels.svd(A, False, False)
    check_info(info, "linalg.svd")
    return S


def singular_values(A: Any) -> Any:
    """The singular values, with vectors only where a derivative will need them."""
    if (
        type(A) is Tensor
        and not modes.active
        and A._array.ndim == 2
        and A._array.dtype.char in "fdFD"
        and not may_differentiate(A)
    ):
        return values_alone(A)
    return svd_parts(A, False, may_differentiate(A))[1]


SVD = return_type("svd", ("U", "S", "V"))


@function(autocast="float32")
def svd(self: Array, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Compute the singular value decomposition `input = U @ diag(S) @ V.mH`; deprecated in favour of `linalg.svd`.

    Returns the named tuple `(U, S, V)`, with `V` itself, not its conjugate transpose.
    For matrices `(*, m, n)` and `k = min(m, n)`, `U` is `(*, m, k)` and `V` `(*, n, k)`; both are square if not `some`.
    With `compute_uv=False` both are zeros.
    """
    need_tensors("svd", input=self)
    if self.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {self.ndim} dimensions instead"
        )
    if compute_uv:
        U, S, Vh = svd_parts(self, not some)
    else:
        S = singular_values(self)
        *batch, m, n = self.shape
        U, Vh = (wrap(made_on(self.device, np.zeros, (*batch, size, size), self._array.dtype)) for size in (m, n))
    return written("svd", SVD(U, S, mH(Vh)), out)
