"""Functions of complex numbers by their real and imaginary parts, for kernels that know real numbers only.

Each is given pairs of stand-ins for the parts of its operands, and makes a pair, or one stand-in for a real result. It
is written in NumPy's functions of real numbers, which note what they would do. Products and quotients are NumPy's and
torch's; roots, logarithms and inverses of sines are Kahan's, which keep the signs of zeros and so the sides of cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Real = Any
"""A stand-in for real numbers."""
Pair = tuple[Any, Any]
"""The parts of complex numbers."""
INF = math.inf


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What ufuncs make of complex numbers, by their names."""


def function(name: str) -> Callable[[Any], Any]:
    """Declare what a ufunc makes of the parts of complex numbers."""

    def declare(compute: Any) -> Any:
        FUNCTIONS[name] = compute
        return compute

    return declare


def from_parts(real: Real, imag: Real, dtype: Any) -> Any:
    """Complex numbers made of two parts, in code that is traced."""
    return real.trace.joined(real, imag, dtype)


def either(condition: Real, one: Pair, other: Pair) -> Pair:
    """One pair where a condition holds, and the other elsewhere."""
    return np.where(condition, one[0], other[0]), np.where(condition, one[1], other[1])


def largest(dtype: Any) -> float:
    """The largest number of a format."""
    return float(np.finfo(dtype).max)


# ------------------------------------------------------------------ arithmetic


@function("positive")
def same(z: Pair) -> Pair:
    """z"""
    return z


@function("negative")
def negative(z: Pair) -> Pair:
    """-z"""
    return -z[0], -z[1]


@function("conjugate")
def conjugate(z: Pair) -> Pair:
    """The conjugate."""
    return z[0], -z[1]


@function("add")
def add(z: Pair, w: Pair) -> Pair:
    """z + w"""
    return z[0] + w[0], z[1] + w[1]


@function("subtract")
def subtract(z: Pair, w: Pair) -> Pair:
    """z - w"""
    return z[0] - w[0], z[1] - w[1]


@function("multiply")
def multiply(z: Pair, w: Pair) -> Pair:
    """z w"""
    (a, b), (c, d) = z, w
    return a * c - b * d, a * d + b * c


@function("square")
def square(z: Pair) -> Pair:
    """z z"""
    return multiply(z, z)


@function("divide")
def divide(z: Pair, w: Pair) -> Pair:
    """z / w by Smith's method: the smaller part of the divisor over the larger one comes first."""
    (a, b), (c, d) = z, w
    flat = np.absolute(c) >= np.absolute(d)
    ratio = np.where(flat, d, c) / np.where(flat, c, d)
    scale = 1.0 / (np.where(flat, c, d) + np.where(flat, d, c) * ratio)
    more = (a + b * ratio) * scale, (b - a * ratio) * scale
    less = (a * ratio + b) * scale, (b * ratio - a) * scale
    none = (np.absolute(c) == 0) & (np.absolute(d) == 0)
    return either(none, (a / np.absolute(c), b / np.absolute(c)), either(flat, more, less))


@function("reciprocal")
def reciprocal(z: Pair) -> Pair:
    """1 / z"""
    return divide((1.0, 0.0), z)


@function("absolute")
def absolute(z: Pair) -> Real:
    """The modulus."""
    return np.hypot(*z)


@function("sign")
def sign(z: Pair) -> Pair:
    """z over its modulus, and zero at zero."""
    modulus = np.hypot(*z)
    at = np.where(modulus == 0, 1.0, modulus)
    return z[0] / at, z[1] / at


# ------------------------------------------------------------------ questions


@function("equal")
def equal(z: Pair, w: Pair) -> Real:
    """Whether both parts are equal."""
    return (z[0] == w[0]) & (z[1] == w[1])


@function("not_equal")
def not_equal(z: Pair, w: Pair) -> Real:
    """Whether a part is not."""
    return (z[0] != w[0]) | (z[1] != w[1])


def truth(z: Pair) -> Real:
    """Whether a part is not zero."""
    return (z[0] != 0) | (z[1] != 0)


@function("logical_not")
def logical_not(z: Pair) -> Real:
    """Whether both parts are zero."""
    return (z[0] == 0) & (z[1] == 0)


@function("logical_and")
def logical_and(z: Pair, w: Pair) -> Real:
    """Whether neither is zero."""
    return truth(z) & truth(w)


@function("logical_or")
def logical_or(z: Pair, w: Pair) -> Real:
    """Whether one is not zero."""
    return truth(z) | truth(w)


@function("logical_xor")
def logical_xor(z: Pair, w: Pair) -> Real:
    """Whether just one is not zero."""
    return truth(z) ^ truth(w)


@function("isnan")
def isnan(z: Pair) -> Real:
    """Whether a part is nan."""
    return np.isnan(z[0]) | np.isnan(z[1])


@function("isinf")
def isinf(z: Pair) -> Real:
    """Whether a part is infinite."""
    return np.isinf(z[0]) | np.isinf(z[1])


