"""Functions that make or change arrays, as the device needs them: by its own means, or by way of the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.memory import empty_in_order, empty_strided, is_non_overlapping_and_dense
from pullback._arrays.sizes import allocated
from pullback._op.declare import registry
from pullback._tensor import Tensor, preserve_format
from pullback.kernels.cuda import answering
from pullback.kernels.cuda.array import DeviceArray, answers, empty
from pullback.kernels.cuda.carry import OnHost, name_of, upload
from pullback.kernels.cuda.composed.keys import numbers_there
from pullback.kernels.cuda.composed.words import inside, repeat
from pullback.kernels.cuda.device import placed, required
from pullback.kernels.cuda.native import INPLACE, arranged_like

known: dict[Any, Any] = {}
"""What was read, so that the same function stays the same function."""


def read(value: Any) -> Any:
    """A function as arrays of the device need it; anything else as it is."""
    if not callable(value) or isinstance(value, (type, np.dtype, DeviceArray, Tensor)):
        return value
    try:
        found = known.get(value)
    except TypeError:  # what has no hash
        return OnHost(value)
    if found is None and (named := BY_NAME.get(name_of(value)) or BY_NAME.get(name_of(wrapped_by(value)))) is not None:
        found = known[value] = named(value)
    elif found is None:
        keys = [op.key for op in registry.values() if op.inplace is value]
        there = [INPLACE[key] for key in keys if key in INPLACE]
        found = known[value] = InPlace(value, there[0]) if there else OnHost(value, bool(keys))
    return found


def wrapped_by(function: Any) -> Any:
    """The function that another is made of, by a decorator; or itself."""
    return getattr(function, "__wrapped__", function)


def empty_with_strides(size: Any, stride: Any, dtype: Any) -> Any:
    """Uninitialised memory seen with strides that count elements."""
    return empty(size, dtype, [step * np.dtype(dtype).itemsize for step in stride])


def empty_in(shape: Any, order: Any, dtype: Any) -> Any:
    """Uninitialised memory whose dimensions lie in an order."""
    if order is None:
        return empty(shape, dtype)
    return empty([shape[d] for d in order], dtype).transpose([order.index(d) for d in range(len(order))])


class Maker(OnHost):
    """A function of NumPy's that makes an array of one number: here on the device."""

    __slots__ = ("value",)

    def __init__(self, function: Any, value: Any) -> None:
        super().__init__(function)
        self.value = value

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 or {*kwargs} - {"dtype"}:
            return super().__call__(*args, **kwargs)
        shape, dtype = args[0], args[1] if len(args) > 1 else kwargs.get("dtype", np.float64)
        out = empty((shape,) if isinstance(shape, (int, np.integer)) else shape, dtype)
        if self.value is not None and out.size:
            answering.write(out, self.value)
        return out


class InPlace(OnHost):
    """What an op does in place: by kernels of the device where these take the case."""

    __slots__ = ("there",)

    def __init__(self, function: Any, there: Any) -> None:
        super().__init__(function, True)
        self.there = there

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        target = args[0] if args else next(iter(kwargs.values()))
        if type(target) is DeviceArray and self.there(*args, **kwargs):
            return None
        return super().__call__(*args, **kwargs)


class FilledLike(OnHost):
    """`filled_like` of ops/create/like.py: an array like another, every element one number."""

    __slots__ = ()

    def __call__(self, /, pattern: Any, value: Any, target: Any, format: Any) -> Any:
        plain = value is None or type(value) is bool or (type(value) is int and 0 <= value < 128)
        plain = plain or (type(value) is float and target.is_floating_point)
        plain = plain or (type(value) in (int, float, complex) and target.is_complex)
        if type(pattern) is not DeviceArray or target.packed or not plain:
            return super().__call__(pattern, value, target, format)
        out = arranged_like(pattern, target.stored, format)
        if out is None:
            return super().__call__(pattern, value, target, format)
        if value is not None and out.size:
            answering.write(out, value)
        return out


