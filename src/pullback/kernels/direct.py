"""NumPy's functions without their search for foreign array types, which takes longer than the work on a small array.

What `np.concatenate` and its kind are made of is kept by NumPy in their `__wrapped__`. Only for arrays of NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a function of NumPy calls once it has found no foreign array."""
    return getattr(function, "__wrapped__", function)


concatenate = direct(np.concatenate)
copyto = direct(np.copyto)
count_nonzero = direct(np.count_nonzero)
empty_like = direct(np.empty_like)

FEW = 4096
"""Up to this many elements a copy and a write under a mask take less time than np.where."""


def where(condition: Any, first: Any, second: Any) -> Any:
    """np.where, twice as fast for short vectors."""
    if (
        type(second) is type(first) is np.ndarray
        and second.ndim == first.ndim == condition.ndim == 1
        and second.dtype is first.dtype
        and condition.size == second.size == first.size <= FEW
    ):
        out = second.copy()
        copyto(out, first, where=condition)
        return out
    return np.where(condition, first, second)


def has_nan(array: AnyArray) -> bool:
    """True if an element is nan: NumPy takes the first one for the largest element."""
    if not array.size:
        return False
    largest = array.item(array.argmax())
    return bool(largest != largest)
