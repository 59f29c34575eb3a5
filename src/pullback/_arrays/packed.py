"""Arrays of elements that are stored and moved, but hardly computed with: the 8 bit floats and complex32.

NumPy has none of them; ml_dtypes adds types for them, whose own arithmetic is not torch's. So such arrays are of a
class of their own: they can be sliced, reshaped and copied, they convert as torch converts them, and every other
function of NumPy refuses them. What an op makes of them is said in _op/packed.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._dtype import (
    FROM_NUMPY,
    complex32,
    dtype,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    packed_dtype,
)

Array = np.ndarray[Any, Any]


class PackedArray(np.ndarray):  # type: ignore[type-arg]
    """An array of packed elements. Casting and assigning convert as torch does."""

    __array_ufunc__ = None  # type: ignore[assignment]  # no ufunc computes with it

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.copyto:
            args[0][...] = args[1]
            return None
        if func not in MOVES:
            raise NotImplementedError(f"numpy.{func.__name__} is not for arrays of {FROM_NUMPY[self.dtype]!r}")
        return super().__array_function__(func, types, args, kwargs)

    def astype(self, target: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """The elements in another dtype, in new memory."""
        if target == self.dtype:
            return super().astype(target, *args, **kwargs)
        return converted(decoded(self), np.dtype(target))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, packed(value, self.dtype))

    def item(self, *args: Any) -> Any:
        """One element as a Python number."""
        return decoded(self).item(*args)

    def tolist(self) -> Any:
        """The elements as Python numbers."""
        return decoded(self).tolist()

    def tensor(self) -> Any:
        """A tensor around this array: what `wrap` gives. Attached by _foreign.py."""
        raise NotImplementedError("import pullback._foreign first")

    @staticmethod
    def computed(op: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """The results of an op with such operands. Attached by _op/packed.py."""
        raise NotImplementedError("import pullback._op.packed first")

    @staticmethod
    def read(function: Any) -> Any:
        """A function of arrays as it is called with such: on their bits. Attached by _op/packed.py."""
        raise NotImplementedError("import pullback._op.packed first")


MOVES = {
    np.broadcast_to, np.concatenate, np.copy, np.empty_like, np.may_share_memory, np.moveaxis, np.ndim, np.reshape,
    np.shape, np.shares_memory, np.size, np.stack, np.transpose, np.zeros_like,
}  # fmt: skip
"""The functions of NumPy that move elements and do not look at them."""


def is_packed(array: Any) -> bool:
    """True for an array of packed elements."""
    return type(array) is PackedArray


# ------------------------------------------------------------------ bits


def bits_of(array: Array) -> Array:
    """The same memory as unsigned integers."""
    return np.ndarray.view(array, np.dtype(f"u{array.dtype.itemsize}")).view(np.ndarray)


def from_bits(bits: Array, numpy: np.dtype[Any]) -> PackedArray:
    """Memory of bits, or of anything as wide, as packed elements."""
    return bits.view(np.ndarray).view(numpy).view(PackedArray)


# ------------------------------------------------------------------ to numbers NumPy computes with


@cache
def values(kind: dtype) -> Array:
    """What each of the 256 patterns of an 8 bit float stands for, as torch reads it."""
    patterns = np.arange(256, dtype=np.uint8)
    out = patterns.view(packed_dtype(kind)).astype(np.float32)
    # ml_dtypes makes every NaN the same one; torch keeps the sign where the format has one.
    negative = np.isnan(out) & (patterns >= 128)
    out[negative] = np.copysign(np.float32(np.nan), np.float32(-1 if kind in (float8_e4m3fn, float8_e5m2) else 1))
    return out


def decoded(array: Array) -> Array:
    """Packed elements as float32, the parts of complex ones too; other arrays as they are."""
    if type(array) is not PackedArray:
        return array
    kind = FROM_NUMPY[array.dtype]
    if kind is not complex32:
        return values(kind)[bits_of(array)]
    bits = bits_of(array)
    parts = [part.astype(np.uint16).view(np.float16).astype(np.float32) for part in (bits & 0xFFFF, bits >> 16)]
    out = np.empty_like(parts[0], np.complex64)
    out.real, out.imag = parts
    return out


# ------------------------------------------------------------------ from numbers


def packed(value: Any, numpy: np.dtype[Any]) -> PackedArray:
    """Numbers as packed elements, each rounded to the nearest as torch rounds it."""
    if type(value) is PackedArray:
        if value.dtype is numpy:
            return value
        value = decoded(value)
    kind = FROM_NUMPY[numpy]
    if isinstance(value, np.ndarray) and value.dtype is numpy:
        return from_bits(value, numpy)
    array = np.asarray(value)
    if kind is complex32:
        whole = array.astype(np.complex64)
        real, imag = [part.astype(np.float16).view(np.uint16).astype(np.uint32) for part in (whole.real, whole.imag)]
        return from_bits(np.asarray(real | imag << np.uint32(16)), numpy)
    if array.dtype.kind == "c":
        array = array.real
    return from_bits(encoded(array.astype(np.float32), kind), numpy)


def converted(array: Array, numpy: np.dtype[Any]) -> Any:
    """An array of float32 or complex64 in any dtype."""
    if numpy in FROM_NUMPY and FROM_NUMPY[numpy].packed:
        return packed(array, numpy)
    if array.dtype.kind == "c" and numpy.kind not in "cb":
        array = array.real
    return array.astype(numpy)


def encoded(array: Array, kind: dtype) -> Array:
    """Numbers of float32 as the 8 bits of a format."""
    bits = array.view(np.uint32)
    return exponents(bits) if kind is float8_e8m0fnu else nearest(array, bits, kind)


def exponents(bits: Array) -> Array:
    """Powers of two: the exponent of a float32, rounded up from the middle on; neither sign nor zero."""
    exponent, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    return np.where(exponent == 0xFF, 0xFF, exponent + up).astype(np.uint8)


@cache
def steps(kind: dtype) -> tuple[Array, Array]:
    """The codes of the positive finite numbers, ascending, and the middles between neighbours in doubles."""
    positive = values(kind)[:128].astype(np.float64)
    finite = positive[np.isfinite(positive)]
    beyond = finite[-1] + (finite[-1] - finite[-2])  # what would come next, if the format went on
    edges = np.append(finite, beyond)
    return np.arange(len(finite)), (edges[1:] + edges[:-1]) / 2


def nearest(array: Array, bits: Array, kind: dtype) -> Array:
    """The nearest element, of two equally near the even one; what is too large becomes what the format has for it."""
    codes, middles = steps(kind)
    size = np.abs(array).astype(np.float64)
    place = np.searchsorted(middles, size, side="left")
    inner = np.minimum(place, len(middles) - 1)
    place = place + ((size == middles[inner]) & (place % 2 == 1))
    largest, sign = len(codes) - 1, (bits >> 31).astype(np.uint8) << np.uint8(7)
    nan = np.isnan(array)
    if kind is float8_e4m3fn:  # the largest number
        out = np.minimum(place, largest).astype(np.uint8) | sign
        return np.where(nan, 0x7F | sign, out).astype(np.uint8)
    if kind is float8_e5m2:  # infinity, which is the next code
        out = np.minimum(place, largest + 1).astype(np.uint8) | sign
        return np.where(nan, 0x7F | sign, out).astype(np.uint8)
    out = np.where(place == 0, 0, np.minimum(place, 127).astype(np.uint8) | sign)  # there is no negative zero
    return np.where(nan | (place > largest), 0x80, out).astype(np.uint8)  # nor infinity: the one NaN
