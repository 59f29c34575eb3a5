"""Arrays with something around them: a constant, their own mirror image, or their edge. Arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def constant(x: AnyArray, pad: Sizes, value: Any) -> AnyArray:
    """The array with a constant around it; a negative width cuts off. `pad` begins with the last dimension."""
    shape, source, target = list(x.shape), [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for nr in range(len(pad) // 2):
        dim, left, right = x.ndim - 1 - nr, pad[2 * nr], pad[2 * nr + 1]
        shape[dim] += left + right
        source[dim] = slice(max(-left, 0), x.shape[dim] + min(right, 0))
        target[dim] = slice(max(left, 0), shape[dim] - max(right, 0))
    if shape == [s.stop - s.start if s.stop is not None else n for s, n in zip(target, shape, strict=True)]:
        return x[tuple(source)].copy()
    out = np.empty(shape, x.dtype)
    out.fill(value)
    out[tuple(target)] = x[tuple(source)]
    return out


def sources(size: int, left: int, right: int, mode: str) -> AnyArray:
    """Where along a dimension each element of the padded array comes from."""
    at = np.arange(-left, size + right)
    if mode == "replicate":
        return np.minimum(np.maximum(at, 0), size - 1)
    at = np.abs(at)
    return np.where(at >= size, 2 * (size - 1) - at, at)


def from_edges(x: AnyArray, padding: Sizes, mode: str) -> AnyArray:
    """The array with its mirror image or its edge around it."""
    for nr in range(len(padding) // 2):
        left, right, axis = padding[2 * nr], padding[2 * nr + 1], x.ndim - 1 - nr
        if left or right:
            x = np.take(x, sources(x.shape[axis], left, right, mode), axis)
    return x.copy() if not any(padding) else x


def from_edges_backward(grad: AnyArray, sizes: Sizes, padding: Sizes, mode: str) -> AnyArray:
    """Add each element of a gradient where `from_edges` took it from."""
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
