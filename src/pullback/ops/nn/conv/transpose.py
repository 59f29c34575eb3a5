"""Transposed convolutions, and the other ways to call a convolution: convolution, conv_tbc."""

from __future__ import annotations

from typing import Any

from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv import columns as kernels
from pullback.ops.nn.conv.forward import convolution_backward, convolution_op, convolved
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.shape.dims import permute_dims


@function(raw=True, space="nn.functional", method=False, autocast="lower")
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Every element of a signal spreads the kernel: the gradient of conv1d with respect to its input."""
    refuse_name("conv_transpose1d", padding)
    settings = (stride, padding, dilation, True, output_padding, groups)
    return convolved("conv_transpose1d", 1, input, weight, bias, *settings)


@function(raw=True, space="nn.functional", method=False, autocast="lower")
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Every element of an image spreads the kernel: the gradient of conv2d with respect to its input."""
    refuse_name("conv_transpose2d", padding)
    settings = (stride, padding, dilation, True, output_padding, groups)
    return convolved("conv_transpose2d", 2, input, weight, bias, *settings)


@function(raw=True, space="nn.functional", method=False, autocast="lower")
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Every element of a volume spreads the kernel: the gradient of conv3d with respect to its input."""
    refuse_name("conv_transpose3d", padding)
    settings = (stride, padding, dilation, True, output_padding, groups)
    return convolved("conv_transpose3d", 3, input, weight, bias, *settings)


def refuse_name(name: str, padding: Any) -> None:
    """A transposed convolution has no padding 'same'."""
    if isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")


@function(raw=True, method=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution of a batch in as many dimensions as the weight has, transposed or not."""
    return convolution_op(
        input,
        weight,
        bias,
        None if bias is None else bias.shape,
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        transposed,
        tuple(output_padding),
        groups,
    )


@function(raw=True, method=False, autocast="lower")
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool = True,
) -> Tensor:
    """convolution, with the settings of a GPU library that mean nothing here."""
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


# ------------------------------------------------------------------ time, batch, channels


def check_tbc(self: Array, weight: Array, bias: Array, pad: int = 0) -> None:
    """Torch's demands on a convolution along the first dimension."""
    if self.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")


def tbc_rule(grad: Any, self: Any, weight: Any, bias: Any, pad: int, wants: tuple[bool, ...]) -> Any:
    """The gradients of an ordinary convolution, with the dimensions in another order."""
    d_self, d_weight, d_bias = convolution_backward(
        permute_dims(grad, (1, 2, 0)),
        permute_dims(conj(self), (1, 2, 0)),
        permute_dims(conj(weight), (2, 1, 0)),
        (1,),
        (pad,),
        (1,),
        False,
        (0,),
        1,
        wants,
    )
    return (
        None if d_self is None else permute_dims(d_self, (2, 0, 1)),
        None if d_weight is None else permute_dims(d_weight, (2, 1, 0)),
        d_bias,
    )


@op(
    vmap="entries",
    space="nn.functional",
    method=False,
    out=False,
    check=check_tbc,
    autocast="lower",
    backward=tbc_rule,
    result=lambda self_t, weight_t, bias_t, self, weight, bias, pad: (
        conv_tbc(self_t, weight, bias_t, pad) + conv_tbc(self, weight_t, bias * 0, pad)
    ),
)
def conv_tbc(self: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    """A convolution of signals laid out as (time, batch, channels)."""
    check_tbc(self, weight, bias, pad)
    out = kernels.convolve(self.transpose(1, 2, 0), weight.transpose(2, 1, 0), (1,), (pad,), (1,), 1)
    return out.transpose(2, 0, 1) + bias


for call in (conv_transpose1d, conv_transpose2d, conv_transpose3d, conv_tbc):
    publish(call.__name__, call, TORCH)
