"""The dtypes of torch that have no arrays here: names for tables and for `finfo`, of which no tensor can be made."""

from __future__ import annotations

from pullback._arrays.element import _FORMAT, _LIMITS
from pullback._dtype import FLOAT, INT, _dtype, dtype

FOURTH = "float4_e2m1fn_x2"
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)]
PACKED = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"]
WIDTHS = {"qint32": 4, "bits16": 2}


def made(name: str, category: int) -> dtype:
    """A dtype without arrays."""
    return _dtype(name, category, WIDTHS.get(name, 1), name, name, name, arrays=False)


DTYPES = {FOURTH: made(FOURTH, FLOAT)} | {name: made(name, INT) for name in (*WHOLE, *PACKED)}
"""All of them by name."""

_FORMAT[DTYPES[FOURTH]] = (1, 1, 0)
_LIMITS[DTYPES[FOURTH]] = 6.0
