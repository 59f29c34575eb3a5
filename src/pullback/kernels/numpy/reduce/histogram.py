"""Counting points in the cells of a grid."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.sizes import bincount

AnyArray = np.ndarray[Any, Any]


def covered(values: AnyArray) -> tuple[float, float]:
    """The range values cover; a range of one value reaches half a unit to both sides."""
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def cell_numbers(values: AnyArray, edge: AnyArray, equally_wide: bool) -> AnyArray:
    """The bin each value falls into; what lies outside of all comes to the first or the last."""
    last = max(len(edge) - 2, 0)
    if not equally_wide or last == 0:
        return np.clip(np.searchsorted(edge, values, side="right") - 1, 0, last)
    low, high = float(edge[0]), float(edge[-1])
    per_cell = (last + 1) / (high - low) if high > low else 0.0  # half a unit beside 1e30 is nothing
    cell = np.clip((np.nan_to_num(values) - low) * per_cell, 0, last).astype(np.int64)
    # The quotient may be off by one beside an edge, which the edges themselves decide.
    cell -= (values < edge[cell]) & (cell > 0)
    cell += (values >= edge[cell + 1]) & (cell < last)
    return cell


def counted(
    points: AnyArray, grid: list[AnyArray], weight: AnyArray | None, density: bool, equally_wide: bool = False
) -> AnyArray:
    """The number, or the weight, of the points in each cell; the last bin of each variable includes its upper edge."""
    shape = tuple([len(edge) - 1 for edge in grid])
    if not shape:
        return np.zeros(shape, points.dtype)
    if is_half(points.dtype):
        wide, edges = points.astype(SINGLE), [edge.astype(SINGLE) for edge in grid]
        weights = None if weight is None else weight.astype(SINGLE)
        return counted(wide, edges, weights, density, equally_wide).astype(points.dtype)
    points = points.reshape(-1, points.shape[-1])
    inside = np.ones(len(points), bool)
    cells = np.zeros(len(points), np.int64)
    for dim, edge in enumerate(grid):
        values = points[:, dim]
        inside &= (values >= edge[0]) & (values <= edge[-1])
        cells = cells * shape[dim] + cell_numbers(values, edge, equally_wide)
    total = prod(shape)
    if not total:
        return np.zeros(shape, points.dtype)
    weights = None if weight is None else weight.reshape(-1)
    if not inside.all():
        cells, weights = cells[inside], None if weights is None else weights[inside]
    out = bincount(cells, weights, total).reshape(shape).astype(points.dtype)
    if not density:
        return out
    out = out / np.add.reduce(out, axis=None)
    for dim, edge in enumerate(grid):
        out = out / np.diff(edge).reshape([-1 if d == dim else 1 for d in range(len(grid))])
    return out
