"""Arrays with their mean taken away and divided by their standard deviation, and the derivatives of that.

`standardized` and `backward` are the algorithm. What follows them is compiled for floats that are contiguous: rows are
matrices whose rows are normalized, channels are arrays (N, C, *) of which every channel is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._thresholds import FEW_IN_RUNS, SHORTEST_RUN
from pullback.kernels.compiled import room
from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE, filled, number

Array = Any


def average(x: Array, axis: Any, count: int) -> Array:
    """The mean over `axis`, which keeps its place; no elements have the mean zero."""
    out = np.add.reduce(x, axis, None, None, True)
    out /= count or 1
    return out


def standardized(x: Array, axis: Any, count: int, eps: float) -> tuple[Array, Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) over `axis`, the mean, one over the root, and the variance."""
    x = widened(x)
    mean = average(x, axis, count)
    out = np.subtract(x, mean)
    # The variance of no elements is not a number.
    var = average(np.multiply(out, out), axis, count) if count else np.full_like(mean, np.nan)
    rstd = np.sqrt(var + x.dtype.type(eps))
    np.reciprocal(rstd, rstd)
    out *= rstd
    return out, mean, rstd, var


def scaled(x: Array, weight: Array | None, bias: Array | None, dtype: Any) -> Array:
    """x * weight + bias, written over x."""
    if weight is not None:
        x *= weight
    if bias is not None:
        x += bias
    return x if x.dtype is dtype else x.astype(dtype)


def backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, axis: Any, count: int
) -> tuple[Array, Array]:
    """The gradient of x, and grad times the standardized x, whose sums are the gradient of the weight."""
    grad, centred = widened(grad), np.subtract(widened(x), mean)
    centred *= rstd
    products = grad * centred
    if weight is None:
        mean_grad, mean_product = average(grad, axis, count), average(products, axis, count)
        out = np.subtract(grad, mean_grad)
    else:
        out = grad * weight
        mean_grad, mean_product = average(out, axis, count), average(products * weight, axis, count)
        out -= mean_grad
    centred *= mean_product
    out -= centred
    out *= rstd
    return out if out.dtype is x.dtype else out.astype(x.dtype), products


# ------------------------------------------------------------------ what is compiled


def are_taken(x: Array, length: int) -> bool:
    """True for floats that are contiguous, in runs of a length, if kernels do well on them."""
    dtype, size = x.dtype, x.size
    if (dtype is not SINGLE and dtype is not DOUBLE) or not 0 < length <= size or not x.flags.c_contiguous:
        return False
    return (length >= SHORTEST_RUN or size <= FEW_IN_RUNS) and room("rows.norms") is not None


def layer_norm(
    x: Array, weight: Array | None, bias: Array | None, length: int, eps: float
) -> tuple[Array, Array, Array]:
    """Rows with mean zero and variance one, scaled and shifted; the means, and one over the deviations."""
    compiled = room("rows.norms")
    if compiled is not None and (made := compiled.layer_norm(x, weight, bias, length, eps)) is not None:
        return made  # type: ignore[no-any-return]
    out, mean, rstd, _ = standardized(x.reshape(-1, length), 1, length, eps)
    scale, shift = [None if p is None else p.reshape(-1) for p in (weight, bias)]
    return scaled(out, scale, shift, x.dtype).reshape(x.shape), mean.reshape(-1), rstd.reshape(-1)


def layer_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, length: int
) -> tuple[Array, Array, Array]:
    """The gradients of x, the weight and the bias; those of the parameters are vectors."""
    compiled = room("rows.norms")
    if compiled is not None and (made := compiled.layer_norm_backward(grad, x, mean, rstd, weight, length)) is not None:
        return made  # type: ignore[no-any-return]
    grads, scale = grad.reshape(-1, length), None if weight is None else weight.reshape(-1)
    mean, rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    out, products = backward(grads, x.reshape(-1, length), mean, rstd, scale, 1, length)
    return out.reshape(x.shape), np.add.reduce(products, 0), np.add.reduce(grads, 0)


def over_channels(x: Array, samples: int, channels: int) -> Array:
    """The sum of each channel of a matrix with a row for each sample's channel."""
    sums = x.dot(filled(x.shape[1], 1.0, x.dtype))
    return sums if samples == 1 else filled(samples, 1.0, x.dtype).dot(sums.reshape(samples, channels))


