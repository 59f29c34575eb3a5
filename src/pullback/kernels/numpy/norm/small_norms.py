"""Normalizations of floats that lie in order: compiled where possible, else for small arrays in few calls of NumPy.

`rows` are matrices whose rows are normalized, `channels` are arrays (N, C, *) of which every channel is. Without the
compiler sums are products with vectors of ones. The results are those of normalize.py up to rounding.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from pullback.kernels.compiled import room
from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE, filled, number, read_only

AnyArray = np.ndarray[Any, Any]

MOST = 4096
LONGEST = 1024
"""Longer rows are summed by NumPy, in pairs, which rounds less."""
TINY = 128
"""Up to this many elements repeating a vector is quicker than broadcasting it."""


SHORTEST = 4
"""Runs of fewer elements leave the lanes of a vector empty: many of them are NumPy's."""


def are_taken(x: AnyArray, length: int) -> bool:
    """True for floats that lie in order, in runs of a length, if the functions here do well on them."""
    dtype, size = x.dtype, x.size
    if (dtype is not SINGLE and dtype is not DOUBLE) or not 0 < length <= size or not x.flags.c_contiguous:
        return False
    return (size <= MOST and length <= LONGEST) or (length >= SHORTEST and room("rows.norms") is not None)


def down(vector: AnyArray, like: AnyArray) -> AnyArray:
    """One value for each row, to be combined with a matrix."""
    if like.size > TINY:
        return vector[:, None]
    rows, length = like.shape
    return vector.repeat(length).reshape(rows, length)


def outer(left: AnyArray, right: AnyArray) -> AnyArray:
    """The product of every element of one vector with every element of another."""
    return left.reshape(-1, 1).dot(right.reshape(1, -1))


# ------------------------------------------------------------------ rows


def centre_rows(x: AnyArray, eps: float) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Rows minus their means, the means, and one over the roots of the variances plus eps."""
    dtype, length = x.dtype, x.shape[1]
    mean = x.dot(filled(length, 1.0, dtype))  # divided afterwards: opposite numbers cancel exactly
    np.divide(mean, number(length, dtype), mean)
    out = np.subtract(x, down(mean, x))
    rstd = np.multiply(out, out).dot(filled(length, 1.0 / length, dtype))
    np.add(rstd, number(eps, dtype), rstd)
    np.sqrt(rstd, rstd)
    np.reciprocal(rstd, rstd)
    return out, mean, rstd


def rows_backward(
    grad: AnyArray, x: AnyArray, mean: AnyArray, rstd: AnyArray, weight: AnyArray | None
) -> tuple[AnyArray, AnyArray]:
    """The gradient of x, and grad times the standardized x; a weight is shaped like x or like one row."""
    length = x.shape[1]
    share, scale = filled(length, 1.0 / length, x.dtype), down(rstd, x)
    normal = np.subtract(x, down(mean, x))
    np.multiply(normal, scale, normal)
    products = np.multiply(grad, normal)
    if weight is None:
        change, bent = grad, products
    else:
        change, bent = np.multiply(grad, weight), np.multiply(products, weight)
    out = np.subtract(change, down(change.dot(share), x))
    np.multiply(normal, down(bent.dot(share), x), normal)
    np.subtract(out, normal, out)
    return np.multiply(out, scale, out), products


def layer_norm(
    x: AnyArray, weight: AnyArray | None, bias: AnyArray | None, length: int, eps: float
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Rows with mean zero and variance one, scaled and shifted; the means, and one over the deviations."""
    compiled = room("rows.norms")
    if compiled is not None and (made := compiled.layer_norm(x, weight, bias, length, eps)) is not None:
        return made  # type: ignore[no-any-return]
    matrix = x if x.ndim == 2 and x.shape[1] == length else x.reshape(-1, length)
    out, mean, rstd = centre_rows(matrix, eps)
    np.multiply(out, down(rstd, matrix) if weight is None else outer(rstd, weight), out)
    if bias is not None:
        np.add(out, bias if bias.ndim == 1 else bias.reshape(-1), out)
    return out if matrix is x else out.reshape(x.shape), mean, rstd


