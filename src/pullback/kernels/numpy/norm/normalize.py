"""Arrays with their mean taken away and divided by their standard deviation, and the derivatives of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._half import widened

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
