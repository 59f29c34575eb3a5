"""Functions in pieces, each with a short polynomial: every lane reads the coefficients of its own piece from a table.

That takes fewer steps than a long polynomial, a division and an exponential. The rows of four lanes are read as they
lie in memory and turned into columns, which is quicker than what CPUs do to gather single numbers.
"""

from __future__ import annotations

import math
from functools import cache

from pullback.kernels.jit.language import elementary
from pullback.kernels.jit.language.code import Code, Value, count_of, element_of, literal
from pullback.kernels.jit.language.elementary import FUNCTIONS, copysign, nearest

WIDTH = 12
"""How many numbers a row has."""


def shuffled(code: Code, a: Value, b: Value, places: list[int]) -> Value:
    """Lanes of two vectors, by their places in both together."""
    type = f"<{len(places)} x {element_of(a.type)}>"
    return code.emit(f"shufflevector {a}, {b}, <{len(places)} x i32> <{', '.join(f'i32 {p}' for p in places)}>", type)


def columns(code: Code, table: str, row: Value, count: int) -> list[Value]:
    """The first so many numbers of the row that each lane asks for, one after the other."""
    lanes, start = count_of(row.type), Value(code, f"@{table}", "ptr")
    if row.type[0] != "<":
        place = code.at(start, row * WIDTH, "double")
        return [code.load(place, k, "double") for k in range(count)]
    places = [code.at(start, code.lane(row, lane) * WIDTH, "double") for lane in range(lanes)]
    if lanes % 4:
        return [together(code, [code.load(place, k, "double") for place in places]) for k in range(count)]
    found: list[Value] = []
    for quarter in range(0, count, 4):
        groups = [turned(code, places[k : k + 4], quarter) for k in range(0, lanes, 4)]
        while len(groups) > 1:
            wide = list(range(2 * count_of(groups[0][0].type)))
            groups = [
                [shuffled(code, a, b, wide) for a, b in zip(*two, strict=True)]
                for two in zip(groups[::2], groups[1::2], strict=True)
            ]
        found += groups[0]
    return found[:count]


def together(code: Code, numbers: list[Value]) -> Value:
    """A vector of single numbers."""
    out = code.splat(numbers[0], len(numbers))
    for lane, number in enumerate(numbers[1:], 1):
        out = code.emit(f"insertelement {out}, {number}, i64 {lane}", out.type)
    return out


def turned(code: Code, places: list[Value], start: int) -> list[Value]:
    """Four numbers of each of four rows, as four columns."""
    type = "<4 x double>"
    rows = [code.emit(f"load {type}, {code.at(place, start, 'double')}, align 8", type) for place in places]
    pairs = [[shuffled(code, a, b, order) for a, b in (rows[:2], rows[2:])] for order in ([0, 4, 2, 6], [1, 5, 3, 7])]
    return [shuffled(code, *pair, order) for order in ([0, 1, 4, 5], [2, 3, 6, 7]) for pair in pairs]


# ------------------------------------------------------------------ the error function

ERF = (0.0, 0.07042340243117645, 0.14030561056120394, 0.20912183278304022, 0.2763284119837733, 0.3415701328964057,
    0.4042057254601226, 0.4639043562491457, 0.5205208293726604, 0.5736454396495444, 0.62320957180035,
    0.6691088105651126, 0.7111586993767908, 0.7494712548141126, 0.7840965790302419, 0.8151046352191053,
    0.8427201900338431, 0.8670098908280071, 0.8883894458152966, 0.9069232958693417, 0.9228992259956769,
    0.9365666528570058, 0.9481642236673128, 0.9579378804181958, 0.96610344512737, 0.9728749884688195,
    0.9784441937016618, 0.9829879071293539, 0.9866721745123644, 0.9896316731252592, 0.9919900896618578,
    0.9938573861759148, 0.9953222847284883, 0.9964635215182083, 0.9973459824096175, 0.9980230031282726,
    0.9985372152973951, 0.9989260957066215, 0.9992170388565471, 0.9994334567454198, 0.9995927279495134,
    0.999709811456822, 0.999794623169157, 0.9998557358282921, 0.9998993847870798, 0.9999303531947815,
    0.9999521360255822, 0.9999673681771835, 0.999977909768604, 0.9999851554977021, 0.9999901035124066,
    0.9999934517220975, 0.9999956972762096, 0.9999971930799746, 0.9999981846334436, 0.9999988341587623,
    0.9999992569891607, 0.9999995300247448, 0.9999997048281069, 0.9999998160826067, 0.9999998862819897,
    0.9999999302225431, 0.9999999575032288, 0.9999999743099564, 0.999999984580441, 0.9999999908228268,
    0.999999994576336, 0.999999996819903, 0.9999999981494259, 0.9999999989320805, 0.9999999993874905,
    0.9999999996515929, 0.9999999998033805, 0.9999999998898952, 0.9999999999387701, 0.9999999999662234,
    0.9999999999815129, 0.9999999999899576, 0.9999999999945871, 0.9999999999970983, 0.9999999999984627,
    0.9999999999991899, 0.9999999999995766, 0.9999999999997803, 0.9999999999998869, 0.9999999999999423,
    0.9999999999999707, 0.9999999999999852, 0.9999999999999927, 0.9999999999999963, 0.9999999999999982,
    0.9999999999999991, 0.9999999999999996, 0.9999999999999998, 0.9999999999999999, 1.0, 1.0)  # fmt: skip
