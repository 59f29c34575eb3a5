"""What the normalizations share, and those over the last dimensions: layer_norm and rms_norm.

Each op returns the result, the mean and one over the standard deviation. Plain backward runs one kernel; with
`create_graph` the same gradient is composed of ops, in which the saved mean and deviation are outputs of the node
themselves, so that gradients of every order find their way through them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.layout import channels_last, channels_last_3d, contiguous_format
from pullback._arrays.memory import row_major
from pullback._dtype import FROM_NUMPY, bfloat16, float16, float32
from pullback._op.declare import FUNCTIONAL, publish
from pullback._op.define import Array, explain, function, op
from pullback._op.named import plain_tuple
from pullback._runtime.messages import shape_text
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv.images import channels_lie_last
from pullback.kernels.numpy.norm import normalize as kernels
from pullback.ops.create.cast import to
from pullback.ops.nn.number import plus
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import mul
from pullback.ops.pointwise.power import pow, rsqrt
from pullback.ops.reduce.sums import mean_dim, reduced_size, sum_dim
from pullback.ops.shape.layout import contiguous
from pullback.ops.shape.reshape import expand
from pullback.ops.supported import refuse


def without_history(tensor: Tensor) -> Tensor:
    """An output that torch does not differentiate."""
    tensor._requires_grad, tensor._edge = False, None
    if tensor._tangent is not None:
        tensor._tangent = None
    return tensor


# ------------------------------------------------------------------ the derivatives they share


def composed_grads(
    grads: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: tuple[int, ...], wants: Any
) -> tuple[Any, Any]:
    """The gradient of x and what sums to the gradient of the weight, in terms of ops; all shaped like x."""
    grad, grad_mean, grad_rstd = grads
    count = reduced_size(x.shape, dims)
    normal = (x - mean) * rstd
    found = products = None
    if grad is not None:
        products = grad * normal
        if wants[0]:
            found = moved(grad if weight is None else grad * weight, normal, rstd, dims)
    if wants[0] and grad_mean is not None:
        shared = expand(grad_mean / count, tuple(x.shape))
        found = shared if found is None else found + shared
    if wants[0] and grad_rstd is not None:
        bent = normal * (grad_rstd * rstd * rstd / -count)
        found = bent if found is None else found + bent
    return found, products


def moved(change: Any, normal: Any, rstd: Any, dims: tuple[int, ...]) -> Any:
    """How the standardized x changes with x; the map is symmetric, so gradients go the same way."""
    return rstd * (change - mean_dim(change, dims, True) - normal * mean_dim(change * normal, dims, True))


def tangents(
    x_t: Any, weight_t: Any, bias_t: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: tuple[int, ...]
) -> tuple[Any, Any, Any]:
    """The tangents of the result, the mean and the inverse deviation; all shaped like x."""
    normal = (x - mean) * rstd
    change = moved(x_t, normal, rstd, dims)
    if weight is not None:
        change = change * weight + normal * weight_t
    if bias_t is not None:
        change = change + bias_t
    return change, mean_dim(x_t, dims, True), -rstd * rstd * mean_dim(x_t * normal, dims, True)


def check_dtypes(kernel: str, x: Array, *parameters: Array | None) -> None:
    """Torch's demands on the dtypes: parameters in the dtype of x, or in float32 beside half precision."""
    refuse(kernel, x, "iubc")
    given = [p for p in parameters if p is not None]
    if not given:
        return
    kind = given[0].dtype
    if kind is not x.dtype:
        if any(p.dtype != np.float32 for p in given):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if x.dtype.itemsize != 2:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    for other in given[1:]:
        if other.dtype is not kind:
            wanted, found = FROM_NUMPY[kind].scalar_type, FROM_NUMPY[other.dtype].scalar_type
            raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def in_stats_dtype(stats: Array, x: Array, *parameters: Array | None) -> Array:
    """The mean or deviation in the dtype torch keeps it in: that of the parameters."""
    dtype = next((given.dtype for given in parameters if given is not None), x.dtype)
    return stats if stats.dtype is dtype else stats.astype(dtype)


