"""The steps of an expression as instructions on vectors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.language import (
    angles,  # noqa: F401 (they add to FUNCTIONS)
    inverses,  # noqa: F401
    pieces,
    powers,
    remainders,  # noqa: F401
    special,  # noqa: F401
)
from pullback.kernels.jit.language.code import FLOATS, Code, Value, count_of, element_of
from pullback.kernels.jit.language.elementary import FUNCTIONS, log1p_exp, one_plus_erf
from pullback.kernels.jit.language.expression import COMPLEX, Node, Untraceable

COMPARISONS = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "sqrt": "sqrt", "fabs": "fabs"}


@cache
def computed_in(dtype: np.dtype[Any]) -> str:
    """The element a dtype, or a part of its numbers, is computed in."""
    dtype = COMPLEX.get(dtype, dtype)
    return "i1" if dtype.kind == "b" else "float" if is_half(dtype) else ELEMENTS[dtype.name]


def llvm_type(dtype: np.dtype[Any], lanes: int) -> str:
    """The vector a dtype is computed in; the parts of complex numbers lie beside each other."""
    return f"<{2 * lanes if dtype in COMPLEX else lanes} x {computed_in(dtype)}>"


def shortcut(code: Code, node: Node, values: dict[int, Value]) -> Value | None:
    """1 + erf(x) of float32 and log1p(exp(x)), which take fewer steps than their parts."""
    if node.op == "add" and node.dtype.char == "f":
        for one, other in (node.args, node.args[::-1]):
            if one.op == "constant" and one.value == 1 and other.op == "erf":
                return one_plus_erf(code, values[id(other.args[0])])
    if node.op == "log1p" and node.args[0].op == "exp":
        return log1p_exp(code, values[id(node.args[0].args[0])])
    return None


def bound_of(node: Node, args: list[Value]) -> tuple[Value, Value] | None:
    """The varying and the constant operand of an extremum; a constant that is no nan needs no second look."""
    for nr, arg in enumerate(node.args):
        if arg.op == "constant" and arg.value == arg.value:
            return args[1 - nr], args[nr]
    return None


def emit_step(code: Code, node: Node, args: list[Value], type: str) -> Value:
    """One operation on vectors."""
    op = node.op
    a, b = args[0], args[-1]
    given = node.args[0].dtype
    floating = computed_in(given) in FLOATS
    if op == "where":
        return code.select(a, args[1], b)
    if op in ("real", "imag"):
        return pieces.shuffled(code, a, a, list(range(op == "imag", count_of(a.type), 2)))
    if op == "complex":
        lanes = count_of(a.type)
        return pieces.shuffled(code, a, b, [lane // 2 + lanes * (lane % 2) for lane in range(2 * lanes)])
    if op.startswith("whole_"):
        return powers.whole_power(code, a, b) if op == "whole_power" else whole(code, op[6:], a, b)
    if op == "cast":
        return emit_cast(code, a, given, node.dtype, type)
    if op in COMPARISONS:
        if given.kind == "b" and op not in ("equal", "not_equal"):
            a, b = code.convert(a, "i8"), code.convert(b, "i8")
        return code.compare(COMPARISONS[op], a, b)
    if op.startswith("logical_"):
        truths = [x if element_of(x.type) == "i1" else code.compare("ne", x, 0) for x in args]
        return logical(op[8:], truths[0], truths[-1])
    if given.kind == "b":
        return logical({"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(op, op), a, b)
    if op in ("maximum", "minimum") and (pair := bound_of(node, args)) is not None:
        x, bound = pair
        return code.select(x < bound if op == "maximum" else x > bound, bound, x)
    made = emit_arithmetic(op, a, b)
    if made is not None:
        return made
    if floating:
        return emit_float(code, op, args)
    if op == "absolute":
        return code.select(a < 0, -a, a)
    if op in ("maximum", "minimum", "fmax", "fmin"):
        return code.select(a > b if "max" in op else a < b, a, b)
    raise Untraceable(f"{op} of {given}")


def whole(code: Code, op: str, a: Value, b: Value) -> Value:
    """Division and shifts of integers as NumPy does them: what is divided by zero is zero, and shifts may go far."""
    if op.endswith("shift"):
        bits = 8 * SIZES[element_of(a.type)]
        near = (b >= 0) & (b < bits)
        by = code.select(near, b, 0)
        far = code.const(0, a.type) if op == "left_shift" else a >> (bits - 1)
        return code.select(near, a << by if op == "left_shift" else a >> by, far)
    turned, none = code.compare("eq", b, -1), code.compare("eq", b, 0)
    quotient = code.select(turned, -a, a // code.select(turned, 1, code.select(none, 1, b)))
    rest = a - quotient * b
    if op == "fmod":
        return code.select(none, 0, rest)
    apart = code.compare("lt", rest ^ b, 0)
    low = apart & code.compare("ne", rest, 0)
    if op == "remainder":
        return code.select(none, 0, code.select(low, rest + b, rest))
    return code.select(none, 0, code.select(low, quotient - 1, quotient))


def logical(op: str, a: Value, b: Value) -> Value:
    """An operation on truth values."""
    if op in ("or", "bitwise_or", "fmax"):
        return a | b
    if op in ("and", "bitwise_and", "fmin"):
        return a & b
    if op in ("xor", "bitwise_xor"):
        return a ^ b
    if op in ("not", "invert"):
        return a ^ 1
    raise Untraceable(f"{op} of bool")


def emit_arithmetic(op: str, a: Value, b: Value) -> Value | None:
    """What floats and integers share."""
    integral = element_of(a.type) not in ("float", "double")
    # Each step is rounded, as NumPy and torch do: no product becomes part of a sum.
    if op == "add":
        return a.binary(b, ("fadd", "add"))
    if op == "subtract":
        return a.binary(b, ("fsub", "sub"))
    if op in ("multiply", "square"):
        return a.binary(b, ("fmul", "mul"))
    if op == "negative":
        return -a
    if op in ("positive", "conjugate"):
        return a
    if integral and op.startswith("bitwise_"):
        return {"and": a & b, "or": a | b, "xor": a ^ b}[op[8:]]
    return a ^ -1 if integral and op == "invert" else None


def emit_cast(code: Code, a: Value, given: np.dtype[Any], wanted: np.dtype[Any], type: str) -> Value:
    """A conversion. Floats become integers by the machine's own instruction, which is what NumPy and torch use too."""
    if wanted.kind == "b":
        return code.compare("ne", a, 0)
    if computed_in(given) in FLOATS and wanted.kind in "iu" and wanted.itemsize < 4:
        a = code.convert(a, "i32")
    return code.convert(a, element_of(type), unsigned=given.kind == "u")


