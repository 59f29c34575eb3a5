"""What floats are made of, on the device: mantissas and exponents, found by logarithms and set right by comparing."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.native import copied, native
from pullback.kernels.cuda.pointwise import made_for, pointwise

INT32 = np.dtype(np.int32)


def taken_apart(x: Any) -> tuple[Any, Any]:
    """The mantissa and the exponent, as a float, of each element; what is zero, infinite or nan is its own mantissa."""
    size = np.absolute(x)
    usual = (size > 0.0) & (size < np.inf)
    tiny = size < float(np.finfo(x.dtype).tiny)
    near = np.where(usual, np.where(tiny, x * 2.0**64, x), 1.0)
    high = np.floor(np.log2(np.absolute(near))) + 1.0
    half = np.trunc(high * 0.5)
    part = near * np.exp2(-half) * np.exp2(half - high)
    small, large = np.absolute(part) < 0.5, np.absolute(part) >= 1.0
    part = np.where(small, part * 2.0, np.where(large, part * 0.5, part))
    high = high + np.where(small, -1.0, np.where(large, 1.0, 0.0))
    exponent = high - np.where(tiny, 64.0, 0.0)
    return np.where(usual, part, x), np.where(usual, exponent, 0.0)


def mantissa_of(x: Any) -> Any:
    """Mantissas."""
    return taken_apart(x)[0]


def exponent_of(x: Any) -> Any:
    """Exponents."""
    return taken_apart(x)[1].astype(INT32)


@native("isreal")
def isreal(self: Any) -> Any:
    """True everywhere, of real numbers."""
    if type(self) is not DeviceArray or self.dtype.kind == "c":
        return None
    out = made_for([self], self.shape, np.dtype(np.bool_))
    out[...] = True
    return out


@native("frexp")
def frexp(self: Any) -> Any:
    """Mantissas and exponents."""
    if type(self) is not DeviceArray or (self.dtype.kind != "f" and not is_half(self.dtype)):
        return None
    wide = copied(self, SINGLE) if is_half(self.dtype) else self
    mantissa, exponent = pointwise(mantissa_of, (wide,), {}), pointwise(exponent_of, (wide,), {})
    if mantissa is None or exponent is None:
        return None
    return mantissa if wide is self else copied(mantissa, self.dtype), exponent
