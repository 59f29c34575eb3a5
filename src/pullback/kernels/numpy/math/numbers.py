"""Numbers as arrays without dimensions, one for each dtype: NumPy takes twice as long over a Python number."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.numpy.math.direct import count_nonzero


class Constant(dict[np.dtype[Any], np.ndarray[Any, Any]]):
    """A number in every dtype that has been asked for: `ONE[x.dtype]`."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def __missing__(self, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        made = self[dtype] = np.array(self.value, dtype)
        made.flags.writeable = False
        return made


ZERO = Constant(0)
ONE = Constant(1)
PI = Constant(np.pi)
LOWEST_WHOLE = Constant(-(2.0**100))
"""A negative number below which every number of its dtype is whole."""
LOWEST_WHOLE[np.dtype(np.float16)] = np.array(-(2.0**15), np.float16)


def no_zero(array: np.ndarray[Any, Any]) -> bool:
    """True if no element is zero (nan is not zero); False for a stand-in of an array, of which that is not known."""
    if type(array) is not np.ndarray:
        return False
    return count_nonzero(array) == array.size  # type: ignore[no-any-return]


def real_sign(array: np.ndarray[Any, Any]) -> Any:
    """The sign of real numbers as torch counts it: nan has none, a bool is its own."""
    kind = array.dtype.kind
    if kind in "iu":
        return np.sign(array)
    if kind == "b":
        return array.copy("K")
    if kind == "c":
        raise TypeError("complex numbers have no sign")
    sign = np.sign(array)
    unsigned = np.isnan(sign)
    traced = type(sign) is not np.ndarray
    return np.where(unsigned, ZERO[array.dtype], sign) if traced or count_nonzero(unsigned) else sign
