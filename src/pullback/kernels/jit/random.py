"""Random numbers in bulk: the Mersenne Twister by vectors, and what distributions make of its bits.

Every kernel does bit for bit what its NumPy counterpart in `kernels/random*.py` does, and products are fused with sums
exactly where torch's compiler fuses them, so sums and products are spelled out here. See note: random.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback._thresholds import ROWS_SHARE
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.compiler.target import ELEMENTS as TYPES
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, vector_of
from pullback.kernels.jit.runtime import calls

if TYPE_CHECKING:
    from pullback.kernels.numpy.random.engine import Engine

Array = np.ndarray[Any, Any]
Write = Callable[[Array, Array], bool]
BLOCK, MIDDLE = 624, 397
UPPER, LOWER, MATRIX = -(2**31), 2**31 - 1, 0x9908B0DF - 2**32
TEMPER_7, TEMPER_15 = 0x9D2C5680 - 2**32, 0xEFC60000 - 2**32
PIECE = 32768
"""How many numbers are made at a time, so that their bits stay in the cache."""
MASK_53 = 2**53 - 1


def shifted_right(a: Value, by: int) -> Value:
    """Shift that lets zeros in."""
    return a.binary(by, ("", "lshr"))


def times(a: Value, b: Value | float) -> Value:
    """A product that is rounded whatever follows it."""
    return a.binary(b, ("fmul", "mul"))


def plus(a: Value, b: Value | float) -> Value:
    """A sum whose operands were rounded."""
    return a.binary(b, ("fadd", "add"))


# ------------------------------------------------------------------ the generator


@cache
def twister() -> Callable[..., bool]:
    """out[start:n] = the next numbers; `key` moves on, and `block` gets the whole block that the last came from."""
    width = lanes("i32")
    type = f"<{width} x i32>"

    def describe(code: Code, key: Value, block: Value, out: Value, n: Value, start: Value) -> None:
        # The recurrence runs straight on into the second half; the first half gets a copy, for the next block.
        words = code.stack(2 * BLOCK, "i32")
        with code.loop(0, BLOCK, width) as i:
            code.store(code.load(key, i, type), words, i)
        with code.loop(start, n, BLOCK) as first:
            last = first + BLOCK >= n
            to = code.select(last, block, code.at(out, first, "i32"))
            with code.loop(0, BLOCK, 3 * width) as base:
                for part in range(3):
                    i = base + part * width
                    following = code.load(words, i + 1, type)
                    joined = (code.load(words, i, type) & UPPER) | (following & LOWER)
                    y = code.load(words, i + MIDDLE, type) ^ shifted_right(joined, 1) ^ (-(following & 1) & MATRIX)
                    code.store(y, words, i)
                    code.store(y, words, i + BLOCK)
                    y = y ^ shifted_right(y, 11)
                    y = y ^ ((y << 7) & TEMPER_7)
                    y = y ^ ((y << 15) & TEMPER_15)
                    code.store(y ^ shifted_right(y, 18), to, i)
            with code.when(last):
                target = code.at(out, first, "i32")
                code.vectors(0, n - first, width, lambda i: code.store(code.load(block, i, type), target, i))
        with code.loop(0, BLOCK, width) as i:
            code.store(code.load(words, i, type), key, i)

    params = [calls.array("int32", str(BLOCK), write=True)] * 2 + [calls.array("int32", "n", write=True)]
    return calls.kernel("twister", [*params, calls.integer("n"), calls.integer("start")], describe)


def key_of(bits: np.random.MT19937) -> Array | None:
    """The 624 numbers inside NumPy's generator as an array, or None if they are not where they should be."""
    words = np.frombuffer((ctypes.c_int32 * BLOCK).from_address(bits.ctypes.state_address), np.int32)
    state = bits.state["state"]
    return words if state["pos"] == BLOCK and np.array_equal(words.view(np.uint32), state["key"]) else None


