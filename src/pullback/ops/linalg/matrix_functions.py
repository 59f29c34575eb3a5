"""Functions of whole matrices: the exponential and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.linalg import spectral as kernels
from pullback.ops.linalg.checks import castable, check_floating, check_square, need_tensors, written
from pullback.ops.linalg.contract import matmul
from pullback.ops.linalg.matmul import mm
from pullback.ops.linalg.parts import first_rows, identity_like, later_columns, mH
from pullback.ops.linalg.solve import inverse_of
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import clone_contiguous, zeros_of
from pullback.ops.supported import same_dtype


def in_direction(self: Any, change: Any) -> Any:
    """The derivative of the exponential in a direction: the upper right part of exp([[A, D], [0, A]])."""
    n = self.shape[-1]
    upper, lower = cat([self, change], -1), cat([zeros_of(self, self.shape), self], -1)
    return later_columns(first_rows(linalg_matrix_exp(cat([upper, lower], -2)), n), n)


@op(
    vmap="matrices",
    space="linalg",
    method=False,
    name="linalg_matrix_exp",
    out=False,
    self=lambda grad, self: in_direction(mH(self), grad),
    result=lambda self_t, self: in_direction(self, self_t),
)
def linalg_matrix_exp(self: Array) -> Array:
    """Compute the exponential of square matrices `(*, n, n)`: the sum of `A^k / k!` over all k."""
    check_floating(self, "linalg.matrix_exp")
    check_square(self, "linalg.matrix_exp")
    return kernels.matrix_exp(self)


@function()
def matrix_exp(self: Array) -> Array:
    """Compute the exponential of square matrices `(*, n, n)`: the same as `linalg.matrix_exp`."""
    need_tensors("matrix_exp", input=self)
    return linalg_matrix_exp(self)


# ------------------------------------------------------------------ powers


def power(self: Tensor, n: int) -> Tensor:
    """A whole power, by squaring; a negative one of the inverse."""
    check_square(self._array, "linalg.matrix_power")
    if n == 0:
        return clone_contiguous(self).copy_(identity_like(self))
    if n == 1:
        return clone_contiguous(self)
    if n < 0:
        self, n = inverse_of(self, "linalg.inv"), -n
        if n == 1:
            return self
    product = mm if self._array.ndim == 2 else matmul
    if n == 2:
        return product(self, self)
    if n == 3:
        return product(product(self, self), self)
    square, result = None, None
    while n > 0:
        square = self if square is None else product(square, square)
        n, odd = divmod(n, 2)
        if odd:
            result = square if result is None else product(result, square)
    return result  # type: ignore[return-value]


@function(space="linalg", method=False, name="linalg_matrix_power", out_by_rows="always")
def linalg_matrix_power(self: Array, n: int, *, out: Any = None) -> Array:
    """Raise square matrices `(*, m, m)` to an integer power `n`.

    A power of 0 is the identity; a negative one is the power `-n` of the inverse, and raises an error if there is none.
    """
    need_tensors("linalg_matrix_power", input=self)
    return written("linalg_matrix_power", power(self, whole(n, "linalg_matrix_power")), out, check_power_out)


@function(out_by_rows="always")
def matrix_power(self: Array, n: int, *, out: Any = None) -> Array:
    """Raise square matrices `(*, m, m)` to an integer power `n`: the same as `linalg.matrix_power`."""
    need_tensors("matrix_power", input=self)
    return written("matrix_power", power(self, whole(n, "matrix_power")), out, check_power_out)


def check_power_out(targets: list[Any], arrays: list[Any], bound: dict[str, Any]) -> None:
    """Torch asks twice: whether the result could be converted, then that it need not be."""
    castable("matrix_power")(targets, arrays, bound)
    same_dtype(targets, arrays, bound)


def whole(n: Any, name: str) -> int:
    """An exponent as an int, or torch's error."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"{name}(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    return int(n)
