"""Extrema of all elements, questions about them, and how many fall where: made of reductions and sums by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.cuda.array import DeviceArray, filled
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.index import index_add_into
from pullback.kernels.cuda.native import INT64, copied, dims_of, native, reduced
from pullback.kernels.cuda.order.extrema import found
from pullback.kernels.cuda.order.masks import BOOL, INT32, comparable
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.numpy.index.uniqueness import around

DOUBLE = np.dtype(np.float64)
MOST = 1 << 31
"""Bins that are made on the device: more are refused, or made, by the host."""

# ------------------------------------------------------------------ all elements


def extremum_of_all(how: str) -> Any:
    """max_all and min_all."""

    def compute(self: Any) -> Any:
        if type(self) is not DeviceArray or not self.size:
            return None
        made = reduced(how, self, None, False)
        if made is not None:
            return made
        narrow = found(how, contiguous(self).reshape(-1), 0, False)
        return None if narrow is None else narrow[0]

    return compute


def question(how: str) -> Any:
    """any_dim and all_dim: the largest, or the smallest, of ones and zeros."""

    def compute(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if type(self) is not DeviceArray or not self.size or dim == () or dims_of(dim, self.ndim) is None:
            return None
        if self.dtype.kind not in "fiubc" and not is_half(self.dtype):
            return None
        truths = copied(self if self.dtype == BOOL else comparable(self) != 0, INT32)
        answer = None if truths is None else reduced(how, truths, dim, keepdim)
        if answer is None:
            return None
        return answer != 0 if self.dtype != np.uint8 else copied(answer, self.dtype)

    return compute


for _how, _name in (("max", "any"), ("min", "all")):
    native(f"{_how}_all")(extremum_of_all(_how))
    native(f"{_name}_dim")(question(_how))


# ------------------------------------------------------------------ gradients of extrema


def equal(x: Any, value: Any, nan_is_equal: bool) -> Any:
    """One where elements equal a value, zero elsewhere."""
    one, zero = INT64.type(1), INT64.type(0)
    other = np.where(x != x, np.where(value != value, one, zero), zero) if nan_is_equal else zero
    return np.where(x == value, one, other)


def part_of(ones: Any, total: Any, dtype: Any) -> Any:
    """Ones as parts of their number."""
    return ones.astype(dtype) / total.astype(dtype)


@native("shares")
def shares(self: Any, value: Any, dim: Any = None, nan_is_equal: bool = False) -> Any:
    """One over their number where elements equal a value, zero elsewhere."""
    if type(self) is not DeviceArray or type(value) is not DeviceArray or not self.size:
        return None
    ones = pointwise(equal, (self, value, nan_is_equal), {})
    total = None if ones is None or ones.shape != self.shape else reduced("sum", ones, dim, True, INT64)
    return None if total is None else pointwise(part_of, (ones, total, self.dtype), {})


def weighed(x: Any, weights: Any) -> Any:
    """x times weights, but zero where the weight is zero, or the share of nobody, whatever x is."""
    zero = weights.dtype.type(0)
    return np.where(weights > zero, x * weights, zero)


@native("distribute")
def distribute(self: Any, weights: Any) -> Any:
    """A gradient, shared out."""
    if type(self) is not DeviceArray or type(weights) is not DeviceArray or self.dtype != weights.dtype:
        return None
    return pointwise(weighed, (self, weights), {})


# ------------------------------------------------------------------ counting


@native("count_nonzero_dim")
def count_nonzero(self: Any, dim: Any = None) -> Any:
    """How many elements are not zero."""
    if type(self) is not DeviceArray:
        return None
    return reduced("sum", self if self.dtype == BOOL else comparable(self) != 0, dim or None, False, INT64)


def counts(places: Any, weights: Any, bins: int, dtype: Any) -> Any:
    """How many places are in each bin, or the sums of their weights; None if no kernel can."""
    given = np.broadcast_to(filled((), dtype, 1, places.device), places.shape) if weights is None else weights
    out = filled((bins,), dtype, 0, places.device)
    return out if index_add_into(out, 0, places, given) else None


def ends(array: Any) -> tuple[Any, Any] | None:
    """The least and the largest element, for which the device is waited; None where kernels do not find them."""
    low, high = (reduced(how, array, None, False) for how in ("min", "max"))
    return None if low is None or high is None else (low.item(), high.item())


@native("bincount")
def bincount(self: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each integer occurs, or the sums of its weights; the largest is read, and the device waited for."""
    if type(self) is not DeviceArray or self.ndim != 1 or not self.size or self.dtype.kind not in "iu" or minlength < 0:
        return None
    if weights is not None and (type(weights) is not DeviceArray or weights.shape != self.shape):
        return None
    places = self if self.dtype in (INT32, INT64) else copied(self, INT64)
    found = None if places is None else ends(places)
    if found is None or found[0] < 0:
        return None
    bins = max(int(found[1]) + 1, minlength)
    if bins >= MOST:
        return None
    if weights is None:
        return counts(places, None, bins, INT64)
    wide = copied(weights, DOUBLE) if weights.dtype.kind in "fiub" else None
    total = None if wide is None else counts(places, wide, bins, DOUBLE)
    return copied(total, weights.dtype) if total is not None and weights.dtype == np.float32 else total


def bin_of(x: Any, low: float, high: float, bins: int) -> Any:
    """The bin of an element, as the host finds it; one more than there are for those outside."""
    wide = x.astype(DOUBLE)
    at = np.minimum(((wide - low) / (high - low) * float(bins)).astype(INT64), INT64.type(bins - 1))
    outside = INT64.type(bins)
    return np.where(wide >= low, np.where(wide <= high, at, outside), outside)


@native("histc")
def histc(self: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements fall into equal bins; their range is read where none is given, and the device waited for."""
    if type(self) is not DeviceArray or self.dtype.kind != "f" or is_half(self.dtype) or not self.size:
        return None
    if type(bins) is not int or not 0 < bins < MOST or type(min) not in (int, float) or type(max) not in (int, float):
        return None
    low, high = float(min), float(max)
    if low == high:
        span = ends(self)
        if span is None:
            return None
        low, high = map(float, span)
    if low == high:
        low, high = around(low, self.dtype)
    if not np.isfinite([low, high]).all() or not low < high:
        return None
    places = pointwise(bin_of, (contiguous(self).reshape(-1), low, high, bins), {})
    found = None if places is None else counts(places, None, bins + 1, INT64)
    return None if found is None else copied(found[:bins], self.dtype)
