"""Products of Householder reflections H = I - tau v v^H: what geqrf stores below the diagonal of R."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._op.out import each, exactly
from pullback._runtime.messages import shape_text
from pullback.kernels.numpy.linalg import orthogonal as kernels
from pullback.kernels.numpy.linalg.triangular import diagonal
from pullback.ops.linalg.checks import castable, check_kernel, need_tensors, scalar_type, written
from pullback.ops.linalg.parts import column, first_columns, mH, unit_diagonal, with_zero_columns
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.shape.join import cat
from pullback.ops.shape.rearrange import tril
from pullback.ops.shape.reshape import squeeze_dim, zeros_of
from pullback.ops.shape.slicing import slice_

HOUSEHOLDER_OUT = castable("torch.linalg.householder_product")

# ------------------------------------------------------------------ one reflection after the other


def vectors_of(self: Any, k: int) -> Any:
    """The vectors: ones on the diagonal, what is stored below it, zeros above it."""
    return unit_diagonal(tril(first_columns(self, k), -1))


def item(self: Any, i: int) -> Any:
    """One column of matrices, or one element of vectors."""
    return slice_(self, -1, i, i + 1, 1)


def order(k: int, adjoint: bool) -> list[int]:
    """The order in which reflections meet what stands right of them: Q = H_1 ... H_k begins with the last."""
    return list(range(k)) if adjoint else list(range(k - 1, -1, -1))


def reflect_backward(grad: Any, self: Any, tau: Any, other: Any, adjoint: bool) -> tuple[Any, Any, Any]:
    """The gradients of the reflections, their factors and the matrix they are applied to.

    H C moves by dH C + H dC with dH = -(dtau v v^H + tau dv v^H + tau v dv^H): the steps are taken once forward,
    keeping each C, and once backward.
    """
    k = tau.shape[-1]
    vectors, factors = vectors_of(self, k), column(conj(tau) if adjoint else tau)
    steps, before = order(k, adjoint), []
    for i in steps:
        v, t = item(vectors, i), slice_(factors, -2, i, i + 1, 1)
        before.append(other)
        other = other - t * v @ (mH(v) @ other)
    grad_vectors, grad_factors = [None] * k, [None] * k
    for i, c in zip(reversed(steps), reversed(before), strict=True):
        v, t = item(vectors, i), slice_(factors, -2, i, i + 1, 1)
        along, reached = mH(v) @ grad, mH(c) @ v
        grad_factors[i] = squeeze_dim(-(along @ reached), -1)
        grad_vectors[i] = -(conj(t) * (grad @ reached) + t * (c @ mH(along)))
        grad = grad - conj(t) * v @ along
    to_tau = cat(grad_factors, -1)
    to_self = with_zero_columns(tril(cat(grad_vectors, -1), -1), self.shape[-1])
    return to_self, conj(to_tau) if adjoint else to_tau, grad


# ------------------------------------------------------------------ their product as a matrix


def householder_backward(grad: Any, input: Any, tau: Any, result: Any) -> tuple[Any, Any]:
    """The product applied to the identity, of which the first columns are kept."""
    if 0 in input.shape or 0 in tau.shape:
        return None, None
    to_input, to_tau, _ = reflect_backward(grad, input, tau, columns_of_identity(input), False)
    return to_input, to_tau


@op(vmap="leading", space=None)
def columns_of_identity(self: Array) -> Array:
    """The first columns of the identity, as many as a tall matrix has."""
    out = np.zeros(self.shape, self.dtype)
    diagonal(out)[...] = 1
    return out


def householder_tangent(input_t: Any, tau_t: Any, input: Any, tau: Any) -> Any:
    """One reflection after the other, each with what moves it."""
    k = tau.shape[-1]
    value = columns_of_identity(input)
    moved = zeros_of(input, input.shape)
    vectors, vectors_t = vectors_of(input, k), tril(first_columns(input_t, k), -1)
    for i in order(k, False):
        v, v_t, t, t_t = item(vectors, i), item(vectors_t, i), column(item(tau, i)), column(item(tau_t, i))
        along, along_t = mH(v) @ value, mH(v_t) @ value
        moved = moved - t * v @ (mH(v) @ moved) - (t_t * v + t * v_t) @ along - t * v @ along_t
        value = value - t * v @ along
    return moved


@op(
    out_by_rows="filled",
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_householder_product",
    check_out=HOUSEHOLDER_OUT,
    autocast="float32",
    backward=lambda grad, input, tau, result: householder_backward(grad, input, tau, result),
    result=lambda input_t, tau_t, input, tau: householder_tangent(input_t, tau_t, input, tau),
)
def linalg_householder_product(input: Array, tau: Array) -> Array:
    """Compute the first n columns of a product of Householder reflections: the Q of a decomposition by `geqrf`.

    Column i of `input` `(*, m, n)` holds below its diagonal the vector v of the reflection `I - tau[i] * v @ v.mH`,
    whose element i is 1; `tau` is `(*, k)` with `k <= n <= m`. The result has the shape `(*, m, n)`.
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.ndim and input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_tau(input, tau, name)
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{name}: tau dtype {scalar_type(tau)} does not match input dtype {scalar_type(input)}")
    check_kernel(input, "orgqr_cpu")
    return kernels.householder_product(input, tau)