def verify_batch_size(size: Any) -> None:
    """Raise where training would take the variance of a single value."""
    if size[0] * prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


# ------------------------------------------------------------------ layer_norm


def check_layer_norm(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> None:
    """Torch's demands on the shapes of layer_norm."""
    check_normalized_shape(input, normalized_shape, weight, bias, "*, ")
    check_dtypes("LayerNormKernelImpl", input, weight, bias)


def check_normalized_shape(input: Any, shape: tuple[int, ...], weight: Any, bias: Any, star: str) -> None:
    """The last dimensions of the input must be the normalized shape, and the parameters' shape too."""
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and tuple(given.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{shape_text(given.shape)} and normalized_shape = {shape_text(shape)}"
            )
    if input.ndim < len(shape) or tuple(input.shape[-len(shape) :]) != shape:
        expected = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={shape_text(shape)}, expected input with shape [{star}{expected}], but got input "
            f"of size{shape_text(input.shape)}"
        )


def plainly_fits(input: Array, shape: tuple[int, ...], k: int, weight: Array | None, bias: Array | None) -> bool:
    """True for what most calls bring: all of one floating point dtype and the right shape."""
    dtype = input.dtype
    if dtype.kind != "f" or not k or input.shape[-k:] != shape:
        return False
    if weight is not None and (weight.dtype is not dtype or weight.shape != shape):
        return False
    return bias is None or (bias.dtype is dtype and bias.shape == shape)


def layer_norm_grads(
    grads: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any, mean: Any, rstd: Any, wants: Any
) -> Any:
    """The gradients of the input, the weight and the bias."""
    grad = grads[0]
    plain = not isinstance(input, Tensor) and grad is not None and grads[1] is None and grads[2] is None
    if plain:
        length = prod(normalized_shape)
        if kernels.are_taken(input, length) and grad.flags.c_contiguous and mean.dtype is input.dtype:
            d_input, d_weight, d_bias = kernels.layer_norm_backward(grad, input, mean, rstd, weight, length)
            if len(normalized_shape) == 1:
                return d_input, d_weight, d_bias
            return d_input, d_weight.reshape(normalized_shape), d_bias.reshape(normalized_shape)
    lead = tuple(range(input.ndim - len(normalized_shape)))
    dims = tuple(range(len(lead), input.ndim))
    if plain:
        d_input, products = kernels.backward(grad, input, mean, rstd, weight, dims, prod(normalized_shape))
    else:
        d_input, products = composed_grads(grads, input, mean, rstd, weight, dims, wants)
    d_weight = d_bias = None
    if grad is not None:
        d_weight = (sum_dim(products, lead) if lead else products) if wants[1] else None
        d_bias = (sum_dim(grad, lead) if lead else grad) if wants[2] else None
    return d_input, d_weight, d_bias


