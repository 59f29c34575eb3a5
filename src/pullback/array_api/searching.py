"""Functions of the array API standard that find, select and order elements, and those that treat arrays as sets."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

import pullback as torch
from pullback.array_api.dtypes import operands
from pullback.array_api.statistics import over

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "take",
    "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip

# ------------------------------------------------------------------ finding and selecting


def argmax(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """Where the first of the largest elements is."""
    return torch.argmax(x, axis, keepdims)


def argmin(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """Where the first of the smallest elements is."""
    return torch.argmin(x, axis, keepdims)


def count_nonzero(
    x: torch.Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> torch.Tensor:
    """How many elements are not zero, over some dimensions, all by default."""
    return torch.sum(*over(x != 0, axis, keepdims))


def nonzero(x: torch.Tensor, /) -> tuple[torch.Tensor, ...]:
    """The positions of the elements that are not zero, dimension by dimension."""
    if x.ndim == 0:
        raise ValueError("an array without dimensions has no positions")
    return torch.nonzero(x, as_tuple=True)


def searchsorted(
    x1: torch.Tensor, x2: torch.Tensor | float, /, *, side: str = "left", sorter: torch.Tensor | None = None
) -> torch.Tensor:
    """Where elements would have to be put to keep an order."""
    ordered, values = operands(x1, x2)
    return torch.searchsorted(ordered, values, side=side, sorter=sorter)


def where(condition: torch.Tensor, x1: torch.Tensor | complex, x2: torch.Tensor | complex, /) -> torch.Tensor:
    """The elements of one array where a condition holds, those of another elsewhere."""
    return torch.where(condition, *operands(x1, x2))


def take(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """The slices at some positions of a dimension; negative ones count from its end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"an array of {x.ndim} dimensions needs an axis to take from")
        axis = 0
    positions = indices.to(torch.int64)
    return torch.index_select(x, axis, torch.where(positions < 0, positions + x.shape[axis], positions))


def take_along_axis(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The elements at positions along a dimension, which are given for each of the others; negative ones count back."""
    positions = indices.to(torch.int64)
    return torch.take_along_dim(x, torch.where(positions < 0, positions + x.shape[axis], positions), axis)


# ------------------------------------------------------------------ ordering


def sort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The elements in order along a dimension."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The positions of the elements in order."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).indices


# ------------------------------------------------------------------ sets

UniqueAll = namedtuple("unique_all_result", ("values", "indices", "inverse_indices", "counts"))
UniqueCounts = namedtuple("unique_counts_result", ("values", "counts"))
UniqueInverse = namedtuple("unique_inverse_result", ("values", "inverse_indices"))


def isin(x1: torch.Tensor | int, x2: torch.Tensor | int, /, *, invert: bool = False) -> torch.Tensor:
    """Whether each element of one array is in another."""
    elements, others = operands(x1, x2)
    return torch.isin(elements, others, invert=invert)


def unique(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every element once, where each element of x is among them, and how often each occurs."""
    if not x.dtype.is_complex:
        return torch.unique(x, return_inverse=True, return_counts=True)
    # torch orders no complex numbers; NumPy orders them by their real parts, then by the others.
    values, inverse, counts = np.unique(x.numpy(force=True), return_inverse=True, return_counts=True, equal_nan=False)
    return torch.from_numpy(values), torch.from_numpy(inverse.reshape(x.shape)), torch.from_numpy(counts)


def unique_values(x: torch.Tensor, /) -> torch.Tensor:
    """Every element once."""
    return unique(x)[0]


def unique_counts(x: torch.Tensor, /) -> UniqueCounts:
    """Every element once, and how often it occurs."""
    values, _, counts = unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: torch.Tensor, /) -> UniqueInverse:
    """Every element once, and where each element of x is among them."""
    values, inverse, _ = unique(x)
    return UniqueInverse(values, inverse)


def unique_all(x: torch.Tensor, /) -> UniqueAll:
    """All of it, and where each element occurs first."""
    values, inverse, counts = unique(x)
    order = torch.sort(inverse.reshape(-1), stable=True).indices
    starts = torch.cumsum(counts, 0) - counts
    return UniqueAll(values, order[starts], inverse, counts)
