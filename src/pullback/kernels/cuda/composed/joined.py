"""Slices that an index sends to the same place, joined there: as their elements are by scatter_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.declare import registry
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.composed.forwards import composed
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.index import are_numbers, normal
from pullback.kernels.cuda.native import INT64, copied, native


@native("index_reduce_slices")
def index_reduce(self: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Reduce slices into those of a copy."""
    along = normal(dim, self.ndim) if type(self) is DeviceArray and self.ndim else None
    if along is None or not are_numbers(index) or index.ndim != 1 or type(source) is not DeviceArray:
        return None
    shape = [len(index) if d == along else n for d, n in enumerate(self.shape)]
    if list(source.shape) != shape or source.dtype != self.dtype:
        return None
    numbers = index if index.dtype == INT64 else copied(index, INT64)
    at = np.broadcast_to(numbers.reshape([-1 if d == along else 1 for d in range(self.ndim)]), shape)
    given = {"include_self": include_self}
    return composed(registry["scatter_reduce"], [self, along, contiguous(at), source, reduce], given)
