"""Activations with random numbers in them: rrelu and gumbel_softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import with_single
from pullback._arrays.kinds import made_on
from pullback._arrays.memory import row_major
from pullback._op.declare import FUNCTIONAL, publish
from pullback._op.define import Array, function, op
from pullback._op.inplace import make_inplace
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.random.rrelu import rrelu as rrelu_kernel
from pullback.ops.create.copy import detach
from pullback.ops.create.like import empty_like
from pullback.ops.nn.activation.piecewise import needs_floats
from pullback.ops.nn.activation.softmax import softmax
from pullback.ops.pointwise.arithmetic import add, div, neg, sub
from pullback.ops.pointwise.elementary import log
from pullback.ops.random.fill import exponential_
from pullback.ops.random.generator import Generator, engine_of
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ rrelu


def check_rrelu(self: Array, noise: Array, lower: float, upper: float, training: bool, generator: Any = None) -> None:
    """Torch's rrelu knows floats only."""
    refuse("rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", self, "iubc")
    if training and self.dtype == np.float16:
        refuse("rrelu_with_noise_out_cpu", self, "f")


@op(
    space=None,
    name="rrelu_with_noise_backward",
    pointwise=True,
    untraced=("self",),
    grad_output=lambda grad, self, noise, lower, upper, training: rrelu_grad(grad, self, noise, lower, upper, training),
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda grad_output_t, self, noise, lower, upper, training: rrelu_grad(
        grad_output_t, self, noise, lower, upper, training
    ),
)
def rrelu_grad(grad_output: Array, self: Array, noise: Array, lower: float, upper: float, training: bool) -> Array:
    """The gradient times the slopes that were used; the sign of the result serves as well as that of self."""
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return np.where(np.greater(self, 0), grad_output, with_single(np.multiply, grad_output, (lower + upper) / 2))


def slopes_applied(self: Array, noise: Array, lower: float, upper: float, training: bool, generator: Any) -> Array:
    """Negative elements times a slope; the slopes are written into `noise`."""
    x = needs_floats(self)
    check_rrelu(self, noise, lower, upper, training)
    if not training:
        return row_major(np.where(x > 0, x, x * ((lower + upper) / 2)).astype(self.dtype, copy=False))
    out, noise[...] = rrelu_kernel(engine_of("rrelu", generator), self, lower, upper)
    return out


@op(
    space=None,
    check=check_rrelu,
    pointwise=True,
    layout="row_major",
    untraced=("forward",),
    self=lambda grad, self, noise, lower, upper, training: rrelu_grad(grad, self, noise, lower, upper, training),
    result=lambda self_t, self, noise, lower, upper, training: rrelu_grad(self_t, self, noise, lower, upper, training),
)
def rrelu_with_noise(
    self: Array, noise: Array, lower: float, upper: float, training: bool, generator: Any = None
) -> Array:
    """Negative elements times random slopes."""
    return slopes_applied(self, noise, lower, upper, training, generator)


@op(
    space=None,
    name="rrelu_with_noise",
    node="RreluWithNoiseBackward1",
    check=check_rrelu,
    pointwise=True,
    layout="row_major",
    untraced=("forward",),
    self=lambda grad, result, noise, lower, upper, training: rrelu_grad(grad, result, noise, lower, upper, training),
    result=lambda self_t, self, noise, lower, upper, training: rrelu_grad(self_t, self, noise, lower, upper, training),
)
def rrelu_overwriting(
    self: Array, noise: Array, lower: float, upper: float, training: bool, generator: Any = None
) -> Array:
    """What `rrelu_` computes."""
    return slopes_applied(self, noise, lower, upper, training, generator)


rrelu_with_noise_ = make_inplace(rrelu_overwriting.op)


def slopes_for(input: Tensor, lower: float, upper: float) -> Tensor:
    """Room for the slopes, once the bounds are known to be in order."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return wrap(made_on(input.device, np.zeros, input._array.shape, input._array.dtype))


@function(raw=True, method=False)
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Apply the randomized leaky relu: `x` where positive, `slope * x` elsewhere.

    With `training`, every slope is drawn uniformly between `lower` and `upper`, by `generator` if one is given;
    otherwise it is their mean.
    """
    return rrelu_with_noise(input, slopes_for(input, lower, upper), lower, upper, training, generator)


@function(raw=True, method=False)
def rrelu_(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """In-place version of :func:`rrelu`."""
    return rrelu_with_noise_(input, slopes_for(input, lower, upper), lower, upper, training, generator)


@function(raw=True, space="nn.functional", method=False, name="rrelu")
def functional_rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply the randomized leaky relu: `x` where positive, `slope * x` elsewhere.

    With `training`, every slope is drawn uniformly between `lower` and `upper`; otherwise it is their mean.
    With `inplace` the input itself is overwritten and returned.
    """
    return (rrelu_ if inplace else rrelu)(input, lower, upper, training)


publish("rrelu_", rrelu_, FUNCTIONAL)

# ------------------------------------------------------------------ gumbel_softmax


@function(raw=True, space="nn.functional", method=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draw from categorical distributions in a way that can be differentiated.

    Gumbel noise is added to the unnormalized log probabilities `logits`, and the result is
    `softmax((logits + noise) / tau)` along `dim`: the smaller the temperature `tau`, the closer to one-hot.
    With `hard` the result is exactly one-hot, and its gradient that of the soft sample. `eps` has no effect.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    waiting = exponential_(empty_like(logits))
    soft = softmax(div(add(logits, neg(log(waiting))), tau), dim)
    if not hard:
        return soft
    best = np.expand_dims(np.argmax(soft._array, axis=dim), dim)
    one = np.zeros_like(soft._array, order="C")
    np.put_along_axis(one, best, 1, axis=dim)
    return add(sub(wrap(one), detach(soft)), soft)
