"""Where the elements of windows lie: offsets of the elements of a kernel plus offsets of the windows.

    element (channel, tap) of window (image, position)  =  source[element_at + window_at]

Windows that follow each other along a row are contiguous, so a panel of windows is a few pieces of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Sizes = tuple[int, ...]
Table = np.ndarray[Any, np.dtype[np.int64]]


class Pieces(NamedTuple):
    """Windows cut into blocks, and these into pieces that are contiguous and fit a vector."""

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


def run_of(counts: Sizes, steps: Sizes, out_steps: Sizes) -> tuple[int, int]:
    """How many of the last dimensions are contiguous, in the source and in the result, and how many windows that is."""
    run, axis = 1, len(counts)
    while axis and (counts[axis - 1] == 1 or steps[axis - 1] == out_steps[axis - 1] == run):
        axis -= 1
        run *= counts[axis]
    return axis, run


def runs(counts: Sizes, steps: Sizes, out_steps: Sizes) -> tuple[Table, Table, int]:
    """Where the windows that are contiguous begin, in the source and in the result, and how many follow each other."""
    axis, run = run_of(counts, steps, out_steps)
    return grid(counts[:axis], steps[:axis]), grid(counts[:axis], out_steps[:axis]), run


def pieces(sources: Table, results: Table, run: int, block: int, lanes: int) -> Pieces:
    """Cut runs of windows, laid end to end."""
    total = len(sources) * run
    begins = np.arange(0, total, block)
    both = np.sort(np.concatenate([np.arange(0, total, run), begins]))
    cuts = both[np.append(True, both[1:] != both[:-1])]  # np.unique would import NumPy's masked arrays
    lengths = np.diff(np.append(cuts, total))
    parts = -(-lengths // lanes)
    owner = np.repeat(np.arange(len(cuts)), parts)
    within = (np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)) * lanes
    start = cuts[owner] + within
    length = np.minimum(lengths[owner] - within, lanes)
    nr, inside = np.divmod(start, run)
    rows = np.stack([sources[nr] + inside, start % block, length, results[nr] + inside], 1)
    first = np.searchsorted(start, np.append(begins, total))
    last = np.minimum(begins + block, total) - 1
    from_, to = (results[at // run] + at % run for at in (begins, last))
    return Pieces(first.astype(np.int64), rows, np.where(to - from_ == last - begins, from_, -1))


def elements(*offsets: Sequence[int]) -> Table:
    """The sums of one offset of each dimension, in order: where the elements of a kernel lie."""
    at = np.zeros((), np.int64)
    for given in offsets:
        at = at[..., None] + np.array(given, np.int64)
    return at.reshape(-1)


def spaced(count: int, step: int) -> range:
    """The offsets 0, step, 2 * step, ..."""
    return range(0, count * step, step)