def batch_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, Array, Array, Array]:
    """Channels with mean zero and variance one, scaled and shifted; their means, variances and one over the roots."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.batch_norm(x, weight, bias, eps)) is not None:
        return made  # type: ignore[no-any-return]
    images = x.reshape(*x.shape[:2], -1)
    out, *stats = standardized(images, (0, 2), x.size // x.shape[1], eps)
    scale, shift = [None if p is None else p[:, None] for p in (weight, bias)]
    mean, rstd, var = [stat.reshape(-1) for stat in stats]
    return scaled(out, scale, shift, x.dtype).reshape(x.shape), mean, rstd, var


def move(running: Array, seen: Array, momentum: float, factor: float) -> None:
    """Move a running statistic towards what was seen, times a factor."""
    dtype = running.dtype
    np.multiply(running, number(1 - momentum, dtype), running)
    np.add(running, np.multiply(seen, number(momentum * factor, dtype)), running)


def batch_norm_by(x: Array, mean: Array, var: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """The same with statistics that are given."""
    scale = np.add(var, number(eps, x.dtype))
    np.sqrt(scale, scale)
    np.divide(number(1.0, x.dtype) if weight is None else weight, scale, scale)
    shift = np.multiply(mean, scale)
    np.subtract(number(0.0, x.dtype) if bias is None else bias, shift, shift)
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.rescale(x, scale, shift)) is not None:
        return made  # type: ignore[no-any-return]
    out = np.multiply(x.reshape(*x.shape[:2], -1), scale[:, None])
    np.add(out, shift[:, None], out)
    return out.reshape(x.shape)


def batch_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None
) -> tuple[Array, Array, Array]:
    """The gradients of x, the weight and the bias."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.batch_norm_backward(grad, x, mean, rstd, weight)) is not None:
        return made  # type: ignore[no-any-return]
    images, grads = [a.reshape(*x.shape[:2], -1) for a in (x, grad)]
    scale = None if weight is None else weight[:, None]
    out, products = backward(grads, images, mean[:, None], rstd[:, None], scale, (0, 2), x.size // x.shape[1])
    return out.reshape(x.shape), np.add.reduce(products, (0, 2)), np.add.reduce(grads, (0, 2))


def batch_norm_by_backward(
    grad: Array, x: Array, mean: Array, var: Array, weight: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """The same with statistics that were given."""
    samples, channels = x.shape[:2]
    images = x.reshape(samples, channels, -1)
    length = images.shape[2]
    grads = grad.reshape(images.shape)
    rstd = np.add(var, number(eps, x.dtype))
    np.sqrt(rstd, rstd)
    np.reciprocal(rstd, rstd)
    normal = np.subtract(images, mean[:, None])
    np.multiply(normal, grads, normal)
    d_weight = over_channels(normal.reshape(-1, length), samples, channels)
    d_bias = over_channels(grad.reshape(-1, length), samples, channels)
    out = np.multiply(grads, (rstd if weight is None else np.multiply(rstd, weight))[:, None])
    return out.reshape(x.shape), np.multiply(d_weight, rstd, d_weight), d_bias


def group_norm(
    x: Array, weight: Array | None, bias: Array | None, channels: int, size: int, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """Groups of channels with mean zero and variance one, the channels scaled and shifted."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.group_norm(x, weight, bias, channels, size, groups, eps)) is not None:
        return made[:3]  # type: ignore[no-any-return]
    per = channels // groups
    out, mean, rstd, _ = standardized(x.reshape(-1, groups, per, size), (2, 3), per * size, eps)
    scale, shift = [None if p is None else p.reshape(groups, per, 1) for p in (weight, bias)]
    return scaled(out, scale, shift, x.dtype).reshape(x.shape), mean.reshape(-1), rstd.reshape(-1)


def group_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, channels: int, size: int
) -> tuple[Array, Array, Array]:
    """The gradients of x, the weight and the bias."""
    groups = mean.size * channels * size // x.size
    compiled = room("rows.channel_norms")
    if compiled is not None:
        made = compiled.group_norm_backward(grad, x, mean, rstd, weight, channels, size, groups)
        if made is not None:
            return made  # type: ignore[no-any-return]
    per = channels // groups
    shape = (-1, groups, per, size)
    scale = None if weight is None else weight.reshape(groups, per, 1)
    mean, rstd = mean.reshape(-1, groups, 1, 1), rstd.reshape(-1, groups, 1, 1)
    out, products = backward(grad.reshape(shape), x.reshape(shape), mean, rstd, scale, (2, 3), per * size)
    d_weight, d_bias = [np.add.reduce(a.reshape(shape), (0, 3)).reshape(-1) for a in (products, grad)]
    return out.reshape(x.shape), d_weight, d_bias
