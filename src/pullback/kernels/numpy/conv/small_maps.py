"""Linear maps of few numbers as matrices: the scaling of small images with weights, its gradient, and short transforms.

One product with a matrix that is made once for each geometry costs less than the slices by which larger images go.
Only finite numbers may be multiplied with the zeros of such a matrix, which one dot product tells.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._thresholds import MOST_IN_MAP
from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE

AnyArray = np.ndarray[Any, Any]


@answered(meta=lambda x, elements: False)
def is_small(x: AnyArray, elements: int) -> bool:
    """True for floats that are contiguous and are few beside a matrix of so many elements."""
    dtype = x.dtype
    return (
        0 < elements <= MOST_IN_MAP
        and 0 < x.size <= MOST_IN_MAP
        and (dtype is SINGLE or dtype is DOUBLE)
        and x.flags.c_contiguous
    )


@answered(meta=lambda x: True)
def is_finite(x: AnyArray) -> bool:
    """True if no element is infinite or nan, nor so large that its square is."""
    flat = x.reshape(-1)
    return bool(flat.dot(flat) < inf)
