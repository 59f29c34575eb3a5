"""Running sums and their kin on the device: see jit/cuda/scans.py."""

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
from pullback.kernels.cuda.native import ELEMENTS, copied, native, of_pairs, parts_of, sum_dtype
from pullback.kernels.cuda.native import UFUNCS as REDUCING
from pullback.kernels.jit.language.expression import COMPLEX

UFUNCS = {**REDUCING, "logaddexp": np.logaddexp}


def running(array: Any, dim: Any, kind: Any, backwards: bool, how: str = "sum") -> Any:
    """The running sum, product, extremum or logarithm of sums along a dimension; None if no kernel can give it."""
    if type(array) is not DeviceArray or type(dim) is not int or not -array.ndim <= dim < array.ndim or not array.size:
        return None
    wide = SINGLE if is_half(kind) else kind
    if wide.kind == "c":
        x = array if array.dtype == wide else copied(array, wide)
        return running_parts(x, dim % array.ndim, backwards, how)
    if room("cuda.scans") is None or wide.name not in ELEMENTS:
        return None
    x = contiguous(array if array.dtype == wide else copied(array, wide))
    if x is None:
        return None
    out = empty(x.shape, wide, None, x.device)
    counted("scan")
    if required().emulated:
        turned = np.flip(window(x), dim) if backwards else window(x)
        made = UFUNCS[how].accumulate(turned, dim)
        window(out)[...] = np.flip(made, dim) if backwards else made
    else:
        kernels, index = room("cuda.scans"), x.device.index or 0
        element = ELEMENTS[wide.name]
        ready = function(index, kernels.name_of(element, how), lambda: kernels.text_of(element, how))
        dim %= x.ndim
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        grid = (x.size // length, 1, 1)
        launch(index, ready, grid, "QQqqq", x.address, out.address, length, inner, int(backwards))
    return out if wide == kind else copied(out, kind)


def running_parts(array: Any, dim: int, backwards: bool, how: str) -> Any:
    """Running sums of complex numbers, as those of their parts; running products in strides that double."""
    if how == "sum":
        made = running(parts_of(array), dim, COMPLEX[array.dtype], backwards)
        return None if made is None else of_pairs(made, array.dtype)
    if how != "prod":
        return None
    x, step = contiguous(array), 1
    first, last = (slice(None),) * dim, array.shape[dim]
    while step < last:
        more = x.copy()
        ahead, behind = (*first, slice(step, None)), (*first, slice(None, last - step))
        more[behind if backwards else ahead] = x[ahead] * x[behind]
        x, step = more, 2 * step
    return x.copy() if x is array else x


@native("cumsum")
def cumsum(self: Any, dim: Any, *, dtype: Any = None) -> Any:
    """The running sum."""
    return running(self, dim, sum_dtype(self, dtype), False)


@native("running_sum")
def running_sum(self: Any, dim: Any, reverse: bool) -> Any:
    """The running sum, from either end."""
    return running(self, dim, self.dtype, reverse)


@native("cumprod")
def cumprod(self: Any, dim: Any, *, dtype: Any = None) -> Any:
    """The running product."""
    return running(self, dim, sum_dtype(self, dtype), False, "prod")


@native("running_product")
def running_product(self: Any, dim: Any, reverse: bool) -> Any:
    """The running product, from either end."""
    return running(self, dim, self.dtype, reverse, "prod")


@native("running_logsumexp")
def running_logsumexp(self: Any, dim: Any, reverse: bool) -> Any:
    """The logarithm of the running sum of exponentials, from either end."""
    return running(self, dim, self.dtype, reverse, "logaddexp") if self.dtype.kind != "c" else None


@native("logcumsumexp")
def logcumsumexp(self: Any, dim: Any) -> Any:
    """The same from the front."""
    return running_logsumexp(self, dim, False) if self.dtype.kind not in "iub" else None
