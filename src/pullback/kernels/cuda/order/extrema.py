"""The largest and smallest elements along a dimension with their places: see jit/cuda/extrema.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.index import each, put, read
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import INT64, native

ELEMENTS = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "u8",
}  # fmt: skip
"""The words for elements that can be put in order."""


def found(how: str, array: Any, dim: int, keepdim: bool) -> list[Any] | None:
    """The extrema along a dimension and their places; None if no kernel can find them."""
    if type(array) is not DeviceArray or room("cuda.extrema") is None or array.dtype.name not in ELEMENTS:
        return None
    if not array.size or type(dim) is not int or not -max(array.ndim, 1) <= dim < max(array.ndim, 1):
        return None
    x = contiguous(array)
    dim %= max(x.ndim, 1)
    shape = x.shape or (1,)
    kept = [*shape[:dim], *[1] * keepdim, *shape[dim + 1 :]] if x.ndim else []
    out, places = (empty(kept, kind, None, x.device) for kind in (x.dtype, INT64))
    counted("extremum")
    if required().emulated:
        given = widened(window(x)).reshape(shape)
        at = (given.argmax if how == "max" else given.argmin)(dim)
        window(places)[...] = at.reshape(kept)
        window(out)[...] = np.take_along_axis(given, np.expand_dims(at, dim), dim).reshape(kept)
        return [out, places]
    length, inner = shape[dim], math.prod(shape[dim + 1 :])
    rows = inner == 1 and length >= BLOCK
    kernels, index, count = room("cuda.extrema"), x.device.index or 0, out.size
    key = (how, ELEMENTS[x.dtype.name], rows)
    ready = function(index, kernels.name_of(*key), lambda: kernels.text_of(*key))
    grid = (count if rows else -(-count // BLOCK), 1, 1)
    launch(index, ready, grid, "QQQqqq", x.address, out.address, places.address, count, length, inner)
    return [out, places]


def along(how: str) -> Any:
    """max_dim and min_dim."""

    def compute(self: Any, dim: Any, keepdim: bool = False) -> Any:
        return found(how, self, dim, keepdim)

    return compute


def place_of(how: str) -> Any:
    """argmax and argmin."""

    def compute(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if self.dtype.kind == "b" or type(self) is not DeviceArray:
            return None  # which the host refuses
        if dim is not None:
            made = found(how, self, dim, keepdim)
            return None if made is None else made[1]
        made = found(how, contiguous(self).reshape(-1), 0, False)
        return None if made is None else made[1].reshape((1,) * self.ndim if keepdim else ())

    return compute


for _how in ("max", "min"):
    native(f"{_how}_dim")(along(_how))
    native(f"arg{_how}")(place_of(_how))


def indexed(table: Any, dim: Any, indices: Any, keepdim: bool) -> tuple[Any, Any] | None:
    """The indices with the dimension they lack, and how they are looked up; None if no kernel can."""
    if type(table) is not DeviceArray or type(indices) is not DeviceArray or not table.ndim:
        return None
    if type(dim) is not int or not -table.ndim <= dim < table.ndim:
        return None
    at = indices if keepdim else np.expand_dims(indices, dim)
    how = each(table, dim, at)
    return None if how is None else (at, how)


@native("pick")
def pick(self: Any, dim: Any, indices: Any, keepdim: bool = True, repeated: bool = False) -> Any:
    """The elements at places along a dimension."""
    found = indexed(self, dim, indices, keepdim)
    made = None if found is None else read(self, found[0].shape, *found[1])
    return None if made is None else made.reshape(indices.shape)


@native("place")
def place(self: Any, dim: Any, indices: Any, keepdim: bool, size: Any, repeated: bool = False) -> Any:
    """Zeros of a shape, with these elements at places along a dimension."""
    if type(self) is not DeviceArray or self.shape != indices.shape:
        return None
    out = filled(size, self.dtype, 0, self.device)
    found = indexed(out, dim, indices, keepdim)
    if found is None:
        return None
    given = self if keepdim else np.expand_dims(self, dim)
    return out if put(out, given, *found[1], repeated) else None
