"""Windows that lie far apart, or far outside the input: only the elements that some window holds take memory.

A convolution with a stride, padding or dilation of thousands is that of a small array, in which the windows lie side
by side: window w of dimension d begins at w * kernel[d], nothing is padded, and nothing lies between its elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._thresholds import FAR_SETTING

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def is_far(stride: Sizes, padding: Sizes, dilation: Sizes) -> bool:
    """True if the windows are to be gathered first."""
    return max(*stride, *padding, *dilation) > FAR_SETTING


def places(count: int, size: int, kernel: int, stride: int, padding: int, dilation: int) -> tuple[AnyArray, AnyArray]:
    """For the elements of all windows along a dimension: where they lie in the input, and whether they do."""
    begin = np.arange(count) * (stride if count > 1 else 0) - padding
    at = (begin[:, None] + np.arange(kernel) * (dilation if kernel > 1 else 0)).reshape(-1)
    inside = (at >= 0) & (at < size)
    return np.where(inside, at, 0), inside


def gathered(x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> AnyArray:
    """The input with its windows side by side; what lies outside is zero."""
    lead = x.ndim - len(kernel)
    for dim, settings in enumerate(zip(counts, x.shape[lead:], kernel, stride, padding, dilation, strict=True)):
        at, inside = places(*settings)
        if not x.shape[lead + dim]:
            x = np.zeros((*x.shape[: lead + dim], len(at), *x.shape[lead + dim + 1 :]), x.dtype)
            continue
        x = x.take(at, lead + dim)
        x[(slice(None),) * (lead + dim) + (~inside,)] = 0
    return np.ascontiguousarray(x)


def scattered(
    parts: AnyArray, sizes: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> AnyArray:
    """The way back: what lies in windows side by side, added where it came from."""
    lead = parts.ndim - len(kernel)
    for dim, settings in enumerate(zip(counts, sizes, kernel, stride, padding, dilation, strict=True)):
        at, inside = places(*settings)
        before = (slice(None),) * (lead + dim)
        out = np.zeros((*parts.shape[: lead + dim], sizes[dim], *parts.shape[lead + dim + 1 :]), parts.dtype)
        np.add.at(out, (*before, at[inside]), parts[(*before, inside)])
        parts = out
    return parts


def columns(x: AnyArray, counts: Sizes, kernel: Sizes) -> AnyArray:
    """Windows that lie side by side as columns: (N, C * K, windows)."""
    ndim = len(kernel)
    pairs = [n for pair in zip(counts, kernel, strict=True) for n in pair]
    parts = x.reshape(*x.shape[:2], *pairs)
    order = (0, 1, *range(3, 2 + 2 * ndim, 2), *range(2, 2 + 2 * ndim, 2))
    return np.ascontiguousarray(parts.transpose(order)).reshape(x.shape[0], x.shape[1] * prod(kernel), prod(counts))


def side_by_side(columns: AnyArray, counts: Sizes, kernel: Sizes) -> AnyArray:
    """Columns as windows that lie side by side."""
    ndim = len(kernel)
    parts = columns.reshape(columns.shape[0], -1, *kernel, *counts)
    order = [0, 1]
    for dim in range(ndim):
        order += [2 + ndim + dim, 2 + dim]
    sizes = [n * k for n, k in zip(counts, kernel, strict=True)]
    return np.ascontiguousarray(parts.transpose(order)).reshape(columns.shape[0], parts.shape[1], *sizes)