def continue_block(key: Array, kept: Array, n: int) -> tuple[Array, Array]:
    """`n` numbers that begin with those `kept`, and the block that the last ones came from."""
    block, out = np.empty(BLOCK, np.int32), np.empty(n, np.int32)
    start = len(kept)
    out[:start] = kept
    if not twister()(key, block, out, n, start, 1, 1):
        raise RuntimeError("the state of the random number generator is not an array of 624 numbers")
    return out.view(np.uint32), block.view(np.uint32)


# ------------------------------------------------------------------ what is made of 32 or 64 bits


def swapped(pair: Value) -> Value:
    """64 bits of two words, the first drawn being the upper half (the machine is little-endian)."""
    return (pair << 32) | shifted_right(pair, 32)


def unit(code: Code, raw: Value, i: Value, element: str) -> Value:
    """A vector of numbers in [0, 1)."""
    if element == "float":
        bits = code.load(raw, i, vector_of("i32")) & 0xFFFFFF
        return times(code.convert(bits, "float"), 2.0**-24)
    bits = swapped(code.load(raw, i, vector_of("i64"))) & MASK_53
    return times(code.convert(bits, "double"), 2.0**-53)


@cache
def uniform_kernel(element: str) -> Callable[..., bool]:
    """out = unit * span + base, rounded once; `high` is replaced by `low`."""
    width, words = lanes(element), 1 if element == "float" else 2

    def describe(code: Code, raw: Value, out: Value, n: Value, *numbers: Value) -> None:
        base, span, low, high = (code.splat(number, width) for number in numbers)

        def body(i: Value) -> None:
            value = code.fma(unit(code, raw, i, element), span, base)
            code.store(code.select(code.compare("eq", value, high), low, value), out, i)

        code.vectors(0, n, width, body, 2)

    params = [calls.array("int32", f"n*{words}"), calls.array(DTYPES[element], "n", write=True), calls.integer("n")]
    return calls.kernel(f"uniform_{element}", params + [calls.number()] * 4, describe, element=element)


@lru_cache(64)
def bounds(char: str, low: float, high: float) -> tuple[float, ...]:
    """The numbers that `uniform_kernel` takes, rounded as torch rounds them."""
    first, last = np.array([low, high], char)
    return float(first), float(last - first), float(first), float(last)


def uniform(source: Engine, shape: tuple[int, ...], dtype: np.dtype, low: float, high: float) -> Array | None:
    """Numbers in [low, high), bounds that the caller has checked; None if unsupported."""
    element = ELEMENTS.get(dtype.char)
    if element is None:
        return None
    kernel, numbers = uniform_kernel(element), bounds(dtype.char, low, high)
    write: Write = lambda raw, out: kernel(raw, out, out.size, *numbers, 1, 1)
    return fill(source, shape, dtype, 1 if element == "float" else 2, write)


COINS = {"f": "float32", "d": "float64", "?": "bool"}


@cache
def coin_kernel(dtype: str) -> Callable[..., bool]:
    """out = 1 where 53 bits are below `limit`, else 0."""
    width, element = lanes("i64"), TYPES[dtype]

    def describe(code: Code, raw: Value, out: Value, n: Value, limit: Value) -> None:
        limits = code.splat(limit, width)

        def body(i: Value) -> None:
            below = (swapped(code.load(raw, i, vector_of("i64"))) & MASK_53) < limits
            code.store(code.convert(below, element, True), out, i)

        code.vectors(0, n, width, body, 2)

    params = [calls.array("int32", "n*2"), calls.array(dtype, "n", write=True), calls.integer("n"), calls.integer()]
    return calls.kernel(f"coins_{dtype}", params, describe)


def coins(source: Engine, shape: tuple[int, ...], dtype: np.dtype, p: float) -> Array | None:
    """Ones with probability `p`, zeros otherwise."""
    name = COINS.get(dtype.char)
    if name is None:
        return None
    kernel, limit = coin_kernel(name), math.ceil(p * 2.0**53)
    return fill(source, shape, dtype, 2, lambda raw, out: kernel(raw, out, out.size, limit, 1, 1))