def emit_float(code: Code, op: str, args: list[Value]) -> Value:
    """An operation that only floats have."""
    a, b = args[0], args[-1]
    element = element_of(a.type)
    if op in FUNCTIONS:
        formats, function = FUNCTIONS[op]
        if {"float": "f", "double": "d"}[element] not in formats:
            raise Untraceable(f"{op} of {element}")
        return function(code, *args)
    if op == "divide":
        return a / b
    if op == "reciprocal":
        return 1.0 / a
    if op == "absolute":
        return code.abs(a)
    if op in ROUNDING:
        return code.intrinsic(ROUNDING[op], a)
    if op == "maximum":
        return code.maximum(a, b)
    if op == "minimum":
        return code.minimum(a, b)
    if op in ("fmax", "fmin"):
        first = code.select(a > b if op == "fmax" else a < b, a, b)
        return code.select(code.compare("uno", b, b), a, first)
    if op == "isnan":
        return code.compare("uno", a, a)
    if op == "isinf":
        return code.compare("eq", code.abs(a), float("inf"))
    if op == "isfinite":
        return code.abs(a) < float("inf")
    if op == "signbit":
        return code.bitcast(a, {"float": "i32", "double": "i64"}[element]) < 0
    if op == "sign":
        size = code.select(a < 0.0, -1.0, code.select(code.compare("eq", a, 0.0), code.const(0.0, a.type), a))
        return code.select(a > 0.0, 1.0, size)
    if op == "expit":
        return 1.0 / (FUNCTIONS["exp"][1](code, -a) + 1.0)
    if op == "logaddexp":
        less = log1p_exp(code, -code.abs(a - b))
        return code.select(code.compare("eq", a, b), a + 0.6931471805599453, code.maximum(a, b) + less)
    raise Untraceable(op)