@function("isfinite")
def isfinite(z: Pair) -> Real:
    """Whether both parts are finite."""
    return np.isfinite(z[0]) & np.isfinite(z[1])


# ------------------------------------------------------------------ exponentials


@function("exp")
def exp(z: Pair) -> Pair:
    """e**x (cos y + i sin y): what overflows before it meets a small sine is scaled."""
    x, y = z
    far = x > math.log(largest(x.dtype)) - 1
    size = np.exp(np.where(far, x - 8.0, x))
    factor = np.where(far, math.exp(8.0), 1.0)
    real, imag = size * np.cos(y) * factor, size * np.sin(y) * factor
    imag = np.where(y == 0, y, imag)
    lost = np.isinf(x) & ~np.isfinite(y)
    return np.where(lost, np.where(x < 0, 0.0, INF), real), np.where(lost & (x < 0), 0.0, imag)


@function("exp2")
def exp2(z: Pair) -> Pair:
    """2**z"""
    return exp((z[0] * math.log(2), z[1] * math.log(2)))


@function("expm1")
def expm1(z: Pair) -> Pair:
    """exp(z) - 1, with its digits near zero."""
    x, y = z
    half = np.sin(y * 0.5)
    return np.expm1(x) * np.cos(y) - 2.0 * half * half, np.exp(x) * np.sin(y)


def size_of(x: Real, y: Real) -> Real:
    """The logarithm of the modulus: near one from how far it is from one, elsewhere from the larger part."""
    x, y = np.absolute(x), np.absolute(y)
    high, low = np.maximum(x, y), np.minimum(x, y)
    odd = ~(high < INF) | (high == 0)
    ratio = low / np.where(odd, 1.0, high)
    far = np.log(high) + 0.5 * np.log1p(ratio * ratio)
    near = 0.5 * np.log1p((high - 1.0) * (high + 1.0) + low * low)
    usual = np.where((high > 0.5) & (high < 1.5), near, far)
    return np.where(odd, np.log(np.hypot(x, y)), usual)


@function("log")
def log(z: Pair) -> Pair:
    """The logarithm of the modulus, and the angle."""
    return size_of(*z), np.arctan2(z[1], z[0])


@function("log2")
def log2(z: Pair) -> Pair:
    """The logarithm to the base 2."""
    size, angle = log(z)
    return size * (1 / math.log(2)), angle * (1 / math.log(2))


@function("log10")
def log10(z: Pair) -> Pair:
    """The logarithm to the base 10."""
    size, angle = log(z)
    return size * (1 / math.log(10)), angle * (1 / math.log(10))


@function("log1p")
def log1p(z: Pair) -> Pair:
    """log(1 + z), with its digits near zero: half the logarithm of 1 + 2 x + x**2 + y**2."""
    x, y = z
    near = 0.5 * np.log1p(x * (2.0 + x) + y * y)
    close = (np.absolute(x) < 0.5) & (np.absolute(y) < 0.5)
    return np.where(close, near, size_of(1.0 + x, y)), np.arctan2(y, 1.0 + x)


@function("power")
def power(z: Pair, w: Pair) -> Pair:
    """exp(w log(z))"""
    return exp(multiply(w, log(z)))


# ------------------------------------------------------------------ roots


@function("sqrt")
def sqrt(z: Pair) -> Pair:
    """The root whose real part is not negative; large and small numbers are scaled by powers of four."""
    x, y = z
    high = np.maximum(np.absolute(x), np.absolute(y))
    large, small = high > largest(x.dtype) / 4, high < float(np.finfo(x.dtype).tiny) * 16
    up = 2.0 ** (np.finfo(x.dtype).nmant + 1 & ~1)
    factor = np.where(large, 0.25, np.where(small, up, 1.0))
    back = np.where(large, 2.0, np.where(small, 1 / math.sqrt(up), 1.0))
    a, b = x * factor, y * factor
    root = np.sqrt((np.absolute(a) + np.hypot(a, b)) * 0.5)
    rest = np.absolute(b) / (2.0 * np.where(root == 0, 1.0, root))
    right = np.where(x >= 0, root, rest) * back
    high = np.where(x >= 0, rest, root) * back
    right, high = np.where(np.isnan(x), x, right), np.where(np.isnan(x), x, high)
    endless = np.isinf(y)
    return np.where(endless, INF, right), np.copysign(np.where(endless, INF, high), y)


# ------------------------------------------------------------------ sines and their inverses


