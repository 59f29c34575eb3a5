"""Powers in kernels of a device: of float64, by a logarithm of twice its digits, and of integers, by squaring."""

from __future__ import annotations

from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.language.code import Code, Value, element_of
from pullback.kernels.jit.language.elementary import (
    FACTS,
    FUNCTIONS,
    INF,
    NAN,
    float_of,
    held,
    polynomial,
    reduced,
    scaled,
    signed_power,
)

Pair = tuple[Value, Value]
"""A number as the sum of two, of which the second is what the first lost to rounding."""
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
SERIES = tuple([2.0 / (2 * k + 1) for k in range(2, 16)])
"""What follows 2/3 in the series of 2 artanh(s) / s in s**2; beyond, terms are less than 2**-70 of the sum."""


def add(a: Value, b: Value | float) -> Value:
    """A sum that is rounded as it is: never part of a fused product."""
    return a.binary(b, ("fadd", "add"))


def times(a: Value, b: Value | float) -> Value:
    """The same of a product."""
    return a.binary(b, ("fmul", "mul"))


def sum_of(large: Value, small: Value) -> Pair:
    """A sum, and what it lost: the first operand is the larger one."""
    total = add(large, small)
    return total, add(add(large, -total), small)


def product_of(code: Code, a: Pair, b: Pair) -> Pair:
    """A product of two pairs."""
    high = times(a[0], b[0])
    lost = code.fma(a[0], b[0], -high)
    return high, add(lost, add(times(a[0], b[1]), times(a[1], b[0])))


def long_log(code: Code, x: Value) -> Pair:
    """The logarithm of a positive number."""
    f, type = FACTS["double"], x.type
    tiny = x < f.least
    bits = code.bitcast(code.select(tiny, x * 2.0**54, x), "i64")
    exponent = (bits - f.root_bits) >> f.mantissa
    part = add(code.bitcast(bits - (exponent << f.mantissa), "double"), -1.0)
    e = float_of(code, exponent - code.select(tiny, code.const(54, bits.type), 0), "double")
    below = sum_of(code.const(2.0, type), part)
    s = part / below[0]
    rest = add(code.fma(-s, below[0], part), -times(s, below[1]))
    slope = (s, rest / below[0])
    square = product_of(code, slope, slope)
    tail = times(square[0], polynomial(code, square[0], SERIES))
    third = sum_of(code.const(TWO_THIRDS[0], type), tail)
    more = product_of(code, slope, product_of(code, square, (third[0], add(third[1], TWO_THIRDS[1]))))
    mantissa = sum_of(times(s, 2.0), more[0])
    low = add(add(mantissa[1], more[1]), times(slope[1], 2.0))
    whole = sum_of(times(e, f.high[0]), mantissa[0])
    rest = times(e, f.high[1])
    high = sum_of(whole[0], rest)
    low = add(add(low, code.fma(e, f.high[1], -rest)), add(whole[1], high[1]))
    return sum_of(high[0], low)


def double_power(code: Code, x: Value, y: Value) -> Value:
    """x ** y for float64."""
    size = code.abs(x)
    high, low = long_log(code, size)
    odd_size = code.compare("eq", size, 0.0) | code.compare("eq", size, INF)
    high = code.select(code.compare("eq", size, 0.0), -INF, code.select(code.compare("eq", size, INF), INF, high))
    product = times(y, high)
    lost = add(code.fma(y, high, -product), times(y, low))
    lost = code.select(odd_size | (code.abs(product) >= 1e4), 0.0, lost)
    f = FACTS["double"]
    _, whole, less_one = reduced(code, held(code, product, f.smallest - 2.0, f.largest + 2.0))
    out = scaled(code, add(add(less_one, times(lost, add(less_one, 1.0))), 1.0), whole)
    out = code.select(code.compare("uno", lost, lost), NAN, out)
    return signed_power(code, x, y, out)


def whole_power(code: Code, x: Value, y: Value) -> Value:
    """x ** y for integers that are not negative, wrapped: a product of squares for each bit of y."""
    out = code.const(1, x.type)
    for bit in range(8 * SIZES[element_of(x.type)] - 1):
        out = code.select(code.compare("ne", y & (1 << bit), 0), out * x, out)
        x = x * x
    return out


FUNCTIONS["double_power"] = ("d", double_power)
