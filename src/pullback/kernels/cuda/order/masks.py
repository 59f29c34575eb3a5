"""Where masks are True: see jit/cuda/masks.py. How many elements that are is read, and the device waited for."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import INT64, copied, native
from pullback.kernels.cuda.order.scans import running
from pullback.kernels.cuda.pointwise import copy_into

INT32, BOOL = np.dtype(np.int32), np.dtype(np.bool_)
MOST = 1 << 31
"""Elements that can be counted in 32 bits."""


def places_of(mask: Any) -> Any:
    """The coordinates of the True elements of a mask of bools, [count, ndim]; None if no kernel can find them."""
    if type(mask) is not DeviceArray or mask.dtype != BOOL or room("cuda.masks") is None or mask.size >= MOST:
        return None
    if not mask.ndim:
        return None
    if not mask.size:
        return empty((mask.ndim, 0), INT64, None, mask.device).transpose()
    mask = contiguous(mask)
    counted("mask")
    if required().emulated:
        found = np.argwhere(window(mask))
        out = empty(found.shape[::-1], INT64, None, mask.device)
        window(out)[...] = found.T
        return out.transpose()
    kernels, index = room("cuda.masks"), mask.device.index or 0
    pieces = -(-mask.size // kernels.PIECE)
    whole = filled((pieces * kernels.PIECE,), INT32, 0, mask.device)
    if not copy_into(whole[: mask.size], mask.reshape(-1)):
        return None
    sums = running(whole.reshape((pieces, kernels.PIECE)), 1, INT32, False)
    before = None if sums is None else running(sums[:, -1], 0, INT32, False)
    if before is None:
        return None
    total = int(before[-1].item())
    out = empty((mask.ndim, total), INT64, None, mask.device)
    if total:
        key = mask.ndim
        ready = function(index, kernels.name_of(key), lambda: kernels.text_of(key))
        addresses = [a.address for a in (mask, sums, before, out)]
        numbers = [mask.size, total, *mask.shape]
        grid = (-(-mask.size // BLOCK), 1, 1)
        launch(index, ready, grid, "Q" * len(addresses) + "q" * len(numbers), *addresses, *numbers)
    return out.transpose()


@native("nonzero_places", "argwhere")
def nonzero(self: Any) -> Any:
    """The places of elements that are not zero."""
    if type(self) is not DeviceArray:
        return None
    return places_of(self if self.dtype == BOOL else comparable(self) != 0)


def comparable(array: Any) -> Any:
    """An array in a dtype that kernels compare: integers in 32 bits at least."""
    if array.dtype.kind in "iub" and array.itemsize < INT32.itemsize:
        wide = copied(array, INT32)
        return array if wide is None else wide
    return array


def expanded(table: Any, indices: Any) -> Any:
    """Indices with the coordinates of its True elements for every mask; None if a mask is not for the table."""
    out: list[Any] = []
    for index in indices:
        if type(index) is not DeviceArray or index.dtype != BOOL:
            out.append(index)
            continue
        at = len(out)
        if index.shape != table.shape[at : at + index.ndim]:
            return None
        places = places_of(index)
        if places is None:
            return None
        out += [places[:, d] for d in range(index.ndim)]
    return out
