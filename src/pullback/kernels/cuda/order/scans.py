"""Running sums on the device: see jit/cuda/scans.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.cuda.native import ELEMENTS, copied, native, sum_dtype


def running(array: Any, dim: Any, kind: Any, backwards: bool) -> Any:
    """The running sum along a dimension; None if no kernel can give it."""
    if type(array) is not DeviceArray or type(dim) is not int or not -array.ndim <= dim < array.ndim or not array.size:
        return None
    wide = SINGLE if is_half(kind) else kind
    if room("cuda.scans") is None or wide.name not in ELEMENTS:
        return None
    x = contiguous(array if array.dtype == wide else copied(array, wide))
    if x is None:
        return None
    out = empty(x.shape, wide, None, x.device)
    counted("scan")
    if required().emulated:
        turned = np.flip(window(x), dim) if backwards else window(x)
        made = np.add.accumulate(turned, dim)
        window(out)[...] = np.flip(made, dim) if backwards else made
    else:
        kernels, index = room("cuda.scans"), x.device.index or 0
        element = ELEMENTS[wide.name]
        ready = function(index, kernels.name_of(element), lambda: kernels.text_of(element))
        dim %= x.ndim
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        grid = (x.size // length, 1, 1)
        launch(index, ready, grid, "QQqqq", x.address, out.address, length, inner, int(backwards))
    return out if wide == kind else copied(out, kind)


@native("cumsum")
def cumsum(self: Any, dim: Any, *, dtype: Any = None) -> Any:
    """The running sum."""
    return running(self, dim, sum_dtype(self, dtype), False)


@native("running_sum")
def running_sum(self: Any, dim: Any, reverse: bool) -> Any:
    """The running sum, from either end."""
    return running(self, dim, self.dtype, reverse)
