"""The LDL decomposition of Hermitian or symmetric matrices, which need not be positive."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, not_implemented, op
from pullback._op.named import return_type
from pullback._runtime.messages import shape_text
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.linalg.checks import (
    check_floating,
    check_if_asked,
    check_kernel,
    check_old_system,
    check_square,
    need_tensors,
    written,
)
from pullback.ops.shape.reshape import common_shape
from pullback.ops.supported import same_dtype


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_ldl_factor_ex",
    outputs=("LD", "pivots", "info"),
    check_out=same_dtype,
    self=not_implemented,
)
def linalg_ldl_factor_ex(
    self: Array, *, hermitian: bool = False, check_errors: bool | str = False
) -> tuple[Array, Array, Array]:
    """Compute the LDL decomposition like `linalg.ldl_factor`, but report failures instead of raising an error.

    Returns the named tuple `(LD, pivots, info)`. `info` is an int32 for each matrix: 0, or the position
    (counted from 1) of a zero on the diagonal of D. With `check_errors` that raises an error after all.
    """
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_floating(self, "torch.linalg.ldl_factor_ex")
    check_kernel(self, "ldl_factor_kernel_cpu")
    found = kernels.ldl_factor(self, hermitian)
    check_if_asked(found[2], check_errors, "torch.linalg.ldl_factor_ex")
    return found


LDL_FACTOR = return_type("linalg_ldl_factor", ("LD", "pivots"))


@function(space="linalg", method=False, name="linalg_ldl_factor")
def linalg_ldl_factor(self: Array, *, hermitian: bool = False, out: Any = None) -> Any:
    """Compute the LDL decomposition of symmetric or Hermitian matrices `(*, n, n)`, which need not be definite.

    Returns the named tuple `(LD, pivots)`: L and D packed in one matrix and the pivots, as LAPACK has them; pass both
    to `linalg.ldl_solve`. With `hermitian` complex matrices are taken to be Hermitian instead of symmetric.
    Only the lower triangle is read. There is no gradient.
    """
    need_tensors("linalg_ldl_factor", input=self)
    packed, pivots, _ = linalg_ldl_factor_ex(self, hermitian=hermitian, check_errors="torch.linalg.ldl_factor")
    return written("linalg_ldl_factor_ex", LDL_FACTOR(packed, pivots), out)


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_ldl_solve",
    check_out=same_dtype,
    LD=not_implemented,
    B=not_implemented,
)
def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """Solve `A @ X = B` given the LDL decomposition of `A` by `linalg.ldl_factor`.

    `LD` is `(*, n, n)`, `pivots` `(*, n)` and `B` `(*, n, k)`; the result has the shape of `B`.
    `hermitian` must be what it was for the decomposition. There is no gradient.
    """
    name = "torch.linalg.ldl_solve"
    check_square(LD, name)
    check_floating(LD, name)
    if B.ndim < 2:
        if B.ndim == 1:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has 0 dimensions instead")
    check_old_system(B, LD, name)
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype}")
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{shape_text(pivots.shape)} instead"
        )
    common_shape(B.shape[:-2], LD.shape[:-2])
    check_kernel(LD, "ldl_solve_kernel_cpu")
    check_pivots(pivots, LD.shape[-1])
    return kernels.ldl_solve(LD, pivots.astype(np.int32), B, hermitian)


def check_pivots(pivots: Array, rows: int) -> None:
    """Pivots name rows: LAPACK itself would write wherever they point."""
    size = np.absolute(pivots)
    if pivots.size and (size.min() < 1 or size.max() > rows):
        raise RuntimeError(
            f"torch.linalg.ldl_solve: pivots must be between 1 and {rows} in absolute value. Pass the result of "
            "ldl_factor."
        )