class Unwritten(OnHost):
    """A function that makes memory nobody has written: the host says how it lies, and nothing is copied."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        outline = self.function(*args, **kwargs)
        return empty(outline.shape, outline.dtype, outline.strides)


class Filled(OnHost):
    """`filled_array` of ops/create/filled.py: an array of one number, which the host converts."""

    __slots__ = ()

    def __call__(self, /, shape: Any, value: Any, target: Any) -> Any:
        if target.packed or math.prod(shape) < 2:
            return super().__call__(shape, value, target)
        out = empty(shape, target.stored)
        out[...] = self.function((2,), value, target)[0]
        return out


class Copied(OnHost):
    """`copied` of ops/create/copy.py: what lies without gaps on the host is uploaded from where it is."""

    __slots__ = ()

    def __call__(self, /, array: Any, target: Any = None, format: Any = None) -> Any:
        same = type(array) is np.ndarray and (target is None or target == array.dtype)
        if same and format in (None, preserve_format) and is_non_overlapping_and_dense(array):
            return array
        return super().__call__(array, target, format)


class Inside(OnHost):
    """`is_inside` of kernels/numpy/index/subscript.py: whether numbers are within bounds."""

    __slots__ = ()

    def __call__(self, /, index: Any, size: int) -> Any:
        return inside(index, size) if type(index) is DeviceArray else self.function(index, size)


class Repeated(OnHost):
    """`np.repeat` of numbers of the host as often as numbers of the device say."""

    __slots__ = ()

    def __call__(self, /, a: Any, repeats: Any) -> Any:
        made = repeat(numbers_there(a, repeats.device), repeats) if type(repeats) is DeviceArray else None
        return super().__call__(a, repeats) if made is None else made


class Ranged(OnHost):
    """`arange_array` of ops/create/ranges.py: short ones that come again are copies of one that stays on the device."""

    __slots__ = ("seen", "there")

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.seen: dict[Any, int] = {}
        self.there: dict[Any, DeviceArray] = {}

    def __call__(self, /, low: Any, high: Any, by: Any, target: Any) -> Any:
        bounds = (low, high, by)
        if not all([type(bound) is int or type(bound) is float for bound in bounds]):
            return super().__call__(*bounds, target)
        key = (*bounds, *map(type, bounds), target, placed(), required())
        found = self.there.get(key)
        if found is not None:
            return answers.cast(found, found.dtype)
        made = super().__call__(*bounds, target)
        if made.size <= MOST_NUMBERS:
            if len(self.seen) >= RANGES:
                self.seen.clear()
                self.there.clear()
            self.seen[key] = self.seen.get(key, 0) + 1
            if self.seen[key] > OFTEN and made.size:
                self.there[key] = upload(made, placed())
        return made


MOST_NUMBERS, RANGES, OFTEN = 4096, 64, 3
"""Numbers of a range that stays, how many ranges there are, and how often one has to come before it does."""
BY_NAME = {
    "ops.create.ranges.arange_array": Ranged,
    "numpy.repeat": Repeated,
    "kernels.numpy.index.subscript.is_inside": Inside,
    "ops.create.filled.empty_array": Unwritten,
    "ops.create.filled.strided_array": Unwritten,
    "ops.create.filled.filled_array": Filled,
    "ops.create.like.filled_like": FilledLike,
    "ops.create.copy.copied": Copied,
}
"""Functions of the layers above that make arrays on the device, by what they would be counted under."""


class Allocating(OnHost):
    """`allocated` of _arrays/sizes.py: the function it is given makes the array."""

    __slots__ = ()

    def __call__(self, /, make: Any, shape: Any, dtype: Any) -> Any:
        return make(shape, dtype)


known |= {empty_strided: empty_with_strides, empty_in_order: empty_in, allocated: Allocating(allocated)}
known |= {make: Maker(make, value) for make, value in ((np.empty, None), (np.zeros, 0), (np.ones, 1))}
