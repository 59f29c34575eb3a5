"""The Cholesky decomposition A = L L^H, and solving and inverting with it."""

from __future__ import annotations

from typing import Any

from pullback._op.define import Array, function, op
from pullback._runtime.warnings import warn_once
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import (
    castable,
    check_floating,
    check_if_asked,
    check_info,
    check_kernel,
    check_old_system,
    check_square,
    need_tensors,
    written,
)
from pullback.ops.linalg.parts import half_diagonal, mH
from pullback.ops.linalg.triangular import linalg_solve_triangular
from pullback.ops.shape.rearrange import tril
from pullback.ops.shape.reshape import common_shape, expand
from pullback.ops.supported import same_dtype


def cholesky_backward(grad: Any, upper: bool, factor: Any) -> Any:
    """A = L L^H gives L^-1 dA L^-H = L^-1 dL + (L^-1 dL)^H, whose lower triangle with half the diagonal is L^-1 dL."""
    lower = mH(factor) if upper else factor
    inner = tril(mH(lower) @ (mH(grad) if upper else grad))
    inner = 0.5 * (inner + mH(tril(inner, -1)))
    inner = linalg_solve_triangular(mH(lower), inner, upper=True)
    return linalg_solve_triangular(lower, inner, upper=False, left=False)


def cholesky_tangent(self_t: Any, upper: bool, factor: Any) -> Any:
    """The same equation, solved for dL."""
    lower = mH(factor) if upper else factor
    inner = linalg_solve_triangular(lower, self_t, upper=False)
    inner = linalg_solve_triangular(mH(lower), inner, upper=True, left=False)
    moved = lower @ half_diagonal(tril(inner))
    return mH(moved) if upper else moved


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_cholesky_ex",
    outputs=("L", "info"),
    check_out=same_dtype,
    autocast="float32",
    self=lambda grad_L, upper, L: cholesky_backward(grad_L, upper, L),
    result=lambda self_t, upper, L: (cholesky_tangent(self_t, upper, L), None),
)
def linalg_cholesky_ex(self: Array, *, upper: bool = False, check_errors: bool | str = False) -> tuple[Array, Array]:
    """Compute the Cholesky factor like `linalg.cholesky`, but report failures instead of raising an error.

    Returns the named tuple `(L, info)`. `info` is an int32 for each matrix: 0, or the order of the first leading minor
    that is not positive-definite; then `L` is of no use. With `check_errors` such a matrix raises an error after all.
    With `upper` the factor is the upper triangle.
    """
    check_square(self, "linalg.cholesky")
    check_floating(self, "linalg.cholesky")
    check_kernel(self, "cholesky_cpu")
    factor, info = kernels.cholesky(self, upper)
    check_if_asked(info, check_errors, "linalg.cholesky_ex")
    return factor, info


@function(space="linalg", method=False, name="linalg_cholesky", autocast="float32")
def linalg_cholesky(self: Array, *, upper: bool = False, out: Any = None) -> Array:
    """Compute the Cholesky factor of symmetric or Hermitian positive-definite matrices `(*, n, n)`.

    It is the lower triangle `L` with `A = L @ L.mH`; with `upper` its conjugate transpose. Only that triangle is read.
    A matrix that is not positive-definite raises an error.
    """
    need_tensors("linalg_cholesky", input=self)
    factor = linalg_cholesky_ex(self, upper=upper, check_errors="linalg.cholesky")[0]
    return written("linalg_cholesky_ex", factor, out)


@op(
    out_by_rows="always",
    vmap="matrices",
    autocast="float32",
    self=lambda grad, upper, result: cholesky_backward(grad, upper, result),
    check_out=castable("cholesky"),
)
def cholesky(self: Array, upper: bool = False) -> Array:
    """Compute the Cholesky factor of symmetric or Hermitian positive-definite matrices `(*, n, n)`.

    The lower triangle `L` with `A = L @ L.mH`, or with `upper` its conjugate transpose.
    Deprecated in favour of `linalg.cholesky`.
    """
    if self.size:
        check_square(self, "cholesky")
        check_kernel(self, "cholesky_cpu")
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = "
        "torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
        "produce equivalent results for all valid (symmetric positive definite) inputs."
    )
    if not self.size:
        return self.copy()  # of whatever shape
    factor, info = kernels.cholesky(self, upper)
    check_info(info, "cholesky")
    return factor


