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


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d in its input."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda x: F.conv1d(x, weight, None, *settings), input_size, grad_output, weight)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d in its weight."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda w: F.conv1d(input, w, None, *settings), weight_size, grad_output, input)


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d in its input."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda x: F.conv2d(x, weight, None, *settings), input_size, grad_output, weight)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d in its weight."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda w: F.conv2d(input, w, None, *settings), weight_size, grad_output, input)


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d in its input."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda x: F.conv3d(x, weight, None, *settings), input_size, grad_output, weight)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Settings = 1,
    padding: Settings = 0,
    dilation: Settings = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d in its weight."""
    settings = (stride, padding, dilation, groups)
    return pulled_back(lambda w: F.conv3d(input, w, None, *settings), weight_size, grad_output, input)