@op(
    space=None,
    name="native_layer_norm",
    outputs=("result0", "result1", "result2"),
    check=check_layer_norm,
    vmap="layer_normalized",
    backward=lambda grads, input, normalized_shape, weight, bias, result1, result2, wants: layer_norm_grads(
        grads, input, normalized_shape, weight, bias, result1, result2, wants
    ),
    result=lambda input_t, weight_t, bias_t, input, normalized_shape, weight, result1, result2: tangents(
        input_t, weight_t, bias_t, input, result1, result2, weight,
        tuple(range(input.ndim - len(normalized_shape), input.ndim)),
    ),
)  # fmt: skip
def layer_norm_op(
    input: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    """The last dimensions with mean zero and variance one, scaled and shifted."""
    k = len(normalized_shape)
    if plainly_fits(input, normalized_shape, k, weight, bias):
        length = prod(normalized_shape)
        if kernels.are_taken(input, length):
            out, mean, rstd = kernels.layer_norm(input, weight, bias, length, eps)
            lead = (*input.shape[:-k], *(1,) * k)
            return out, mean.reshape(lead), rstd.reshape(lead)
    else:
        check_layer_norm(input, normalized_shape, weight, bias, eps)
    axis = -1 if k == 1 else tuple(range(-k, 0))
    out, mean, rstd, _ = kernels.standardized(row_major(input), axis, prod(normalized_shape), eps)
    stats = (in_stats_dtype(mean, input, weight, bias), in_stats_dtype(rstd, input, weight, bias))
    return kernels.scaled(out, weight, bias, input.dtype), *stats


layer_norm_op.op.fields = plain_tuple


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A normalized shape as a tuple."""
    if isinstance(shape, (list, tuple)):
        for place, size in enumerate(shape):
            if isinstance(size, float):
                raise TypeError(
                    f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, but found element of "
                    f"type float at pos {place}"
                )
        return tuple(shape)
    raise TypeError(
        f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {type(shape).__name__}"
    )


@function(raw=True, explained=False, method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Apply layer normalization over the last dimensions: `(x - mean) / sqrt(var + eps) * weight + bias`.

    `normalized_shape` is the shape of those last dimensions, over which mean and biased variance are taken; `weight`
    and `bias`, where given, have that shape. Returns the shape of `input`.
    """
    try:
        if type(normalized_shape) is not tuple:
            normalized_shape = as_shape("layer_norm", normalized_shape)
        arrays = arrays_of(input, weight, bias)
        if arrays is not None:
            length, k = prod(normalized_shape), len(normalized_shape)
            if plainly_fits(arrays[0], normalized_shape, k, *arrays[1:]) and kernels.are_taken(arrays[0], length):
                return unrecorded(kernels.layer_norm, *arrays, length, eps)
        return layer_norm_op(input, normalized_shape, weight, bias, eps)[0]
    except Exception as error:
        explain(error, layer_norm, input, normalized_shape, weight, bias, eps, cudnn_enable)
        raise


publish("layer_norm", layer_norm, FUNCTIONAL)


@function(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply layer normalization, and return the statistics it used too.

    Returns the result of `layer_norm`, the means and `1 / sqrt(var + eps)`, with size 1 in the normalized dimensions.
    """
    out, mean, rstd = layer_norm_op(input, as_shape("native_layer_norm", normalized_shape), weight, bias, eps)
    return out, without_history(mean), without_history(rstd)


# ------------------------------------------------------------------ rms_norm


@function(raw=True, method=False)
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Apply root-mean-square normalization over the last dimensions: `x / sqrt(mean(x ** 2) + eps) * weight`.

    `normalized_shape` is the shape of those last dimensions, and of `weight`. `eps` is the machine epsilon of the dtype
    unless given; half precision is computed in float32.
    """
    shape = as_shape("rms_norm", normalized_shape)
    check_normalized_shape(input, shape, weight, None, "*")
    refuse("rms_norm", input._array, "iub")
    if weight is not None and weight.dtype is not input.dtype:
        warn(
            f"Mismatch dtype between input and weight: input dtype = {input.dtype.c_type}, weight dtype = "
            f"{weight.dtype.c_type}, Cannot dispatch to fused implementation.",
        )
    x = to(input, float32) if input.dtype in (float16, bfloat16) else input
    if isinstance(eps, complex):
        raise TypeError("rms_norm(): argument 'eps' (position 4) must be float, not complex")
    if eps is None:
        eps = float(np.finfo(x._array.dtype).eps)
    dims = tuple(range(x.ndim - 1, x.ndim - 1 - len(shape), -1))
    out = mul(x, rsqrt(plus(mean_dim(pow(x, 2), dims, True), eps)))
    if weight is not None:
        out = mul(out, weight)
    out = contiguous(out, memory_format=LAST[out.ndim] if channels_lie_last(out._array) else contiguous_format)
    return out if out.dtype is input.dtype else to(out, input.dtype)


LAST = {4: channels_last, 5: channels_last_3d}
"""How images and volumes lie in memory whose channels lie last."""

publish("rms_norm", rms_norm, FUNCTIONAL)
