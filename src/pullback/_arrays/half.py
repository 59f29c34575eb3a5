"""float16 and bfloat16: torch's kernels compute with them in float32 and round once, at the end. So do ours."""

from __future__ import annotations

from typing import Any

import numpy as np

SINGLE = np.dtype(np.float32)


def is_half(dtype: Any) -> bool:
    """True for float16 and bfloat16 (which is no kind of number to NumPy: its letter is V)."""
    return bool(dtype.itemsize == 2 and dtype.kind in "fV")


def widened(array: Any) -> Any:
    """Half precision as float32, in which sums and formulas of several steps are computed; other arrays as they are."""
    return array.astype(SINGLE) if is_half(array.dtype) else array


def rounded(array: Any, dtype: Any) -> Any:
    """What was computed in float32 back in its own dtype; an array that is there already as it is."""
    return array if array.dtype is dtype else array.astype(dtype)


def with_single(ufunc: Any, array: Any, number: Any) -> Any:
    """A ufunc of an array and a number; beside half precision the number is float32, and the result is rounded once."""
    if not is_half(array.dtype):
        return ufunc(array, number)
    return ufunc(array.astype(SINGLE), SINGLE.type(number)).astype(array.dtype)
