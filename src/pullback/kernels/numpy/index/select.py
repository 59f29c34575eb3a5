"""Keeping some elements of an array and zeros elsewhere: the backward of relu and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]


def keep_where(keep: AnyArray, values: AnyArray) -> AnyArray:
    """The values where `keep` is true, zero elsewhere; a product with the mask would turn inf and nan into nan."""
    return np.where(keep, values, values.dtype.type(0))
