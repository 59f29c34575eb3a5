"""What every distribution is made of: uniform numbers, torch's roundings, and the order in which tensors are filled.

See note: random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from functools import cache, lru_cache
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._thresholds import FEW_DRAWS, MANY_DRAWS
from pullback.kernels.compiled import room
from pullback.kernels.numpy.random.engine import Engine, joined

# Long draws are made in pieces that stay in the processor's cache. A multiple of 16, for `normal`.
PIECE = 32768


_MASK_24 = np.array(0xFF_FFFF, np.int32)
_ULP_24 = np.array(2.0**-24, np.float32)
_MASK_53 = np.array(2**53 - 1, np.uint64)
_ULP_53 = np.array(2.0**-53)

# Bits of the significand. NumPy's finfo does not know bfloat16.
DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
FLOAT_AND_DOUBLE = frozenset({"float32", "float64"})
LARGEST = {"bfloat16": 3.3895313892515355e38, "float16": 65504.0, "float32": float(np.finfo(np.float32).max)}
LARGEST["float64"] = float(np.finfo(np.float64).max)


Draw = Callable[[int], np.ndarray]

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def undrawn(engine: Any, shape: Any, dtype: Any, *rest: Any, **options: Any) -> Any:
    """What stands for a draw where arrays have no elements: nothing is drawn."""
    return np.empty(shape, dtype)


def undrawn_like(engine: Any, *arrays: Any) -> Any:
    """The same for what is drawn by the elements of arrays."""
    shape = np.broadcast_shapes(*[np.shape(a) for a in arrays])
    return np.empty(shape, next(a.dtype for a in arrays if isinstance(a, np.ndarray)))


@cache
def name_of(dtype: np.dtype) -> str:
    """Return `dtype.name`, which NumPy takes a microsecond to spell."""
    return dtype.name


@cache
def is_floating(dtype: np.dtype) -> bool:
    """Tell whether `dtype` is one of the four floating-point types."""
    return dtype.name in DIGITS


def require(kernel: str, dtype: np.dtype, names: Container[str] = DIGITS) -> None:
    """Raise torch's error unless the kernel is made for `dtype`."""
    if name_of(dtype) not in names:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[dtype].scalar_type}'")


def floats_of(words: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), of 24 bits of each word."""
    bits = np.bitwise_and(words.view(np.int32), _MASK_24).astype(np.float32)
    return np.multiply(bits, _ULP_24, bits)


def doubles_of(words: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), of 53 bits of two words each."""
    bits = joined(words)
    np.bitwise_and(bits, _MASK_53, bits)
    # Signed, because that conversion has a machine instruction.
    values = bits.view(np.int64).astype(np.float64)
    return np.multiply(values, _ULP_53, values)


def unit_floats(engine: Engine, n: int) -> np.ndarray:
    """Draw `n` float32 numbers in [0, 1): 24 bits of one 32 bit number each."""
    found = engine.few(floats_of, 1, n) if n < FEW_DRAWS else None
    return floats_of(engine.raw32(n)) if found is None else found.copy()


def unit_doubles(engine: Engine, n: int) -> np.ndarray:
    """Draw `n` float64 numbers in [0, 1): 53 bits of one 64 bit number each."""
    found = engine.few(doubles_of, 2, n) if n < FEW_DRAWS else None
    return doubles_of(engine.raw32(2 * n)) if found is None else found.copy()


def below(engine: Engine, n: int, p: float) -> np.ndarray:
    """Tell of `n` numbers like those of `unit_doubles` which are below `p`, by their bits."""
    bits = engine.raw64(n)
    return np.less(np.bitwise_and(bits, _MASK_53, bits), bits_of(p))


@lru_cache(64)
def bits_of(p: float) -> np.ndarray:
    """Count the numbers of 53 bits below `p` of all."""
    return np.array(math.ceil(p * 2.0**53), np.uint64)


def unit_double_list(engine: Engine, n: int) -> list[float]:
    """Draw like `unit_doubles`, as Python floats: quicker for a handful."""
    raw = engine.raw32(2 * n).tolist()
    return [((raw[i] & 0x1F_FFFF) << 32 | raw[i + 1]) * 2.0**-53 for i in range(0, 2 * n, 2)]


def fill(
    shape: tuple[int, ...], dtype: np.dtype, draw: Draw, kernel: str, names: Container[str] = DIGITS
) -> np.ndarray:
    """Fill an array from `draw(k)`, rounding as torch's casts from float and double do.

    As in torch, an empty array needs no kernel, so that no dtype is wrong for it.
    """
    n = math.prod(shape)
    if n == 0:
        return np.empty(shape, dtype)
    require(kernel, dtype, names)
    if n <= PIECE:
        return cast(draw(n), dtype).reshape(shape)
    out = np.empty(n, dtype)
    for start in range(0, n, PIECE):
        out[start : start + PIECE] = cast(draw(min(PIECE, n - start)), dtype)
    return out.reshape(shape)


def cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert to `dtype` as C++ does: into the half types by way of float32, and silently where infinity comes out."""
    if values.dtype == dtype:
        return values
    if not is_floating(dtype) or values.dtype.kind == "b":
        return values.astype(dtype)
    if dtype.itemsize == 2 and values.dtype != FLOAT32:
        values = values.astype(np.float32)
    return values.astype(dtype)


def libm(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """Apply a function of `math` to each element.

    torch's scalar loops call the C library; NumPy has vector versions of log, log1p, exp and tan whose last bit differs
    now and then. That shows only where float64 itself is the result, so only there is this slower way taken.
    """
    if x.size >= MANY_DRAWS and (compiled := room("random")) is not None:
        made: np.ndarray | None = compiled.by_library(function.__name__, np.ascontiguousarray(x))
        if made is not None:
            return made
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def log(x: np.ndarray, exact: bool) -> np.ndarray:
    """Natural logarithm of positive numbers; `exact` asks for the C library's last bit."""
    return libm(math.log, x) if exact else np.log(x)


def log1p(x: np.ndarray, exact: bool) -> np.ndarray:
    """Logarithm of 1 + x; `exact` asks for the C library's last bit."""
    return libm(math.log1p, x) if exact else np.log1p(x)


def tan(x: np.ndarray, exact: bool) -> np.ndarray:
    """Tangent; `exact` asks for the C library's last bit."""
    return libm(math.tan, x) if exact else np.tan(x)


# math.exp raises above this where the C library returns infinity.
_EXP_LIMIT = 709.782712893384


def exp(x: np.ndarray, exact: bool) -> np.ndarray:
    """Exponential; `exact` asks for the C library's last bit."""
    if not exact:
        return np.exp(x)
    values = libm(math.exp, np.minimum(x, _EXP_LIMIT))
    values[x > _EXP_LIMIT] = np.inf
    return values


def scale_and_shift(x: np.ndarray, scale: float, shift: float, exact: bool) -> np.ndarray:
    """Compute x * scale + shift in float64, rounding once if `exact`: torch's compiler fuses the two."""
    if scale == 1:
        return x + shift
    if exact and not math.isfinite(shift) and math.isfinite(scale):
        return np.full_like(x, shift)
    if shift == 0 or not exact or math.frexp(scale)[0] == 0.5 or not math.isfinite(scale):
        return x * scale + shift
    if x.size >= MANY_DRAWS and (compiled := room("random")) is not None:
        made: np.ndarray | None = compiled.scale_and_shift(x, scale, shift)
        if made is not None:
            return made
    return fused_multiply_add(x, scale, shift)


def fused_multiply_add(a: np.ndarray, b: float, c: float | np.ndarray) -> np.ndarray:
    """Compute a * b + c in float64 rounded once, for finite numbers.

    The product is split into two doubles, their sum with c into three, and the two small ones are added with rounding
    to odd, which makes the second rounding harmless (Boldo and Melquiond, 2008).
    """
    largest = max(abs(b), float(np.max(np.abs(c), initial=0.0)))
    if 0 < largest < np.inf and not 2.0**-900 < largest < 2.0**900:  # parts of the product would leave the range
        factor = 2.0**-200 if largest > 1 else 2.0**200
        return fused_multiply_add(a, b * factor, c * factor) / factor
    product, product_error = _two_product(a, np.float64(b))
    low, low_error = _two_sum(np.float64(c), product_error)
    high, high_error = _two_sum(product, low)
    small, lost = _two_sum(low_error, high_error)
    even = (small.view(np.int64) & 1) == 0
    small = np.where((lost != 0) & even, np.nextafter(small, np.copysign(np.inf, lost)), small)
    return high + small


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: np.ndarray, b: np.float64) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    a_high = a * 134217729.0
    a_high = a_high - (a_high - a)
    b_high = b * 134217729.0
    b_high = b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def fill_order(array: np.ndarray) -> np.ndarray:
    """View `array` with its dimensions sorted by stride, largest first: torch fills that view from first to last.

    Assign a contiguous draw to it: `target = fill_order(array); target[...] = uniform(engine, target.shape, ...)`.
    """
    strides = array.strides
    return array.transpose(sorted(range(array.ndim), key=lambda d: -strides[d] if array.shape[d] > 1 else 0))
