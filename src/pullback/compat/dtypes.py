"""The dtypes of torch that have no arrays here: names for tables and for `finfo`, of which no tensor can be made."""

from __future__ import annotations

from pullback._dtype import _FORMAT, _LIMITS, FLOAT, INT, _dtype, dtype

EIGHTH = {
    "float8_e4m3fn": (3, 7, 448.0),
    "float8_e5m2": (2, 15, 57344.0),
    "float8_e4m3fnuz": (3, 8, 240.0),
    "float8_e5m2fnuz": (3, 16, 57344.0),
    "float8_e8m0fnu": (0, 128, 2.0**127),
    "float4_e2m1fn_x2": (1, 1, 6.0),
}
"""Bits of the fraction, largest exponent, largest number."""
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)]
PACKED = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"]
WIDTHS = {"qint32": 4, "bits16": 2}


def made(name: str, category: int) -> dtype:
    """A dtype without arrays."""
    return _dtype(name, category, WIDTHS.get(name, 1), name, name, name, arrays=False)


DTYPES = {name: made(name, FLOAT) for name in EIGHTH} | {name: made(name, INT) for name in (*WHOLE, *PACKED)}
"""All of them by name."""

for name, (fraction, exponent, most) in EIGHTH.items():
    _FORMAT[DTYPES[name]] = (fraction, exponent, 0)
    _LIMITS[DTYPES[name]] = most
