"""Rows of a table looked up by number, alone or summed in bags, and the rows of gradient brought back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half, widened
from pullback._arrays.kinds import answered
from pullback._thresholds import TURNS
from pullback.kernels.compiled import room
from pullback.kernels.numpy.index.subscript import which_outside

Array = Any


@answered(meta=lambda weight, indices: np.empty((*indices.shape, *weight.shape[1:]), weight.dtype))
def lookup(weight: Array, indices: Array) -> Array:
    """The rows of the table with these numbers."""
    if indices.size and not (indices.item(indices.argmin()) >= 0 and indices.item(indices.argmax()) < len(weight)):
        raise IndexError("index out of range in self" + which_outside(indices, len(weight), 0, "input"))
    return weight.take(indices, axis=0)


@answered(meta=lambda rows, indices, count: np.empty((count, *rows.shape[1:]), rows.dtype))
def add_rows(rows: Array, indices: Array, count: int) -> Array:
    """A table of `count` rows: the sum of the given rows with the same number.

    First everybody's first row is added, then everybody's second one, ...: within a turn no number comes twice.
    Half precision is rounded after each addition, as torch does it here.
    """
    half = is_half(rows.dtype)
    compiled = room("rows.scatter")
    if compiled is not None and rows.size:
        out = np.empty((count, *rows.shape[1:]), rows.dtype)
        if compiled.add_rows(out, indices, rows, True):
            return out
    out = np.zeros((count, *rows.shape[1:]), rows.dtype)
    if not indices.size:
        return out
    order = np.argsort(indices, kind="stable")
    starts = first_of_runs(indices[order])
    lengths = np.diff(starts, append=indices.size)
    turn = np.arange(indices.size) - np.repeat(starts, lengths)
    in_turn = order[np.argsort(turn, kind="stable")]
    begin = 0
    for size in np.bincount(turn)[: None if half else TURNS].tolist():
        chosen = in_turn[begin : begin + size]
        out[indices[chosen]] += rows[chosen]
        begin += size
    rest = np.sort(in_turn[begin:])
    if rest.size:
        rest = rest[np.argsort(indices[rest], kind="stable")]
        starts = first_of_runs(indices[rest])
        out[indices[rest[starts]]] += np.add.reduceat(rows[rest], starts, axis=0)
    return out


def first_of_runs(ordered: Array) -> Array:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))


@answered(meta=lambda grad, indices, count, *options: np.empty((count, grad.shape[-1]), grad.dtype))
def dense_backward(grad: Array, indices: Array, count: int, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """The gradient of the table: each row of grad added to the row that was looked up, the padding row left out."""
    indices = indices.reshape(-1)
    rows = grad.reshape(indices.size, grad.shape[-1])
    if scale_grad_by_freq:
        rows = rows / frequencies(indices, count).astype(rows.dtype)[:, None]
    if padding_idx >= 0:
        counts = indices != padding_idx
        rows, indices = rows[counts], indices[counts]
    return add_rows(rows, indices, count)


def frequencies(indices: Array, count: int) -> Array:
    """How often the number of each place occurs among all."""
    return np.bincount(indices, minlength=count)[indices]


def bag_frequencies(indices: Array, count: int) -> Array:
    """The counts that bags divide by, as torch finds them: for the nth smallest number, that of the nth sorted place.

    These are the frequencies as long as no number comes twice; torch's results are the specification beyond that too.
    """
    nth = np.unique(indices, return_inverse=True)[1]
    return np.bincount(indices, minlength=count)[np.sort(indices)[nth]]


def renormed(weight: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """The table with those of the named rows shortened that are longer than max_norm."""
    out = weight.copy()
    rows = np.unique(indices)
    size = np.linalg.norm(weight[rows], norm_type, axis=1)
    long = size > max_norm
    out[rows[long]] *= (max_norm / (size[long] + 1e-7)).astype(weight.dtype)[:, None]
    return out


# ------------------------------------------------------------------ bags


def bags_of(offsets: Array, length: int) -> Array:
    """The number of the bag each index lies in, from the places where bags begin."""
    return np.searchsorted(offsets, np.arange(length), side="right") - 1


def reduce_bags(rows: Array, counts: Array, combine: np.ufunc) -> Array:
    """The rows of each bag combined to one; bags follow each other and hold `counts` rows; an empty one gives zeros.

    Half precision is added in float32.
    """
    out = np.zeros((counts.size, *rows.shape[1:]), rows.dtype)
    full = np.flatnonzero(counts)
    if full.size:
        starts = np.concatenate(([0], np.cumsum(counts[full])[:-1]))
        out[full] = combine.reduceat(widened(rows), starts, axis=0)
    return out


def largest_of_bags(rows: Array, counts: Array) -> Array:
    """The largest elements of each bag. As in torch, nan is no larger than what came before: only the first shows."""
    out = reduce_bags(rows, counts, np.fmax)
    full = np.flatnonzero(counts)
    if full.size:
        first = rows[np.concatenate(([0], np.cumsum(counts[full])[:-1]))]
        out[full] = np.where(np.isnan(first), first, out[full])
    return out


def first_of_largest(rows: Array, largest: Array, bag: Array, counts: Array, indices: Array) -> Array:
    """For each bag and column, the table's row in which the largest element was found first."""
    place = np.arange(rows.shape[0], 0, -1)[:, None]
    wanted = largest[bag]
    reached = reduce_bags(np.where((rows == wanted) | np.isnan(wanted), place, 0), counts, np.maximum)
    numbers = np.append(indices, 0)[rows.shape[0] - reached]
    return np.where((counts > 0)[:, None], numbers, 0)
