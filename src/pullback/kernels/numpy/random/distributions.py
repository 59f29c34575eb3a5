"""The elementwise distributions of torch on the CPU: uniform, integers, permutations, coins and waiting times.

Every function draws from an `Engine` and returns a new contiguous array. See note: random.
"""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np

from pullback._arrays.kinds import answered
from pullback._dtype import FROM_NUMPY, NAMES
from pullback._thresholds import FEW_DRAWS, MANY_DRAWS
from pullback.kernels.compiled import room
from pullback.kernels.numpy.random.draws import (
    DIGITS,
    FLOAT32,
    FLOAT64,
    LARGEST,
    Draw,
    below,
    cast,
    fill,
    fill_order,
    is_floating,
    log1p,
    name_of,
    require,
    scale_and_shift,
    tan,
    undrawn,
    unit_doubles,
    unit_floats,
)
from pullback.kernels.numpy.random.engine import BLOCK, DEFAULT_SEED, Engine
from pullback.kernels.numpy.random.multinomial import multinomial
from pullback.kernels.numpy.random.normal import log_normal, normal, normal_of_arrays
from pullback.kernels.numpy.random.permutation import randperm
from pullback.kernels.numpy.random.samplers import binomial, dirichlet, poisson, standard_gamma

__all__ = [
    "BLOCK",
    "DEFAULT_SEED",
    "Engine",
    "bernoulli",
    "bernoulli_of_array",
    "binomial",
    "cauchy",
    "dirichlet",
    "exponential",
    "fill_order",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal_of_arrays",
    "poisson",
    "random",
    "random_from_to",
    "randperm",
    "standard_gamma",
    "uniform",
]

_INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64"})
_NUMBERS = _INTEGERS | DIGITS.keys()
_NUMBERS_AND_BOOL = _NUMBERS | {"bool"}
INT64 = np.dtype(np.int64)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

# From this range on torch takes 64 bits, so that the remainder stays even.
_WIDE_RANGE = 1 << 28


