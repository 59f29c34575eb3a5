"""An array as a page shows it: its range, its first numbers, a small heat map and a histogram."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

CORNER = (6, 5)
"""How many rows and columns of numbers are shown."""
BINS = 20


def short(value: Any) -> Any:
    """A number with four digits; what JSON has no number for becomes text."""
    if isinstance(value, complex):
        return f"{value:.4g}"
    value = float(value)
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def describe(array: Any, cells: int = 24) -> dict[str, Any]:
    """What is worth knowing about an array, in JSON's words; `cells` is the largest side of the heat map."""
    out: dict[str, Any] = {"shape": list(array.shape), "dtype": array.dtype.name, "bytes": int(array.nbytes)}
    if not array.size:
        return out
    flat = as_rows(array)
    rows, columns = flat.shape
    shown = flat[: CORNER[0], : CORNER[1]]
    if flat.dtype.kind == "V" or shown.dtype.kind not in "fciub":
        flat, shown = flat.astype(np.float64), shown.astype(np.float64)
    out["values"] = [[short(v) for v in row] for row in shown.tolist()]
    if shown.size < array.size:
        out["more"] = [rows, columns]
    if flat.dtype.kind == "c":
        flat, out["complex"] = np.abs(flat), True  # sizes stand for complex numbers
    if array.size == 1:
        if not math.isfinite(flat[0, 0]):
            out["bad"] = 1
        return out
    real = flat if flat.dtype.itemsize == 8 and flat.dtype.kind == "f" else flat.astype(np.float64)
    total = float(np.add.reduce(real, None))
    if math.isfinite(total):
        low, high = float(real.min()), float(real.max())
    else:
        fine = np.isfinite(real)
        out["bad"] = int(real.size - np.count_nonzero(fine))
        if out["bad"] == real.size:
            return out
        some = real[fine]
        low, high, total = float(some.min()), float(some.max()), float(some.sum())
        real = np.where(fine, real, np.nan)
    count = real.size - out.get("bad", 0)
    mean = total / count
    squares = float(np.nansum(np.square(real))) if "bad" in out else float(np.vdot(real, real))
    out["range"] = [short(v) for v in (low, high, mean, math.sqrt(max(squares / count - mean * mean, 0.0)))]
    out["norm"] = short(math.sqrt(squares))
    zeros = real.size - int(np.count_nonzero(real))
    if zeros:
        out["zeros"] = zeros
    if real.size > 16 and cells:
        out["bins"] = histogram(real, low, high)
    if (cells and rows > 1) or 2 < columns <= 64:
        out["map"] = heat_map(real, max(abs(low), abs(high)), cells)
    return out


def as_rows(array: Any) -> Any:
    """The array as a matrix: the last dimension across, all others down."""
    if array.ndim == 2:
        return array
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


def histogram(real: Any, low: float, high: float) -> list[int]:
    """How many finite numbers fall in each of a few equal parts of the range."""
    if high <= low:
        return [real.size]
    flat = real.reshape(-1)
    place = (flat[np.isfinite(flat)] - low) * (BINS / (high - low))
    return np.bincount(np.minimum(place.astype(np.int64), BINS - 1), minlength=BINS).tolist()  # type: ignore[no-any-return]


def heat_map(real: Any, top: float, cells: int) -> list[Any]:
    """[width, height, bytes]: the mean of each patch, -top to top as 0 to 254, 255 for what is not a number."""
    rows, columns = real.shape
    wide = min(columns, max(cells, 64 if rows == 1 else 0))
    for axis, (have, most) in enumerate(((rows, cells), (columns, wide))):
        if have > most:
            starts = np.arange(most) * have // most
            lengths = np.diff(starts, append=have)
            real = np.add.reduceat(real, starts, axis=axis) / (lengths[:, None] if axis == 0 else lengths)
    level = np.where(np.isfinite(real), real * (127 / top if top else 0) + 127, 255)
    return [real.shape[1], real.shape[0], base64.b64encode(level.round().astype(np.uint8).tobytes()).decode()]
