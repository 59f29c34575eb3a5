"""Keeping some elements of an array and zeros elsewhere, fast: the backward of relu and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._thresholds import LARGE_MASK

AnyArray = np.ndarray[Any, Any]
BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


def keep_where(keep: AnyArray, values: AnyArray) -> AnyArray:
    """The values where `keep` is true, zero elsewhere; a product with the mask would turn inf and nan into nan."""
    bits = BITS.get(values.dtype) if values.size > LARGE_MASK else None
    if bits is None or type(values) is not np.ndarray or keep.shape != values.shape or not values.flags.c_contiguous:
        return np.where(keep, values, values.dtype.type(0))
    # true becomes -1, all bits set: what is kept passes bit by bit.
    mask = np.negative(keep.view(np.int8), dtype=bits)
    np.bitwise_and(values.view(bits), mask, out=mask)
    return mask.view(values.dtype)
