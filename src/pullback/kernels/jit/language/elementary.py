"""exp, log, tanh and their kin on vectors of float32 and float64: range reduction, a polynomial, and the special cases.

Coefficients are minimax fits, constant term first. What is rare in float32 is computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pullback.kernels.jit.language.code import Code, Value, element_of

INF, NAN = float("inf"), float("nan")


class Facts(NamedTuple):
    """What one format needs."""

    integer: str
    mantissa: int
    bias: int
    root_bits: int
    """The bits of sqrt(1/2)."""
    least: float
    """The smallest normal number."""
    high: tuple[float, float]
    """ln 2 as a short part, whose products with exponents are exact, and the rest."""
    exp: tuple[float, ...]
    """(exp(r) - 1 - r) / r**2"""
    log: tuple[float, ...]
    """What atanh's series leaves beyond its first term, in s**2."""
    erf: tuple[float, ...]
    """erf(x) / x - 1 in x**2 up to 0.93"""
    tail: tuple[float, ...]
    """log(erfc(t)) beyond, for float64 with t**2 added and in another variable."""
    tanh: tuple[float, ...]
    """(tanh(x) / x - 1) / x**2 in x**2 up to 0.63"""
    largest: float
    smallest: float
    """Beyond these exp is inf and 0."""


FACTS = {
    "float": Facts(
        "i32", 23, 127, 0x3F3504F3, 2.0**-126, (0.693145751953125, 1.42860682030941723212e-6),
        (0.4999999403953552, 0.16666515171527863, 0.04166845604777336, 0.008369418792426586, 0.0013813142431899905),
        (0.6666666269302368, 0.4000037908554077, 0.28534412384033203, 0.23639512062072754),
        (0.12837916612625122, -0.37612634897232056, 0.11283694207668304, -0.02685927040874958, 0.005200634244829416,
         -0.0008137437980622053, 8.345227251993492e-05),
        (0.00017587510228622705, -1.1295207738876343, -0.6333346366882324, -0.10829395055770874, 0.025128627195954323,
         -0.004174643661826849, 0.00043521897168830037, -2.1161908080102876e-05),
        (-0.3333333134651184, 0.1333319991827011, -0.05394599214196205, 0.021696072071790695, -0.008165036328136921,
         0.002130905631929636),
        88.8, -104.0,
    ),
    "double": Facts(
        "i64", 52, 1023, 0x3FE6A09E667F3BCD, 2.0**-1022, (0.6931471803691238, 1.9082149292705877e-10),
        (0.5, 0.16666666666666685, 0.04166666666666603, 0.008333333333315703, 0.0013888888889134142,
         0.00019841269899726602, 2.4801586903926116e-05, 2.755723148232946e-06, 2.75575923146467e-07,
         2.511322628625184e-08, 2.0825653458972896e-09),
        (0.6666666666666666, 0.4000000000000828, 0.28571428568444207, 0.22222222742051423, 0.18181768153945202,
         0.15387414425724977, 0.13242925783906148, 0.13315784768597194),
        (0.1283791670955126, -0.37612638903183754, 0.11283791670955073, -0.02686617064511798, 0.0052239776252658975,
         -0.0008548327009507981, 0.00012055332273390211, -1.4925626209806613e-05, 1.6461549721884686e-06,
         -1.635674728799209e-07, 1.4707558599389162e-08, -1.1576637572200227e-09, 6.337393239740342e-11),
        (-1.4757779731325753, 0.7548215337625979, -0.09757075362988538, 0.02994140142831235, -0.012159804589216712,
         0.004480951226799906, -0.001670341126629217, 0.0006672070344514593, -0.00027488389321680214,
         0.00011375295741260337, -4.745161517498028e-05, 2.0080879717150127e-05, -8.631389875106026e-06,
         3.727793418384895e-06, -1.52907333063208e-06, 5.247603147245407e-07, -1.2421229946671365e-07,
         1.43945178117753e-08),
        (-0.3333333333333331, 0.13333333333329292, -0.05396825396580576, 0.021869488461678077, -0.008863234199689488,
         0.0035921128678109314, -0.0014557185482972103, 0.0005894197732240165, -0.00023692072491009436,
         9.139521731513852e-05, -3.0019799193675666e-05, 5.967589888677789e-06),
        709.9, -745.5,
    ),
}  # fmt: skip