# ------------------------------------------------------------------ with the factor


def cholesky_inverse_backward(grad: Any, factor: Any, upper: bool, inverse: Any) -> Any:
    """The inverse of A = L L^H moves by -A^-1 dA A^-1."""
    inner = inverse @ (grad + mH(grad)) @ inverse
    return -(factor @ inner) if upper else -(inner @ factor)


def cholesky_inverse_tangent(factor: Any, factor_t: Any, inverse: Any, upper: bool) -> Any:
    """The same, forward."""
    left, right = (mH(factor_t), factor) if upper else (factor_t, mH(factor))
    half = -(inverse @ left @ right @ inverse)
    return half + mH(half)


@op(
    out_by_rows="filled",
    vmap="matrices",
    check_out=castable("cholesky_inverse"),
    autocast="float32",
    self=lambda grad, self, upper, result: cholesky_inverse_backward(grad, self, upper, result),
    result=lambda self_t, self, upper, result: cholesky_inverse_tangent(self, self_t, result, upper),
)
def cholesky_inverse(self: Array, upper: bool = False) -> Array:
    """Invert symmetric or Hermitian positive-definite matrices given their Cholesky factors.

    `input` is the factor `L`, of shape `(*, n, n)`; with `upper` it is the upper one. The result is `inv(L @ L.mH)`.
    """
    check_square(self, "cholesky_inverse")
    check_kernel(self, "cholesky_inverse_out_cpu")
    inverse, info = kernels.cholesky_inverse(self, upper)
    check_info(info, "cholesky_inverse")
    return inverse


def cholesky_solve_backward(
    grad: Any, factor: Any, result: Any, upper: bool, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """X = A^-1 B with A = L L^H: the gradient of B is A^-1 grad, that of A minus it times X^H."""
    solved = cholesky_solve(grad, factor, upper)
    if not wants[1]:
        return solved, None
    outer = solved @ mH(result)
    outer = outer + mH(outer)
    return solved, -(factor @ outer) if upper else -(outer @ factor)


def cholesky_solve_tangent(self_t: Any, factor: Any, factor_t: Any, result: Any, upper: bool) -> Any:
    """A dX = dB - dA X."""
    half = mH(factor_t) @ factor if upper else factor_t @ mH(factor)
    return cholesky_solve(self_t - (half + mH(half)) @ result, factor, upper)


@op(
    out_by_rows="always",
    vmap="matrices",
    check_out=castable("cholesky_solve"),
    autocast="float32",
    backward=lambda grad, self, input2, result, upper, wants: cholesky_solve_backward(
        grad, input2, result, upper, wants
    ),
    result=lambda self_t, input2_t, input2, result, upper: cholesky_solve_tangent(
        self_t, input2, input2_t, result, upper
    ),
)
def cholesky_solve(self: Array, input2: Array, upper: bool = False) -> Array:
    """Solve linear systems with symmetric or Hermitian positive-definite matrices given their Cholesky factors.

    `input` is the right-hand side B `(*, n, k)`, and `input2` the factor L `(*, n, n)`; with `upper` the upper one.
    The result is the X `(*, n, k)` with `L @ L.mH @ X = B`.
    """
    for name, array in (("b", self), ("u", input2)):
        if array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    check_old_system(self, input2, "cholesky_solve")
    batch = common_shape(self.shape[:-2], input2.shape[:-2])
    check_kernel(self, "cholesky_solve_cpu")
    factor = expand(input2, (*batch, *input2.shape[-2:]))
    return kernels.cholesky_solve(expand(self, (*batch, *self.shape[-2:])), factor, upper)