@answered(meta=undrawn)
def uniform(engine: Engine, shape: tuple[int, ...], dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Draw numbers in [low, high); with the default bounds this is `rand`."""
    if dtype is FLOAT32 and low == 0 and high == 1 and 0 < (n := math.prod(shape)) < FEW_DRAWS:
        return unit_floats(engine, n).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        if math.prod(shape) == 0:
            return np.empty(shape, dtype)
        parts = FLOAT32 if dtype.itemsize == 8 else FLOAT64
        return uniform(engine, (*shape, 2), parts, low, high).view(dtype)[..., 0]
    standard = low == 0 and high == 1
    if dtype.char in "fd" and math.prod(shape) >= MANY_DRAWS and (compiled := room("random")) is not None:
        if not standard:
            _check_uniform_bounds(dtype, low, high)
        return compiled.uniform(engine, shape, dtype, low, high)
    if standard and dtype in (FLOAT32, FLOAT64):
        unit = unit_floats if dtype == FLOAT32 else unit_doubles
        return fill(shape, dtype, lambda k: unit(engine, k), "uniform_kernel_cpu")
    require("check_uniform_bounds", dtype)
    _check_uniform_bounds(dtype, low, high)
    draw = _uniform64(engine, low, high) if dtype == FLOAT64 else _uniform32(engine, low, high)
    values = fill(shape, dtype, draw, "uniform_kernel_cpu")
    first, last = cast(np.array([low, high]), dtype)
    # Rounding may have reached the upper bound, which is not in the range.
    np.copyto(values, first, where=values == last)
    return values


def _uniform64(engine: Engine, low: float, high: float) -> Draw:
    return lambda k: scale_and_shift(unit_doubles(engine, k), high - low, low, exact=True)


def _uniform32(engine: Engine, low: float, high: float) -> Draw:
    base, span = np.float32(low), np.float32(high) - np.float32(low)

    def draw(k: int) -> np.ndarray:
        u = unit_floats(engine, k)
        if base == 0:
            return np.multiply(u, span, u)
        # float64 holds the product exactly: the product and the sum are rounded once, as torch's fused code does.
        wide = u.astype(np.float64)
        wide *= np.float64(span)
        wide += np.float64(base)
        return wide.astype(np.float32)

    return draw


def _check_uniform_bounds(dtype: np.dtype, low: float, high: float) -> None:
    largest = LARGEST[name_of(dtype)]
    if -largest <= low <= high <= largest and high - low <= largest:
        return
    for value, name in ((low, "from"), (high, "to")):
        if not -largest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {FROM_NUMPY[dtype].cpp_name}")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if not high - low <= largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{FROM_NUMPY[dtype].scalar_type}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


@answered(meta=undrawn)
def random(engine: Engine, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draw integers of the whole range of the type: 0 to the largest, or to 2**digits for floating-point types."""
    dtype = np.dtype(dtype)
    if is_floating(dtype):
        count = 2 ** DIGITS[dtype.name] + 1
    else:
        count = int(np.iinfo(dtype).max) + 1 if dtype.kind in "iu" else 2
    draw = _remainders(engine, count, 0, wide=dtype.name in ("float64", "int64"))
    return fill(shape, dtype, draw, "random_kernel_cpu", _NUMBERS_AND_BOOL)


@answered(meta=undrawn)
def random_from_to(engine: Engine, shape: tuple[int, ...], dtype: np.dtype, low: int, high: int | None) -> np.ndarray:
    """Draw integers in [low, high), or from `low` to the largest of the type if `high` is None; this is `randint`."""
    if dtype is INT64 and high is not None and 0 < high - low < _WIDE_RANGE and 0 < (n := math.prod(shape)) < FEW_DRAWS:
        if low >= _INT64_MIN and high <= _INT64_MAX:
            values = np.remainder(engine.raw32(n), np.uint32(high - low)).astype(np.int64)
            return (np.add(values, low, values) if low else values).reshape(shape)
    dtype = np.dtype(dtype)
    floating = is_floating(dtype)
    if high is None and low == _INT64_MIN:
        return _full_range(engine, shape, dtype)
    if high is not None:
        if not low < high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        if floating:
            low, high = _representable_from(low, dtype), _representable_to(high, dtype)
            if not low < high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                    f"from={low} >= to={high}"
                )
        last = high - 1
    elif floating:
        last = 2 ** DIGITS[dtype.name]
        low = _representable_from(low, dtype)
        if not low < last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={low} > to_inc={last}"
            )
    elif dtype.kind == "c":
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    else:
        last = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
        last = last - 2**64 if last > _INT64_MAX else last
    _check_integer_bounds(low, last, dtype)
    if math.prod(shape) >= MANY_DRAWS and (compiled := room("random")) is not None:
        made = compiled.remainders(engine, shape, dtype, last - low + 1, low, last - low + 1 >= _WIDE_RANGE)
        if made is not None:
            return made
    draw = _remainders(engine, last - low + 1, low, last - low + 1 >= _WIDE_RANGE)
    return fill(shape, dtype, draw, "random_from_to_kernel_cpu", NAMES)


def _remainders(engine: Engine, count: int, low: int, wide: bool) -> Draw:
    """Make a function that draws integers in [low, low + count), as int64, from 32 bits each or from 64."""
    if not wide:
        divisor = np.uint32(count) if count < 2**32 else None

        def draw32(k: int) -> np.ndarray:
            raw = engine.raw32(k)
            values = (raw if divisor is None else np.remainder(raw, divisor)).astype(np.int64)
            return np.add(values, low, values) if low else values

        return draw32

    # The sum wraps around in 64 bits: a range may be wider than int64's positive half.
    divisor64, base = np.uint64(count), np.uint64(low % 2**64)

    def draw64(k: int) -> np.ndarray:
        values = np.remainder(engine.raw64(k), divisor64)
        return np.add(values, base, values).view(np.int64)

    return draw64


def _full_range(engine: Engine, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    kernel = "random_full_64_bits_range_kernel_cpu"
    if dtype.name in _INTEGERS - {"int64"} and math.prod(shape):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
    return fill(shape, dtype, lambda k: engine.raw64(k).view(np.int64), kernel, _NUMBERS - {"float16"})


def _through(value: int, dtype: np.dtype) -> int:
    """Cast an integer to a floating-point type and back."""
    number = float(cast(np.array(value, np.int64), dtype))
    return int(number) if abs(number) < 2.0**63 else _INT64_MIN


def _representable_from(low: int, dtype: np.dtype) -> int:
    """Move `low` up if the numbers above it would be rounded below it."""
    above = _through(low + 1, dtype)
    if above < low:
        low = above + (1 << (abs(low + 1).bit_length() - DIGITS[dtype.name]))
    return low


def _representable_to(high: int, dtype: np.dtype) -> int:
    """Move `high` down if the numbers below it would be rounded up to it."""
    below = _through(high - 1, dtype)
    if below >= high:
        high = below - (1 << (abs(high - 1).bit_length() - DIGITS[dtype.name]))
    return high


@cache
def _integer_limits(dtype: np.dtype) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), _INT64_MAX)