@cache
def remainder_kernel(wide: bool) -> Callable[..., bool]:
    """out = bits % divisor + low in int64, from 32 bits or from 64, by multiplication with a scaled inverse."""
    width, low32 = lanes("i64"), 2**32 - 1

    def narrow_rest(code: Code, raw: Value, out: Value, n: Value, *numbers: Value) -> None:
        divisor, inverse, low = (code.splat(number, width) for number in numbers)
        inverse_low, inverse_high = inverse & low32, shifted_right(inverse, 32)

        def body(i: Value) -> None:
            # bits * inverse (64 bits after the point) is the fraction that is left over; times the divisor, the rest.
            bits = code.convert(code.load(raw, i, f"<{width} x i32>"), "i64", True)
            fraction = bits * inverse_low + ((bits * inverse_high) << 32)
            rest = (fraction & low32) * divisor
            rest = shifted_right(shifted_right(rest, 32) + shifted_right(fraction, 32) * divisor, 32)
            code.store(rest + low, out, i)

        code.vectors(0, n, width, body, 2)

    def wide_rest(code: Code, raw: Value, out: Value, n: Value, divisor: Value, inverse: Value, low: Value) -> None:
        big = code.emit(f"zext {inverse} to i128", "i128")
        with code.loop(0, n) as i:
            bits = swapped(code.load(raw, i, "i64"))
            product = code.emit(f"mul i128 {code.emit(f'zext {bits} to i128', 'i128').name}, {big.name}", "i128")
            quotient = code.emit(f"trunc i128 {shifted_right(product, 64).name} to i64", "i64")
            # The quotient may be one too small.
            rest = bits - quotient * divisor
            rest = code.select(code.compare("uge", rest, divisor), rest - divisor, rest)
            code.store(rest + low, out, i)

    size = "n*2" if wide else "n"
    params = [calls.array("int32", size), calls.array("int64", "n", write=True), calls.integer("n")]
    params += [calls.integer()] * 3
    return calls.kernel(f"remainders_{'wide' if wide else 'narrow'}", params, wide_rest if wide else narrow_rest)


def remainders(source: Engine, shape: tuple[int, ...], dtype: np.dtype, count: int, low: int, wide: bool) -> Any:
    """Integers in [low, low + count); None if unsupported."""
    if dtype.char not in "lq" or not 1 < count < (2**64 if wide else 2**32):
        return None
    kernel = remainder_kernel(wide)
    inverse = (2**64 - 1) // count + (not wide)
    numbers = [signed(number) for number in (count, inverse, low)]
    write: Write = lambda raw, out: kernel(raw, out, out.size, *numbers, 1, 1)
    return fill(source, shape, dtype, 2 if wide else 1, write)


def signed(number: int) -> int:
    """The lower 64 bits, read with their sign."""
    return (number + 2**63) % 2**64 - 2**63


def fill(source: Engine, shape: tuple[int, ...], dtype: np.dtype, words: int, write: Write) -> Array:
    """An array written piece by piece by `write(raw, piece)`, from so many words of 32 bits for each number."""
    out = np.empty(shape, dtype)
    if out.size <= PIECE:
        write(source.raw32(words * out.size).view(np.int32), out)
        return out
    flat = out.reshape(-1)
    for start in range(0, flat.size, PIECE):
        piece = flat[start : start + PIECE]
        write(source.raw32(words * piece.size).view(np.int32), piece)
    return out


# ------------------------------------------------------------------ normal numbers

LOG = [7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
       2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1]  # fmt: skip
COSINE = [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]
SINE = [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]
ROOT_HALF = 0x3F3504F3


def polynomial(code: Code, x: Value, coefficients: list[float]) -> Value:
    """Horner's rule, every step rounded once."""
    y = code.const(coefficients[0], x.type)
    for coefficient in coefficients[1:]:
        y = code.fma(y, x, coefficient)
    return y


