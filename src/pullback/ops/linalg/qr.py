"""The QR decomposition."""

from __future__ import annotations

from typing import Any

from pullback._op.define import Array, function, op
from pullback._op.named import return_type
from pullback._runtime.warnings import warn_once
from pullback.kernels.numpy.linalg import orthogonal as kernels
from pullback.ops.linalg.checks import (
    castable,
    check_floating,
    check_kernel,
    check_matrix,
    need_tensors,
    written,
)
from pullback.ops.linalg.parts import (
    diagonal_of,
    first_columns,
    half_diagonal,
    imaginary,
    mH,
    real_diagonal,
    with_zero_columns,
)
from pullback.ops.linalg.svd import skew
from pullback.ops.linalg.triangular import linalg_solve_triangular
from pullback.ops.shape.rearrange import diag_embed, tril, triu
from pullback.ops.supported import complex_valued, no_derivative, same_dtype


def check_derivative(m: int, n: int, mode: str) -> None:
    """What has no derivative: an R whose Q was not computed, and columns of Q that nothing determines."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def symmetric_half(inner: Any) -> Any:
    """X + X^H with the real part of the diagonal counted once."""
    both = inner + mH(inner)
    return half_diagonal(both)


def qr_backward(grad_Q: Any, grad_R: Any, Q: Any, R: Any, mode: str) -> Any:
    """Q^H dA R^-1 = Q^H dQ + dR R^-1: a skew matrix and an upper triangle with a real diagonal.

    Of a wide matrix the first square part gives Q, and the columns after it only R.
    """
    if grad_Q is None and grad_R is None:
        return None
    m, n = R.shape[-2] if mode == "r" else Q.shape[-2], R.shape[-1]
    check_derivative(m, n, mode)
    inner = None if grad_R is None else grad_R @ mH(R)
    if grad_Q is not None:
        turned = mH(Q) @ grad_Q
        inner = -turned if inner is None else inner - turned
    if m >= n:
        out = Q @ symmetric_half(triu(inner))
        out = out if grad_Q is None else out + grad_Q
        return linalg_solve_triangular(mH(R), out, upper=False, left=False)
    turned = half_diagonal(tril(skew(-inner)))
    out = Q @ linalg_solve_triangular(mH(first_columns(R, m)), turned, upper=False, left=False)
    out = with_zero_columns(out, n)
    return out if grad_R is None else out + Q @ grad_R


def qr_tangent(A_t: Any, Q: Any, R: Any, mode: str) -> tuple[Any, Any]:
    """The same equation, solved for dQ and dR."""
    m, n = A_t.shape[-2:]
    check_derivative(m, n, mode)
    if m >= n:
        moved = linalg_solve_triangular(R, A_t, upper=True, left=False)
        inner = mH(Q) @ moved
        upper = real_diagonal(half_diagonal(triu(inner + mH(inner))))
        return moved - Q @ upper, upper @ R
    moved = mH(Q) @ A_t
    inner = linalg_solve_triangular(first_columns(R, m), first_columns(moved, m), upper=True, left=False)
    turn = skew(tril(inner, -1))
    if complex_valued(inner):
        turn = turn + diag_embed(imaginary(diagonal_of(inner)))
    return Q @ turn, moved - turn @ R


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_qr",
    outputs=("Q", "R"),
    check_out=same_dtype,
    autocast="float32",
    A=lambda grads, mode, Q, R: qr_backward(*grads, Q, R, mode),
    result=lambda A_t, Q, R, mode: qr_tangent(A_t, Q, R, mode),
)
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """Compute the QR decomposition `A = Q @ R` of matrices `(*, m, n)`.

    Returns the named tuple `(Q, R)`: Q has orthonormal columns, R is upper triangular. Let `k = min(m, n)`.
    `mode` "reduced" gives `(*, m, k)` and `(*, k, n)`, "complete" `(*, m, m)` and `(*, m, n)`.
    "r" gives R of the reduced shape and an empty Q, faster, but without gradient.
    """
    if not isinstance(mode, str):
        raise TypeError(f"linalg_qr(): argument 'mode' (position 2) must be str, not {type(mode).__name__}")
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_kernel(A, "geqrf_cpu")
    return kernels.qr(A, mode)


QR = return_type("qr", ("Q", "R"))


@function(autocast="float32")
def qr(self: Array, some: bool = True, *, out: Any = None) -> Any:
    """Compute the QR decomposition `input = Q @ R`; deprecated in favour of `linalg.qr`.

    Returns the named tuple `(Q, R)` of shapes `(*, m, k)` and `(*, k, n)` with `k = min(m, n)`; with `some=False`,
    `(*, m, m)` and `(*, m, n)`.
    """
    need_tensors("qr", input=self)
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
        "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
        "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    found = linalg_qr(self, "reduced" if some else "complete")
    return written("linalg_qr", QR(*found), out)


@op(
    out_by_rows="filled",
    vmap="matrices",
    outputs=("a", "tau"),
    autocast="float32",
    self=lambda grads: no_derivative("geqrf"),
    check_out=castable("torch.geqrf", "a", "tau"),
)
def geqrf(self: Array) -> tuple[Array, Array]:
    """Compute the QR decomposition of matrices `(*, m, n)` in the packed form of LAPACK; most want `linalg.qr`.

    Returns the named tuple `(a, tau)`: `a` holds R on and above the diagonal and the Householder vectors below it,
    `tau` `(*, min(m, n))` their factors. `linalg.householder_product(a, tau)` makes Q of them.
    """
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel(self, "geqrf_cpu")
    return kernels.geqrf(self)
