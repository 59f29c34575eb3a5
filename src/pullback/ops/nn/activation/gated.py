"""Activations made of other ops: glu, softsign, tanhshrink; and the names of the smooth ones in nn.functional."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import rounded, widened
from pullback._arrays.kinds import laid_out
from pullback._op.declare import publish
from pullback._op.define import Array, function, op
from pullback._op.inplace import make_inplace
from pullback._tensor import Tensor, normal_dim
from pullback.kernels.jit.small.choose import pointwise
from pullback.kernels.numpy.math.numbers import ONE
from pullback.ops.nn.activation.piecewise import FUNCTIONAL, narrowed, needs_floats
from pullback.ops.nn.activation.smooth import (
    gelu,
    hardshrink,
    hardsigmoid,
    hardswish,
    log_sigmoid,
    mish,
    silu,
    softplus,
    softshrink,
)
from pullback.ops.pointwise.arithmetic import abs, add, div, sub
from pullback.ops.pointwise.elementary import sigmoid
from pullback.ops.pointwise.trigonometric import tanh
from pullback.ops.shape.join import cat
from pullback.ops.shape.slicing import narrow
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ glu


def check_glu(self: Array, dim: int) -> None:
    """Torch's demands on glu."""
    if self.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = normal_dim(dim, self.ndim)
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {self.shape[dim]}")
    refuse("glu_cpu", self, "iubc")


@op(
    space=None,
    check=check_glu,
    self=lambda grad, self, dim: glu_backward(grad, self, dim),
    result=lambda self_t, self, dim: glu_moves(self_t, self, dim),
)
def glu(self: Array, dim: int = -1) -> Array:
    """Apply the gated linear unit: `a * sigmoid(b)`, where `a` and `b` are the halves of `input` along `dim`.

    The size of `dim` has to be even, and is halved in the result.
    """
    check_glu(self, dim)
    x = needs_floats(self)
    half = x.shape[dim] // 2
    before = (slice(None),) * (dim % x.ndim)
    first, second = x[(*before, slice(half))], x[(*before, slice(half, None))]
    return laid_out(narrowed(through_gate(first, second), self), [self[(*before, slice(half))]])


@pointwise
def through_gate(x: Array, gate: Array) -> Array:
    """x * sigmoid(gate)"""
    return np.divide(x, np.add(np.exp(np.negative(gate)), ONE[x.dtype]))


def halves(self: Any, dim: int) -> tuple[Any, Any]:
    """The two halves of a dimension."""
    half = self.shape[dim] // 2
    return narrow(self, dim, 0, half), narrow(self, dim, half, half)


@op(
    space=None,
    grad_output=lambda grad, self, dim: glu_moves(grad, self, dim),
    self=lambda grad, grad_output, self, dim: glu_curve(grad, grad_output, self, dim),
    result=lambda grad_output_t, self_t, grad_output, self, dim: (
        glu_backward(grad_output_t, self, dim) + glu_curve(self_t, grad_output, self, dim)
    ),
)
def glu_backward(grad_output: Array, self: Array, dim: int) -> Array:
    """The gradients of the two halves, side by side."""
    first, second = halves(self, dim)
    gate = sigmoid(second)
    grad, x, wide = widened(grad_output), widened(first), widened(gate)
    return cat([grad_output * gate, rounded((1 - wide) * wide * grad * x, grad_output.dtype)], dim)


def glu_curve(grad: Any, grad_output: Any, self: Any, dim: int) -> Any:
    """How those change with the two halves."""
    first, second = halves(self, dim)
    to_first, to_second = halves(grad, dim)
    gate = sigmoid(second)
    slope = grad_output * gate * (1 - gate)
    return cat([to_second * slope, (to_first + to_second * first * (1 - 2 * gate)) * slope], dim)


def glu_moves(self_t: Any, self: Any, dim: int) -> Any:
    """The tangent of glu."""
    first, second = halves(self, dim)
    first_t, second_t = halves(self_t, dim)
    gate = sigmoid(second)
    return gate * (first_t + first * (1 - gate) * second_t)


# ------------------------------------------------------------------ composites


@function(nested="jagged", raw=True, explained=True, space=None, method=False)
def softsign(input: Tensor) -> Tensor:
    """Apply softsign: `x / (1 + |x|)`."""
    return div(input, add(abs(input), 1))


@function(nested="jagged", raw=True, explained=True, space=None, method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """Subtract the hyperbolic tangent: `x - tanh(x)`."""
    return sub(input, tanh(input))


# ------------------------------------------------------------------ names


def functional(plain: Any, doc: str) -> Any:
    """The nn.functional form of an activation of one tensor: with `inplace`."""
    twin = make_inplace(plain.op)

    def call(input: Tensor, inplace: bool = False) -> Tensor:
        return twin(input) if inplace else plain(input)

    call.__name__ = call.__qualname__ = plain.op.name
    call.__doc__ = doc
    return call


for name, public in (
    ("gelu", gelu),
    ("silu", functional(silu, "Apply the sigmoid linear unit, also known as swish: `x * sigmoid(x)`.")),
    ("mish", functional(mish, "Apply mish: `x * tanh(softplus(x))`.")),
    ("softplus", softplus),
    ("logsigmoid", log_sigmoid),
    ("softshrink", softshrink),
    ("hardshrink", hardshrink),
    (
        "hardsigmoid",
        functional(hardsigmoid, "Apply a sigmoid made of straight lines: `x / 6 + 1 / 2`, clipped to 0 and 1."),
    ),
    ("hardswish", functional(hardswish, "Apply hard swish: `x * hardsigmoid(x)`.")),
    ("glu", glu),
    ("softsign", softsign),
    ("tanhshrink", tanhshrink),
):
    publish(name, public, FUNCTIONAL)
