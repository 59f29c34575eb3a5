"""The inverses of circular and hyperbolic functions, powers of two, and triangles."""

from __future__ import annotations

import math

from pullback.kernels.jit.language.code import Code, Value, element_of
from pullback.kernels.jit.language.elementary import (
    FUNCTIONS,
    INF,
    NAN,
    copysign,
    facts,
    held,
    log,
    log1p,
    log_to_two,
    nearest,
    polynomial,
    scaled,
)

ARCSIN = {
    "float": (0.16666673123836517, 0.07498855143785477, 0.045001380145549774, 0.026554541662335396,
              0.03808502480387688),
    "double": (0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
               0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
               0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
               0.028757851367421566),
}  # fmt: skip
"""(arcsin(x) - x) / x**3 in x**2 up to one half."""
ARCTAN = {
    "float": (-0.3333333134651184, 0.19999536871910095, -0.14263838529586792, 0.10742467641830444,
              -0.06447742879390717),
    "double": (-0.3333333333333333, 0.199999999999998, -0.14285714285658824, 0.11111111105057618, -0.09090908748637679,
               0.07692296234562104, -0.06666422365298535, 0.058789000468626215, -0.05230241257513991,
               0.04550622525030452, -0.03454562257510452, 0.016258145857267047),
}  # fmt: skip
"""(arctan(x) - x) / x**3 in x**2 up to tan(pi / 8)."""
LOW = {"float": -4.371138828673793e-08, "double": 6.123233995736766e-17}
"""What pi / 2 is beyond its rounded value."""


def within(code: Code, x: Value, table: dict[str, tuple[float, ...]]) -> Value:
    """x plus a polynomial times x**3."""
    square = x * x
    return code.fma(x * square, polynomial(code, square, table[element_of(x.type)]), x)


def arcsin(code: Code, x: Value) -> Value:
    """Beyond one half by the half angle: pi / 2 - 2 * arcsin(sqrt((1 - x) / 2))."""
    size = code.abs(x)
    outer = size > 0.5
    part = within(code, code.select(outer, code.sqrt((1.0 - size) * 0.5), size), ARCSIN)
    beyond = math.pi / 2 - (part + part - LOW[element_of(x.type)])
    return copysign(code, code.select(outer, beyond, part), x)


def arccos(code: Code, x: Value) -> Value:
    """pi / 2 - arcsin(x), which beyond one half is twice an arcsin."""
    size, low = code.abs(x), LOW[element_of(x.type)]
    outer = size > 0.5
    part = within(code, code.select(outer, code.sqrt((1.0 - size) * 0.5), x), ARCSIN)
    twice = part + part
    far = code.select(x < 0.0, math.pi - (twice - 2 * low), twice)
    return code.select(outer, far, math.pi / 2 - (part - low))


def angle_of(code: Code, y: Value, x: Value) -> Value:
    """The angle of a point in the first quarter: near the axes and the diagonal a quotient is small."""
    slope = math.tan(math.pi / 8)
    high, middle = y > x * (1 / slope), y > x * slope
    top = code.select(high, -x, code.select(middle, y - x, y))
    bottom = code.select(high, y, code.select(middle, y + x, x))
    part = within(code, top / bottom, ARCTAN)
    low, none = LOW[element_of(x.type)], code.const(0.0, x.type)
    turn = code.select(high, math.pi / 2, code.select(middle, math.pi / 4, none))
    rest = code.select(high, low, code.select(middle, low / 2, none))
    return turn + (part + rest)


def arctan(code: Code, x: Value) -> Value:
    """The angle of the point (1, x)."""
    size = code.abs(x)
    size = code.select(size > 1e30, 1e30, size)
    return copysign(code, angle_of(code, size, code.const(1.0, x.type)), x)


def arctan2(code: Code, y: Value, x: Value) -> Value:
    """The angle of the point (x, y)."""
    up, right = code.abs(y), code.abs(x)
    huge = 1e37 if element_of(x.type) == "float" else 1e307
    large = (up > huge) | (right > huge)  # whose sum may overflow
    both = code.compare("eq", up, INF) & code.compare("eq", right, INF)
    up, right = (code.select(both, 1.0, code.select(large, v * 0.25, v)) for v in (up, right))
    nothing = code.compare("eq", up, 0.0)
    out = code.select(nothing, up, angle_of(code, up, code.select(nothing, 1.0, right)))
    left = code.bitcast(x, facts(x).integer) < 0
    low = LOW[element_of(x.type)]
    out = copysign(code, code.select(left, math.pi - (out - 2 * low), out), y)
    return code.select(code.compare("uno", x, y), NAN, out)


