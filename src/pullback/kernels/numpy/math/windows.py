"""The shapes of window functions, as arrays: each takes the number of points of the symmetric window and a dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._runtime.building import loaded

AnyArray = np.ndarray[Any, Any]


def evenly(start: float, step: float, n: int, kind: Any) -> AnyArray:
    """`n` numbers a step apart, in a dtype."""
    return np.arange(n).astype(kind) * kind.type(step) + kind.type(start)


def bartlett(n: int, kind: Any) -> AnyArray:
    """Up to one in the middle, and down again."""
    ramp = evenly(0.0, 2.0 / (n - 1), n, kind)
    return np.where(np.arange(n) <= (n - 1) >> 1, ramp, 2 - ramp)


def raised_cosine(n: int, alpha: float, beta: float, kind: Any) -> AnyArray:
    """alpha - beta cos x over one period."""
    return np.cos(evenly(0.0, 2 * math.pi / (n - 1), n, kind)) * kind.type(-beta) + kind.type(alpha)


def blackman(n: int, kind: Any) -> AnyArray:
    """0.42 - 0.5 cos x + 0.08 cos 2x over one period."""
    x = evenly(0.0, math.pi / (n - 1), n, kind)
    return np.cos(x * 4) * kind.type(0.08) - np.cos(x * 2) * kind.type(0.5) + kind.type(0.42)


def kaiser(n: int, beta: float, kind: Any) -> AnyArray:
    """I0(beta sqrt(1 - t**2)) / I0(beta) for t from -1 to 1, in the precision of the dtype, as torch computes it."""
    middle = kind.type((n - 1) / 2)
    t = (np.arange(n).astype(kind) - middle) / middle
    square = np.square(t, dtype=WIDER[kind])  # it is rounded together with the difference
    height = np.maximum(1 - square, 0).astype(kind)
    return bessel(kind.type(beta) * np.sqrt(height)) / bessel(kind.type(beta))


WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}


def bessel(x: Any) -> Any:
    """The modified Bessel function of order zero: infinite where the exponential is."""
    return np.exp(np.abs(x)) * loaded("scipy.special").i0e(x)
