"""Normalizations over the batch: batch_norm, with running statistics, and instance_norm: batch_norm of rows."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._op.define import Array, function, op
from pullback._op.out import write_result
from pullback._op.still import Still
from pullback._runtime.messages import shape_text, type_name
from pullback._tensor import Tensor, contiguous_format
from pullback.kernels.numpy.conv.images import channels_may_lie_last, laid_out_as
from pullback.kernels.numpy.norm import normalize as kernels
from pullback.ops.create.cast import to
from pullback.ops.create.copy import clone
from pullback.ops.nn.norm.layer_norm import (
    check_dtypes,
    composed_grads,
    in_stats_dtype,
    plain_tuple,
    tangents,
    verify_batch_size,
    without_history,
)
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import add, mul
from pullback.ops.pointwise.power import rsqrt
from pullback.ops.reduce.sums import mean_dim, sum_dim
from pullback.ops.shape.rearrange import repeat_dims
from pullback.ops.shape.reshape import is_contiguous, reshape_to, view_
from pullback.ops.shape.slicing import select_int
from pullback.ops.supported import refuse_gradient

# ------------------------------------------------------------------ the op


def check_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> None:
    """Torch's demands on the dtypes of batch_norm."""
    check_dtypes("batch_norm", input, weight, bias, running_mean, running_var)


def is_taken(x: Any) -> bool:
    """True for an array whose channels are compiled kernels' to normalize."""
    shape = x.shape
    return len(shape) > 1 and x.size > 0 and kernels.are_taken(x, x.size // (shape[0] * shape[1]))


def in_one_dtype(dtype: Any, *parameters: Any) -> bool:
    """True if all that is given has a dtype."""
    return all([given is None or given.dtype is dtype for given in parameters])


def quick_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """What batch_norm_op computes, for an array that is taken and parameters of its dtype."""
    if not training:
        out = kernels.batch_norm_by(input, running_mean, running_var, weight, bias, eps)
        return out, np.empty(0, input.dtype), np.empty(0, input.dtype)
    out, mean, rstd, var = kernels.batch_norm(input, weight, bias, eps)
    if running_mean is not None:
        count = input.size // input.shape[1]
        kernels.move(running_mean, mean, momentum, 1.0)
        kernels.move(running_var, var, momentum, count / (count - 1) if count > 1 else inf)
    return out, mean, rstd


def over_channels(x: Any) -> tuple[int, ...]:
    """Every dimension but that of the channels."""
    return (0, *range(2, x.ndim))


def channel(values: Any, ndim: int) -> Any:
    """One value per channel, shaped to broadcast against the input; that of a single one may have no dimensions."""
    return None if values is None else reshape_to(values, (1, *(values.shape or (1,)), *[1] * (ndim - 2)))


def quick_grads(
    grad: Array,
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    eps: float,
    mean: Array,
    rstd: Array,
) -> tuple[Array, Array, Array] | None:
    """The gradients for an array that is taken and parameters of its dtype; None for others."""
    if not is_taken(input) or not grad.flags.c_contiguous or not in_one_dtype(input.dtype, weight, rstd):
        return None
    if training:
        return kernels.batch_norm_backward(grad, input, mean, rstd, weight)
    if not in_one_dtype(input.dtype, running_mean, running_var):
        return None
    return kernels.batch_norm_by_backward(grad, input, running_mean, running_var, weight, eps)


def batch_norm_grads(
    grads: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    eps: float,
    result1: Any,
    result2: Any,
    wants: Any,
) -> Any:
    """The gradients of the input, the weight and the bias."""
    grad, ndim = grads[0], input.ndim
    plain = not isinstance(input, Tensor) and grad is not None and grads[1] is None and grads[2] is None
    if plain:
        quick = quick_grads(grad, input, weight, running_mean, running_var, training, eps, result1, result2)
        if quick is not None:
            return quick
    dims = over_channels(input)
    scale = channel(weight, ndim)
    if not training:
        rstd = channel(rsqrt(running_var + eps), ndim)
        d_input = (grad * rstd if scale is None else grad * (rstd * scale)) if wants[0] else None
        products = grad * ((input - channel(running_mean, ndim)) * rstd) if wants[1] else None
    else:
        mean, rstd = channel(result1, ndim), channel(result2, ndim)
        if plain:
            count = input.size // max(input.shape[1], 1)
            d_input, products = kernels.backward(grad, input, mean, rstd, scale, dims, count)
        else:
            shaped = (grad, channel(grads[1], ndim), channel(grads[2], ndim))
            d_input, products = composed_grads(shaped, input, mean, rstd, scale, dims, wants)
    d_weight = sum_dim(products, dims) if wants[1] and products is not None else None
    d_bias = sum_dim(grad, dims) if wants[2] and grad is not None else None
    return d_input, d_weight, d_bias


def moves(tangent: Any) -> bool:
    """Whether there is a tangent."""
    return tangent is not None and type(tangent) is not Still


def batch_norm_tangents(
    input_t: Any,
    weight_t: Any,
    bias_t: Any,
    running_mean_t: Any,
    running_var_t: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    eps: float,
    result1: Any,
    result2: Any,
) -> Any:
    """The tangents of the result and, when training, of the mean and the inverse deviation."""
    if not any(moves(t) for t in (input_t, weight_t, bias_t)):
        return None, None, None
    if not training and (moves(running_mean_t) or moves(running_var_t)):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )
    ndim = input.ndim
    scale, scale_t, shift_t = channel(weight, ndim), channel(weight_t, ndim), channel(bias_t, ndim)
    if training:
        mean, rstd = channel(result1, ndim), channel(result2, ndim)
        changes = tangents(input_t, scale_t, shift_t, input, mean, rstd, scale, over_channels(input))
        flat = (input.shape[1],)
        return changes[0], reshape_to(changes[1], flat), reshape_to(changes[2], flat)
    rstd = channel(rsqrt(running_var + eps), ndim)
    change = input_t * rstd
    if scale is not None:
        change = change * scale + (input - channel(running_mean, ndim)) * rstd * scale_t
    return change if shift_t is None else change + shift_t, None, None