# ------------------------------------------------------------------ hyperbolic


def arcsinh(code: Code, x: Value) -> Value:
    """log(x + sqrt(x**2 + 1))."""
    size = code.abs(x)
    large = size > 1e9
    near = code.select(large, 1.0, size)
    square = near * near
    small = log1p(code, near + square / (1.0 + code.sqrt(square + 1.0)))
    return copysign(code, code.select(large, log(code, size) + math.log(2), small), x)


def arccosh(code: Code, x: Value) -> Value:
    """log(x + sqrt(x**2 - 1)), from how far x is above 1."""
    large = x > 1e9
    above = code.select(large, 1.0, x) - 1.0
    small = log1p(code, above + code.sqrt(above * (above + 2.0)))
    out = code.select(large, log(code, x) + math.log(2), small)
    return code.select(x < 1.0, NAN, out)


def arctanh(code: Code, x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2."""
    size = code.abs(x)
    return copysign(code, 0.5 * log1p(code, (size + size) / (1.0 - size)), x)


# ------------------------------------------------------------------ powers of two


def exp2(code: Code, x: Value) -> Value:
    """2**x."""
    f = facts(x)
    bounds = (-151.0, 129.0) if element_of(x.type) == "float" else (-1076.0, 1025.0)
    x = held(code, x, *bounds)
    n, whole = nearest(code, x, 1.0)
    r = (x - n) * math.log(2)
    return scaled(code, code.fma(r * r, polynomial(code, r, f.exp), r) + 1.0, whole)


def logaddexp2(code: Code, x: Value, y: Value) -> Value:
    """log2(2**x + 2**y)."""
    larger = code.maximum(x, y)
    less = log_to_two(code, exp2(code, -code.abs(x - y)))
    out = code.fma(less, 1.4426950408889634, larger)
    return code.select(code.compare("eq", x, y), x + 1.0, out)


# ------------------------------------------------------------------ triangles and neighbours


def hypot(code: Code, x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2): in float64 what the squares and their sum lose is added after the root."""
    infinite = code.compare("eq", code.abs(x), INF) | code.compare("eq", code.abs(y), INF)
    if element_of(x.type) == "float":
        a, b = code.convert(x, "double"), code.convert(y, "double")
        out = code.convert(code.sqrt(code.fma(a, a, b * b)), "float")
    else:
        a, b = code.abs(x), code.abs(y)
        large, small = code.select(a > b, a, b), code.select(a > b, b, a)
        up, down = large < 1e-140, large > 1e140
        scale = code.select(up, 2.0**600, code.select(down, code.const(2.0**-600, x.type), 1.0))
        back = code.select(up, 2.0**-600, code.select(down, code.const(2.0**600, x.type), 1.0))
        large, small = large * scale, small * scale
        length = code.sqrt(code.fma(large, large, small.binary(small, ("fmul", ""))))
        square, other = (v.binary(v, ("fmul", "")) for v in (length, large))
        lost = code.fma(length, length, -square) - code.fma(large, large, -other)
        excess = code.fma(-small, small, square.binary(other, ("fsub", ""))) + lost
        out = code.select(length > 0.0, length - excess / (length + length), length) * back
        out = code.select(code.compare("uno", x, y), x + y, out)
    return code.select(infinite, INF, out)


def nextafter(code: Code, x: Value, y: Value) -> Value:
    """The neighbour of x on the side of y, one more or less in its bits."""
    integer = facts(x).integer
    bits = code.bitcast(x, integer)
    away = (x < y) ^ (bits < 0)  # from zero
    moved = code.bitcast(bits + code.select(away, code.const(1, bits.type), -1), element_of(x.type))
    least = copysign(code, code.bitcast(code.const(1, bits.type), element_of(x.type)), y)
    moved = code.select(code.compare("eq", x, 0.0), least, moved)
    out = code.select(code.compare("eq", x, y), y, moved)
    return code.select(code.compare("uno", x, y), x + y, out)


FUNCTIONS |= {
    "arcsin": ("fd", arcsin), "arccos": ("fd", arccos), "arctan": ("fd", arctan), "arctan2": ("fd", arctan2),
    "arcsinh": ("fd", arcsinh), "arccosh": ("fd", arccosh), "arctanh": ("fd", arctanh), "exp2": ("fd", exp2),
    "logaddexp2": ("fd", logaddexp2), "hypot": ("fd", hypot), "nextafter": ("fd", nextafter),
}  # fmt: skip
