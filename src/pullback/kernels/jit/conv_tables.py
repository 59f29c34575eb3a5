"""Where the elements of windows lie: offsets of the elements of a kernel plus offsets of the windows.

    element (channel, tap) of window (image, position)  =  source[element_at + window_at]

Windows that follow each other along a row lie in order, so a panel of windows is a few pieces of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

Sizes = tuple[int, ...]
Table = np.ndarray[Any, np.dtype[np.int64]]


class Pieces(NamedTuple):
    """An axis of windows cut into blocks, and these into pieces that lie in order and fit a vector."""

    first: Table
    """The first piece of each block, and how many there are in all."""
    rows: Table
    """For each piece: its place in the source, its place in the block, its length, its place in the result."""
    out: Table
    """Where each block lies in the result, -1 if not in one piece."""


def grid(counts: Sizes, steps: Sizes) -> Table:
    """The offsets of all positions of a grid, in order."""
    at = np.zeros((), np.int64)
    for n, step in zip(counts, steps, strict=True):
        at = at[..., None] + np.arange(n, dtype=np.int64) * step
    return at.reshape(-1)


def joined_run(counts: Sizes, steps: Sizes, out_steps: Sizes) -> int:
    """How many windows lie in order, in the source and in the result."""
    run = 1
    for n, step, out_step in zip(reversed(counts), reversed(steps), reversed(out_steps), strict=True):
        if n != 1 and (step != run or out_step != run * out_steps[-1]):
            break
        run *= n
    return run


def pieces(counts: Sizes, steps: Sizes, out_steps: Sizes, block: int, lanes: int) -> Pieces:
    """Cut the windows of all images; the first dimension is the batch."""
    total, run = prod(counts), joined_run(counts, steps, out_steps)
    cuts = np.union1d(np.arange(0, total, run), np.arange(0, total, block))
    lengths = np.diff(np.append(cuts, total))
    parts = -(-lengths // lanes)
    owner = np.repeat(np.arange(len(cuts)), parts)
    within = (np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)) * lanes
    start = cuts[owner] + within
    length = np.minimum(lengths[owner] - within, lanes)
    source, result = grid(counts, steps)[start], grid(counts, out_steps)
    rows = np.stack([source, start % block, length, result[start]], 1)
    begins = np.arange(0, total, block)
    first = np.searchsorted(start, np.append(begins, total))
    last = np.minimum(begins + block, total) - 1
    together = (result[last] - result[begins] == last - begins) & (out_steps[-1] == 1)
    return Pieces(first.astype(np.int64), rows, np.where(together, result[begins], -1))


def elements(*offsets: Sequence[int]) -> Table:
    """The sums of one offset of each dimension, in order: where the elements of a kernel lie."""
    at = np.zeros((), np.int64)
    for given in offsets:
        at = at[..., None] + np.array(given, np.int64)
    return at.reshape(-1)


def spaced(count: int, step: int) -> range:
    """The offsets 0, step, 2 * step, ..."""
    return range(0, count * step, step)
