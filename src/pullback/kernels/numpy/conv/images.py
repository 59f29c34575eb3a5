"""What kernels on images share: channels that lie last stay last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major

AnyArray = np.ndarray[Any, Any]

LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
FIRST = {4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}


def channels_lie_last(x: AnyArray) -> bool:
    """True for a batch of images or volumes whose steps say that channels lie last, as torch reads them: those of
    dimensions of one index count, and there may be gaps."""
    if x.ndim not in LAST or x.strides[1] > x.strides[-1] > 0:
        return False
    steps = list(x.strides)
    for d in range(x.ndim - 2, -1, -1):
        if x.shape[d] == 1 and not steps[d]:  # a dimension NumPy has put in
            steps[d] = x.shape[d + 1] * steps[d + 1]
    least = 0
    for d in (1, *range(x.ndim - 1, 1, -1), 0):
        if not x.shape[d] or not steps[1] or steps[d] < least or (not d and least == steps[1]):
            return False
        least = steps[d] * x.shape[d]
    return True


def channels_may_lie_last(x: AnyArray) -> bool:
    """The same for functions that also take a batch for one whose elements fill its memory in that order, whatever
    the steps of dimensions of one index are."""
    if x.flags.c_contiguous or x.ndim not in LAST:
        return False
    return x.transpose(LAST[x.ndim]).flags.c_contiguous or channels_lie_last(x)


def laid_out_as(out: AnyArray, given: AnyArray, last: Callable[[AnyArray], bool] = channels_lie_last) -> AnyArray:
    """A result with its channels where those of the input are: last or, as usual, before the pixels."""
    return with_channels_last(out) if last(given) and out.ndim == given.ndim else row_major(out)


def with_channels_last(out: AnyArray) -> AnyArray:
    """A result with its channels last."""
    return np.ascontiguousarray(out.transpose(LAST[out.ndim])).transpose(FIRST[out.ndim])