LONG = 12
"""Polynomials with more coefficients are cut: each step waits for the one before, four cycles."""


def facts(x: Value) -> Facts:
    """The facts of a value's format."""
    return FACTS[element_of(x.type)]


def polynomial(code: Code, x: Value, coefficients: tuple[float, ...]) -> Value:
    """By Horner's rule; a long one as four whose steps do not wait for each other."""
    if len(coefficients) > LONG:
        square = x * x
        parts = [polynomial(code, square * square, coefficients[k::4]) for k in range(4)]
        return code.fma(code.fma(parts[3], x, parts[2]), square, code.fma(parts[1], x, parts[0]))
    out = code.const(coefficients[-1], x.type)
    for coefficient in coefficients[-2::-1]:
        out = code.fma(out, x, coefficient)
    return out


def double_precision(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function for float64 made one for both: float32 is widened and the result rounded."""

    def both(code: Code, *values: Value) -> Value:
        out = function(code, *[code.convert(value, "double") for value in values])
        return code.convert(out, element_of(values[0].type))

    return both


def held(code: Code, x: Value, low: float, high: float) -> Value:
    """x between two bounds; nan stays."""
    x = code.select(x > high, high, x)
    return code.select(x < low, low, x)


def magic(x: Value) -> tuple[float, int]:
    """Added to a small number it leaves the nearest integer in the last bits; the number and its bits."""
    f = facts(x)
    return 1.5 * 2.0**f.mantissa, ((f.bias + f.mantissa) << f.mantissa) | 1 << (f.mantissa - 1)


def nearest(code: Code, x: Value, factor: float) -> tuple[Value, Value]:
    """The integer nearest to factor * x, as a float and as an integer."""
    number, bits = magic(x)
    shifted = code.fma(x, factor, number)
    return shifted - number, code.bitcast(shifted, facts(x).integer) - bits


def float_of(code: Code, n: Value, element: str) -> Value:
    """A small integer of the same width as a float (some machines convert none of 64 bits)."""
    number, bits = magic(Value(code, "", element))
    return code.bitcast(n + bits, element) - number


def power_of_two(code: Code, n: Value, element: str) -> Value:
    """2**n for an n within the exponents of normal numbers."""
    f = FACTS[element]
    return code.bitcast((n + f.bias) << f.mantissa, element)


def reduced(code: Code, x: Value) -> tuple[Value, Value, Value]:
    """n and exp(r) - 1 with x = n * ln 2 + r."""
    f = facts(x)
    n, whole = nearest(code, x, 1.4426950408889634)
    r = code.fma(n, -f.high[1], code.fma(n, -f.high[0], x))
    return n, whole, code.fma(r * r, polynomial(code, r, f.exp), r)


def exp(code: Code, x: Value) -> Value:
    """The exponential."""
    return exp_times(code, x)


def exp_times(code: Code, x: Value, factor: Value | None = None) -> Value:
    """exp(x), times another number; it is scaled in two steps, and last, so that denormals are rounded once."""
    f = facts(x)
    _, whole, less_one = reduced(code, held(code, x, f.smallest - 2.0, f.largest + 2.0))
    power = less_one + 1.0
    return scaled(code, power if factor is None else power * factor, whole)


def scaled(code: Code, x: Value, n: Value) -> Value:
    """x * 2**n, in two steps."""
    element, half = element_of(x.type), n >> 1
    return x * power_of_two(code, half, element) * power_of_two(code, n - half, element)


def expm1(code: Code, x: Value) -> Value:
    """exp(x) - 1 without cancellation."""
    f, element = facts(x), element_of(x.type)
    low = -60.0 if element == "double" else -30.0
    _, whole, less_one = reduced(code, held(code, x, low, f.largest))
    half = power_of_two(code, whole - 1, element)
    out = code.fma(less_one, half, half - 0.5)
    return code.select(code.compare("eq", x, 0.0), x, out + out)


def log_of(code: Code, x: Value, rest: Value | None = None) -> tuple[Value, Value]:
    """The exponent of a positive number, and the logarithm of its mantissa (plus a small rest)."""
    f, element = facts(x), element_of(x.type)
    tiny = x < f.least
    x = code.select(tiny, x * 2.0 ** (f.mantissa + 2), x)
    bits = code.bitcast(x, f.integer)
    exponent = (bits - f.root_bits) >> f.mantissa
    part = code.bitcast(bits - (exponent << f.mantissa), element) - 1.0
    exponent = exponent - code.select(tiny, code.const(f.mantissa + 2, bits.type), 0)
    e = float_of(code, exponent, element)
    s = part / (part + 2.0)
    square = s * s
    half = part * part * 0.5
    small = s * (half + square * polynomial(code, square, f.log))
    if rest is not None:
        small = small + rest
    return e, part - (half - small)


def with_limits(code: Code, x: Value, out: Value) -> Value:
    """What every logarithm gives at and below zero, at infinity and for nan."""
    out = code.select(code.compare("eq", x, 0.0), -INF, out)
    out = code.select(x < 0.0, NAN, out)
    return code.select(x < INF, out, x)


def log(code: Code, x: Value) -> Value:
    """The natural logarithm."""
    high, low = facts(x).high
    e, part = log_of(code, x)
    return with_limits(code, x, code.fma(e, high, code.fma(e, low, part)))


@double_precision
def log2(code: Code, x: Value) -> Value:
    """The logarithm to base 2."""
    e, part = log_of(code, x)
    return with_limits(code, x, code.fma(part, 1.4426950408889634, code.fma(part, 2.0355273740931033e-17, e)))


@double_precision
def log10(code: Code, x: Value) -> Value:
    """The logarithm to base 10."""
    e, part = log_of(code, x)
    low = code.fma(part, 1.098319650216765e-17, e * 3.694239077158931e-13)
    return with_limits(code, x, code.fma(e, 0.30102999566361177, code.fma(part, 0.4342944819032518, low)))


def log1p(code: Code, x: Value) -> Value:
    """log(1 + x): what 1 + x loses is added to the logarithm of what it keeps."""
    high, low = facts(x).high
    total = x + 1.0
    lost = code.select(code.abs(x) < 1.0, x - (total - 1.0), 1.0 - (total - x)) / total
    e, part = log_of(code, total, lost)
    out = with_limits(code, total, code.fma(e, high, code.fma(e, low, part)))
    return code.select(code.compare("eq", x, 0.0), x, out)


LOG_TO_TWO = {
    "float": (0.6666666735510774, 0.39999696317913325, 0.2859281010527124, 0.21700050943178126, 0.23253738764935564),
    "double": (0.6666666666666666, 0.4000000000001525, 0.28571428566948176, 0.22222222732294666, 0.1818178874707512,
               0.15385587999105999, 0.13313870077295945, 0.12003514577494424, 0.08789011151853432, 0.16187512024159623),
}  # fmt: skip
"""What atanh's series leaves beyond its first term, for logarithms up to that of 2."""


def log_to_two(code: Code, x: Value) -> Value:
    """log(1 + x) for x up to 1."""
    s = x / (x + 2.0)
    square, half = s * s, x * x * 0.5
    return x - (half - s * (half + square * polynomial(code, square, LOG_TO_TWO[element_of(x.type)])))


def log1p_exp(code: Code, x: Value) -> Value:
    """log(1 + exp(x)): what is added to 1 is at most 1, so nothing has to be brought into range."""
    below = log_to_two(code, exp(code, -code.abs(x)))
    limit = 88.72283935546875 if element_of(x.type) == "float" else 709.782712893384
    return code.select(x > limit, INF, code.select(x > 0.0, x + below, below))  # where exp(x) is infinite, so is this


def copysign(code: Code, size: Value, sign: Value) -> Value:
    """The size of one number with the sign of another."""
    return code.intrinsic("copysign", size, sign)


def tanh(code: Code, x: Value) -> Value:
    """A polynomial near zero, 1 - 2 / (exp(2x) + 1) beyond."""
    size = code.abs(x)
    square = size * size
    near = code.fma(size * square, polynomial(code, square, facts(x).tanh), size)
    far = 1.0 - 2.0 / (exp(code, size + size) + 1.0)
    return copysign(code, code.select(size < 0.625, near, far), x)


def near_erf(code: Code, x: Value) -> Value:
    """erf up to 0.93."""
    return code.fma(polynomial(code, x * x, facts(x).erf), x, x)


def erf(code: Code, x: Value) -> Value:
    """A polynomial near zero, 1 - exp of one beyond."""
    f, wide = facts(x), element_of(x.type) == "double"
    size = code.abs(x)
    near = near_erf(code, x)
    limit = 6.0 if wide else 4.0
    t = code.select(size > limit, limit, size)
    if wide:
        v = code.fma(code.const(4.5984251968503935, t.type) / code.fma(t, 0.5, 1.0), 1.0, -2.1496062992125986)
        logarithm = code.fma(-t, t, polynomial(code, v, f.tail))
    else:
        logarithm = polynomial(code, t, f.tail)
    far = copysign(code, 1.0 - exp(code, logarithm), x)
    return code.select(size < 0.925, near, far)


ERFC = (2.171706192655165e-08, -1.6279093027114868, -0.9184098243713379, -0.14850665628910065, 0.028301896527409554,
        -0.0008251778781414032, -0.0014603735180571675, 0.0004369415692053735, -4.435250230017118e-05)  # fmt: skip
"""log2(erfc(t)) up to 4, as exact as one plus it can be in float32."""
EXP2 = (1.0, 0.6931471824645996, 0.24022646248340607, 0.05550328269600868, 0.009618491865694523, 0.001340019516646862,
        0.0001534558687126264)  # fmt: skip
"""2**x up to one half."""


def one_plus_erf(code: Code, x: Value) -> Value:
    """1 + erf(x) of float32, as gelu needs it: one polynomial serves all, since nothing near zero has to be exact."""
    size = code.abs(x)
    logarithm = polynomial(code, code.select(size > 4.0, 4.0, size), ERFC)
    n, whole = nearest(code, logarithm, 1.0)
    tail = polynomial(code, logarithm - n, EXP2) * power_of_two(code, whole, "float")
    tail = code.select(size >= 4.0, 0.0, tail)
    return code.select(x < 0.0, tail, 2.0 - tail)


@double_precision
def power(code: Code, x: Value, y: Value) -> Value:
    """x ** y for float32 in float64, whose logarithm has bits to spare for it."""
    return signed_power(code, x, y, exp(code, y * log(code, code.abs(x))))


def signed_power(code: Code, x: Value, y: Value, out: Value) -> Value:
    """From the power of the size of x: its sign, and the cases that are exact."""
    whole = code.compare("eq", code.intrinsic("trunc", y), y)
    half = y * 0.5
    odd = whole & code.compare("ne", code.intrinsic("trunc", half), half)
    negative = code.compare("lt", code.bitcast(x, "i64"), 0)
    out = code.select(odd & negative, -out, out)
    out = code.select(
        (x < 0.0) & code.compare("ne", code.abs(x), INF) & code.compare("une", code.intrinsic("trunc", y), y), NAN, out
    )
    out = code.select(code.compare("uno", x, y), x + y, out)
    one = code.compare("eq", y, 0.0) | code.compare("eq", x, 1.0)
    minus = code.compare("eq", x, -1.0) & code.compare("eq", code.abs(y), INF)
    return code.select(one | minus, 1.0, out)


def half_exp(code: Code, x: Value) -> Value:
    """exp(x) / 2, which is finite for some x whose exponential is not."""
    return exp_times(code, x, code.const(0.5, x.type))


def sinh(code: Code, x: Value) -> Value:
    """From exp(x) - 1; where that is exp(x), float64 has to mind overflow."""
    size = code.abs(x)
    e = expm1(code, code.convert(size, "double"))
    out = code.select(e > 1e300, e, 0.5 * (e + e / (e + 1.0)))
    if element_of(x.type) == "double":
        out = code.select(e > 1e17, half_exp(code, size), out)
    return copysign(code, code.convert(out, element_of(x.type)), x)


@double_precision
def cosh(code: Code, x: Value) -> Value:
    """From exp."""
    half = half_exp(code, code.abs(x))
    return half + 0.25 / half


FUNCTIONS: dict[str, tuple[str, Callable[..., Value]]] = {
    "exp": ("fd", exp), "expm1": ("fd", expm1), "log": ("fd", log), "log2": ("fd", log2), "log10": ("fd", log10),
    "log1p": ("fd", log1p), "tanh": ("fd", tanh), "erf": ("fd", erf),
    "power": ("f", power), "sinh": ("fd", sinh), "cosh": ("fd", cosh), "copysign": ("fd", copysign),
}  # fmt: skip
"""By NumPy's names: for which formats, and how."""
