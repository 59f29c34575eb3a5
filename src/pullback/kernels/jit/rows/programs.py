"""Programs over rows: `fold` reduces what lies side by side in memory, `write_row` writes it.

A row is read again while it is still in the cache, so softmax is three short loops and no temporary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback._thresholds import ROWS_SHARE
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value, Variable, literal

UNROLL = 4
"""Partial results per row: additions that do not wait for each other, and sums that round less."""
DTYPES = {"float": "float32", "double": "float64"}
ELEMENTS = {"f": "float", "d": "double"}
"""LLVM's type for NumPy's letter of a dtype, of those that row programs take."""

Body = Callable[[Value], Sequence[Value]]


def vector_of(element: str) -> str:
    """The vector type of an element type."""
    return f"<{lanes(element)} x {element}>"


def fold(code: Code, length: Value, element: str, body: Body, hows: Sequence[str], unroll: int = UNROLL) -> list[Value]:
    """Reduce what `body(i)` gives for the vectors of a row: one number for each of `hows`.

    add is the sum and max the largest; top is the largest too, but may overlook nan, which makes it quicker.
    """
    width, type = lanes(element), vector_of(element)
    starts = {"add": 0.0, "max": -float("inf"), "top": -float("inf")}
    slots = [[code.variable(code.const(starts[how], type)) for how in hows] for _ in range(unroll)]

    def take(i: Value, accumulators: Sequence[Variable]) -> None:
        for how, slot, value in zip(hows, accumulators, body(i), strict=True):
            if code.mask is not None:
                value = code.select(code.mask, value, code.const(starts[how], type))
            slot.set(combine(code, how, slot.get(), value))

    whole = length & -(width * unroll)
    with code.loop(0, whole, width * unroll) as i:
        for part in range(unroll):
            take(i + part * width if part else i, slots[part])
    code.vectors(whole, length, width, lambda i: take(i, slots[0]))
    found = []
    for nr, how in enumerate(hows):
        parts = [slot[nr].get() for slot in slots]
        while len(parts) > 1:
            parts = [combine(code, how, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        found.append(code.reduce(parts[0], "max" if how == "top" else how))
    return found


def combine(code: Code, how: str, a: Value, b: Value) -> Value:
    """Two partial results as one."""
    if how == "add":
        return a + b
    return code.maximum(a, b) if how == "max" else code.select(b > a, b, a)


def spread(code: Code, scalar: Value) -> Value:
    """A number in all lanes."""
    return code.splat(scalar, lanes(scalar.type))


def write_row(code: Code, length: Value, element: str, body: Callable[[Value], None], unroll: int = 2) -> None:
    """Run `body(i)` for the vectors of a row."""
    code.vectors(0, length, lanes(element), body, unroll)


def scalar(code: Code, function: Callable[[Code, Value], Value], number: Value) -> Value:
    """A vector function of one number."""
    return code.lane(function(code, code.splat(number, lanes(number.type))), 0)


def constant(code: Code, number: float, element: str) -> Value:
    """A scalar constant."""
    return Value(code, literal(number, element), element)


def share(length: int) -> int:
    """How many rows of a length make one share of work."""
    return max(1, ROWS_SHARE // max(length, 1))
