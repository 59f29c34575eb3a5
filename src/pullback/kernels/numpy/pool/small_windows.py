"""Pooling of small images: every window is read through a table of places, made once for each geometry.

A few calls that take from a table cost less than the many strided slices by which larger images are pooled.
Each function returns None where it does not apply, and the general one in kernels/numpy/pool/sliding.py takes over.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE, filled, number, read_only, starts

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

MOST = 4096
"""Tables with more places than this are not worth keeping."""
ONES: dict[int, Sizes] = {1: (1,), 2: (1, 1), 3: (1, 1, 1)}


def is_plain(x: AnyArray) -> bool:
    """True for an array whose elements lie in order, of a dtype that is computed as it is."""
    dtype = x.dtype
    return (dtype is SINGLE or dtype is DOUBLE) and x.flags.c_contiguous


@lru_cache(256)
def window_table(
    shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[AnyArray, AnyArray, bool] | None:
    """Where the elements of each window lie in the flattened input and in their own image, one row for each window.

    A place outside the image stands for the window's first element inside: a maximum looks at that one again.
    The last part says whether there are none such.
    """
    ndim = len(kernel)
    images, sizes = prod(shape[:-ndim]), shape[-ndim:]
    if not 0 < images * prod(counts) * prod(kernel) <= MOST or not prod(sizes):
        return None
    places, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for n, count, k, s, p, d in zip(sizes, counts, kernel, stride, padding, dilation, strict=True):
        at = (np.arange(count) * s - p)[:, None] + np.arange(k) * d
        fits = (at >= 0) & (at < n)
        rows, columns = places.shape[0] * count, places.shape[1] * k
        places = (places[:, None, :, None] * n + at[:, None, :]).reshape(rows, columns)
        inside = (inside[:, None, :, None] & fits[:, None, :]).reshape(rows, columns)
    if not inside.any(1).all():
        return None
    first = np.take_along_axis(places, inside.argmax(1)[:, None], 1)
    own = np.tile(np.where(inside, places, first), (images, 1))
    whole = own + np.repeat(np.arange(images) * prod(sizes), len(places))[:, None]
    return read_only(whole), read_only(own), bool(inside.all())


Plan = tuple[AnyArray, AnyArray, AnyArray, Sizes]


def maxima_plan(
    shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Plan | None:
    """What `maxima` needs to know: both tables, where their rows begin, and the shape of the result."""
    table = window_table(shape, counts, kernel, stride, padding, dilation)
    if table is None:
        return None
    return table[0], table[1], starts(*table[0].shape), (*shape[: -len(kernel)], *counts)


def maxima(x: AnyArray, plan: Plan, with_places: bool) -> tuple[AnyArray, AnyArray | None] | None:
    """The maximum of each window and, if asked for, its place in the flattened image."""
    whole, own, begins, shape = plan
    windows = x.take(whole)
    at = windows.argmax(1)
    np.add(at, begins, at)
    values = windows.take(at)
    if not with_places:
        return values.reshape(shape), None
    total = values.dot(filled(values.shape[0], 1.0, x.dtype))
    if total != total:
        return None  # of several nans the last one counts: a matter for the general way
    return values.reshape(shape), own.take(at).reshape(shape)


@lru_cache(256)
def averages_plan(
    shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, divisor: int
) -> tuple[AnyArray, int, Sizes] | None:
    """The table of the windows, what their sums are divided by, and the shape of the result."""
    table = window_table(shape, counts, kernel, stride, padding, ONES[len(kernel)])
    if table is None or not table[2]:
        return None
    return table[0], divisor, (*shape[: -len(kernel)], *counts)


def averages(x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, divisor: int) -> AnyArray | None:
    """The sum of each window divided by one number; only where no window reaches over the edge."""
    plan = averages_plan(x.shape, counts, kernel, stride, padding, divisor) if is_plain(x) else None
    return None if plan is None else averages_by(x, plan)


def averages_by(x: AnyArray, plan: tuple[AnyArray, int, Sizes]) -> AnyArray:
    """The same by its plan."""
    table, divisor, shape = plan
    sums = x.take(table).dot(filled(table.shape[1], 1.0, x.dtype))
    return np.divide(sums, number(divisor, x.dtype), sums).reshape(shape)


@lru_cache(256)
def window_of_each(shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes) -> AnyArray | None:
    """The window each element of the input is in; None unless every element is in exactly one."""
    ndim = len(kernel)
    if kernel != stride or any(c * k != n for c, k, n in zip(counts, kernel, shape[-ndim:], strict=True)):
        return None
    table = window_table(shape, counts, kernel, stride, (0,) * ndim, ONES[ndim])
    if table is None:
        return None
    out = np.empty(shape, np.int64)
    out.reshape(-1)[table[0]] = np.arange(len(table[0]))[:, None]
    return read_only(out)


def shared(grad: AnyArray, sizes: Sizes, kernel: Sizes, stride: Sizes, divisor: int) -> AnyArray | None:
    """Each window's gradient, shared among its elements; only where windows cover the image side by side."""
    ndim = len(kernel)
    if not is_plain(grad):
        return None
    lead = grad.shape[:-ndim]
    windows = window_of_each((*lead, *sizes), grad.shape[-ndim:], kernel, stride)
    if windows is None:
        return None
    each = np.divide(grad, number(float(divisor), grad.dtype))
    each += number(0.0, grad.dtype)  # as a sum that begins with zero: no negative zeros
    return each.take(windows)


@lru_cache(256)
def image_starts(shape: Sizes, numel: int, ndim: int) -> AnyArray:
    """For each window, where its image begins in the flattened batch."""
    images, windows = prod(shape[:-ndim]), prod(shape[-ndim:])
    return read_only((np.arange(images) * numel).repeat(windows))


def put(grad: AnyArray, indices: AnyArray, sizes: Sizes) -> AnyArray | None:
    """Zeros, and each window's gradient where its maximum came from; windows share no elements."""
    if not 0 < grad.size <= MOST or not indices.flags.c_contiguous or indices.ndim != grad.ndim:
        return None
    ndim = len(sizes)
    at = np.add(indices.reshape(-1), image_starts(grad.shape, prod(sizes), ndim))
    out = np.zeros((*grad.shape[:-ndim], *sizes), grad.dtype)
    out.reshape(-1)[at] = grad.reshape(-1)
    return out
