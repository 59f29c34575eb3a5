"""What kernels on images share: channels that lie last stay last."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import row_major

AnyArray = np.ndarray[Any, Any]

LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
FIRST = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def channels_lie_last(x: AnyArray) -> bool:
    """True for a batch of images or volumes in the memory format channels_last."""
    return not x.flags.c_contiguous and x.ndim in LAST and x.transpose(LAST[x.ndim]).flags.c_contiguous


def laid_out_as(out: AnyArray, given: AnyArray) -> AnyArray:
    """A result with its channels where those of the input are: last or, as usual, before the pixels."""
    if given.flags.c_contiguous or not channels_lie_last(given) or out.ndim != given.ndim:
        return row_major(out)
    return np.ascontiguousarray(out.transpose(LAST[out.ndim])).transpose(FIRST[out.ndim])
