"""What stands for functions of the NumPy kernels that arrays of the device need otherwise than these are written.

The host adds rows in turns, or by counting; the device adds all of them at once, wherever an index sends them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import empty_in_order, row_major
from pullback.kernels.cuda.array import filled
from pullback.kernels.cuda.composed.reading import known
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.making import empty_in
from pullback.kernels.cuda.native import ramp
from pullback.kernels.numpy.image import grid
from pullback.kernels.numpy.index import embedding


def added(target: Any, place: Any, rows: Any) -> None:
    """Add rows at places, which may repeat."""
    if rows.size:
        sums = target if rows.dtype == target.dtype else target.astype(rows.dtype)
        np.add.at(sums, place, rows)
        if sums is not target:
            target[...] = sums


def add_rows(rows: Any, indices: Any, count: int) -> Any:
    """A table of `count` rows: the sum of the given rows with the same number."""
    out = filled((count, *rows.shape[1:]), rows.dtype, 0, rows.device)
    added(out, indices, rows)
    return out


JOINED = {"add": (np.add, 0), "fmax": (np.maximum, -np.inf), "maximum": (np.maximum, 0)}
"""How the rows of a bag are joined to one another, and to what; largest places of all are at least zero."""


def reduce_bags(rows: Any, counts: Any, combine: np.ufunc) -> Any:
    """The rows of each bag combined to one; bags follow each other and hold `counts` rows; an empty one gives zeros."""
    join, start = JOINED[combine.__name__]
    out = filled((counts.size, *rows.shape[1:]), rows.dtype, start, rows.device)
    if rows.size:
        bag = np.searchsorted(np.cumsum(counts), ramp(len(rows), rows.device), side="right")
        if combine is np.fmax:
            rows = np.where(np.isnan(rows), rows.dtype.type(start), rows)
        join.at(out, bag, rows)
    return np.where((counts > 0)[:, None], out, out.dtype.type(0)) if start else out


known |= {grid.added: added, embedding.add_rows: add_rows, embedding.reduce_bags: reduce_bags}
known |= {row_major: contiguous, empty_in_order: empty_in}
