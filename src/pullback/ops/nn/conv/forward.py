"""Convolutions: the op behind all of them with its derivatives, and conv1d, conv2d and conv3d."""

from __future__ import annotations

import operator
from math import prod
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._arrays.sizes import allocated, check_storage
from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, explain, function, op
from pullback._runtime.messages import shape_text
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor
from pullback.kernels import far_windows, workers
from pullback.kernels.numpy.conv import columns as kernels
from pullback.kernels.numpy.conv.images import channels_lie_last, with_channels_last
from pullback.ops.nn.conv.checks import check_convolution, expanded
from pullback.ops.nn.image.pad import constant_pad_nd
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import reshape_to, squeeze_dim, unsqueeze
from pullback.ops.supported import SINGLE, invalid_combination

MOST_CASES = 4096
valid: set[Any] = set()
"""The shapes, dtypes and settings already found to fit: checking takes longer than convolving a small image."""

# ------------------------------------------------------------------ the op and its derivatives


def check_room(
    input: Array, weight: Array, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> None:
    """Raise if the result of a transposed convolution does not fit into memory: its size grows with the stride."""
    sizes = kernels.transposed_sizes(input.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
    allocated(np.empty, (input.shape[0], weight.shape[1] * groups, *sizes), input.dtype)


def far_convolution(
    input: Array, weight: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """A convolution whose windows lie far apart: they are put side by side first."""
    kernel, ones, zeros = weight.shape[2:], (1,) * len(stride), (0,) * len(stride)
    counts = kernels.window_counts(input.shape[2:], kernel, stride, padding, dilation)
    check_storage((input.shape[0], weight.shape[0], *counts), input.dtype.itemsize)
    windows = far_windows.gathered(input, counts, kernel, stride, padding, dilation)
    return kernels.convolve(windows, weight, kernel, zeros, ones, groups, bias)


def convolution_rule(
    grad: Any,
    input: Any,
    weight: Any,
    bias_sym_sizes_opt: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wants: tuple[bool, ...],
) -> Any:
    """The gradients of input, weight and bias."""
    return convolution_backward(
        grad, conj(input), conj(weight), stride, padding, dilation, transposed, output_padding, groups, wants
    )


def convolution_tangent(
    input_t: Any,
    weight_t: Any,
    bias_t: Any,
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution is linear in its input, in its weight and in its bias."""
    settings = (stride, padding, dilation, transposed, output_padding, groups)
    moved = convolution_op(input_t, weight, bias_t, (0,), *settings)
    return moved + convolution_op(input, weight_t, None, (0,), *settings)


@op(
    space=None,
    name="convolution",
    node="ConvolutionBackward0",
    vmap="convolved",
    backward=convolution_rule,
    result=convolution_tangent,
)
def convolution_op(
    input: Array,
    weight: Array,
    bias: Array | None,
    bias_sym_sizes_opt: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Array:
    """A convolution, or a transposed one."""
    ndim = weight.ndim - 2
    if not len(stride) == len(padding) == len(dilation) == len(output_padding) == ndim:
        stride, padding = expanded("stride", stride, ndim), expanded("padding", padding, ndim)
        dilation = expanded("dilation", dilation, ndim)
        output_padding = expanded("output_padding", output_padding, ndim)
    kinds = (input.dtype, weight.dtype, None if bias is None else (bias.shape, bias.dtype))
    case = (input.shape, weight.shape, kinds, stride, padding, dilation, transposed, output_padding, groups)
    if case not in valid:
        check_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        if not transposed and far_windows.is_far(stride, padding, dilation):
            return far_convolution(input, weight, bias, stride, padding, dilation, groups)
        if transposed:
            check_room(input, weight, stride, padding, output_padding, dilation, groups)
        if len(valid) > MOST_CASES:
            valid.clear()
        valid.add(case)
    if transposed:
        sizes = kernels.transposed_sizes(input.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
        out = kernels.convolve_input(input, weight, sizes, stride, padding, dilation, groups, bias)
    else:
        out = kernels.convolve(input, weight, stride, padding, dilation, groups, bias)
    if ndim > 1:
        last = channels_lie_last(input) or channels_lie_last(weight)
        if last and ndim == 3:
            last = in_blocks(input, weight, stride, dilation, output_padding, transposed, groups)
        return with_channels_last(out) if last else row_major(out)
    if input.strides[1] > input.strides[2] > 0 < weight.strides[2] < weight.strides[1]:
        return row_major(out)
    # To torch signals are images one pixel high, which it puts in order, and kernels as they lie.
    in_order = input.flags.c_contiguous and (input.dtype.kind != "c" or input.size == 1)  # the parts of numbers are not
    if (in_order and channels_lie_last(input[:, :, None])) or channels_lie_last(weight[:, :, None]):
        return with_channels_last(out[:, :, None])[:, :, 0]
    return row_major(out)


def in_blocks(
    input: Array, weight: Array, stride: Any, dilation: Any, output_padding: Any, transposed: bool, groups: int
) -> bool:
    """Whether torch gives a convolution of volumes to oneDNN, which alone puts channels last there."""
    if input.dtype not in (SINGLE, np.complex64) or (transposed and any(map(operator.ge, output_padding, stride))):
        return False
    plain = max(stride) == max(dilation) == 1 and len(input) < 16 and weight.shape[-2:] == (1, 1)
    if plain and workers.threads() == 1:
        return False
    return groups > 1 or len(input) > 1 or min(weight.shape[-2:]) > 3 or prod(input.shape[:4]) > 20480


def double_backward(
    grads: Any,
    grad_output: Any,
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wants: tuple[bool, ...],
) -> Any:
    """Every product of a convolution is linear in both its factors, so its derivatives are the other products."""
    for_input, for_weight, for_bias = grads
    settings = (stride, padding, dilation, transposed, output_padding, groups)
    d_grad = d_input = d_weight = None
    if wants[0]:
        if for_input is not None:
            d_grad = convolution_op(for_input, conj(weight), None, (0,), *settings)
        if for_weight is not None:
            share = convolution_op(conj(input), for_weight, None, (0,), *settings)
            d_grad = share if d_grad is None else d_grad + share
        if for_bias is not None:
            share = reshape_to(for_bias, (-1, *(1,) * (len(grad_output.shape) - 2)))
            d_grad = share + grad_output * 0 if d_grad is None else d_grad + share
    if wants[1] and for_weight is not None:
        masks = (True, False, False)
        d_input = convolution_backward(conj(grad_output), input, for_weight, *settings, masks)[0]
    if wants[2] and for_input is not None:
        masks = (False, True, False)
        d_weight = convolution_backward(conj(grad_output), for_input, weight, *settings, masks)[1]
    return d_grad, d_input, d_weight


def backward_tangent(
    grad_output_t: Any,
    input_t: Any,
    weight_t: Any,
    grad_output: Any,
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: tuple[bool, ...],
) -> Any:
    """The tangents of the gradients: each is linear in the gradient of the output and in the other factor."""
    settings = (stride, padding, dilation, transposed, output_padding, groups)
    moved = convolution_backward(grad_output_t, input, weight, *settings, output_mask)
    turned = convolution_backward(grad_output, input_t, weight_t, *settings, (*output_mask[:2], False))
    return tuple([a if b is None else a + b for a, b in zip(moved, turned, strict=True)])


@op(
    space=None,
    name="convolution_backward",
    node="ConvolutionBackwardBackward0",
    outputs=("result0", "result1", "result2"),
    vmap="convolved_backward",
    backward=double_backward,
    result=backward_tangent,
)
def convolution_backward(
    grad_output: Array,
    input: Array,
    weight: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: tuple[bool, ...],
) -> Any:
    """The gradients of a convolution's input, weight and bias: those the mask asks for."""
    ndim = weight.ndim - 2
    if not len(stride) == len(padding) == len(dilation) == ndim:
        stride, padding = expanded("stride", stride, ndim), expanded("padding", padding, ndim)
        dilation = expanded("dilation", dilation, ndim)
    if not input.shape[1]:
        return nothing_convolved(input, weight, output_mask)
    settings = (stride, padding, dilation, groups)
    d_input = d_weight = d_bias = None
    far = None if transposed or not far_windows.is_far(stride, padding, dilation) else (stride, padding, dilation)
    if far is not None:  # the gradients of the windows side by side
        counts, kernel = grad_output.shape[2:], weight.shape[2:]
        settings = (kernel, (0,) * ndim, (1,) * ndim, groups)
    if output_mask[0]:
        if far is not None:
            side = tuple([n * k for n, k in zip(counts, kernel, strict=True)])
            d_input = kernels.convolve_input(grad_output, weight, side, *settings)
            d_input = far_windows.scattered(d_input, input.shape[2:], counts, kernel, *far)
        elif transposed:
            d_input = kernels.convolve(grad_output, weight, *settings)
            if d_input.shape != input.shape:  # an output padding that a whole stride fits into
                d_input = d_input[tuple([slice(n) for n in input.shape])]
        else:
            d_input = kernels.convolve_input(grad_output, weight, input.shape[2:], *settings)
    if output_mask[1]:
        image, small = (grad_output, input) if transposed else (input, grad_output)
        if far is not None:
            image = far_windows.gathered(input, counts, kernel, *far)
        d_weight = kernels.convolve_weight(image, small, weight.shape[2:], *settings)
    if output_mask[2]:
        d_bias = sum_dim(grad_output, (0, *range(2, grad_output.ndim)))
    return d_input, d_weight, d_bias


def nothing_convolved(input: Array, weight: Array, output_mask: tuple[bool, ...]) -> Any:
    """The gradients of images without channels: whatever the weight, such images are made of them."""
    shapes = (input.shape, weight.shape, weight.shape[:1])
    made = [np.zeros(shape, input.dtype) if mask else None for shape, mask in zip(shapes, output_mask, strict=True)]
    return tuple(made)


# ------------------------------------------------------------------ what users call


def convolved(
    name: str,
    ndim: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """A convolution of a batch or of a single image."""
    if not isinstance(input, Tensor) or not isinstance(weight, Tensor):
        raise invalid_combination(name, (input, weight) if bias is None else (input, weight, bias))
    single = input.ndim == ndim + 1
    if not single and input.ndim != ndim + 2:
        raise RuntimeError(
            f"Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, but got input of size: "
            f"{shape_text(input.shape)}"
        )
    if single:
        input = unsqueeze(input, 0)
    dims = weight.ndim - 2
    if dims < 1:
        raise RuntimeError("weight should have at least three dimensions")
    stride, dilation = expanded("stride", stride, ndim), expanded("dilation", dilation, ndim)
    output_padding = expanded("output_padding", output_padding, ndim)
    if isinstance(padding, str):
        input, padding, output_padding = padded_by_name(input, weight, stride, padding, dilation, ndim)
    else:
        padding = expanded("padding", padding, ndim)
    if dims != ndim:
        stride = expanded("stride", stride, dims)
    sizes = (0,) if bias is None else bias.shape
    groups = index(groups)
    out = convolution_op(input, weight, bias, sizes, stride, padding, dilation, transposed, output_padding, groups)
    return squeeze_dim(out, 0) if single else out


SAME_COPIES = (
    "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be "
    "created"
)


def padded_by_name(input: Any, weight: Any, stride: Any, padding: str, dilation: Any, ndim: int) -> Any:
    """The paddings 'same' and 'valid': the input, padded where its two sides differ, and the widths."""
    if padding == "valid":
        return input, (0,), (0,)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    if weight.ndim != ndim + 2:
        k = weight.ndim
        raise RuntimeError(
            f"Expected {k}-dimensional input for {k}-dimensional weight{shape_text(weight.shape)}, but got "
            f"{input.ndim}-dimensional input of size {shape_text(input.shape)} instead"
        )
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(t % 2 for t in totals):
        warn_once(SAME_COPIES)
        input = constant_pad_nd(input, tuple([side for t in reversed(totals) for side in (0, t % 2)]), 0)
    return input, tuple([t // 2 for t in totals]), (0,) * ndim


@function(raw=True, explained=False, space="nn.functional", method=False, autocast="lower")
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Apply a 1-D convolution over a batch of signals.

    `input` is `(N, C_in, L)` or `(C_in, L)`, `weight` is `(C_out, C_in / groups, K)`, `bias` is `(C_out,)`.
    Each output channel is the cross-correlation (the kernel is not flipped) of the input channels with its kernel.
    `stride` is the step of the window, `padding` the number of zeros put at either end ('valid' for none, 'same' for as
    many as keep the length, with stride 1 only), `dilation` the spacing of the kernel's elements.
    `groups` splits the channels into blocks that are convolved separately.
    Returns `(N, C_out, L_out)` with `L_out = floor((L + 2 * padding - dilation * (K - 1) - 1) / stride) + 1`.
    """
    try:
        return convolved("conv1d", 1, input, weight, bias, stride, padding, dilation, False, 0, groups)
    except Exception as error:
        explain(error, conv1d, input, weight, bias, stride, padding, dilation, groups)
        raise


@function(raw=True, explained=False, space="nn.functional", method=False, autocast="lower", flops="convolution")
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Apply a 2-D convolution over a batch of images.

    `input` is `(N, C_in, H, W)` or `(C_in, H, W)`, `weight` is `(C_out, C_in / groups, kH, kW)`, `bias` is `(C_out,)`.
    Each output channel is the cross-correlation (the kernel is not flipped) of the input channels with its kernel.
    `stride`, `padding` and `dilation` are ints or pairs: the step of the window, the zeros put on each side ('valid'
    for none, 'same' for as many as keep the size, with stride 1 only), and the spacing of the kernel's elements.
    `groups` splits the channels into blocks that are convolved separately; `groups=C_in` is a depthwise convolution.
    Returns `(N, C_out, H_out, W_out)`, where `H_out = floor((H + 2 * padding - dilation * (kH - 1) - 1) / stride) + 1`.
    """
    try:
        return convolved("conv2d", 2, input, weight, bias, stride, padding, dilation, False, 0, groups)
    except Exception as error:
        explain(error, conv2d, input, weight, bias, stride, padding, dilation, groups)
        raise


@function(raw=True, explained=False, space="nn.functional", method=False, autocast="lower")
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Apply a 3-D convolution over a batch of volumes.

    `input` is `(N, C_in, D, H, W)` or `(C_in, D, H, W)`, `weight` is `(C_out, C_in / groups, kD, kH, kW)`, `bias` is
    `(C_out,)`. `stride`, `padding` and `dilation` are ints or triples: the step of the window, the zeros put on each
    side ('valid' for none, 'same' for as many as keep the size, with stride 1 only), and the spacing of the kernel's
    elements.
    `groups` splits the channels into blocks that are convolved separately.
    Returns `(N, C_out, D_out, H_out, W_out)`, each size
    `floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1`.
    """
    try:
        return convolved("conv3d", 3, input, weight, bias, stride, padding, dilation, False, 0, groups)
    except Exception as error:
        explain(error, conv3d, input, weight, bias, stride, padding, dilation, groups)
        raise


for call in (conv1d, conv2d, conv3d):
    publish(call.__name__, call, TORCH)