DIFFERENTIABLE = "one formula for all"


@op(
    space=None,
    name="native_batch_norm",
    outputs=("result0", "result1", "result2"),
    check=check_batch_norm,
    vmap="batch_normalized",
    input=DIFFERENTIABLE,
    weight=DIFFERENTIABLE,
    bias=DIFFERENTIABLE,
    backward=batch_norm_grads,
    result=batch_norm_tangents,
)
def batch_norm_op(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Channels with mean zero and variance one, scaled and shifted; training moves the running statistics."""
    quick = is_taken(input) and in_one_dtype(input.dtype, weight, bias, running_mean, running_var)
    if not quick:
        check_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    ndim = input.ndim
    if quick:
        return quick_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    scale, shift = channel(weight, ndim), channel(bias, ndim)
    if not training:
        x = widened(input)
        rstd = 1 / np.sqrt(running_var + np.asarray(eps, running_var.dtype))
        out = np.subtract(x, channel(running_mean, ndim))
        out *= channel(rstd, ndim)
        none = np.empty(0, in_stats_dtype(rstd, input, weight, bias, running_mean).dtype)
        out = laid_out_as(kernels.scaled(out, scale, shift, input.dtype), input, channels_may_lie_last)
        return out, none, none.copy()
    count = input.size // max(input.shape[1], 1)
    out, mean, rstd, var = kernels.standardized(input, over_channels(input), count, eps)
    mean, rstd, var = mean.reshape(-1), rstd.reshape(-1), var.reshape(-1)
    kept = [in_stats_dtype(stats, input, weight, bias, running_mean) for stats in (mean, rstd)]
    if kept[0].dtype.itemsize == 2:  # torch normalizes by the statistics as it rounds them
        out = (widened(input) - channel(widened(kept[0]), ndim)) * channel(widened(kept[1]), ndim)
    out = laid_out_as(kernels.scaled(out, scale, shift, input.dtype), input, channels_may_lie_last)
    if running_mean is not None:
        running_mean[...] = momentum * mean + (1 - momentum) * running_mean
        running_var[...] = momentum * (var * count / max(count - 1, 0)) + (1 - momentum) * running_var
    return out, *kept


batch_norm_op.op.fields = plain_tuple


def check_pair(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    """Raise if there is one without the other."""
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def check_channels(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
) -> None:
    """Torch's demands on everything that has one value per channel."""
    shape = input._array.shape
    if len(shape) > 1 and running_mean is not None and running_var is not None:  # what most calls bring
        n = shape[1]
        fits = running_mean._array.size == n and running_var._array.size == n
        if fits and (weight is None or weight._array.size == n) and (bias is None or bias._array.size == n):
            plain = type(running_mean._array) is np.ndarray is type(running_var._array)
            if plain and not running_mean.requires_grad and not running_var.requires_grad:
                return
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, given in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if given is None:
            if not training and name.startswith("running"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif given._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {given._array.size}")
    check_pair(running_mean, running_var)
    refuse_gradient("native_batch_norm", running_mean=running_mean, running_var=running_var)
    if input.ndim < 2 and input._array.size:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")


# ------------------------------------------------------------------ public names


@function(raw=True, method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Apply batch normalization over each channel: `(x - mean) / sqrt(var + eps) * weight + bias`.

    As `nn.functional.batch_norm`, with the arguments in another order and all of them given; `cudnn_enabled` changes
    nothing.
    """
    check_momentum("batch_norm", momentum)
    if not input._array.size:
        return of_nothing(input, weight, bias)
    check_channels(input, weight, bias, running_mean, running_var, training)
    arrays = arrays_of(input, weight, bias, running_mean, running_var)
    if arrays is not None and is_taken(arrays[0]):
        return unrecorded(quick_batch_norm, *arrays, training, momentum, eps)
    return batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def check_momentum(name: str, momentum: Any) -> None:
    """Raise torch's error for a momentum that is no number, which without running statistics nobody reads."""
    if momentum is None or isinstance(momentum, (complex, str)):
        kind = type_name(momentum)
        raise TypeError(f"{name}(): argument 'momentum' (position 7) must be float, not {kind}")


def of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """batch_norm of no elements, recorded so that the parameters get gradients all the same."""
    out = clone(input)
    out = out if weight is None else mul(out, select_int(weight, 0, 0))
    return out if bias is None else add(out, select_int(bias, 0, 0))


@function(method=False)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply batch normalization, and return the statistics it used too.

    Returns the result of `batch_norm`, and the means and `1 / sqrt(var + eps)` of the channels, both `(C,)` in training
    and empty otherwise.
    """
    check_momentum("native_batch_norm", momentum)
    if training and not input.numel():
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {shape_text(input.shape)}"
        )
    check_pair(running_mean, running_var)
    check_channels(input, weight, bias, running_mean, running_var, training)
    result, mean, rstd = batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps)
    found = result, without_history(mean), without_history(rstd)
    return found if out is None else write_result("native_batch_norm", found, out)


@function(raw=True, space="nn.functional", method=False, name="batch_norm")
def functional_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Apply batch normalization over each channel: `(x - mean) / sqrt(var + eps) * weight + bias`.

    `input` is `(N, C)` or `(N, C, ...)`; the other tensors are `(C,)`. With `training`, mean and (biased) variance are
    those of each channel in this batch, and `running_mean` and `running_var`, where given, move in place by
    `running = (1 - momentum) * running + momentum * seen`, with the unbiased variance. Otherwise the running statistics
    are used. Returns the shape of `input`.
    """
    if training:
        shape = input._array.shape
        if not shape:
            raise IndexError("tuple index out of range")
        if shape[0] == 1 or len(shape) == 1:
            verify_batch_size(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


# ------------------------------------------------------------------ instance_norm


def per_channel(parameters: list[Array], channels: int) -> bool:
    """True if all that is given has one value for each channel."""
    return all([given is None or given.shape == (channels,) for given in parameters])


def repeated(values: Tensor | None, times: int) -> Tensor | None:
    """A vector, as many times as there are samples."""
    return None if values is None else repeat_dims(values, (times,))


@function(raw=True, method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Apply instance normalization: every channel of every sample is normalized by itself.

    As `nn.functional.instance_norm`, with the arguments in another order and all of them given; `cudnn_enabled` changes
    nothing.
    """
    check_momentum("instance_norm", momentum)
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got {max(input.ndim, 1)})")
    samples, channels, *rest = input.shape
    shape = (1, samples * channels, *rest)
    if use_input_stats and running_mean is None and running_var is None:
        arrays = arrays_of(input, weight, bias)
        size = prod(rest)
        if arrays is not None and kernels.are_taken(arrays[0], size) and per_channel(arrays[1:], channels):
            out = unrecorded(lambda: kernels.group_norm(*arrays, channels, size, channels, eps)[0].reshape(shape))
            return view_(out, tuple(input.shape))
    rows = view_(input if is_contiguous(input) else clone(input, memory_format=contiguous_format), shape)
    seen = [repeated(r, samples) for r in (running_mean, running_var)]
    dtype = (input if weight is None else weight).dtype
    if running_mean is not None and running_mean.dtype is not dtype:  # torch asks the mean, and converts both
        if running_var is None:
            raise RuntimeError(
                "Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #0 'self'"
            )
        seen = [to(r, dtype) for r in seen]
    parameters = (repeated(weight, samples), repeated(bias, samples))
    out = batch_norm(rows, *parameters, *seen, use_input_stats, momentum, eps, cudnn_enabled)
    for own, used in zip((running_mean, running_var), seen, strict=True):
        if own is not None and used is not None:
            own.copy_(mean_dim(view_(used, (samples, channels)), (0,)))  # type: ignore[attr-defined]
    return view_(out, tuple(input.shape))


@function(raw=True, space="nn.functional", method=False, name="instance_norm")
def functional_instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Apply instance normalization: every channel of every sample is normalized by itself.

    `input` is `(N, C, ...)`; each channel becomes `(x - mean) / sqrt(var + eps) * weight + bias`, where `weight` and
    `bias` are `(C,)`. With `use_input_stats` mean and biased variance are those of the sample's channel, and
    `running_mean` and `running_var`, where given, move in place by `momentum` towards their averages over the batch;
    otherwise the running statistics are used.
    """
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)