@function("sinh")
def sinh(z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y"""
    x, y = z
    real = np.where(((x == 0) | np.isinf(x)) & ~np.isfinite(y), x, np.sinh(x) * np.cos(y))
    return real, np.where(y == 0, y, np.cosh(x) * np.sin(y))


@function("cosh")
def cosh(z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y"""
    x, y = z
    none = np.copysign(0.0, x) * np.copysign(1.0, y)
    flat = (y == 0) | ((x == 0) & ~np.isfinite(y))
    real = np.where(np.isinf(x) & ~np.isfinite(y), INF, np.cosh(x) * np.cos(y))
    return real, np.where(flat, none, np.sinh(x) * np.sin(y))


@function("sin")
def sin(z: Pair) -> Pair:
    """sin x cosh y + i cos x sinh y"""
    imag, real = sinh((z[1], z[0]))
    return real, imag


@function("cos")
def cos(z: Pair) -> Pair:
    """cos x cosh y - i sin x sinh y"""
    return cosh((-z[1], z[0]))


@function("tanh")
def tanh(z: Pair) -> Pair:
    """By the tangent of y and the sine of x; far out only the sign of x is left."""
    x, y = z
    far = np.absolute(x) > 20.0
    near = np.where(far, 0.0, x)
    slope, height = np.tan(y), np.sinh(near)
    beta = 1.0 + slope * slope
    below = 1.0 + beta * height * height
    real = beta * np.sqrt(1.0 + height * height) * height / below
    faint = 4.0 * np.sin(y) * np.cos(y) * np.exp(-2.0 * np.absolute(x))
    faint = np.where(np.isinf(x), np.copysign(0.0, np.where(np.isfinite(y), np.sin(2.0 * y), y)), faint)
    imag = np.where(far, faint, slope / below)
    real = np.where((x == 0) & ~np.isfinite(y), x, real)
    return np.where(far, np.copysign(1.0, x), real), np.where(y == 0, y, imag)


@function("tan")
def tan(z: Pair) -> Pair:
    """tan(x + iy) = -i tanh(-y + ix)"""
    imag, real = tanh((z[1], z[0]))
    return real, imag


def around_one(z: Pair) -> tuple[Pair, Pair]:
    """The roots of 1 - z and of 1 + z."""
    x, y = z
    return sqrt((1.0 - x, -y)), sqrt((1.0 + x, y))


def endless(z: Pair) -> tuple[Real, Real, Real]:
    """Whether a part is infinite, and the direction in which such a number lies: finite parts count nothing."""
    (x, y), kind = z, z[0].dtype
    across = np.where(np.isnan(x), x, np.copysign(np.isinf(x).astype(kind), x))
    return np.isinf(x) | np.isinf(y), across, np.where(np.isnan(y), y, np.isinf(y).astype(kind))


@function("arcsin")
def arcsin(z: Pair) -> Pair:
    """Kahan's."""
    less, more = around_one(z)
    far, x, y = endless(z)
    height = np.where(far, INF, np.absolute(np.arcsinh(less[0] * more[1] - less[1] * more[0])))
    across = np.where(far, y, less[0] * more[0] - less[1] * more[1])
    return np.arctan2(np.where(far, x, z[0]), across), np.copysign(height, z[1])


@function("arccos")
def arccos(z: Pair) -> Pair:
    """Kahan's."""
    less, more = around_one(z)
    far, x, y = endless(z)
    height = np.where(far, np.copysign(INF, -z[1]), np.arcsinh(more[0] * less[1] - more[1] * less[0]))
    return np.where(far, np.arctan2(y, x), 2.0 * np.arctan2(less[0], more[0])), height


@function("arccosh")
def arccosh(z: Pair) -> Pair:
    """Kahan's."""
    x, y = z
    less, more = sqrt((x - 1.0, y)), sqrt((x + 1.0, y))
    far, a, b = endless(z)
    size = np.where(far, INF, np.arcsinh(less[0] * more[0] + less[1] * more[1]))
    return size, np.where(far, np.copysign(np.arctan2(b, a), y), 2.0 * np.arctan2(less[1], more[0]))


@function("arcsinh")
def arcsinh(z: Pair) -> Pair:
    """arcsinh(x + iy) = i arcsin(y - ix)"""
    real, imag = arcsin((z[1], -z[0]))
    return -imag, real


@function("arctanh")
def arctanh(z: Pair) -> Pair:
    """From the moduli of 1 + z and 1 - z, and the angle between them; far out from 1 / z."""
    x, y = z
    far = np.maximum(np.absolute(x), np.absolute(y)) > math.sqrt(largest(x.dtype)) / 8
    a, b = np.where(far, 0.0, x), np.where(far, 0.0, y)
    away = (1.0 - np.absolute(a)) * (1.0 - np.absolute(a)) + b * b
    size = 0.25 * np.log1p(4.0 * np.absolute(a) / away)
    angle = 0.5 * np.arctan2(2.0 * b, (1.0 - a) * (1.0 + a) - b * b)
    faint = np.where(np.isinf(x) | np.isinf(y), 0.0, np.absolute(reciprocal(z)[0]))
    return np.copysign(np.where(far, faint, size), x), np.where(far, np.copysign(math.pi / 2, y), angle)


@function("arctan")
def arctan(z: Pair) -> Pair:
    """arctan(x + iy) = i arctanh(y - ix)"""
    real, imag = arctanh((z[1], -z[0]))
    return -imag, real
