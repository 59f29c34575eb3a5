"""Convolutions with one channel for each group: weighted sums of shifted images, without columns. Arrays only.

One image is worked on at a time, so that it stays in the cache while the kernel passes over it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback.kernels.numpy.pool.sliding import offsets

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def factors_of(w: AnyArray, groups: int) -> AnyArray:
    """The weights as (elements of the kernel, groups, outputs of a group, 1, 1, ...)."""
    taps = prod(w.shape[2:])
    flat = w.reshape(groups, w.shape[0] // groups, taps)
    return np.ascontiguousarray(np.moveaxis(flat, -1, 0)).reshape(taps, groups, -1, *(1,) * (w.ndim - 2))


def convolve(x: AnyArray, w: AnyArray, counts: Sizes, stride: Sizes, dilation: Sizes) -> AnyArray:
    """The sum over each window of the padded input, weighted, channel by channel."""
    groups = x.shape[1]
    factors = factors_of(w, groups)
    out = np.empty((x.shape[0], groups, factors.shape[2], *counts), x.dtype)
    share = np.empty(out.shape[1:], x.dtype)
    parts = offsets(counts, w.shape[2:], stride, dilation)
    for image, target in zip(x, out, strict=True):
        for nr, (part, factor) in enumerate(zip(parts, factors, strict=True)):
            np.multiply(image[part][:, None], factor, out=share if nr else target)
            if nr:
                target += share
    return out.reshape(x.shape[0], w.shape[0], *counts)


def add_input(out: AnyArray, grad: AnyArray, w: AnyArray, stride: Sizes, dilation: Sizes) -> None:
    """Add the gradient of the input, which is padded, to zeros."""
    groups, counts = out.shape[1], grad.shape[2:]
    factors = factors_of(w, groups)
    parts = offsets(counts, w.shape[2:], stride, dilation)
    grads = grad.reshape(grad.shape[0], groups, factors.shape[2], *counts)
    for image, target in zip(grads, out, strict=True):
        for part, factor in zip(parts, factors, strict=True):
            target[part] += np.add.reduce(image * factor, axis=1) if factors.shape[2] > 1 else (image * factor)[:, 0]


def weight(x: AnyArray, grad: AnyArray, kernel: Sizes, stride: Sizes, dilation: Sizes) -> AnyArray:
    """The gradient of the weight; the input is padded."""
    groups, counts = x.shape[1], grad.shape[2:]
    each = grad.shape[1] // groups
    out = np.zeros((groups, each, prod(kernel)), grad.dtype)
    parts = offsets(counts, kernel, stride, dilation)
    grads = grad.reshape(grad.shape[0], groups, each, prod(counts))
    for image, given in zip(x, grads, strict=True):
        for nr, part in enumerate(parts):
            here = image[part].reshape(groups, prod(counts), 1)
            out[:, :, nr] += np.matmul(given, here)[:, :, 0]
    return out.reshape(grad.shape[1], 1, *kernel)