def logarithm(code: Code, x: Value) -> Value:
    """log(x) for float32 in (0, 1], as the Cephes library computes it."""
    bits = code.bitcast(x, "i32") - ROOT_HALF
    exponent = code.convert(bits >> 23, "float")
    fraction = plus(code.bitcast((bits & 0x7FFFFF) + ROOT_HALF, "float"), -1.0)
    square = times(fraction, fraction)
    y = times(polynomial(code, fraction, LOG), fraction)
    y = code.fma(y, square, times(exponent, -2.12194440e-4))
    y = plus(y, -times(square, 0.5))
    return plus(plus(fraction, y), times(exponent, 0.693359375))


def sine_and_cosine(code: Code, theta: Value) -> tuple[Value, Value]:
    """Both for float32 in [0, 2 pi), as the Cephes library computes them."""
    octant = (code.convert(times(theta, 1.27323954473516), "i32") + 1) & -2
    turns = code.convert(octant, "float")
    angle = plus(plus(theta, times(turns, -0.78515625)), times(turns, -2.4187564849853515625e-4))
    angle = code.fma(turns, -3.77489497744594108e-8, angle)
    square = times(angle, angle)
    cosine = times(polynomial(code, square, COSINE), square)
    cosine = plus(code.fma(cosine, square, times(square, -0.5)), 1.0)
    sine = code.fma(times(polynomial(code, square, SINE), square), angle, angle)
    # Octants 2 and 6 exchange sine and cosine; then the signs.
    swap = code.compare("ne", octant & 2, 0)
    sine, cosine = code.select(swap, cosine, sine), code.select(swap, sine, cosine)
    sine_bits = code.bitcast(sine, "i32") ^ ((octant & 4) << 29)
    cosine_bits = code.bitcast(cosine, "i32") ^ (((octant + 2) & 4) << 29)
    return code.bitcast(sine_bits, "float"), code.bitcast(cosine_bits, "float")


@cache
def normal_kernel() -> Callable[..., bool]:
    """Blocks of sixteen normal float32 numbers; an item is a block."""

    def describe(code: Code, raw: Value, out: Value, blocks: Value, mean: Value, std: Value) -> None:
        means, stds = code.splat(mean, 8), code.splat(std, 8)
        with code.loop(code.begin, code.end) as block:
            first, second = (
                times(code.convert(code.load(raw, block * 16 + half, "<8 x i32>") & 0xFFFFFF, "float"), 2.0**-24)
                for half in (0, 8)
            )
            radius = code.sqrt(times(logarithm(code, 1.0 - first), -2.0))
            sine, cosine = sine_and_cosine(code, times(second, 2 * math.pi))
            for half, value in ((0, cosine), (8, sine)):
                code.store(code.fma(times(radius, value), stds, means), out, block * 16 + half)

    params = [calls.array("int32", "blocks*16"), calls.array("float32", "blocks*16", write=True)]
    return calls.kernel("normal_blocks", [*params, calls.integer("blocks"), calls.number(), calls.number()], describe)


@cache
def normal_double_kernel() -> Callable[..., bool]:
    """The same in float64, by the C library's functions."""

    def describe(code: Code, raw: Value, out: Value, blocks: Value, mean: Value, std: Value) -> None:
        with code.loop(code.begin, code.end) as block:
            with code.loop(0, 8) as i:
                place = block * 16 + i
                first, second = (
                    times(code.convert(swapped(code.load(raw, at, "i64")) & MASK_53, "double"), 2.0**-53)
                    for at in (place, place + 8)
                )
                radius = code.sqrt(times(code.call("log", "double", 1.0 - first), -2.0))
                theta = times(second, 2 * math.pi)
                for name, at in (("cos", place), ("sin", place + 8)):
                    value = times(radius, code.call(name, "double", theta))
                    code.store(code.fma(value, std, mean), out, at)

    params = [calls.array("int32", "blocks*32"), calls.array("float64", "blocks*16", write=True)]
    params += [calls.integer("blocks"), calls.number(), calls.number()]
    return calls.kernel("normal_blocks_double", params, describe, element="double")


