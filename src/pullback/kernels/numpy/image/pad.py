"""Arrays with something around them: a constant, their own mirror image, or their edge. Arrays only."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index
from typing import Any

import numpy as np

from pullback.kernels.numpy.tables import kept

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def constant(x: AnyArray, pad: Sizes, value: Any) -> AnyArray:
    """The array with a constant around it; a negative width cuts off. `pad` begins with the last dimension."""
    shape, source, target = placement(x.shape, tuple(map(index, pad)))  # 1.0 is 1 to whoever looks it up
    if target is None:
        return x[source].copy()
    if not np.asarray(value).tobytes().strip(b"\0"):  # a zero that is not negative
        out = np.zeros(shape, x.dtype)
    else:
        out = np.empty(shape, x.dtype)
        out.fill(value)
    out[target] = x if source is None else x[source]
    return out


@lru_cache(256)
def placement(sizes: Sizes, pad: Sizes) -> tuple[Sizes, Any, Any]:
    """The shape of a padded array, which part of the input it holds (None: all) and where (None: everywhere)."""
    shape, source, target = list(sizes), [slice(None)] * len(sizes), [slice(None)] * len(sizes)
    for nr in range(len(pad) // 2):
        dim, left, right = len(sizes) - 1 - nr, pad[2 * nr], pad[2 * nr + 1]
        shape[dim] += left + right
        source[dim] = slice(max(-left, 0), sizes[dim] + min(right, 0))
        target[dim] = slice(max(left, 0), shape[dim] - max(right, 0))
    if shape == [s.stop - s.start if s.stop is not None else n for s, n in zip(target, shape, strict=True)]:
        return tuple(shape), tuple(source), None
    return tuple(shape), tuple(source) if min(pad) < 0 else None, tuple(target)


@kept
def sources(size: int, left: int, right: int, mode: str) -> AnyArray:
    """Where along a dimension each element of the padded array comes from."""
    at = np.arange(-left, size + right)
    if mode == "replicate":
        return np.minimum(np.maximum(at, 0), size - 1)
    at = np.abs(at)
    return np.where(at >= size, 2 * (size - 1) - at, at)


@kept
def joint_sources(sizes: Sizes, padding: Sizes, mode: str) -> AnyArray:
    """Where each element of a padded image comes from in the flattened image."""
    out = np.zeros((), np.int64)
    for dim, n in enumerate(sizes):
        nr = len(sizes) - 1 - dim
        out = out[..., None] * n + sources(n, padding[2 * nr], padding[2 * nr + 1], mode)
    return out


def from_edges(x: AnyArray, padding: Sizes, mode: str) -> AnyArray:
    """The array with its mirror image or its edge around it."""
    shape, lead, padding = x.shape, x.ndim - len(padding) // 2, tuple(map(index, padding))
    if not x.size:
        return np.empty(placement(shape, padding)[0], x.dtype)
    return x.reshape(shape[:lead] + (prod(shape[lead:]),)).take(joint_sources(shape[lead:], padding, mode), lead)


def from_edges_backward(grad: AnyArray, sizes: Sizes, padding: Sizes, mode: str) -> AnyArray:
    """Add each element of a gradient where `from_edges` took it from."""
    if not grad.size:
        return np.zeros((*grad.shape[: grad.ndim - len(sizes)], *sizes), grad.dtype)
    for nr in range(len(padding) // 2):
        left, right, axis = padding[2 * nr], padding[2 * nr + 1], grad.ndim - 1 - nr
        if left or right:
            grad = fold_edges(grad, axis, sizes[axis], left, right, mode)
    return grad.copy() if not any(padding) else grad


def fold_edges(grad: AnyArray, axis: int, size: int, left: int, right: int, mode: str) -> AnyArray:
    """One dimension of `from_edges_backward`: what lies inside as a whole, what lies around element by element."""
    before = (slice(None),) * axis
    out = np.zeros((*grad.shape[:axis], size, *grad.shape[axis + 1 :]), grad.dtype)
    first, last = max(left, 0), grad.shape[axis] - max(right, 0)
    out[(*before, slice(first - left, last - left))] = grad[(*before, slice(first, last))]
    at = sources(size, left, right, mode)
    for place in (*range(first), *range(last, grad.shape[axis])):
        out[(*before, at[place])] += grad[(*before, place)]
    return out