def _check_integer_bounds(low: int, last: int, dtype: np.dtype) -> None:
    if dtype.char == "l" and low >= _INT64_MIN and last <= _INT64_MAX:
        return
    name = name_of(dtype)
    if dtype.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if is_floating(dtype):
        least, most = -LARGEST[name], LARGEST[name]
    else:
        least, most = _integer_limits(dtype)
    for value, what in ((low, "from"), (last, "to - 1")):
        if not least <= value <= most:
            raise RuntimeError(f"{what} is out of bounds for {FROM_NUMPY[dtype].cpp_name}")
    if is_floating(dtype):
        digits = DIGITS[name]
        for value, what in ((low, "from"), (last, "to - 1")):
            if abs(value) > 2**digits:
                warnings.warn(
                    f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                    f"{FROM_NUMPY[dtype].cpp_name} can support discrete uniform distribution only within this range. "
                    "This warning will become an error in version 1.7 release, please fix the code in advance",
                    stacklevel=4,
                )


@answered(meta=undrawn)
def bernoulli(engine: Engine, shape: tuple[int, ...], dtype: np.dtype, p: float = 0.5) -> np.ndarray:
    """Draw ones with probability `p` and zeros otherwise."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    dtype = np.dtype(dtype)
    if math.prod(shape) >= MANY_DRAWS and (compiled := room("random")) is not None:
        made = compiled.coins(engine, shape, dtype, p)
        if made is not None:
            return made
    return fill(shape, dtype, lambda k: below(engine, k, p), "bernoulli_scalar_cpu_", _NUMBERS_AND_BOOL)


@answered(meta=lambda engine, p, shape, dtype: np.empty(shape, dtype))
def bernoulli_of_array(engine: Engine, p: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draw ones with the probabilities `p`, broadcast to `shape`: 53 bits each if `p` is float64, otherwise 24."""
    dtype = np.dtype(dtype)
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    require("bernoulli_tensor_cpu_self_", dtype, _NUMBERS_AND_BOOL)
    require("bernoulli_tensor_cpu_p_", p.dtype)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    if p.dtype == FLOAT64:
        return np.less(uniform(engine, shape, p.dtype), p).astype(dtype)
    return np.less(uniform(engine, shape, FLOAT32), p.astype(np.float32, copy=False)).astype(dtype)


@answered(meta=undrawn)
def exponential(engine: Engine, shape: tuple[int, ...], dtype: np.dtype, lambd: float = 1.0) -> np.ndarray:
    """Draw waiting times with the rate `lambd`."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    dtype = np.dtype(dtype)
    if not is_floating(dtype) and math.prod(shape):
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {FROM_NUMPY[dtype].scalar_type}"
        )
    exact, scale = dtype == FLOAT64, -1.0 / lambd
    return fill(shape, dtype, lambda k: scale * log1p(-unit_doubles(engine, k), exact), "exponential_cpu")


@answered(meta=undrawn)
def cauchy(
    engine: Engine, shape: tuple[int, ...], dtype: np.dtype, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """Draw Cauchy numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    dtype = np.dtype(dtype)
    if not is_floating(dtype):
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {FROM_NUMPY[dtype].cpp_name}"
        )
    exact = dtype == FLOAT64

    def draw(k: int) -> np.ndarray:
        return scale_and_shift(tan(math.pi * (unit_doubles(engine, k) - 0.5), exact), sigma, median, exact)

    return fill(shape, dtype, draw, "cauchy_cpu")


@answered(meta=undrawn)
def geometric(engine: Engine, shape: tuple[int, ...], dtype: np.dtype, p: float) -> np.ndarray:
    """Draw the number of tosses until the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    dtype = np.dtype(dtype)
    scale = math.log1p(-p)

    def draw(k: int) -> np.ndarray:
        tosses = np.ceil(np.log(unit_doubles(engine, k)) / scale)
        # The narrow integer types keep the lower bits of what does not fit.
        return tosses if is_floating(dtype) else tosses.astype(np.int64)

    return fill(shape, dtype, draw, "geometric_cpu", _NUMBERS)
