"""`number - tensor` and `number / tensor`: the operators the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import rounded
from pullback._op.define import Array, Number, function, op
from pullback._tensor import Tensor
from pullback.ops.pointwise.arithmetic import NUMBERS, check_alpha, reciprocal, refuse_bools, scaled, times_alpha
from pullback.ops.supported import invalid_combination


@op(
    packed="rounded_complex",
    kernel="add_stub",
    space=None,
    name="rsub",
    node="RsubBackward0",
    promote=True,
    check=lambda self, other, *, alpha: check_alpha(other, self, alpha=alpha, name="rsub"),
    check_operands=refuse_bools,
    pointwise=True,
    layout="other_first",
    self=lambda grad, alpha: scaled(-grad, alpha),
    other=lambda grad: grad,
    result=lambda self_t, other_t, alpha: other_t - (self_t if alpha == 1 else self_t * alpha),
)
def rsub_tensor(self: Array, other: Array, *, alpha: Number = 1) -> Array:
    """other - alpha * self."""
    return np.subtract(other, self) if alpha == 1 else rounded(np.subtract(other, times_alpha(self, alpha)), self.dtype)


@op(
    packed="rounded_complex",
    kernel="add_stub",
    space=None,
    name="rsub",
    node="RsubBackward1",
    promote=True,
    check=check_alpha,
    check_operands=refuse_bools,
    pointwise=True,
    self=lambda grad, alpha: scaled(-grad, alpha),
    result=lambda self_t, alpha: -self_t if alpha == 1 else -self_t * alpha,
)
def rsub_number(self: Array, other: Array | Number, *, alpha: Number = 1) -> Array:
    """A number minus alpha * self."""
    return np.subtract(other, self) if alpha == 1 else rounded(np.subtract(other, times_alpha(self, alpha)), self.dtype)


@function(method=False)
def rsub(self: Array, other: Array | Number, alpha: Number = 1) -> Array:
    """Subtract the input from `other`: `other - alpha * input`, with broadcasting."""
    if not isinstance(self, Tensor) or not isinstance(other, (Tensor, *NUMBERS)):
        raise invalid_combination("rsub", (self, other))
    return (rsub_tensor if isinstance(other, Tensor) else rsub_number)(self, other, alpha=alpha)


@function(raw=True, space=None, method=False, operator="rsub")
def reflected_sub(self: Array, other: Any) -> Any:
    """other - self."""
    if isinstance(other, Tensor):
        return rsub_tensor(self, other)
    return rsub_number(self, other) if isinstance(other, NUMBERS) else NotImplemented


@function(raw=True, space=None, method=False, operator="rtruediv")
def reflected_truediv(self: Array, other: Any) -> Any:
    """number / self, as torch computes it."""
    return reciprocal(self) * other if isinstance(other, (Tensor, *NUMBERS)) else NotImplemented


Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[attr-defined]
