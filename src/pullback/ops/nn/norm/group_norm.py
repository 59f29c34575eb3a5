"""group_norm: groups of the channels of a sample brought to mean zero and variance one."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.layout import channels_last, channels_last_3d, contiguous_format
from pullback._arrays.memory import row_major
from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trim
from pullback.kernels.numpy.norm import normalize as kernels
from pullback.ops.nn.norm.layer_norm import (
    check_dtypes,
    composed_grads,
    in_stats_dtype,
    plain_tuple,
    tangents,
    verify_batch_size,
)
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import reshape_to


def check_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> None:
    """Torch's demands on the dtypes of group_norm."""
    check_dtypes("GroupNormKernelImpl", input, weight, bias)


def group_norm_grads(
    grads: Any, input: Any, weight: Any, result1: Any, result2: Any, N: int, C: int, HxW: int, group: int, wants: Any
) -> Any:
    """The gradients of the input, the weight and the bias."""
    grad = grads[0]
    plain = not isinstance(input, Tensor) and grad is not None and grads[1] is None and grads[2] is None
    if plain and kernels.are_taken(input, C // group * HxW) and grad.flags.c_contiguous:
        if result1.dtype is input.dtype:
            return kernels.group_norm_backward(grad, input, result1, result2, weight, C, HxW)
    shape, dims = (N, group, C // group, HxW), (2, 3)
    grads = tuple(
        [None if g is None else reshape_to(g, shape[:2] + ((1, 1) if i else shape[2:])) for i, g in enumerate(grads)]
    )
    grad, x = grads[0], reshape_to(input, shape)
    mean, rstd = reshape_to(result1, (N, group, 1, 1)), reshape_to(result2, (N, group, 1, 1))
    scale = None if weight is None else reshape_to(weight, (1, group, C // group, 1))
    if plain:
        d_input, products = kernels.backward(grad, x, mean, rstd, scale, dims, C // group * HxW)
    else:
        d_input, products = composed_grads(grads, x, mean, rstd, scale, dims, wants)
    d_weight = d_bias = None
    if grad is not None:
        d_weight = reshape_to(sum_dim(products, (0, 3)), (C,)) if wants[1] else None
        d_bias = reshape_to(sum_dim(grad, (0, 3)), (C,)) if wants[2] else None
    return None if d_input is None else reshape_to(d_input, tuple(input.shape)), d_weight, d_bias


def group_norm_tangents(
    input_t: Any, weight_t: Any, bias_t: Any, input: Any, weight: Any, mean: Any, rstd: Any, facts: tuple[int, ...]
) -> Any:
    """The tangents of the three outputs."""
    N, C, HxW, group = facts
    shape, channel = (N, group, C // group, HxW), (1, group, C // group, 1)
    changes = tangents(
        reshape_to(input_t, shape),
        None if weight is None else reshape_to(weight_t, channel),
        None if bias_t is None else reshape_to(bias_t, channel),
        reshape_to(input, shape),
        reshape_to(mean, (N, group, 1, 1)),
        reshape_to(rstd, (N, group, 1, 1)),
        None if weight is None else reshape_to(weight, channel),
        (2, 3),
    )
    targets = (tuple(input.shape), (N, group), (N, group))
    return tuple([reshape_to(change, target) for change, target in zip(changes, targets, strict=True)])


@op(
    space=None,
    name="native_group_norm",
    outputs=("result0", "result1", "result2"),
    check=check_group_norm,
    # torch saves eps too, although its derivative does not need it.
    vmap="group_normalized",
    backward=lambda grads, input, weight, result1, result2, N, C, HxW, group, eps, wants: group_norm_grads(
        grads, input, weight, result1, result2, N, C, HxW, group, wants
    ),
    result=lambda input_t, weight_t, bias_t, input, weight, result1, result2, N, C, HxW, group: group_norm_tangents(
        input_t, weight_t, bias_t, input, weight, result1, result2, (N, C, HxW, group)
    ),
)
def group_norm_op(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    """Groups of channels with mean zero and variance one, the channels scaled and shifted."""
    dtype = input.dtype
    if (weight is None or weight.dtype is dtype) and (bias is None or bias.dtype is dtype):
        if kernels.are_taken(input, C // group * HxW):
            out, mean, rstd = kernels.group_norm(input, weight, bias, C, HxW, group, eps)
            return out, mean.reshape(N, group), rstd.reshape(N, group)
    check_group_norm(input, weight, bias, N, C, HxW, group, eps)
    x = np.reshape(input, (N, group, C // group, HxW))
    channel = (1, group, C // group, 1)
    out, mean, rstd, _ = kernels.standardized(x, (2, 3), C // group * HxW, eps)
    scale = None if weight is None else np.reshape(weight, channel)
    out = kernels.scaled(out, scale, None if bias is None else np.reshape(bias, channel), input.dtype)
    stats = [np.reshape(in_stats_dtype(s, input, weight, bias), (N, group)) for s in (mean, rstd)]
    return row_major(np.reshape(out, input.shape)), *stats


group_norm_op.op.fields = plain_tuple


ORDERS = {0: (contiguous_format,), 4: (contiguous_format, channels_last), 5: (contiguous_format, channels_last_3d)}
"""The orders of memory torch takes, by the number of dimensions."""


@function(method=False)
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply group normalization, and return the statistics it used too.

    `input` has `N` samples of `C` channels of `HxW` elements, and the channels are split into `group` groups.
    Returns the result of `group_norm`, the means and `1 / sqrt(var + eps)` of the groups, both `(N, group)`.
    """
    check_groups(input, group, weight, bias, C)
    if input._array.size != N * C * HxW:
        raise RuntimeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )
    orders = ORDERS.get(input.ndim, ORDERS[0])
    # Of a batch torch makes a contiguous one first.
    if not hasattr(type(input), "run_op") and not any(input.is_contiguous(memory_format=order) for order in orders):
        raise RuntimeError(
            "Expected X.is_contiguous(memory_format) to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return group_norm_op(input, weight, bias, N, C, max(index(HxW), 0), group, eps)


def check_groups(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, channels: int) -> None:
    """Torch's demands on the number of groups and the parameters."""
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape_text(input.shape)} and num_groups={num_groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given._array.shape != (channels,):
            # torch's text about the bias shows the shape of the weight.
            shown = given if weight is None else weight
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {shape_text(shown.shape)} and input of shape {shape_text(input.shape)}"
            )


@function(raw=True, method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Apply group normalization: `(x - mean) / sqrt(var + eps)` over groups of channels, then a scale and a shift.

    `input` is `(N, C, ...)`. Its `C` channels are split into `num_groups` groups, and mean and biased variance are
    taken over all elements of a group in one sample. `weight` and `bias`, both `(C,)`, scale and shift the channels.
    `cudnn_enabled` changes nothing.
    """
    shape = input._array.shape
    channels = shape[1]
    check_groups(input, num_groups, weight, bias, channels)
    size = prod(shape[2:])
    arrays = arrays_of(input, weight, bias)
    if arrays is not None and kernels.are_taken(arrays[0], channels // num_groups * size):
        return unrecorded(kernels.group_norm, *arrays, channels, size, num_groups, eps)
    return group_norm_op(input, weight, bias, shape[0], channels, size, num_groups, eps)[0]


@function(raw=True, space="nn.functional", method=False, name="group_norm")
def functional_group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Apply group normalization: `(x - mean) / sqrt(var + eps)` over groups of channels, then a scale and a shift.

    `input` is `(N, C, ...)`. Its `C` channels are split into `num_groups` groups, and mean and biased variance are
    taken over all elements of a group in one sample. `weight` and `bias`, both `(C,)`, scale and shift the channels.
    """
    try:
        shape = input._array.shape
        if len(shape) < 2:
            raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
        if shape[0] * shape[1] // num_groups <= 1:
            verify_batch_size([shape[0] * shape[1] // num_groups, num_groups, *shape[2:]])
        return group_norm(input, num_groups, weight, bias, eps)
    except Exception as error:
        trim(error)
        raise
