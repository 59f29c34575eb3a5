"""Windows that slide over the last dimensions of an array: averages, maxima, and their derivatives."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._arrays.kinds import answered
from pullback.kernels.compiled import room

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows fit along one dimension."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    # The last window must begin inside the input or its left padding.
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


@lru_cache(256)
def offsets(counts: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[tuple[Any, ...], ...]:
    """For each place in the window, the strided part of the padded input that stands there in every window."""
    return tuple(
        [
            (
                ...,
                *[
                    slice(p * d, p * d + (n - 1) * s + 1, s)
                    for p, n, s, d in zip(place, counts, stride, dilation, strict=True)
                ],
            )
            for place in product(*[range(k) for k in kernel])
        ]
    )


def within(kernel: Sizes, sizes: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """The windows without what lies behind the input in each of them, however large they are."""
    return tuple(
        [min(k, max(1, -(-(n + p) // d))) for k, n, p, d in zip(kernel, sizes, padding, dilation, strict=True)]
    )


def padded(
    x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, fill: Any
) -> AnyArray:
    """The input with as much around it as the windows reach over."""
    ndim = len(kernel)
    sizes = x.shape[-ndim:]
    reach = [(n - 1) * s + d * (k - 1) + 1 for n, s, k, d in zip(counts, stride, kernel, dilation, strict=True)]
    whole = [max(r, p + n) for r, p, n in zip(reach, padding, sizes, strict=True)]
    if not any(padding) and tuple(whole) == sizes:
        return x
    out = np.full((*x.shape[:-ndim], *whole), fill, x.dtype)
    out[(..., *[slice(p, p + n) for p, n in zip(padding, sizes, strict=True)])] = x
    return out


@lru_cache(256)
def divisors(
    sizes: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, include_pad: bool, override: int | None
) -> Any:
    """What each window's sum is divided by: one number, or an array where windows reach over the edge."""
    if override is not None:
        return override
    reach = [(count - 1) * s + k for count, s, k in zip(counts, stride, kernel, strict=True)]
    if all(r <= n + 2 * p and (include_pad or not p) for r, n, p in zip(reach, sizes, padding, strict=True)):
        return prod(kernel)
    per_dim = []
    for n, count, k, s, p in zip(sizes, counts, kernel, stride, padding, strict=True):
        start = np.arange(count) * s - p
        end = np.minimum(start + k, n + p)
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        per_dim.append(end - start)
    if all((lengths == lengths[0]).all() for lengths in per_dim if lengths.size):
        return int(np.prod([lengths[0] if lengths.size else 1 for lengths in per_dim]))
    out = per_dim[0]
    for lengths in per_dim[1:]:
        out = out[..., None] * lengths
    return out


def pooled(x: AnyArray, counts: Sizes, *rest: Any) -> AnyArray:
    """The shape of a pooling."""
    return np.empty((*x.shape[: x.ndim - len(counts)], *counts), x.dtype)


def pooled_with_places(x: AnyArray, counts: Sizes, *rest: Any) -> tuple[AnyArray, AnyArray]:
    """The same with the places of maxima."""
    out = pooled(x, counts)
    return out, np.empty(out.shape, np.int64)


def spread_out(grad: AnyArray, sizes: Sizes, *rest: Any) -> AnyArray:
    """The shape of the gradient of its input."""
    return np.empty((*grad.shape[: grad.ndim - len(sizes)], *sizes), grad.dtype)


def scattered(grad: AnyArray, indices: AnyArray, sizes: Sizes, *rest: Any) -> AnyArray:
    """The same where the places of maxima are known."""
    return spread_out(grad, sizes)


@answered(meta=pooled)
def avg_pool(
    x: AnyArray,
    counts: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    include_pad: bool,
    override: int | None,
) -> AnyArray:
    """The average of each window."""
    divisor = divisors(x.shape[-len(kernel) :], counts, kernel, stride, padding, include_pad, override)
    compiled = room("conv.pools")
    if compiled is not None and (made := compiled.avg_pool(x, counts, kernel, stride, padding, divisor)) is not None:
        return made  # type: ignore[no-any-return]
    ones = (1,) * len(kernel)
    kernel = within(kernel, x.shape[-len(kernel) :], padding, ones)
    source = padded(widened(x), counts, kernel, stride, padding, ones, 0)
    out = None
    for part in offsets(counts, kernel, stride, ones):
        if out is None:
            out = source[part].copy()
        else:
            out += source[part]
    assert out is not None
    if x.dtype.kind in "iu":
        return np.fix(out / divisor).astype(x.dtype)
    out /= divisor if isinstance(divisor, int) else divisor.astype(out.dtype)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


@answered(meta=spread_out)
def avg_pool_backward(
    grad: AnyArray,
    sizes: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    include_pad: bool,
    override: int | None,
) -> AnyArray:
    """Each window's gradient, shared among the elements it averaged."""
    ndim = len(kernel)
    counts = grad.shape[-ndim:]
    divisor = divisors(sizes, counts, kernel, stride, padding, include_pad, override)
    compiled = room("conv.pools")
    if compiled is not None:
        made = compiled.avg_pool_backward(grad, sizes, kernel, stride, padding, divisor)
        if made is not None:
            return made  # type: ignore[no-any-return]
    each = widened(grad)
    each = each / (divisor if isinstance(divisor, int) else divisor.astype(each.dtype))
    kernel = within(kernel, sizes, padding, (1,) * ndim)
    reach = [max((n - 1) * s + k, p + m) for n, s, k, p, m in zip(counts, stride, kernel, padding, sizes, strict=True)]
    out = np.zeros((*grad.shape[:-ndim], *reach), each.dtype)
    for part in offsets(counts, kernel, stride, (1,) * ndim):
        out[part] += each
    inside = (..., *[slice(p, p + n) for p, n in zip(padding, sizes, strict=True)])
    return np.ascontiguousarray(out[inside]).astype(grad.dtype, copy=False)