def check_tau(input: Array, tau: Array, name: str) -> None:
    """One vector of factors for each matrix."""
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{shape_text(tau.shape[:-1])}"
        )


@function(autocast="float32")
def orgqr(self: Array, input2: Array, *, out: Any = None) -> Array:
    """Compute the first columns of a product of Householder reflections: the same as `linalg.householder_product`.

    `input` `(*, m, n)` holds the vectors and `input2` `(*, k)` the factors, as `geqrf` returns them.
    """
    need_tensors("orgqr", input=self, input2=input2)
    return written("linalg_householder_product", linalg_householder_product(self, input2), out, HOUSEHOLDER_OUT)


# ------------------------------------------------------------------ their product with a matrix


def ormqr_backward(grad: Any, self: Any, input2: Any, input3: Any, left: bool, transpose: bool) -> tuple[Any, Any, Any]:
    """C Q is the conjugate transpose of Q^H C^H."""
    if 0 in self.shape or 0 in input2.shape:
        return None, None, grad
    if left:
        return reflect_backward(grad, self, input2, input3, transpose)
    to_self, to_tau, to_other = reflect_backward(mH(grad), self, input2, mH(input3), not transpose)
    return to_self, to_tau, mH(to_other)


@op(
    out_by_rows="filled",
    vmap="matrices",
    check_out=each(
        exactly(
            "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{wanted} and result has "
            "dtype {got}"
        )
    ),
    autocast="float32",
    backward=lambda grad, self, input2, input3, left, transpose, result: ormqr_backward(
        grad, self, input2, input3, left, transpose
    ),
)
def ormqr(self: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False) -> Array:
    """Multiply a matrix by a product Q of Householder reflections, without forming Q.

    `input` `(*, m, k)` and `input2` `(*, k)` are the vectors and the factors, as `geqrf` returns them.
    The result is `Q @ input3`, or with `left=False` `input3 @ Q`, where Q is square, `(m, m)`.
    With `transpose` the conjugate transpose of Q is used.
    """
    check_ormqr(self, input2, input3, left)
    check_kernel(self, "ormqr_cpu")
    return kernels.ormqr(self, input2, input3, left, transpose)


def check_ormqr(self: Array, tau: Array, other: Array, left: bool) -> None:
    """Torch's demands, in its order."""
    if self.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if other.shape[side] != self.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.ndim and tau.shape[-1] != min(other.shape[side], self.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    check_tau(self, tau, "torch.ormqr")
    if other.shape[:-2] != self.shape[:-2]:
        raise RuntimeError(
            "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{shape_text(other.shape[:-2])}"
        )
    for name, array in (("tau", tau), ("other", other)):
        if array.dtype is not self.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{scalar_type(self)} and {name} has dtype {scalar_type(array)}"
            )
