"""Losses that want the score of the right classes above all others by a margin, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import answered

Array = Any


def shortfall(x: Array, target: Array, margin: float) -> Array:
    """By how much each class comes closer to the target's score than the margin; zero for the target, and for nan."""
    rows = np.arange(x.shape[0])
    z = np.fmax(margin - x[rows, target][:, None] + x, x.dtype.type(0))
    z[rows, target] = 0
    return z


def multi_margin(x: Array, target: Array, p: int, margin: float, weight: Array | None) -> Array:
    """The loss of each row: its shortfalls to the power p, summed, weighted, over the number of classes."""
    z = shortfall(x, target, x.dtype.type(margin))
    loss = np.add.reduce(weighted(z if p == 1 else z * z, z, target, weight), axis=1)
    return loss / x.dtype.type(x.shape[1])


def weighted(values: Array, z: Array, target: Array, weight: Array | None) -> Array:
    """What shortfalls count, by the weight of their target; where there is none, no weight counts, not even NaN."""
    return values if weight is None else np.where(z > 0, values * weight[target][:, None], z.dtype.type(0))


def multi_margin_backward(x: Array, target: Array, p: int, margin: float, weight: Array | None) -> Array:
    """How the loss of each row changes with each score."""
    z = shortfall(x, target, x.dtype.type(margin))
    slope = weighted((z > 0).astype(x.dtype) if p == 1 else 2 * z, z, target, weight)
    slope /= x.dtype.type(x.shape[1])
    slope[np.arange(x.shape[0]), target] = -np.add.reduce(slope, axis=1)
    return slope


@answered(meta=lambda target: np.empty(target.shape, np.int64))
def target_counts(target: Array) -> Array:
    """How often each class is among the targets of its row; the list of a row ends at the first negative number."""
    listed = np.logical_and.accumulate(target >= 0, axis=1)
    rows, places = np.nonzero(listed)
    counts = np.zeros(target.shape, np.int64)
    np.add.at(counts, (rows, target[rows, places]), 1)
    return counts


def multilabel_gaps(x: Array, counts: Array) -> Array:
    """1 - x[target] + x[other] for each row, target class and other class; what is not such a pair does not count."""
    gaps = np.fmax(1 - x[:, :, None] + x[:, None, :], x.dtype.type(0))
    pairs = counts[:, :, None] * (counts == 0)[:, None, :]
    return np.where(pairs > 0, gaps, x.dtype.type(0)) * pairs.astype(x.dtype)


def multilabel_margin(x: Array, counts: Array) -> Array:
    """The loss of each row."""
    return np.add.reduce(multilabel_gaps(x, counts), axis=(1, 2)) / x.dtype.type(x.shape[1])


def multilabel_margin_backward(x: Array, counts: Array) -> Array:
    """How the loss of each row changes with each score."""
    pairs = np.sign(multilabel_gaps(x, counts)) * counts[:, :, None].astype(x.dtype)
    return (np.add.reduce(pairs, axis=1) - np.add.reduce(pairs, axis=2)) / x.dtype.type(x.shape[1])
