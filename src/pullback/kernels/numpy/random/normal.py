"""The normal distribution, by torch's two ways: pairs of doubles one by one, and blocks of sixteen.

See note: random.
"""

from __future__ import annotations

import math

import numpy as np

from pullback._arrays.kinds import answered
from pullback._thresholds import FEW_PAIRS
from pullback.kernels.compiled import room
from pullback.kernels.numpy.random.draws import (
    FLOAT32,
    FLOAT64,
    PIECE,
    cast,
    doubles_of,
    exp,
    fill,
    log,
    log1p,
    require,
    scale_and_shift,
    undrawn,
    undrawn_like,
    unit_double_list,
    unit_doubles,
    unit_floats,
)
from pullback.kernels.numpy.random.engine import Engine

# The float32 logarithm, sine and cosine of torch's vectorised code are the polynomials of the Cephes library. The last
# two coefficients of the logarithm (row 0), the cosine (row 1) and the sine (row 2) are applied together.
_FIRST_LOG, _FIRST_COS, _FIRST_SIN = np.array([7.0376836292e-2, 2.443315711809948e-5, -1.9515295891e-4], np.float32)
_LOG = [-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1]
_LOG = [np.array(np.float32(c), np.float64) for c in _LOG]
_LAST_TWO = np.array(
    [
        [-2.4999993993e-1, -1.388731625493765e-3, 8.3321608736e-3],
        [3.3333331174e-1, 4.166664568298827e-2, -1.6666654611e-1],
    ],
    np.float32,
).astype(np.float64)[:, :, None]
_LOG_2_HIGH, _LOG_2_LOW = np.array(0.693359375, np.float32), np.array(-2.12194440e-4, np.float32)
_ROOT_HALF_BITS, _FRACTION_BITS = np.array(0x3F3504F3, np.int32), np.array(0x7FFFFF, np.int32)
_EXPONENT_SHIFT, _SIGN_SHIFT = np.array(23, np.int32), np.array(29, np.int32)
_ONE, _TWO, _FOUR, _EVEN = (np.array(i, np.int32) for i in (1, 2, 4, -2))
_UNIT, _HALF, _MINUS_HALF, _MINUS_TWO = (np.array(c, np.float32) for c in (1, 0.5, -0.5, -2))
_TWO_PI, _FOUR_OVER_PI = np.array(2 * math.pi, np.float32), np.array(1.27323954473516, np.float32)
# Minus pi / 4 in three parts; multiples up to 8 of the first two are exact in float32.
_PI_1, _PI_2 = np.array(-0.78515625, np.float32), np.array(-2.4187564849853515625e-4, np.float32)
_PI_3 = np.array(np.float32(-3.77489497744594108e-8), np.float64)


