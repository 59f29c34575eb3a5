"""Linear systems and inverses, of matrices and of tensors that stand for matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import (
    castable,
    check_floating,
    check_if_asked,
    check_kernel,
    check_same_dtype,
    check_square,
    check_system,
    need_tensors,
    written,
)
from pullback.ops.linalg.parts import column, mH
from pullback.ops.shape.dims import movedim
from pullback.ops.shape.reshape import common_shape, reshape_to, squeeze_dim
from pullback.ops.supported import same_dtype

# ------------------------------------------------------------------ systems


def is_vector(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if a right-hand side of this shape is one vector for each matrix, not a matrix."""
    return len(b) == 1 or b == a[:-1]


def solve_backward(
    grad: Any, A: Any, LU: Any, pivots: Any, X: Any, left: bool, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """A X = B: the gradient of B is A^-H grad, that of A minus it times X^H."""
    if grad is None:
        return None, None
    vector = is_vector(tuple(LU.shape), tuple(X.shape))
    if vector:
        grad, X = column(grad), column(X)
    if isinstance(A, Tensor):  # to be differentiated again, it must be a function of A
        solved = linalg_solve_ex(mH(A), grad, left=left)[0]
    else:
        solved = kernels.lu_solve(LU, pivots, grad, left, True)
    outer = (-(solved @ mH(X)) if left else -(mH(X) @ solved)) if wants[0] else None
    return outer, squeeze_dim(solved, -1) if vector else solved


def solve_tangent(A_t: Any, B_t: Any, A: Any, X: Any, left: bool) -> Any:
    """A dX = dB - dA X."""
    vector = is_vector(tuple(A.shape), tuple(X.shape))
    if vector:
        X, B_t = column(X), column(B_t)
    rest = B_t - (A_t @ X if left else X @ A_t)
    moved = linalg_solve_ex(A, rest, left=left)[0]
    return squeeze_dim(moved, -1) if vector else moved


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_solve_ex",
    outputs=("result", "info", "LU", "pivots"),
    visible=2,
    constants=("LU",),
    check_out=same_dtype,
    out_name="_linalg_solve_ex",
    backward=lambda grad_result, A, LU, pivots, result, left, wants: solve_backward(
        grad_result, A, LU, pivots, result, left, wants
    ),
    result=lambda A_t, B_t, A, result, left: (solve_tangent(A_t, B_t, A, result, left), None, None, None),
)
def linalg_solve_ex(
    A: Array, B: Array, *, left: bool = True, check_errors: bool | str = False
) -> tuple[Array, Array, Array, Array]:
    """Solve systems of linear equations like `linalg.solve`, but report singular matrices instead of raising an error.

    Returns the named tuple `(result, info)`. `info` is an int32 for each matrix: 0, or the position (counted from 1) of
    a zero on the diagonal of the factor U of `A`; then the result is of no use.
    With `left=False` the system is `X @ A = B`. With `check_errors` the singular matrix raises an error after all.
    """
    check_floating(A, "linalg.solve")
    check_square(A, "linalg.solve")
    check_same_dtype(A, B, "linalg.solve", "A", "B")
    vector = is_vector(A.shape, B.shape)
    rhs = B[..., None] if vector else B
    if vector and not left:
        check_system(A, rhs, False, "linalg.solve")
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    check_system(A, rhs, left, "linalg.solve")
    common_shape(rhs.shape[:-2], A.shape[:-2])
    check_kernel(A, "lu_cpu")
    packed, pivots, info = kernels.lu_factor(A)
    check_if_asked(info, check_errors, "torch.linalg.solve_ex")
    X = kernels.lu_solve(packed, pivots, rhs, left)
    return X[..., 0] if vector else X, info, packed, pivots


@function(space="linalg", method=False, name="linalg_solve", autocast="float32")
def linalg_solve(A: Array, B: Array, *, left: bool = True, out: Any = None) -> Array:
    """Solve the system of linear equations `A @ X = B`, or with `left=False` `X @ A = B`, for a square invertible `A`.

    `A` has the shape `(*, n, n)`; `B` is `(*, n, k)`, or `(*, n)` for one right-hand side (`(*, k, n)` if not `left`).
    Batch dimensions broadcast. The result has the shape of `B`, broadcast. A singular matrix raises an error.
    Faster and more accurate than `inv(A) @ B`.
    """
    need_tensors("linalg_solve", A=A, B=B)
    X = linalg_solve_ex(A, B, left=left, check_errors="torch.linalg.solve")[0]
    return written("linalg_solve_ex", X, out)


