"""NumPy's functions without their search for foreign array types, which takes longer than the work on a small array.

What `np.concatenate` and its kind are made of is kept by NumPy in their `__wrapped__`. Only for arrays of NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._thresholds import FEW_TO_CHOOSE


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a function of NumPy calls once it has found no foreign array."""
    return getattr(function, "__wrapped__", function)


concatenate = direct(np.concatenate)
copyto = direct(np.copyto)
count_nonzero = direct(np.count_nonzero)
empty_like = direct(np.empty_like)


def where(condition: Any, first: Any, second: Any) -> Any:
    """np.where, in three quarters of its time for short vectors of one length."""
    if (
        type(second) is type(first) is np.ndarray
        and second.ndim == first.ndim == condition.ndim == 1
        and second.size <= FEW_TO_CHOOSE
        and second.dtype is first.dtype
    ):
        out = second.copy()
        try:
            copyto(out, first, where=condition)
        except ValueError:  # the lengths differ
            return np.where(condition, first, second)
        return out
    return np.where(condition, first, second)
