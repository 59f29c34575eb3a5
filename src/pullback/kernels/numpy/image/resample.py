"""Resampling along one dimension after another: interpolation, antialiased scaling and averages of uneven windows.

Along each dimension an element of the result is a weighted sum of a few elements of the input. A `Table` says which and
with what weights: `at[tap, i]` and `weights[tap, i]`. For each tap the places never decrease, so that the gradient of
an element is the sum over runs of equal places.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, prod
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback.kernels.numpy.conv import small_maps
from pullback.kernels.numpy.tables import kept

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


class Table:
    """Where the elements of a resampled dimension come from.

    `unused` says for each tap where it does not count at all: there not even a nan may get through.
    """

    __slots__ = ("at", "runs", "size", "unused", "weights")

    def __init__(
        self, size: int, at: AnyArray, weights: AnyArray | None, unused: tuple[AnyArray | None, ...] = ()
    ) -> None:
        self.size, self.at, self.weights, self.unused = size, at, weights, unused
        self.runs = [numbered_in_runs(places) for places in at]


def numbered_in_runs(at: AnyArray) -> list[tuple[AnyArray, AnyArray]]:
    """Places that never decrease, split so that none repeats: the first of each run, the second of each, and so on.

    For each part: the positions that belong to it, and their places.
    """
    if not len(at):
        return []
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    lengths = np.diff(starts, append=len(at))
    parts = [starts[lengths > number] + number for number in range(int(lengths.max()))]
    return [(positions, at[positions]) for positions in parts]


# ------------------------------------------------------------------ applying tables


def resample(x: AnyArray, axis: int, table: Table) -> AnyArray:
    """One dimension resampled."""
    assert table.weights is not None
    column = (-1, *(1,) * (x.ndim - 1 - axis))
    out = None
    for tap, (at, weights) in enumerate(zip(table.at, table.weights, strict=True)):
        part = np.take(x, at, axis)
        part *= weights.astype(part.dtype, copy=False).reshape(column)
        if table.unused and table.unused[tap] is not None:
            part[(slice(None),) * axis + (table.unused[tap],)] = 0
        if out is None:
            out = part
        else:
            out += part
    assert out is not None
    return out


def resample_backward(grad: AnyArray, axis: int, table: Table) -> AnyArray:
    """Add each element of a gradient where the elements it was made of are."""
    before = (slice(None),) * axis
    out = np.zeros((*grad.shape[:axis], table.size, *grad.shape[axis + 1 :]), grad.dtype)
    column = (-1, *(1,) * (grad.ndim - 1 - axis))
    if not grad.size:
        return out
    count = table.at.shape[1]
    for tap in range(len(table.at)):
        part = grad
        if table.weights is not None:
            part = grad * table.weights[tap].astype(grad.dtype, copy=False).reshape(column)
            if table.unused and table.unused[tap] is not None:
                part[(*before, table.unused[tap])] = 0
        for positions, places in table.runs[tap]:
            out[(*before, places)] += part if len(positions) == count else np.take(part, positions, axis)
    return out


@kept
def joint_index(tables: tuple[Table, ...]) -> AnyArray:
    """Where the elements of an image come from that is resampled without weights, in the flattened image."""
    out = np.zeros((), np.int64)
    for table in tables:
        out = out[..., None] * table.size + table.at[0]
    return out


@lru_cache(256)
def joint_matrix(tables: tuple[Table, ...], dtype: np.dtype[Any]) -> AnyArray:
    """The matrix that resamples all dimensions of an image, flattened."""
    out = np.ones((1, 1), dtype)
    for table in tables:
        one = np.zeros((table.size, table.at.shape[1]), dtype)
        for tap, at in enumerate(table.at):
            one[at, np.arange(len(at))] += 1 if table.weights is None else table.weights[tap]
        out = np.kron(out, one)
    return out


def elements(tables: tuple[Table, ...]) -> int:
    """How many elements the matrix of some tables has."""
    out = 1
    for table in tables:
        out *= table.size * table.at.shape[1]
    return out


def resample_all(x: AnyArray, tables: tuple[Table, ...]) -> AnyArray:
    """The last dimensions resampled, those that shrink most first."""
    lead = x.shape[: x.ndim - len(tables)]
    if tables[0].weights is None:
        return x.reshape(*lead, prod(x.shape[len(lead) :])).take(joint_index(tables), len(lead))
    if small_maps.is_small(x, elements(tables)) and small_maps.is_finite(x):
        matrix = joint_matrix(tables, x.dtype)
        shape = [table.at.shape[1] for table in tables]
        return x.reshape(-1, matrix.shape[0]).dot(matrix).reshape(*lead, *shape)
    wide = widened(x)
    for nr in sorted(range(len(tables)), key=lambda nr: tables[nr].at.shape[1] / max(tables[nr].size, 1)):
        wide = resample(wide, x.ndim - len(tables) + nr, tables[nr])
    return wide.astype(x.dtype, copy=False)


def resample_all_backward(grad: AnyArray, tables: tuple[Table, ...]) -> AnyArray:
    """The gradient of `resample_all`."""
    if small_maps.is_small(grad, elements(tables)) and small_maps.is_finite(grad):
        matrix = joint_matrix(tables, grad.dtype)
        shape = [table.size for table in tables]
        flat = grad.reshape(-1, matrix.shape[1])
        return flat.dot(matrix.T).reshape(*grad.shape[: grad.ndim - len(tables)], *shape)
    wide = widened(grad)
    for nr in sorted(range(len(tables)), key=lambda nr: tables[nr].size / max(tables[nr].at.shape[1], 1)):
        wide = resample_backward(wide, grad.ndim - len(tables) + nr, tables[nr])
    return wide.astype(grad.dtype, copy=False)


def resample_bytes(x: AnyArray, tables: tuple[Table, ...]) -> AnyArray:
    """The last dimensions of bytes resampled as torch does it: the last one first, in integers, rounded each time."""
    for nr in reversed(range(len(tables))):
        table, axis = tables[nr], x.ndim - len(tables) + nr
        assert table.weights is not None
        if table.at.shape[1] == table.size:
            continue
        # At an edge several neighbours are the same element: their weights count as one.
        first = table.at.min(0)
        joined = np.zeros_like(table.weights)
        np.add.at(joined, (table.at - first, np.arange(len(first))), table.weights)
        bits = fixed_point_bits(float(joined.max()))
        scaled = joined * (1 << bits)
        weights = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
        column = (-1, *(1,) * (x.ndim - 1 - axis))
        total = np.full((*x.shape[:axis], table.at.shape[1], *x.shape[axis + 1 :]), 1 << (bits - 1), np.int64)
        for tap, weight in enumerate(weights):
            total += np.take(x, np.minimum(first + tap, table.size - 1), axis) * weight.reshape(column)
        x = np.clip(total >> bits, 0, 255).astype(np.uint8)
    return x.copy() if x.base is not None else x


def fixed_point_bits(largest: float) -> int:
    """How many bits behind the point the weights have: as many as fit into 16."""
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return bits


# ------------------------------------------------------------------ interpolation


def scale_of(size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Any:
    """How far apart in the input the elements of the result lie."""
    if align_corners:
        return real(size - 1) / real(count - 1) if count > 1 else real(0)
    return real(1.0 / factor) if factor is not None and factor > 0 else real(size) / real(count)


def sources(count: int, scale: Any, align_corners: bool, real: Any) -> AnyArray:
    """Where in the input, between its elements, each element of the result lies."""
    at = np.arange(count).astype(real)
    return scale * at if align_corners else scale * (at + real(0.5)) - real(0.5)


@lru_cache(512)
def interpolation(
    mode: str, size: int, count: int, align_corners: bool, factor: float | None, precision: type[np.floating[Any]]
) -> Table:
    """The table of one dimension, in the arithmetic torch uses for inputs of that precision."""
    real = precision
    if mode.endswith("_aa"):
        return antialiased(mode.removesuffix("_aa"), size, count, align_corners, factor, real)
    last = size - 1
    if mode.endswith("_index"):
        return nearest_by_index(mode, size, count, factor)
    if mode in ("nearest", "nearest_exact"):
        scale = scale_of(size, count, False, factor, real)
        at = np.arange(count).astype(real)
        at = scale * at if mode == "nearest" else np.maximum(scale * (at + real(0.5)) - real(0.5), 0) + real(0.5)
        places = np.minimum(np.floor(at.astype(np.float32)).astype(np.int64), last)
        return Table(size, places[None], None)
    if size == count and mode == "linear":
        everything = np.arange(count)
        return Table(size, everything[None], np.ones((1, count), real))
    scale = scale_of(size, count, align_corners, factor, real)
    at = sources(count, scale, align_corners, real)
    if mode == "linear":
        at = np.maximum(at, 0)
    first = np.minimum(np.floor(at.astype(np.float32)).astype(np.int64), last)
    beyond = np.minimum(np.maximum(at - first.astype(real), 0), 1).astype(real)
    if mode == "linear":
        return Table(size, np.stack([first, np.minimum(first + 1, last)]), np.stack([1 - beyond, beyond]))
    places = np.clip(np.stack([first - 1, first, first + 1, first + 2]), 0, last)
    return Table(size, places, np.stack(cubic_weights(beyond)))


def nearest_by_index(mode: str, size: int, count: int, factor: float | None) -> Table:
    """The nearest elements as torch finds them for small images and in every gradient: always in single precision."""
    at = np.arange(count)
    if mode == "nearest_index" and count == size:
        places = at
    elif mode == "nearest_index" and count == 2 * size:
        places = at >> 1
    else:
        scale = scale_of(size, count, False, factor, np.float32)
        shift = np.float32(0.5 if mode == "nearest_exact_index" else 0)
        places = np.minimum(np.floor((at.astype(np.float32) + shift) * scale).astype(np.int64), size - 1)
    return Table(size, places[None], None)


def cubic_weights(t: AnyArray, a: float = -0.75) -> list[AnyArray]:
    """The weights of the four neighbours in a cubic convolution."""
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (t, 1 - t)]
    far = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in (t + 1, 2 - t)]
    return [far[0], near[0], near[1], far[1]]


def antialiased(mode: str, size: int, count: int, align_corners: bool, factor: float | None, real: Any) -> Table:
    """The table of a scaling whose filter grows with the scale."""
    scale = scale_of(size, count, align_corners, factor, real)
    radius = {"linear": 1.0, "cubic": 2.0, "lanczos": 3.0}[mode]
    support = real(radius) * scale if scale >= 1 else real(radius)
    inverse = real(1) / scale if scale >= 1 else real(1)
    taps = ceil(support) * 2 + 1
    shift = real(0.5)
    center = scale * (np.arange(count).astype(real) + shift)
    first = np.maximum(np.trunc(center - support + shift).astype(np.int64), 0)
    lengths = np.minimum(np.trunc(center + support + shift).astype(np.int64), size) - first
    at = first + np.arange(taps)[:, None]
    weights = filtered(mode, (at.astype(real) - center + shift) * inverse).astype(real)
    weights[np.arange(taps)[:, None] >= lengths] = 0
    total = weights.sum(0)
    weights = weights / np.where(total == 0, 1, total).astype(real)
    return trimmed(size, np.minimum(at, np.maximum(first + lengths - 1, 0)), weights, lengths)


def filtered(mode: str, x: AnyArray) -> AnyArray:
    """The filter of an antialiased scaling."""
    x = np.abs(x)
    if mode == "linear":
        return np.maximum(1 - x, 0)
    if mode == "cubic":
        near, far = (1.5 * x - 2.5) * x * x + 1, (((x - 5) * x + 8) * x - 4) * -0.5
        return np.where(x < 1, near, np.where(x < 2, far, 0))
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


def trimmed(size: int, at: AnyArray, weights: AnyArray, lengths: AnyArray) -> Table:
    """A table of windows of different lengths, without the taps none of them has."""
    taps = max(int(lengths.max(initial=1)), 1)
    unused = tuple([np.flatnonzero(lengths <= tap) if (lengths <= tap).any() else None for tap in range(taps)])
    return Table(size, np.minimum(at[:taps], size - 1), weights[:taps], unused)


# ------------------------------------------------------------------ uneven windows


def uneven_windows(size: int, count: int) -> tuple[AnyArray, AnyArray]:
    """Begin and length of each of `count` windows that cover `size` elements as evenly as possible."""
    number = np.arange(count)
    begin = number * size // max(count, 1)
    end = -(-(number + 1) * size // max(count, 1))
    return begin, end - begin


@lru_cache(512)
def averaging(size: int, count: int) -> Table:
    """The table of the averages of such windows."""
    begin, lengths = uneven_windows(size, count)
    taps = np.arange(int(lengths.max(initial=1)))[:, None]
    at = begin + np.minimum(taps, lengths - 1)
    weights = np.where(taps < lengths, 1.0 / np.maximum(lengths, 1), 0.0)
    return trimmed(size, at, weights, lengths)
