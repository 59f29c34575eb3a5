"""Arithmetic with a Python number inside losses and norms, where torch records nodes of its own: MulBackward1."""

from __future__ import annotations

import numpy as np

from pullback._op.apply import cast
from pullback._op.define import Array, Number, linear, op


@op(space=None, name="mul", node="MulBackward1", self=lambda grad, other: grad * other, result=linear)
def times(self: Array, other: Number) -> Array:
    """self * other."""
    return np.multiply(self, cast(other, self.dtype))


@op(space=None, name="div", node="DivBackward1", self=lambda grad, other: grad / other, result=linear)
def over(self: Array, other: Number) -> Array:
    """self / other."""
    return np.divide(self, cast(other, self.dtype))


@op(space=None, name="add", node="AddBackward1", self=lambda grad: grad, result=lambda self_t: self_t)
def plus(self: Array, other: Number) -> Array:
    """self + other."""
    return np.add(self, cast(other, self.dtype))


@op(space=None, name="sub", node="SubBackward1", self=lambda grad: grad, result=lambda self_t: self_t)
def minus(self: Array, other: Number) -> Array:
    """self - other."""
    return np.subtract(self, cast(other, self.dtype))
