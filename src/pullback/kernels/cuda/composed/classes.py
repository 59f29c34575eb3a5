"""The negative log likelihood of classes: of rows and of images, with weights and ignored classes, in any precision.

Half precision is added up in float32 and rounded once, as torch does it on a device. A class that is none is noted by
the kernel that looks it up, and raises at the next copy to the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.index import Numbers
from pullback.kernels.cuda.index import read as looked_up
from pullback.kernels.cuda.native import INT64, SINGLE, copied, native, ramp, reduced
from pullback.kernels.cuda.pointwise import pointwise


def or_first(target: Any, ignored: int) -> Any:
    """The class, or the first one where it is ignored."""
    return np.where(target == ignored, 0, target)


def minus_unless(picked: Any, target: Any, ignored: int, dtype: Any) -> Any:
    """Minus the value, or zero where the class is ignored."""
    return np.where(target == ignored, dtype.type(0), -picked.astype(dtype))


def minus_weighed(picked: Any, weights: Any, target: Any, ignored: int, dtype: Any) -> Any:
    """The same times the weight of the class."""
    return np.where(target == ignored, dtype.type(0), -(picked.astype(dtype) * weights.astype(dtype)))


def weight_unless(weights: Any, target: Any, ignored: int, dtype: Any) -> Any:
    """The weight of the class, or zero where it is ignored."""
    return np.where(target == ignored, dtype.type(0), weights.astype(dtype))


def counts(target: Any, ignored: int) -> Any:
    """Whether a class is not ignored."""
    return target != ignored


def at_class(value: Any, numbers: Any, target: Any, ignored: int) -> Any:
    """Minus the value at the class of a row, zero elsewhere."""
    return np.where((numbers == target) & (target != ignored), -value, np.zeros((), value.dtype))


def at_weighed_class(value: Any, weights: Any, numbers: Any, target: Any, ignored: int) -> Any:
    """The same times the weight of the class."""
    return np.where((numbers == target) & (target != ignored), -(value * weights), np.zeros((), value.dtype))


def takes_classes(x: Any, target: Any, weight: Any) -> bool:
    """True for rows or images of log probabilities, and a class for each."""
    if type(x) is not DeviceArray or type(target) is not DeviceArray or not x.size:
        return False
    if x.dtype.name not in ("float32", "float64") and not is_half(x.dtype):
        return False
    fits = x.ndim in (2, 4) and target.shape == (x.shape[0], *x.shape[2:]) and target.dtype.name in ("int64", "uint8")
    return fits and (weight is None or (type(weight) is DeviceArray and weight.dtype == x.dtype))


@native("nll_loss_rows", "nll_loss_2d")
def nll_loss(x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """Minus the log probability of each row's class, and the weight that a mean divides by."""
    if not takes_classes(x, target, weight):
        return None
    target = target if target.dtype == INT64 else copied(target, INT64)
    wide = SINGLE if is_half(x.dtype) else x.dtype
    numbers = pointwise(or_first, (target, ignore_index), {})
    if numbers is None:
        return None
    found = Numbers(numbers, numbers.strides, x.shape[1], x.strides[1], False)
    picked = looked_up(x, target.shape, [x.strides[0], *x.strides[2:]], [found])
    if picked is None:
        return None  # a class that is none is said on the host
    if weight is None:
        loss = pointwise(minus_unless, (picked, target, ignore_index, wide), {})
        parts = None if reduction == 0 else pointwise(counts, (target, ignore_index), {})
    else:
        found = Numbers(numbers, numbers.strides, x.shape[1], weight.strides[0], False)
        weights = looked_up(weight, target.shape, [0] * target.ndim, [found])
        loss = pointwise(minus_weighed, (picked, weights, target, ignore_index, wide), {})
        parts = None if reduction == 0 else pointwise(weight_unless, (weights, target, ignore_index, wide), {})
    if reduction == 0:
        return [rounded(loss, x.dtype), upload(np.zeros((), x.dtype), x.device)]
    total, loss = reduced("sum", parts, None, False, wide), reduced("sum", loss, None, False)
    return [rounded(loss / total if reduction == 1 else loss, x.dtype), rounded(total, x.dtype)]


def rounded(array: Any, dtype: Any) -> Any:
    """An array in a dtype."""
    return array if array.dtype == dtype else copied(array, dtype)


@native("nll_loss_backward", "nll_loss_2d_backward")
def nll_loss_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    """Minus the gradient, at the class of each row that counts."""
    if not takes_classes(x, target, weight) or grad.dtype != x.dtype:
        return None
    target = target if target.dtype == INT64 else copied(target, INT64)
    value = grad / total_weight if reduction == 1 else grad
    value = np.expand_dims(value, 1) if value.ndim else value
    alone = (1,) * (x.ndim - 2)
    numbers, classes = ramp(x.shape[1], x.device).reshape((-1, *alone)), np.expand_dims(target, 1)
    if weight is None:
        return pointwise(at_class, (value, numbers, classes, ignore_index), {})
    weights = weight.reshape((-1, *alone))
    return pointwise(at_weighed_class, (value, weights, numbers, classes, ignore_index), {})
