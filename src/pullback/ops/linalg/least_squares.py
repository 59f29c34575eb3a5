"""Least squares: the solution of AX = B nearest to one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback.kernels.numpy.linalg import orthogonal as kernels
from pullback.kernels.numpy.linalg.spectral import real_of
from pullback.ops.linalg.checks import LAPACK_DTYPES, castable, check_info, need_tensors, scalar_type, written
from pullback.ops.linalg.parts import column, mH, plus, real, row
from pullback.ops.linalg.pseudoinverse import pinv_backward, pinv_parts, pinv_tangent
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import common_shape, squeeze_dim, zeros_of

EPSILON = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}


def is_vector(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if the right-hand side is one vector for each matrix."""
    return len(a) - 1 == len(b) and a[:-1] == b


def lstsq_backward(
    grad_solution: Any, grad_residuals: Any, self: Any, b: Any, solution: Any, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """X = A^+ B, and the residuals |AX - B|^2 do not move with X, which makes them smallest."""
    vector = is_vector(tuple(self.shape), tuple(b.shape))
    if vector:
        b, solution = column(b), column(solution)
        grad_solution = None if grad_solution is None else column(grad_solution)
    to_self = to_b = None
    if grad_solution is not None:
        inverse = pinv_parts(self, None, None, False)
        to_b = mH(inverse) @ grad_solution
        to_self = pinv_backward(grad_solution @ mH(b), self, inverse) if wants[0] else None
    if grad_residuals is not None and 0 not in grad_residuals.shape:
        rest = 2 * (self @ solution - b) * row(grad_residuals)
        to_b = plus(to_b, -rest)
        to_self = plus(to_self, rest @ mH(solution)) if wants[0] else None
    if to_b is not None and vector:
        to_b = squeeze_dim(to_b, -1)
    return to_self, to_b


def lstsq_tangent(self_t: Any, b_t: Any, self: Any, b: Any, solution: Any, residuals: Any) -> tuple[Any, Any]:
    """The same, forward."""
    vector = is_vector(tuple(self.shape), tuple(b.shape))
    if vector:
        b, b_t, solution = column(b), column(b_t), column(solution)
    inverse = pinv_parts(self, None, None, False)
    moved = pinv_tangent(self_t, self, inverse) @ b + inverse @ b_t
    residuals_t = zeros_of(residuals, residuals.shape)
    if 0 not in residuals.shape:
        rest, rest_t = self @ solution - b, self_t @ solution - b_t
        residuals_t = 2 * sum_dim(real(conj(rest) * rest_t), (-2,))
    return squeeze_dim(moved, -1) if vector else moved, residuals_t


def check_lstsq(a: Array, b: Array, driver: str) -> None:
    """Torch's demands, in its order."""
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {scalar_type(a)} and "
            f"other's dtype {scalar_type(b)}"
        )
    apart = a.ndim - b.ndim
    if apart not in (0, 1):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if apart == 1 and b.ndim > 1 and not is_vector(a.shape, b.shape) and a.shape[-2] == b.shape[-2]:
        common_shape(a.shape[:-2], b.shape[:-1])  # torch takes such a right-hand side for vectors
    side = -1 if b.ndim == 1 or is_vector(a.shape, b.shape) else -2
    if a.shape[-2] != b.shape[side]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if driver not in kernels.DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if a.dtype not in LAPACK_DTYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")


@op(
    vmap="entries",
    space=None,
    name="linalg_lstsq",
    outputs=("solution", "residuals", "rank", "singular_values"),
    constants=("singular_values",),
    backward=lambda grad_solution, grad_residuals, self, b, solution, wants: lstsq_backward(
        grad_solution, grad_residuals, self, b, solution, wants
    ),
    result=lambda self_t, b_t, self, b, solution, residuals: (
        *lstsq_tangent(self_t, b_t, self, b, solution, residuals),
        None,
        None,
    ),
)
def lstsq_parts(self: Array, b: Array, rcond: float | None, driver: str) -> tuple[Array, Array, Array, Array]:
    """The solution, the squared residuals, the rank and the singular values, as far as the driver finds them."""
    check_lstsq(self, b, driver)
    vector = is_vector(self.shape, b.shape)
    rhs = b[..., None] if vector else b
    batch = common_shape(self.shape[:-2], rhs.shape[:-2])
    m, n = self.shape[-2:]
    real_type = real_of(self.dtype)
    tolerance = EPSILON[real_type] * max(m, n) if rcond is None else rcond
    x, rank, singular, info = kernels.lstsq(self, rhs, tolerance, driver)
    check_info(info, "torch.linalg.lstsq")
    nothing = np.empty(0, real_type)
    residuals = nothing
    full_rank = driver == "gels" or (bool((rank == n).all()) if rank.ndim else rank.item() == n)
    if m > n and driver != "gelsy" and full_rank:
        residuals = np.add.reduce(np.square(np.absolute(x[..., n:, :])), -2)
    solution = x[..., :n, :]
    ranks = np.empty(0, np.int64) if driver == "gels" else of_own(np.asarray(rank, np.int64).reshape(batch), self, 0)
    values = of_own(singular, self, 1) if driver in ("gelsd", "gelss") else nothing
    return solution[..., 0] if vector else solution, residuals, ranks, values


def of_own(found: Array, self: Array, inner: int) -> Array:
    """What was found of each matrix, once where the matrix was stretched to go with several right-hand sides."""
    own = (*self.shape[:-2], *found.shape[found.ndim - inner :])
    if found.shape == own or found.ndim != len(own):
        return found
    once = found[tuple([slice(n) for n in own])]
    return once if once.shape == own else np.zeros(own, found.dtype)


@function(space="linalg", method=False, name="linalg_lstsq", autocast="float32", out_by_rows="filled")
def linalg_lstsq(
    self: Array, b: Array, rcond: float | None = None, *, driver: str | None = None, out: Any = None
) -> Any:
    """Solve the least squares problem: find the X that minimizes the norm of `input @ X - b`.

    `input` is `(*, m, n)` and `b` `(*, m, k)`, or `(*, m)` for one right-hand side.
    Returns the named tuple `(solution, residuals, rank, singular_values)`; `solution` is `(*, n, k)`, and what a driver
    does not find is empty. `residuals` are the squared norms, if m > n, of matrices of full rank, `(*, k)` or `(*, 1)`.
    `driver` is the LAPACK routine: "gelsy" (the default), "gels" for matrices of full rank, "gelsd" or "gelss".
    Singular values below `rcond` times the largest count as zero; by default, the precision times `max(m, n)`.
    """
    need_tensors("linalg_lstsq", input=self, b=b)
    found = lstsq_parts(self, b, rcond, driver or "gelsy")
    return written("linalg_lstsq", found, out, castable("torch.linalg.lstsq", *found._fields))