# ------------------------------------------------------------------ inverses


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_inv_ex",
    outputs=("inverse", "info"),
    check_out=same_dtype,
    autocast="float32",
    A=lambda grad_inverse, inverse: -(mH(inverse) @ (grad_inverse @ mH(inverse))),
    result=lambda A_t, inverse: (-(inverse @ A_t @ inverse), None),
)
def linalg_inv_ex(A: Array, *, check_errors: bool | str = False) -> tuple[Array, Array]:
    """Invert square matrices like `linalg.inv`, but report singular ones instead of raising an error.

    Returns the named tuple `(inverse, info)`. `info` is an int32 for each matrix: 0, or the position (counted from 1)
    of a zero on the diagonal of the factor U of `A`; then the inverse is of no use.
    With `check_errors` a singular matrix raises an error after all.
    """
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv", half=False)
    inverse, info = inverted(A)
    check_if_asked(info, check_errors, "linalg.inv_ex")
    return inverse, info


def inverted(A: Array) -> tuple[Array, Array]:
    """The inverse by NumPy for large batches, otherwise by the LU decomposition."""
    if kernels.many(A):
        try:
            return kernels.by_columns(np.linalg.inv(A)), np.zeros(A.shape[:-2], kernels.INT32)
        except np.linalg.LinAlgError:
            pass  # one of them is singular: the decomposition says which
    packed, pivots, info = kernels.lu_factor(A)
    return kernels.lu_solve(packed, pivots, kernels.identity(A.shape[-1], A.dtype)), info


@function(space="linalg", method=False, name="linalg_inv", autocast="float32")
def linalg_inv(A: Array, *, out: Any = None) -> Array:
    """Invert square matrices of shape `(*, n, n)`.

    A singular matrix raises an error. To multiply by an inverse, `linalg.solve` is faster and more accurate.
    """
    need_tensors("linalg_inv", A=A)
    return inverse_of(A, "linalg.inv", out)


@function(autocast="float32")
def inverse(self: Array, *, out: Any = None) -> Array:
    """Invert square matrices of shape `(*, n, n)`: the same as `linalg.inv`."""
    need_tensors("inverse", input=self)
    return inverse_of(self, "linalg.inv", out)


def inverse_of(A: Any, function: str, out: Any = None) -> Any:
    """The inverse, or the error in the name of the function that was called."""
    return written("linalg_inv_ex", linalg_inv_ex(A, check_errors=function)[0], out)


# ------------------------------------------------------------------ tensors as matrices


@function(
    space="linalg", method=False, name="linalg_tensorinv", autocast="float32", out_copies=True, out_by_rows="always"
)
def linalg_tensorinv(self: Array, ind: int = 2, *, out: Any = None) -> Array:
    """Invert a tensor as the linear map that `tensordot` makes of it.

    The first `ind` dimensions are the rows of a matrix and the others its columns, of which there are as many.
    The result has the shape `input.shape[ind:] + input.shape[:ind]`, and `tensordot(result, B, dims=ind)` solves
    `tensordot(input, X) = B` for X.
    """
    need_tensors("linalg_tensorinv", input=self)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(self.shape)
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    first, last = shape[:ind], shape[ind:]
    if prod(first) != prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(last)} != {prod(first)}"
        )
    result = inverse_of(reshape_to(self, (prod(last), prod(first))), "inv")
    return written("linalg_tensorinv", reshape_to(result, (*last, *first)), out, castable("tensorinv"))


@function(space="linalg", method=False, name="linalg_tensorsolve", autocast="float32", out_copies=True)
def linalg_tensorsolve(self: Array, other: Array, dims: Any = None, *, out: Any = None) -> Array:
    """Solve `tensordot(input, X, X.ndim) = other` for the tensor `X`.

    The first dimensions of `input` have the shape of `other`; the remaining ones, with as many elements in all, are the
    shape of the result. `dims` names dimensions of `input` to move to the end first.
    """
    need_tensors("linalg_tensorsolve", input=self, other=other)
    A = self
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    unknown, count = tuple(A.shape)[other.ndim :], other.numel()
    if prod(unknown) != count:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {prod(unknown)} != {count}"
        )
    if A.numel() != count * count:
        raise RuntimeError(f"shape '[{count}, {count}]' is invalid for input of size {A.numel()}")
    matrix = reshape_to(A, (count, count))
    X = linalg_solve(matrix, reshape_to(other, (count,)))
    return written("linalg_tensorsolve", reshape_to(X, unknown), out, castable("tensorsolve"))