"""erf at the centres: every 1/16 from 0, moved by as many 2**-20 as OFFSETS says.

At these numbers erf is nearly a float64, so that next to nothing is lost when it is rounded.
"""
OFFSETS = (0, -8, -10, 4, 2, 104, 95, 7, 25, -37, -43, 36, 5, 13, 43, 5, 49, -139, 4, 6, -4, -10, -36, -20, -15, 4,
    6, -29, 10, 26, 1, 23, 1, -15, 1, 55, -10, 33, -6, 0, -154, -13, -1, 31, 12, 10, -33, 18, 2, -34, 4, 45, 2, -87,
    -7, -2, 17, 34, -15, -10, 11, 40, 53, 46, -19, 24, -6, 1, 0, 87, -5, -19, -2, 25, -25, -28, -12, -7, 10, -203,
    9, -19, 4, -11, -24, 86, -46, -173, 374, -399, 399, -399, -399, -399, -399, 399, 399)  # fmt: skip
NEAR = 8
"""So many pieces are of erf(x) - 9/8 x, which is much less than x: its last digits do not count."""
SLOPE = 0.0033791670955125737
"""How much more than 9/8 the derivative of erf is at zero."""
LAST = 6.0
"""From here on erf is 1."""


@cache
def erf_table() -> str:
    """For each piece its centre and the coefficients of Taylor's series there: of erf(x) - 9/8 x in the first ones."""
    numbers: list[float] = []
    for piece, (value, offset) in enumerate(zip(ERF, OFFSETS, strict=True)):
        centre = piece / 16 + offset * 2.0**-20
        before, slope = 0.0, 2 / math.sqrt(math.pi) * math.exp(-centre * centre)
        row = [centre, value, slope]
        for n in range(1, WIDTH - 2):
            before, slope = slope, -2 * (centre * slope + before) / n
            row.append(slope / (n + 1))
        if piece < NEAR:
            row[1:3] = value - 1.125 * centre, SLOPE + (1.125 + SLOPE) * math.expm1(-centre * centre)
        numbers += row
    values = ", ".join([f"double {literal(number, 'double')}" for number in numbers])
    return f"@erf_pieces = private constant [{len(numbers)} x double] [{values}]"


def erf(code: Code, x: Value) -> Value:
    """The error function: of float64 in pieces."""
    if element_of(x.type) != "double":
        return elementary.erf(code, x)
    code.declared.add(erf_table())
    size = code.abs(x)
    _, piece = nearest(code, code.select(size < LAST, size, LAST), 16.0)  # nan has a piece too
    size = code.select(size > LAST, LAST, size)
    centre, start, *rest = columns(code, "erf_pieces", piece, WIDTH - 1)
    distance = size - centre
    slope = rest.pop()
    while rest:
        slope = code.fma(slope, distance, rest.pop())
    factor = code.select(piece < NEAR, code.const(1.125, x.type), 0.0)
    return copysign(code, code.fma(size, factor, code.fma(slope, distance, start)), x)


FUNCTIONS |= {"erf": ("fd", erf)}