def normal_blocks(raw: Array, mean: float, std: float) -> Array:
    """Normal float32 numbers of words of 32 bits, or float64 of 64, sixteen by sixteen."""
    single = raw.dtype.itemsize == 4
    blocks, out = raw.size // 16, np.empty(raw.size, np.float32 if single else np.float64)
    kernel, grain = (normal_kernel(), ROWS_SHARE // 64) if single else (normal_double_kernel(), ROWS_SHARE // 512)
    kernel(raw.view(np.int32), out, blocks, mean, std, blocks, grain)
    return out


@cache
def has_library(*names: str) -> bool:
    """Whether this process has functions of the C library."""
    return all(map(engine.has_symbol, names))


# ------------------------------------------------------------------ permutations, functions of the C library


@cache
def exchange_kernel() -> Callable[..., bool]:
    """Start from 0 to n - 1 and exchange place i with place i + raw[i] % (n - i), for every i in turn."""

    def describe(code: Code, raw: Value, order: Value, n: Value, steps: Value) -> None:
        with code.loop(0, n) as i:
            code.store(i, order, i)
        with code.loop(0, code.select(steps < n, steps, n - 1)) as i:
            left = code.convert(n - i, "i32")
            far = code.emit(f"urem {code.load(raw, i, 'i32')}, {left.name}", "i32")
            j = i + code.convert(far, "i64", True)
            here, there = code.load(order, i, "i64"), code.load(order, j, "i64")
            code.store(there, order, i)
            code.store(here, order, j)

    params = [calls.array("int32", "steps"), calls.array("int64", "n", write=True)]
    return calls.kernel("exchanges", [*params, calls.integer("n"), calls.integer("steps")], describe)


def permutation(raw: Array, n: int) -> Array | None:
    """The permutation that n - 1 numbers of 32 bits stand for."""
    order = np.empty(n, np.int64)
    return order if len(raw) == n - 1 and exchange_kernel()(raw.view(np.int32), order, n, n - 1, 1, 1) else None


@cache
def library_kernel(name: str) -> Callable[..., bool] | None:
    """out = name(x) by the C library, or None if this process does not have it."""
    if not has_library(name):
        return None

    def describe(code: Code, x: Value, out: Value, n: Value) -> None:
        with code.loop(code.begin, code.end) as i:
            code.store(code.call(name, "double", code.load(x, i, "double")), out, i)

    params = [calls.array("float64", "n"), calls.array("float64", "n", write=True), calls.integer("n")]
    return calls.kernel(f"library_{name}", params, describe)


def by_library(name: str, x: Array) -> Array | None:
    """A function of the C library of each element, or None."""
    kernel, out = library_kernel(name), np.empty(x.shape)
    return out if kernel is not None and kernel(x, out, x.size, x.size, 2048) else None


@cache
def fused_kernel() -> Callable[..., bool]:
    """out = x * scale + shift, rounded once."""
    width, type = lanes("double"), vector_of("double")

    def describe(code: Code, x: Value, out: Value, n: Value, scale: Value, shift: Value) -> None:
        a, b = code.splat(scale, width), code.splat(shift, width)
        code.vectors(0, n, width, lambda i: code.store(code.fma(code.load(x, i, type), a, b), out, i), 2)

    params = [calls.array("float64", "n"), calls.array("float64", "n", write=True), calls.integer("n")]
    return calls.kernel("scale_and_shift", [*params, calls.number(), calls.number()], describe, element="double")


def scale_and_shift(x: Array, scale: float, shift: float) -> Array | None:
    """x * scale + shift, rounded once."""
    out = np.empty(x.shape)
    return out if fused_kernel()(x, out, x.size, scale, shift, 1, 1) else None
