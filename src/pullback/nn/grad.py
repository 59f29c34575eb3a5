"""The gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Settings = int | tuple[int, ...]


def pulled_back(convolution: Callable[[Tensor], Tensor], size: Any, grad_output: Tensor, other: Tensor) -> Tensor:
    """The gradient of what has this size, through a convolution that is linear in it."""
    with pullback.enable_grad():
        zeros = grad_output.new_zeros(size).requires_grad_()
        out = convolution(zeros)
    keep = pullback.is_grad_enabled() and (grad_output.requires_grad or other.requires_grad)
    (grad,) = pullback.autograd.grad(out, zeros, grad_output, create_graph=keep)
    return grad


def in_input(name: str) -> Callable[..., Tensor]:
    """The gradient of a convolution in its input."""
    convolution = getattr(F, name)

    def gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Settings = 1,
        padding: Settings = 0,
        dilation: Settings = 1,
        groups: int = 1,
    ) -> Tensor:
        settings = (stride, padding, dilation, groups)
        return pulled_back(lambda x: convolution(x, weight, None, *settings), input_size, grad_output, weight)

    return named(gradient, f"{name}_input", f"The gradient of {name} in its input.")


def in_weight(name: str) -> Callable[..., Tensor]:
    """The gradient of a convolution in its weight."""
    convolution = getattr(F, name)

    def gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Settings = 1,
        padding: Settings = 0,
        dilation: Settings = 1,
        groups: int = 1,
    ) -> Tensor:
        settings = (stride, padding, dilation, groups)
        return pulled_back(lambda w: convolution(input, w, None, *settings), weight_size, grad_output, input)

    return named(gradient, f"{name}_weight", f"The gradient of {name} in its weight.")


def named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    """A function with the name and the words of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


conv1d_input, conv1d_weight = in_input("conv1d"), in_weight("conv1d")
conv2d_input, conv2d_weight = in_input("conv2d"), in_weight("conv2d")
conv3d_input, conv3d_weight = in_input("conv3d"), in_weight("conv3d")
