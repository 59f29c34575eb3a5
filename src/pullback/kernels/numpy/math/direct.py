"""NumPy's functions without their search for foreign array types, which takes longer than the work on a small array.

What `np.concatenate` and its kind are made of is kept by NumPy in their `__wrapped__`. Only for arrays of NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a function of NumPy calls once it has found no foreign array."""
    return getattr(function, "__wrapped__", function)


concatenate = direct(np.concatenate)
copyto = direct(np.copyto)
count_nonzero = direct(np.count_nonzero)
empty_like = direct(np.empty_like)
