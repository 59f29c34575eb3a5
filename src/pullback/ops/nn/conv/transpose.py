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
    """Apply a 1-D transposed convolution over a batch of signals.

    It is the gradient of `conv1d` with respect to its input: every element spreads the kernel over the output.
    `input` is `(N, C_in, L)` or `(C_in, L)`, `weight` is `(C_in, C_out / groups, K)`, `bias` is `(C_out,)`.
    `padding` cuts elements off both ends of the output; `output_padding` makes one end longer, to choose among the
    lengths a strided convolution would have shrunk to the same one.
    Returns `(N, C_out, L_out)` with `L_out = (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1`.
    """
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
    """Apply a 2-D transposed convolution over a batch of images.

    It is the gradient of `conv2d` with respect to its input: every pixel spreads the kernel over the output.
    `input` is `(N, C_in, H, W)` or `(C_in, H, W)`, `weight` is `(C_in, C_out / groups, kH, kW)`, `bias` is `(C_out,)`.
    `padding` cuts pixels off all sides of the output; `output_padding` makes the bottom and right sides longer, to
    choose among the sizes a strided convolution would have shrunk to the same one.
    Returns `(N, C_out, H_out, W_out)`, where
    `H_out = (H - 1) * stride - 2 * padding + dilation * (kH - 1) + output_padding + 1`.
    """
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
    """Apply a 3-D transposed convolution over a batch of volumes.

    It is the gradient of `conv3d` with respect to its input: every voxel spreads the kernel over the output.
    `input` is `(N, C_in, D, H, W)` or `(C_in, D, H, W)`, `weight` is `(C_in, C_out / groups, kD, kH, kW)`, `bias` is
    `(C_out,)`. `padding` cuts elements off all sides of the output; `output_padding` makes one side of each dimension
    longer, to choose among the sizes a strided convolution would have shrunk to the same one.
    Returns `(N, C_out, D_out, H_out, W_out)`, each size
    `(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`.
    """
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
    """Apply a convolution, or a transposed one, in as many spatial dimensions as the weight has.

    `input` is `(N, C_in, ...)`; `weight` is `(C_out, C_in / groups, ...)`, or `(C_in, C_out / groups, ...)` where
    `transposed`. `stride`, `padding`, `dilation` and `output_padding` are sequences with one int for each spatial
    dimension; `output_padding` matters to transposed convolutions only. All arguments have to be given.
    """
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
    """Apply a 1-D convolution over signals laid out as (time, batch, channels).

    `input` is `(T, N, C_in)`, `weight` is `(K, C_in, C_out)`, `bias` is `(C_out,)`; `pad` zeros are put at either end.
    Returns `(T + 2 * pad - K + 1, N, C_out)`.
    """
    check_tbc(self, weight, bias, pad)
    out = kernels.convolve(self.transpose(1, 2, 0), weight.transpose(2, 1, 0), (1,), (pad,), (1,), 1)
    return out.transpose(2, 0, 1) + bias


for call in (conv_transpose1d, conv_transpose2d, conv_transpose3d, conv_tbc):
    publish(call.__name__, call, TORCH)
