"""Pooling with windows that do not slide evenly: adaptive and fractional pooling. Arrays only."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._arrays.kinds import answered
from pullback.kernels.compiled import room
from pullback.kernels.numpy.image.resample import averaging, resample_all, resample_all_backward, uneven_windows
from pullback.kernels.numpy.norm.rows import SINGLE
from pullback.kernels.numpy.pool import sliding
from pullback.kernels.numpy.pool.sliding import max_pool

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


@lru_cache(256)
def even_steps(sizes: Sizes, counts: Sizes) -> Sizes:
    """The size of every window where all have the same; nothing where they do not."""
    if all(c and n % c == 0 for n, c in zip(sizes, counts, strict=True)):
        return tuple([n // c for n, c in zip(sizes, counts, strict=True)])
    return ()


@lru_cache(256)
def even_averager(shape: Sizes, counts: Sizes) -> Any:
    """What averages windows of one size in float32 images of a shape, compiled; None where they are not all of one."""
    ndim, compiled = len(counts), room("conv.pools")
    steps = even_steps(shape[-ndim:], counts)
    if compiled is None or not steps or 0 in shape:
        return None
    return compiled.averager(shape, SINGLE, counts, steps, steps, (0,) * ndim, prod(steps))


@answered(meta=sliding.pooled)
def adaptive_avg(x: AnyArray, counts: Sizes) -> AnyArray:
    """The averages of as many windows as asked for."""
    ndim = len(counts)
    sizes = x.shape[-ndim:]
    steps = even_steps(sizes, counts)
    if steps:
        compiled = room("conv.pools")
        if compiled is not None:
            made = compiled.avg_pool(x, counts, steps, steps, (0,) * ndim, prod(steps))
            if made is not None:
                return made  # type: ignore[no-any-return]
        wide = widened(x)
        for axis, n, c in zip(range(x.ndim - 1, -1, -1), reversed(sizes), reversed(counts), strict=False):
            parts = wide.reshape(*wide.shape[:axis], c, n // c, *wide.shape[axis + 1 :])
            wide = np.add.reduce(parts, axis=axis + 1)
        wide /= np.prod([n // c for n, c in zip(sizes, counts, strict=True)]).astype(wide.dtype)
        return wide.astype(x.dtype, copy=False)
    return resample_all(x, tuple([averaging(n, c) for n, c in zip(sizes, counts, strict=True)]))


@answered(meta=sliding.spread_out)
def adaptive_avg_backward(grad: AnyArray, sizes: Sizes) -> AnyArray:
    """Each window's gradient, shared among its elements."""
    ndim = len(sizes)
    counts = grad.shape[-ndim:]
    steps = even_steps(sizes, counts)
    if steps:
        compiled = room("conv.pools")
        if compiled is not None:
            made = compiled.avg_pool_backward(grad, sizes, steps, steps, (0,) * ndim, prod(steps))
            if made is not None:
                return made  # type: ignore[no-any-return]
        split = [part for c, k in zip(counts, steps, strict=True) for part in (c, 1)]
        spread = [part for c, k in zip(counts, steps, strict=True) for part in (c, k)]
        lead = grad.shape[:-ndim]
        each = (widened(grad) / np.float32(prod(steps))).astype(grad.dtype, copy=False)
        return np.broadcast_to(each.reshape(*lead, *split), (*lead, *spread)).reshape(*lead, *sizes)
    return resample_all_backward(grad, tuple([averaging(n, c) for n, c in zip(sizes, counts, strict=True)]))