@answered(meta=pooled)
def max_values(x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> AnyArray:
    """The maximum of each window, one dimension after the other."""
    kernel = within(kernel, x.shape[-len(kernel) :], padding, dilation)
    source = padded(x, counts, kernel, stride, padding, dilation, lowest(x.dtype))
    ndim = len(kernel)
    for dim, (count, k, s, d) in enumerate(zip(counts, kernel, stride, dilation, strict=True), x.ndim - ndim):
        before = (slice(None),) * dim
        parts = [source[(*before, slice(at * d, at * d + (count - 1) * s + 1, s))] for at in range(k)]
        if k == 1:
            source = parts[0]
            continue
        out = np.maximum(parts[0], parts[1])
        for part in parts[2:]:
            np.maximum(out, part, out=out)
        source = out
    return source.copy() if source.base is not None or source is x else source


def lowest(dtype: np.dtype[Any]) -> Any:
    """What no element is smaller than."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@answered(meta=pooled_with_places)
def max_pool(
    x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[AnyArray, AnyArray]:
    """The maximum of each window (nan above all) and its place in the flattened input: the first, but the last nan."""
    compiled = room("conv.pools")
    if compiled is not None and (made := compiled.max_pool(x, counts, kernel, stride, padding, dilation)) is not None:
        return made  # type: ignore[no-any-return]
    kernel = within(kernel, x.shape[-len(kernel) :], padding, dilation)
    source = padded(x, counts, kernel, stride, padding, dilation, lowest(x.dtype))
    sizes, ndim = x.shape[-len(kernel) :], len(kernel)
    shape = (*x.shape[:-ndim], *counts)
    # Which element of its window is the largest: a small number, so that these arrays are small as well.
    small = np.min_scalar_type(prod(kernel))
    winner = np.empty(shape, small)
    winner[...] = first_inside(counts, kernel, stride, padding, dilation)
    values = mark = better = None
    for number, part in enumerate(offsets(counts, kernel, stride, dilation)):
        here = source[part]
        if values is None:
            values, better, mark = here.copy(), np.empty(shape, bool), np.empty(shape, small)
            continue
        assert better is not None and mark is not None
        np.greater(here, values, out=better)
        np.maximum(values, here, out=values)
        np.multiply(better, small.type(number), out=mark)
        np.maximum(winner, mark, out=winner)
    assert values is not None
    if x.dtype.kind not in "iu" and np.isnan(values).any():
        for number, part in enumerate(offsets(counts, kernel, stride, dilation)):
            np.copyto(winner, small.type(number), where=np.isnan(source[part]))
    begin, steps = window_places(sizes, counts, kernel, stride, padding, dilation)
    places = steps[winner]
    places += begin
    return values, places


@lru_cache(64)
def first_inside(counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> AnyArray:
    """For each window, the number of its first element that is not padding."""
    out = np.zeros((), np.int64)
    for count, k, s, p, d in zip(counts, kernel, stride, padding, dilation, strict=True):
        outside = np.maximum(p - np.arange(count) * s, 0)
        out = out[..., None] * k + (outside + d - 1) // d
    return out


@lru_cache(64)
def window_places(
    sizes: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[AnyArray, AnyArray]:
    """Where in the flattened input each window begins, and how far from there each of its elements lies."""
    begin, steps = np.zeros((), np.int64), np.zeros((), np.int64)
    for n, count, k, s, p, d in zip(sizes, counts, kernel, stride, padding, dilation, strict=True):
        begin = begin[..., None] * n + (np.arange(count) * s - p)
        steps = steps[..., None] * n + np.arange(k) * d
    return begin, steps.ravel()


@answered(meta=scattered)
def scatter_to_places(grad: AnyArray, indices: AnyArray, sizes: Sizes, disjoint: bool = False) -> AnyArray:
    """Add each window's gradient at the place its maximum came from; `disjoint` windows never share one."""
    compiled = room("conv.pools")
    if compiled is not None and (made := compiled.max_pool_backward(grad, indices, sizes)) is not None:
        return made  # type: ignore[no-any-return]
    ndim = len(sizes)
    lead = grad.shape[:-ndim]
    rows, numel = prod(lead), prod(sizes)
    if not grad.size:
        return np.zeros((*lead, *sizes), grad.dtype)
    at = indices.reshape(rows, -1) + (np.arange(rows) * numel)[:, None]
    if disjoint:
        out = np.zeros(rows * numel, grad.dtype)
        out[at] = grad.reshape(rows, -1)
        return out.reshape(*lead, *sizes)
    total = np.bincount(at.ravel(), weights=grad.ravel(), minlength=rows * numel)
    return total.astype(grad.dtype).reshape(*lead, *sizes)