def layer_norm_backward(
    grad: AnyArray, x: AnyArray, mean: AnyArray, rstd: AnyArray, weight: AnyArray | None, length: int
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The gradients of x, the weight and the bias; those of the parameters are vectors."""
    compiled = room("rows.norms")
    if compiled is not None and (made := compiled.layer_norm_backward(grad, x, mean, rstd, weight, length)) is not None:
        return made  # type: ignore[no-any-return]
    matrix, grads = x.reshape(-1, length), grad.reshape(-1, length)
    scale = None if weight is None else weight.reshape(-1)
    out, products = rows_backward(grads, matrix, mean.reshape(-1), rstd.reshape(-1), scale)
    ones = filled(matrix.shape[0], 1.0, x.dtype)
    return out.reshape(x.shape), ones.dot(products), ones.dot(grads)


# ------------------------------------------------------------------ channels


def over_channels(x: AnyArray, samples: int, channels: int) -> AnyArray:
    """The sum of each channel of a matrix with a row for each sample's channel."""
    sums = x.dot(filled(x.shape[1], 1.0, x.dtype))
    return sums if samples == 1 else filled(samples, 1.0, x.dtype).dot(sums.reshape(samples, channels))


def batch_norm(
    x: AnyArray, weight: AnyArray | None, bias: AnyArray | None, eps: float
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Channels with mean zero and variance one, scaled and shifted; their means, variances and one over the roots."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.batch_norm(x, weight, bias, eps)) is not None:
        return made  # type: ignore[no-any-return]
    samples, channels = x.shape[:2]
    images = x.reshape(samples, channels, -1)
    length, dtype = images.shape[2], x.dtype
    count = number(samples * length, dtype)
    mean = over_channels(x.reshape(-1, length), samples, channels)
    np.divide(mean, count, mean)
    out = np.subtract(images, mean[:, None])
    var = over_channels(np.multiply(out, out).reshape(-1, length), samples, channels)
    np.divide(var, count, var)
    rstd = np.add(var, number(eps, dtype))
    np.sqrt(rstd, rstd)
    np.reciprocal(rstd, rstd)
    scale = rstd if weight is None else np.multiply(rstd, weight)
    np.multiply(out, scale[:, None], out)
    if bias is not None:
        np.add(out, bias[:, None], out)
    return out.reshape(x.shape), mean, rstd, var


def move(running: AnyArray, seen: AnyArray, momentum: float, factor: float) -> None:
    """Move a running statistic towards what was seen, times a factor."""
    dtype = running.dtype
    np.multiply(running, number(1 - momentum, dtype), running)
    np.add(running, np.multiply(seen, number(momentum * factor, dtype)), running)


def batch_norm_by(
    x: AnyArray, mean: AnyArray, var: AnyArray, weight: AnyArray | None, bias: AnyArray | None, eps: float
) -> AnyArray:
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
    grad: AnyArray, x: AnyArray, mean: AnyArray, rstd: AnyArray, weight: AnyArray | None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The gradients of x, the weight and the bias."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.batch_norm_backward(grad, x, mean, rstd, weight)) is not None:
        return made  # type: ignore[no-any-return]
    samples, channels = x.shape[:2]
    images = x.reshape(samples, channels, -1)
    length, dtype = images.shape[2], x.dtype
    grads = grad.reshape(samples, channels, length)
    normal = np.subtract(images, mean[:, None])
    np.multiply(normal, rstd[:, None], normal)
    d_weight = over_channels(np.multiply(grads, normal).reshape(-1, length), samples, channels)
    d_bias = over_channels(grad.reshape(-1, length), samples, channels)
    share = number(1.0 / (samples * length), dtype)
    np.multiply(normal, np.multiply(d_weight, share)[:, None], normal)
    out = np.subtract(grads, np.multiply(d_bias, share)[:, None])
    np.subtract(out, normal, out)
    np.multiply(out, (rstd if weight is None else np.multiply(rstd, weight))[:, None], out)
    return out.reshape(x.shape), d_weight, d_bias


def batch_norm_by_backward(
    grad: AnyArray, x: AnyArray, mean: AnyArray, var: AnyArray, weight: AnyArray | None, eps: float
) -> tuple[AnyArray, AnyArray, AnyArray]:
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


# ------------------------------------------------------------------ groups of channels


@lru_cache(256)
def channel_of_each(shape: tuple[int, ...], channels: int, size: int) -> AnyArray:
    """The channel of each element of a matrix that holds samples of channels of a size."""
    return read_only((np.arange(prod(shape)) // size % channels).reshape(shape))


def group_norm(
    x: AnyArray, weight: AnyArray | None, bias: AnyArray | None, channels: int, size: int, groups: int, eps: float
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Groups of channels with mean zero and variance one, the channels scaled and shifted."""
    compiled = room("rows.channel_norms")
    if compiled is not None and (made := compiled.group_norm(x, weight, bias, channels, size, groups, eps)) is not None:
        return made[:3]  # type: ignore[no-any-return]
    out, mean, rstd = centre_rows(x.reshape(-1, channels // groups * size), eps)
    np.multiply(out, rstd[:, None], out)
    if weight is not None:
        np.multiply(out, weight.take(channel_of_each(out.shape, channels, size)), out)
    if bias is not None:
        np.add(out, bias.take(channel_of_each(out.shape, channels, size)), out)
    return out.reshape(x.shape), mean, rstd


def group_norm_backward(
    grad: AnyArray, x: AnyArray, mean: AnyArray, rstd: AnyArray, weight: AnyArray | None, channels: int, size: int
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The gradients of x, the weight and the bias."""
    compiled = room("rows.channel_norms")
    if compiled is not None:
        groups = mean.size * channels * size // x.size
        made = compiled.group_norm_backward(grad, x, mean, rstd, weight, channels, size, groups)
        if made is not None:
            return made  # type: ignore[no-any-return]
    matrix = x.reshape(mean.size, -1)
    scale = None if weight is None else weight.take(channel_of_each(matrix.shape, channels, size))
    grads = grad.reshape(matrix.shape)
    out, products = rows_backward(grads, matrix, mean.reshape(-1), rstd.reshape(-1), scale)
    samples = x.size // (channels * size)
    d_weight = over_channels(products.reshape(-1, size), samples, channels)
    return out.reshape(x.shape), d_weight, over_channels(grad.reshape(-1, size), samples, channels)
