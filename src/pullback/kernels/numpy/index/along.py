"""Taking and putting elements along one dimension of an array by index."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

Array = Any


@lru_cache(maxsize=512)
def grid(shape: tuple[int, ...], axis: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Indices for the dimensions before and after `axis`, shaped to broadcast against an index array."""
    ndim = len(shape)
    ranges = [np.arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1)) for i, n in enumerate(shape)]
    return tuple(ranges[:axis]), tuple(ranges[axis + 1 :])


def position(indices: Array, axis: int) -> tuple[Array, ...]:
    """The advanced index that `indices` along `axis` stand for."""
    before, after = grid(indices.shape, axis)
    return (*before, indices, *after)


def take_along(array: Array, dim: int, indices: Array, keepdim: bool) -> Array:
    """The elements of an array at `indices` along `dim`."""
    if not array.ndim:
        return array.copy()
    axis = dim % array.ndim
    if not keepdim:
        indices = np.expand_dims(indices, axis)
    taken = array[position(indices, axis)]
    return taken if keepdim else taken.squeeze(axis)


def put_along(
    values: Array, dim: int, indices: Array, keepdim: bool, size: tuple[int, ...], repeated: bool = False
) -> Array:
    """Zeros with `values` at `indices` along `dim`, added up where an index may come repeatedly."""
    if not size:
        return values.copy()
    axis = dim % len(size)
    if not keepdim:
        indices, values = np.expand_dims(indices, axis), np.expand_dims(values, axis)
    out = np.zeros(size, values.dtype)
    if repeated:
        np.add.at(out, position(indices, axis), values)
    else:
        out[position(indices, axis)] = values
    return out