@answered(meta=sliding.pooled_with_places)
def adaptive_max(x: AnyArray, counts: Sizes) -> tuple[AnyArray, AnyArray]:
    """The maxima of as many windows as asked for, and their places in the flattened input."""
    ndim = len(counts)
    sizes = x.shape[-ndim:]
    steps = even_steps(sizes, counts)
    if steps:
        return max_pool(x, counts, steps, steps, (0,) * ndim, (1,) * ndim)
    windows = [uneven_windows(n, c) for n, c in zip(sizes, counts, strict=True)]
    reach = [int(lengths.max(initial=1)) for _, lengths in windows]
    # Which element of its window is the largest: a small number, so that these arrays are small as well.
    small = np.min_scalar_type(prod(reach))
    shape = (*x.shape[:-ndim], *counts)
    values, winner = np.full(shape, -np.inf, x.dtype), np.zeros(shape, small)
    for number, taps in enumerate(product(*[range(r) for r in reach])):
        # A tap beyond its window looks at the window's last element again, which changes nothing.
        at = [b + np.minimum(tap, lengths - 1) for tap, (b, lengths) in zip(taps, windows, strict=True)]
        here = x[(..., *np.ix_(*at))]
        better = here > values
        better |= np.isnan(here)
        np.maximum(values, here, out=values)
        np.maximum(winner, better * small.type(number), out=winner)
    indices: Any = 0
    taken = np.unravel_index(winner.astype(np.int64), reach)
    for nr, (n, (begin, lengths)) in enumerate(zip(sizes, windows, strict=True)):
        along = spread(nr, ndim, counts[nr])
        indices = indices * n + begin.reshape(along) + np.minimum(taken[nr], (lengths - 1).reshape(along))
    return values, indices


def keep_larger(values: AnyArray, indices: AnyArray, here: AnyArray, place: AnyArray) -> None:
    """Go on with what is larger: the first of equals, and the last nan."""
    better = here > values
    better |= np.isnan(here)
    np.copyto(values, here, where=better)
    np.copyto(indices, place, where=better)


def fractional_begins(samples: AnyArray, size: int, count: int, kernel: int) -> AnyArray:
    """Where the windows of each channel begin, a new last dimension: random steps, the last window at the end."""
    out = np.empty((*samples.shape, count), np.int64)
    if count > 1:
        real = samples.dtype.type
        step = real(size - kernel) / real(count - 1)
        number = np.arange(count - 1).astype(real)
        out[..., :-1] = np.trunc((number + samples[..., None]) * step).astype(np.int64)
        out[..., :-1] -= np.trunc(samples * step).astype(np.int64)[..., None]
    if count:
        out[..., -1] = size - kernel
    return out


def fractional_max(x: AnyArray, samples: AnyArray, counts: Sizes, kernel: Sizes) -> tuple[AnyArray, AnyArray]:
    """The maxima of windows at random places, and their own places; `x` has a batch, samples one for each dimension."""
    ndim, sizes = len(counts), x.shape[2:]
    begins = [
        fractional_begins(samples[..., nr], n, c, k).reshape(*x.shape[:2], *spread(nr, ndim, c))
        for nr, (n, c, k) in enumerate(zip(sizes, counts, kernel, strict=True))
    ]
    flat = x.reshape(*x.shape[:2], prod(sizes))
    values = np.full((*x.shape[:2], *counts), -np.inf, x.dtype)
    indices = np.broadcast_to(flattened(begins, sizes), values.shape).copy()
    for taps in product(*[range(k) for k in kernel]):
        place = flattened([b + tap for b, tap in zip(begins, taps, strict=True)], sizes)
        here = np.take_along_axis(flat, place.reshape(*x.shape[:2], prod(counts)), axis=-1).reshape(values.shape)
        keep_larger(values, indices, here, place)
    return values, indices


def spread(nr: int, ndim: int, count: int) -> Sizes:
    """The shape in which places along one dimension broadcast against those along the others."""
    return tuple([count if dim == nr else 1 for dim in range(ndim)])


def flattened(at: list[AnyArray], sizes: Sizes) -> AnyArray:
    """Places along each dimension, already broadcastable, as places in the flattened array."""
    out: Any = 0
    for places, n in zip(at, sizes, strict=True):
        out = out * n + places
    return out


@answered(meta=sliding.scattered)
def unpooled(x: AnyArray, indices: AnyArray, sizes: Sizes) -> AnyArray:
    """Zeros, and the elements where the indices of a max_pool say they came from."""
    ndim = len(sizes)
    lead = x.shape[:-ndim]
    out = np.zeros((*lead, prod(sizes)), x.dtype)
    flat = (*lead, prod(x.shape[-ndim:]))
    if out.size:
        np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), axis=-1)
    return out.reshape(*lead, *sizes)
