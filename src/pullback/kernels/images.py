"""What kernels on images share: half precision is computed in single, and channels that lie last stay last."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._memory import row_major

AnyArray = np.ndarray[Any, Any]

LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
FIRST = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def widened(x: AnyArray) -> AnyArray:
    """float16 and bfloat16 as float32: sums of many terms are rounded once."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def channels_lie_last(x: AnyArray) -> bool:
    """True for a batch of images or volumes in the memory format channels_last."""
    return not x.flags.c_contiguous and x.ndim in LAST and x.transpose(LAST[x.ndim]).flags.c_contiguous


def laid_out_as(out: AnyArray, given: AnyArray) -> AnyArray:
    """A result with its channels where those of the input are: last or, as usual, before the pixels."""
    if given.flags.c_contiguous or not channels_lie_last(given) or out.ndim != given.ndim:
        return row_major(out)
    return np.ascontiguousarray(out.transpose(LAST[out.ndim])).transpose(FIRST[out.ndim])
