"""The derivatives of digamma and the zeta function as pointwise formulas: steps of one, then the asymptotic series.

The first ones are reflected below zero; where the others are not sure of themselves, SciPy is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._thresholds import LARGE
from pullback.kernels.jit.small.choose import pointwise

Array = Any


@pointwise
def trigamma(self: Array) -> Array:
    """The first derivative of digamma: by its asymptotic series above seven, by steps of one and reflection below.

    In the precision of its argument, as in torch: that decides what remains of the poles, of which the sine of pi * x
    gives a large number instead of an infinite one.
    """
    kind = self.dtype.type
    low = self < 0.5
    x = np.where(low, 1 - self, self)
    total = 1 / (x * x)
    for _ in range(5):
        x = x + 1
        total = total + 1 / (x * x)
    x = x + 1
    square = 1 / (x * x)
    series = 1 + 1 / (2 * x) + square * (kind(1 / 6) - square * (kind(1 / 30) - square * kind(1 / 42)))
    total = total + series / x
    sine = np.sin(kind(math.pi) * self)
    return np.where(low, kind(math.pi * math.pi) / (sine * sine) - total, total)


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
FEW = 4
STEPS = 9
"""So many terms are added one by one; from there on the series needs no more numbers of Bernoulli than these."""


def powers(x: Array, n: int) -> Array:
    """The sum of (x + k) ** -n for x above zero, by the formula of Euler and Maclaurin."""
    first = total = inverse_power(x, n)
    for k in range(1, STEPS):
        total = total + inverse_power(x + float(k), n)
    inverse = 1 / (x + float(STEPS))
    square, series = inverse * inverse, 0.0
    for j in range(len(BERNOULLI), 0, -1):
        factor = BERNOULLI[j - 1] / math.factorial(2 * j) * math.prod(range(n, n + 2 * j - 1))
        series = series * square + factor
    total = total + power(inverse, n - 1) * (1 / (n - 1) + inverse * (0.5 + inverse * series))
    return np.where(first == 0, 0.0, total)  # torch stops there


def power(x: Array, n: int) -> Array:
    """x**n, by products."""
    if n <= FEW:
        return math.prod([x] * (n - 1), start=x)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def inverse_power(x: Array, n: int) -> Array:
    """x ** -n: of many factors the product first, whose error is not multiplied then."""
    return power(1 / x, n) if n <= FEW else 1 / power(x, n)


def reflected(x: Array, n: int) -> tuple[Array, Array, Array]:
    """The sum for x, or for 1 - x below zero; and there the cotangent and the squared cosecant of pi * x."""
    rest = x - np.rint(x)
    sine, cosine = np.sin(math.pi * rest), np.sin(math.pi * (0.5 - np.abs(rest)))  # exactly zero halfway between poles
    return powers(np.where(x < 0, 1 - x, x), n), cosine / sine, 1 / (sine * sine)


def at_limits(x: Array, out: Array, pole: float) -> Array:
    """Infinite at whole numbers up to zero; and nan at infinity, as torch has it."""
    out = np.where((x <= 0) & (x == np.rint(x)), pole, out)
    return np.where(x == np.inf, np.nan, out)


@pointwise
def second(x: Array) -> Array:
    """The second derivative of digamma."""
    total, cotangent, square = reflected(x, 3)
    return at_limits(x, np.where(x < 0, -2 * total - 2 * math.pi**3 * (cotangent * square), -2 * total), -math.inf)


@pointwise
def third(x: Array) -> Array:
    """The third derivative of digamma."""
    total, cotangent, square = reflected(x, 4)
    turned = 2 * math.pi**4 * (square * (2 * (cotangent * cotangent) + square))
    return at_limits(x, np.where(x < 0, turned - 6 * total, 6 * total), math.inf)


HIGHER: dict[int, Callable[[Array], Array]] = {2: second, 3: third}
"""Those that gradients of lgamma lead to; of float64 only."""


# ------------------------------------------------------------------ the zeta function

MOST = 20
"""Up to this order a derivative of digamma has a kernel."""


@cache
def of_whole(s: int) -> Callable[[Array], Array]:
    """The kernel for one exponent."""
    return pointwise(lambda q: powers(q, s))


@pointwise
def of_real(s: Array, q: Array) -> Array:
    """The sum of (q + k) ** -s in float64: with as many digits as float32 needs."""
    total = np.exp(-s * np.log(q))
    for k in range(1, STEPS):
        total = total + np.exp(-s * np.log(q + float(k)))
    far = q + float(STEPS)
    last, inverse = np.exp(-s * np.log(far)), 1 / far
    total = total + last * (far / (s - 1) + 0.5)
    rising = s * inverse
    for j, number in enumerate(BERNOULLI, 1):
        total = total + last * (rising * (number / math.factorial(2 * j)))
        rising = rising * (s + (2.0 * j - 1)) * (s + 2.0 * j) * (inverse * inverse)
    return total


def zeta(s: Array, q: Array, otherwise: Callable[[Array, Array], Array]) -> Array:
    """The sum of (q + k) ** -s over all k from 0: by a kernel where it is exact, by another function elsewhere."""
    if type(q) is not np.ndarray:
        return otherwise(s, q)
    sure = (q > 1e-10) & (q < 1e10)
    if q.dtype == np.float64 and type(s) is np.float64 and FEW < s <= MOST + 1 and s == int(s):
        out = np.asarray(of_whole(int(s))(q))
    elif q.dtype == np.float32 and q.size >= LARGE and type(s) is np.ndarray and s.shape == q.shape:
        out = of_real(s.astype(np.float64), q.astype(np.float64)).astype(np.float32)
        sure &= (s > 1) & (s <= 64)
    else:
        return otherwise(s, q)
    sure &= np.isfinite(out)
    if not sure.all():
        rest = ~sure
        out[rest] = otherwise(s[rest] if type(s) is np.ndarray else s, q[rest])
    return out


LATER = (43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730)
EPSILON = np.float32(1.11022302462515654042e-16)
LOWEST = -1e4
"""Below this torch adds thousands of terms, or does not come to an end."""


def zeta_in_single(s: float, q: Array) -> Array:
    """The sum of (q + k) ** -s for s above one in float32, in torch's order: below zero its terms cancel."""
    exponent, total = np.float32(-s), np.power(q, np.float32(-s))
    at, term, done, count = q, np.zeros_like(q), q < LOWEST, 0
    while (more := ~done & ((at <= 9) | (count < 9))).any():
        count += 1
        at = np.where(more, at + 1, at)
        term = np.where(more, np.power(at, exponent), term)
        total = np.where(more, total + term, total)
        done = done | (more & (-EPSILON * total < term) & (term < EPSILON * total))
    total = np.where(done, total, total + term * at / np.float32(s - 1) - np.float32(0.5) * term)
    rising = np.float32(1)
    for j, number in enumerate((*BERNOULLI, *LATER), 1):
        rising = rising * np.float32(s + (2 * j - 2))
        term = term / at
        part = rising * term / np.float32(math.factorial(2 * j) / number)
        total = np.where(done, total, total + part)
        done = done | (np.abs(part / total) < EPSILON)
        rising = rising * np.float32(s + (2 * j - 1))
        term = term / at
    return np.where((q <= 0) & (q == np.floor(q)), np.float32(np.inf), total)


def polygamma_of_halves(n: int, x: Array, single: Array) -> Array:
    """The n-th derivative of digamma in half precision: a sum in float32, rounded, times what float32 has for n!."""
    series = zeta_in_single(float(x.dtype.type(n + 1)), single).astype(x.dtype)
    factorial = math.gamma(n + 1) if n <= 34 else math.inf
    return ((-1) ** (n + 1) * factorial * series.astype(np.float64)).astype(x.dtype)
