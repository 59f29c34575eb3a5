"""prelu: negative elements times a slope that is learned, one for all or one for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.declare import FUNCTIONAL, publish
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels.jit.small.choose import pointwise
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.shape.reshape import reshape_to, zeros_of
from pullback.ops.supported import refuse


@op(
    space=None,
    name="_prelu_kernel",
    node="PreluKernelBackward0",
    pointwise=True,
    backward=lambda grad, self, weight: prelu_kernel_backward(grad, self, weight),
    result=lambda self_t, weight_t, self, weight: where(self >= 0, self_t, weight * self_t + weight_t * self),
)
def prelu_kernel(self: Array, weight: Array) -> Array:
    """Negative elements times a weight."""
    refuse("prelu_cpu", self, "iubc")
    return sloped(self, self, weight)


@op(
    vmap="aligned",
    space=None,
    name="_prelu_kernel_backward",
    node="PreluKernelBackwardBackward0",
    outputs=("grad_self", "grad_weight"),
    backward=lambda grads, grad_output, self, weight: prelu_curvature(*grads, grad_output, self, weight),
    result=lambda grad_output_t, self_t, weight_t, grad_output, self, weight: (
        where(self >= 0, grad_output_t, grad_output_t * weight + grad_output * weight_t),
        where(self >= 0, 0, grad_output_t * self + grad_output * self_t),
    ),
)
def prelu_kernel_backward(grad_output: Array, self: Array, weight: Array) -> tuple[Array, Array]:
    """The gradients of both factors."""
    return sloped(self, grad_output, weight), negative_part(self, grad_output)


@pointwise
def sloped(self: Array, values: Array, weight: Array) -> Array:
    """Values, times the weight where self is not positive."""
    return np.where(np.greater(self, 0), values, weight * values)


@pointwise
def negative_part(self: Array, values: Array) -> Array:
    """self times values where self is not positive."""
    return np.where(np.greater(self, 0), self.dtype.type(0), self * values)


def prelu_curvature(to_self: Any, to_weight: Any, grad_output: Any, self: Any, weight: Any) -> tuple[Any, Any, Any]:
    """How the gradients of prelu change, from the gradients of both; one of them may be missing."""
    zeros = zeros_of(grad_output, grad_output.shape)
    to_self, to_weight = (zeros if part is None else part for part in (to_self, to_weight))
    return (
        where(self >= 0, to_self, weight * to_self + self * to_weight),
        where(self >= 0, 0, grad_output * to_weight),
        where(self >= 0, 0, grad_output * to_self),
    )


@function(autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Apply the relu with learned slopes: `x` where positive, `weight * x` elsewhere.

    `weight` holds one slope for everything, or one for each channel: `(C,)` for an `input` of `(N, C, ...)`.
    """
    if weight.dtype is not input.dtype:
        kinds = f"{input.dtype.scalar_type} and {weight.dtype.scalar_type}"
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds}")
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
    if input.ndim != weight.ndim:
        count = weight.numel()
        weight = reshape_to(weight, (1, count, *[1] * (input.ndim - 2)) if input.ndim > 1 else (count,) * input.ndim)
    return prelu_kernel(input, weight)


publish("prelu", prelu, FUNCTIONAL)