@answered(meta=undrawn)
def normal(
    engine: Engine,
    shape: tuple[int, ...],
    dtype: np.dtype,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> np.ndarray:
    """Draw normal numbers; `contiguous=False` draws as torch does for a target that is not contiguous."""
    if dtype is FLOAT32 and mean == 0 and std == 1 and engine.next_double_normal_sample is None:
        n = math.prod(shape)
        if 0 < n < 16 and not n & 1 and (found := engine.few(pairs_of, 4, n >> 1)) is not None:
            return found.reshape(shape).astype(FLOAT32)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        parts = FLOAT32 if dtype.itemsize == 8 else FLOAT64
        return normal(engine, (*shape, 2), parts, mean, std / math.sqrt(2), contiguous).view(dtype)[..., 0]
    n = math.prod(shape)
    if n == 0:
        return np.empty(shape, dtype)
    require("normal_kernel_cpu", dtype)
    if n < 16 or not contiguous:
        exact = dtype == FLOAT64
        values = scale_and_shift(standard_normals(engine, n, exact), std, mean, exact)
        if dtype == FLOAT32 and abs(mean) < 1e30 and std < 1e30:
            # Nothing can overflow, and `cast` takes its time to watch for it.
            return values.astype(FLOAT32).reshape(shape)
        return cast(values, dtype).reshape(shape)
    return _sixteens(engine, n, dtype, float(mean), float(std)).reshape(shape)


@answered(meta=undrawn_like)
def normal_of_arrays(engine: Engine, mean: np.ndarray | float, std: np.ndarray | float) -> np.ndarray:
    """Draw normal numbers around an array of means or with an array of deviations, or both."""
    if not isinstance(std, np.ndarray):
        values = normal(engine, mean.shape, mean.dtype, 0.0, std)
        return np.add(values, mean, values)
    if std.size and not std.min() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    dtype = mean.dtype if isinstance(mean, np.ndarray) else std.dtype
    values = normal(engine, np.broadcast_shapes(np.shape(mean), std.shape), dtype)
    np.multiply(values, std, values, casting="same_kind")
    return np.add(values, np.asarray(mean, dtype), values)


@answered(meta=undrawn)
def log_normal(
    engine: Engine, shape: tuple[int, ...], dtype: np.dtype, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """Draw numbers whose logarithm is normal."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    dtype = np.dtype(dtype)
    exact = dtype == FLOAT64

    def draw(k: int) -> np.ndarray:
        return exp(scale_and_shift(standard_normals(engine, k, exact), std, mean, exact), exact)

    return fill(shape, dtype, draw, "log_normal_cpu")


def standard_normals(engine: Engine, n: int, exact: bool) -> np.ndarray:
    """Draw `n` float64 normal numbers in pairs, starting with the sample the engine kept and keeping the odd one.

    What is kept has the C library's bits even if the numbers handed out need not: it may be used in float64 later.
    """
    values = np.empty(n + 1)
    start = 0
    if n and engine.next_double_normal_sample is not None:
        values[0] = engine.next_double_normal_sample
        engine.next_double_normal_sample = None
        start = 1
    pairs = (n - start + 1) // 2
    if pairs <= FEW_PAIRS:
        u = unit_double_list(engine, 2 * pairs)
        for i in range(0, 2 * pairs, 2):
            values[start + i], values[start + i + 1] = _pair(u[i], u[i + 1])
    else:
        for first in range(0, pairs, PIECE):
            k = min(PIECE, pairs - first)
            u = unit_doubles(engine, 2 * k).reshape(k, 2)
            radius = np.sqrt(-2.0 * log1p(-u[:, 1], exact))
            theta = (2.0 * math.pi) * u[:, 0]
            place = start + 2 * first
            np.multiply(radius, np.cos(theta), values[place : place + 2 * k : 2])
            np.multiply(radius, np.sin(theta), values[place + 1 : place + 2 * k : 2])
        u = u[-1].tolist()
    if start + 2 * pairs > n:
        engine.next_double_normal_sample = _pair(u[-2], u[-1])[1]
    return values[:n]


def pairs_of(words: np.ndarray) -> np.ndarray:
    """Pairs of normal numbers, of four words each, by NumPy's functions."""
    u = doubles_of(words).reshape(-1, 2)
    radius, theta = np.sqrt(-2.0 * np.log1p(-u[:, 1])), (2.0 * math.pi) * u[:, 0]
    return np.stack((radius * np.cos(theta), radius * np.sin(theta)), 1)


def _pair(u1: float, u2: float) -> tuple[float, float]:
    radius = math.sqrt(-2.0 * math.log1p(-u2))
    theta = 2.0 * math.pi * u1
    return radius * math.cos(theta), radius * math.sin(theta)


def _sixteens(engine: Engine, n: int, dtype: np.dtype, mean: float, std: float) -> np.ndarray:
    """Draw at least 16 numbers in blocks of 16; what is left over makes torch draw the last 16 anew."""
    draw, transform = (unit_doubles, _block64) if dtype == FLOAT64 else (unit_floats, _block32)
    if (compiled := room("random")) is not None:
        if dtype != FLOAT64:
            draw, transform = _words, compiled.normal_blocks
        elif compiled.has_library("log", "cos", "sin"):
            draw, transform = _word_pairs, compiled.normal_blocks
    if not n % 16 and n <= PIECE and dtype.itemsize != 2:
        return transform(draw(engine, n), mean, std)
    out = np.empty(n, dtype)
    start = 0
    while n - start > PIECE + 16:
        u = draw(engine, PIECE)
        out[start : start + PIECE] = transform(u, mean, std)
        start += PIECE
    rest = (n - start) % 16
    whole = n - start - rest
    if rest == 0:
        out[start:] = transform(draw(engine, whole), mean, std)
        return out
    # The half types do not draw the numbers that the last block replaces; float and double draw and drop them.
    u = draw(engine, whole + 16 if dtype.itemsize == 2 else whole + rest + 16)
    if dtype.itemsize != 2:
        u[whole : whole + 16] = u[whole + rest :]
    values = transform(u[: whole + 16], mean, std)
    out[start : start + whole] = values[:whole]
    out[-16:] = values[whole:]
    return out


def _words(engine: Engine, n: int) -> np.ndarray:
    """Draw words that may be written over."""
    words = engine.raw32(n)
    return words if words.flags.writeable else words.copy()


def _word_pairs(engine: Engine, n: int) -> np.ndarray:
    return _words(engine, 2 * n).view(np.uint64)


def _block64(u: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Turn blocks of 16 uniform doubles into normal ones."""
    first, second = _halves(u)
    radius = np.sqrt(-2.0 * log(1.0 - first, exact=True))
    theta = (2.0 * math.pi) * second
    return scale_and_shift(_joined(radius * np.cos(theta), radius * np.sin(theta)), std, mean, exact=True)


def _block32(u: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Turn blocks of 16 uniform floats into normal ones."""
    first, second = _halves(u)
    np.subtract(_UNIT, first, first)
    np.multiply(_TWO_PI, second, second)
    radius, sine, cosine = _log_and_sincos(first, second)
    np.sqrt(np.multiply(_MINUS_TWO, radius, radius), radius)
    out = _joined(np.multiply(radius, cosine, cosine), np.multiply(radius, sine, sine))
    if np.float32(std) == 1:
        return np.add(out, np.float32(mean), out)
    wide = out.astype(np.float64)
    wide *= np.float64(np.float32(std))
    wide += np.float64(np.float32(mean))
    return wide.astype(np.float32)


def _halves(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Part blocks of 16 into their first and last eight, moving eight numbers at once."""
    eights = u.view(f"V{8 * u.itemsize}")
    return eights[0::2].copy().view(u.dtype), eights[1::2].copy().view(u.dtype)


def _joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Undo `_halves`."""
    out = np.empty(2 * len(first), first.dtype)
    eights, kind = out.view(f"V{8 * out.itemsize}"), f"V{8 * out.itemsize}"
    eights[0::2], eights[1::2] = first.view(kind), second.view(kind)
    return out


def _log_and_sincos(x: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log(x), sin(theta), cos(theta) for float32 x in (0, 1] and theta in [0, 2 pi), rounded as torch rounds.

    torch's compiler fuses a product with the sum that follows it. Here float64 holds the product exactly and the sum
    is rounded to float32 from there. See note: random.
    """
    # x = 2**exponent * (1 + fraction), with 1 + fraction between the square roots of 1/2 and 2.
    bits = np.subtract(x.view(np.int32), _ROOT_HALF_BITS)
    exponent = np.right_shift(bits, _EXPONENT_SHIFT).astype(np.float32)
    np.bitwise_and(bits, _FRACTION_BITS, bits)
    np.add(bits, _ROOT_HALF_BITS, bits)
    fraction = bits.view(np.float32)
    np.subtract(fraction, _UNIT, fraction)
    # theta = octant * pi / 4 + angle, with octant even and angle between -pi / 4 and pi / 4.
    octant = np.multiply(theta, _FOUR_OVER_PI).astype(np.int32)
    np.add(octant, _ONE, octant)
    np.bitwise_and(octant, _EVEN, octant)
    turns = octant.astype(np.float32)
    angle = np.add(theta, np.multiply(turns, _PI_1))
    np.add(angle, np.multiply(turns, _PI_2), angle)
    wide = octant.astype(np.float64)
    np.multiply(wide, _PI_3, wide)
    angle = np.add(wide, angle.astype(np.float64), wide).astype(np.float32)

    square, fraction_square = np.multiply(angle, angle), np.multiply(fraction, fraction)
    shape = (3, len(x))
    factor, y, narrow = np.empty(shape), np.empty(shape), np.empty(shape, np.float32)
    factor[0], factor[1], factor[2] = fraction, square, square
    y[0], y[1], y[2] = _FIRST_LOG, _FIRST_COS, _FIRST_SIN
    log_y, log_factor, log_narrow = y[0], factor[0], narrow[0]
    for coefficient in _LOG:
        _fuse(log_y, log_factor, coefficient, log_narrow)
    for coefficients in _LAST_TWO:
        _fuse(y, factor, coefficients, narrow)
    narrow[...] = np.multiply(y, factor, y)
    y[...] = narrow
    factor[0], factor[2] = fraction_square, angle
    np.multiply(exponent, _LOG_2_LOW, narrow[0])
    np.multiply(square, _MINUS_HALF, narrow[1])
    narrow[2] = angle
    _fuse(y, factor, narrow, narrow)
    logarithm, cosine, sine = narrow

    np.subtract(logarithm, np.multiply(fraction_square, _HALF, fraction_square), logarithm)
    np.add(fraction, logarithm, logarithm)
    np.add(logarithm, np.multiply(exponent, _LOG_2_HIGH, exponent), logarithm)
    np.add(cosine, _UNIT, cosine)

    # Octants 2 and 6 exchange sine and cosine, by their bits; then the signs.
    sine_bits, cosine_bits = sine.view(np.int32), cosine.view(np.int32)
    mask = np.negative(np.right_shift(np.bitwise_and(octant, _TWO), _ONE))
    np.bitwise_and(np.bitwise_xor(sine_bits, cosine_bits), mask, mask)
    np.bitwise_xor(sine_bits, mask, sine_bits)
    np.bitwise_xor(cosine_bits, mask, cosine_bits)
    signs = np.left_shift(np.bitwise_and(octant, _FOUR), _SIGN_SHIFT)
    np.bitwise_xor(sine_bits, signs, sine_bits)
    np.add(octant, _TWO, octant)
    np.left_shift(np.bitwise_and(octant, _FOUR, octant), _SIGN_SHIFT, octant)
    np.bitwise_xor(cosine_bits, octant, cosine_bits)
    return logarithm, sine, cosine


def _fuse(y: np.ndarray, factor: np.ndarray, addend: np.ndarray, narrow: np.ndarray) -> None:
    """Replace float64 y, holding float32 values, by y * factor + addend rounded once to float32; also into narrow."""
    np.multiply(y, factor, y)
    narrow[...] = np.add(y, addend, y)
    y[...] = narrow
