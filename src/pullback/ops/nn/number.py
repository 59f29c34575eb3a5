"""Arithmetic with a Python number inside losses and norms, where torch records nodes of its own: MulBackward1."""

from __future__ import annotations

import numpy as np

from pullback._op.define import Array, Number, linear, op
from pullback.ops.supported import with_number


@op(
    sparse="product_of",
    packed="rounded",
    space=None,
    name="mul",
    node="MulBackward1",
    pointwise=True,
    self=lambda grad, other: grad * other,
    result=linear,
)
def times(self: Array, other: Number) -> Array:
    """self * other."""
    return np.multiply(*with_number(self, other))


@op(
    sparse="quotient_of",
    space=None,
    name="div",
    node="DivBackward1",
    pointwise=True,
    self=lambda grad, other: grad / other,
    result=linear,
)
def over(self: Array, other: Number) -> Array:
    """self / other."""
    return np.divide(*with_number(self, other))


@op(
    sparse="sum_of",
    packed="rounded_complex",
    kernel="add_stub",
    space=None,
    name="add",
    node="AddBackward1",
    pointwise=True,
    self=lambda grad: grad,
    result=lambda self_t: self_t,
)
def plus(self: Array, other: Number) -> Array:
    """self + other."""
    return np.add(*with_number(self, other))


@op(
    sparse="difference",
    packed="rounded_complex",
    kernel="add_stub",
    space=None,
    name="sub",
    node="SubBackward1",
    pointwise=True,
    self=lambda grad: grad,
    result=lambda self_t: self_t,
)
def minus(self: Array, other: Number) -> Array:
    """self - other."""
    return np.subtract(*with_number(self, other))
