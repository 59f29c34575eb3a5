"""fmod, remainder and floor_divide of floats, to the last bit those of C and NumPy.

The quotient cut to an integer is at most one too far from zero; with it, x - q * y is exact in one fma. Only where the
quotient has more digits than a float, and for what is not finite, the C library is asked.
"""

from __future__ import annotations

from pullback.kernels.jit.language.code import Code, Value, count_of
from pullback.kernels.jit.language.elementary import FUNCTIONS, INF, copysign, facts


def fmod(code: Code, x: Value, y: Value) -> Value:
    """What is left of x, with its sign."""
    quotient = x / y
    rest = code.fma(-code.intrinsic("trunc", quotient), y, x)
    integer = facts(x).integer
    beyond = ((code.bitcast(rest, integer) ^ code.bitcast(x, integer)) < 0) & code.compare("ne", rest, 0.0)
    rest = code.select(beyond, rest + copysign(code, y, x), rest)
    out = code.variable(code.select(code.compare("eq", rest, 0.0), copysign(code, rest, x), rest))
    near = (code.abs(quotient) < 2.0 ** (facts(x).mantissa + 1)) & (code.abs(y) < INF)
    lanes = count_of(near.type)
    bits = code.emit(f"bitcast {near} to i{lanes}", f"i{lanes}")
    with code.when(code.emit(f"icmp ne {bits}, -1", "i1")):
        out.set(code.emit(f"frem {x}, {y.name}", x.type))
    return out.get()


def towards_divisor(code: Code, rest: Value, y: Value) -> Value:
    """Where fmod's result and the divisor have different signs."""
    return code.compare("ne", rest, 0.0) & ((y < 0.0) ^ (rest < 0.0))


def remainder(code: Code, x: Value, y: Value) -> Value:
    """What is left of x, with the sign of y."""
    rest = fmod(code, x, y)
    zero = code.compare("eq", rest, 0.0)
    return code.select(zero, copysign(code, rest, y), code.select(towards_divisor(code, rest, y), rest + y, rest))


def floor_divide(code: Code, x: Value, y: Value) -> Value:
    """The quotient rounded down, from what is left; by zero it is what division gives."""
    rest, quotient = fmod(code, x, y), x / y
    whole = (x - rest) / y
    whole = code.select(towards_divisor(code, rest, y), whole - 1.0, whole)
    floor = code.intrinsic("floor", whole)
    floor = code.select(whole - floor > 0.5, floor + 1.0, floor)
    zero = copysign(code, code.const(0.0, x.type), quotient)
    made = code.select(code.compare("eq", whole, 0.0), zero, floor)
    return code.select(code.compare("eq", y, 0.0), quotient, made)


FUNCTIONS |= {"fmod": ("fd", fmod), "remainder": ("fd", remainder), "floor_divide": ("fd", floor_divide)}
