"""Solving with triangular matrices."""

from __future__ import annotations

from typing import Any

from pullback._op.define import Array, op
from pullback._op.out import exactly
from pullback._runtime.warnings import warn_once
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import check_kernel, check_old_system, check_system
from pullback.ops.linalg.parts import mH, mT, plus
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.shape.rearrange import tril, triu
from pullback.ops.shape.reshape import common_shape, expand, zeros_of
from pullback.ops.supported import same_dtype


def triangle(self: Any, upper: bool, unitriangular: bool) -> Any:
    """The part of a triangular matrix that counts: without the diagonal if that is taken for ones."""
    return triu(self, int(unitriangular)) if upper else tril(self, -int(unitriangular))


def solve_triangular_backward(
    grad: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """A X = B: the gradient of B solves with A^H, that of A is minus it times X^H, in A's triangle."""
    solved = linalg_solve_triangular(mH(self), grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not wants[0]:
        return None, solved
    outer = -(solved @ mH(result)) if left else -(mH(result) @ solved)
    return triangle(outer, upper, unitriangular), solved


def solve_triangular_tangent(
    self_t: Any, B_t: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool
) -> Any:
    """A dX = dB - dA X."""
    moved = triangle(self_t, upper, unitriangular)
    rest = B_t - (moved @ result if left else result @ moved)
    return linalg_solve_triangular(self, rest, upper=upper, left=left, unitriangular=unitriangular)


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_solve_triangular",
    out_dtype=exactly("expected scalar type {wanted} but found {got}"),
    backward=lambda grad, self, result, upper, left, unitriangular, wants: solve_triangular_backward(
        grad, self, result, upper, left, unitriangular, wants
    ),
    result=lambda self_t, B_t, self, result, upper, left, unitriangular: solve_triangular_tangent(
        self_t, B_t, self, result, upper, left, unitriangular
    ),
)
def linalg_solve_triangular(
    self: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """Solve `A @ X = B`, or with `left=False` `X @ A = B`, for triangular `A`.

    `input` is A, `(*, n, n)`; `B` is `(*, n, k)`, or `(*, k, n)` if not `left`. Batches broadcast.
    `upper` says which triangle of A is read; with `unitriangular` its diagonal is taken to be ones and not read.
    A zero on the diagonal raises no error: the result holds infinities or NaN.
    """
    check_system(self, B, left, "linalg.solve_triangular")
    common_shape(B.shape[:-2], self.shape[:-2])
    check_kernel(self, "triangular_solve_cpu")
    if B.dtype is not self.dtype:  # torch takes the dtype of A, whatever B has
        B = (B.real if self.dtype.kind == "f" else B).astype(self.dtype)
    return kernels.solve_triangular(self, B, upper, left, unitriangular)


# ------------------------------------------------------------------ the older function


def triangular_solve_backward(
    grads: tuple[Any, Any], a: Any, x: Any, upper: bool, transpose: bool, unitriangular: bool, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """As above; the copy of A passes its gradient on."""
    grad_x, grad_copy = grads
    if grad_x is None:
        return zeros_of(x, x.shape), grad_copy
    solved = triangular_solve(grad_x, conj(a), upper, not transpose, unitriangular)[0]
    if not wants[1]:
        return solved, None
    outer = -(conj(x) @ mT(solved)) if transpose else -(solved @ mH(x))
    return solved, plus(triangle(outer, upper, unitriangular), grad_copy)


def triangular_solve_tangent(
    self_t: Any, A_t: Any, a: Any, x: Any, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Any, Any]:
    """A dX = dB - dA X, and the copy moves as A does."""
    moved = triangle(A_t, upper, unitriangular)
    rest = self_t - (mT(moved) if transpose else moved) @ x
    return triangular_solve(rest, a, upper, transpose, unitriangular)[0], A_t


@op(
    vmap="matrices",
    outputs=("solution", "cloned_coefficient"),
    check_out=same_dtype,
    autocast="float32",
    backward=lambda grads, self, A, solution, upper, transpose, unitriangular, wants: triangular_solve_backward(
        grads, A, solution, upper, transpose, unitriangular, wants
    ),
    result=lambda self_t, A_t, A, solution, upper, transpose, unitriangular: triangular_solve_tangent(
        self_t, A_t, A, solution, upper, transpose, unitriangular
    ),
)
def triangular_solve(
    self: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    """Solve `A @ X = input` for triangular `A`; deprecated in favour of `linalg.solve_triangular`.

    Returns the named tuple `(solution, cloned_coefficient)`, the second being a copy of `A`.
    `upper` says which triangle of `A` is read. With `transpose` the system is that of `A.mT`.
    With `unitriangular` the diagonal is taken to be ones.
    """
    for name, array in (("b", self), ("A", A)):
        if array.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {array.ndim} "
                "dimensions instead"
            )
    check_old_system(self, A, "triangular_solve")
    batch = common_shape(self.shape[:-2], A.shape[:-2])
    check_kernel(self, "triangular_solve_cpu")
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future "
        "PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one "
        "of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        "torch.linalg.solve_triangular(A, B)."
    )
    coefficient = kernels.by_columns(expand(A, (*batch, *A.shape[-2:])))
    used = coefficient.swapaxes(-1, -2) if transpose else coefficient
    solution = kernels.solve_triangular(
        used, expand(self, (*batch, *self.shape[-2:])), upper != transpose, True, unitriangular
    )
    return solution, coefficient
