"""Sums over the rows of small matrices, as the gradient of a bias is, and moments of their rows: builtins that make
their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._thresholds import LARGE, MOST_IN_SMALL_SUM, NARROWEST_SUM
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, vector_of
from pullback.kernels.jit.rows.reductions import PIECE
from pullback.kernels.jit.runtime.entries import Entry, again

WIDE = 4
"""Vectors side by side."""


def column_sums(element: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin that adds up at most PIECE rows one after the other: every bit is that of a reduction or NumPy's."""
    name, count, type = f"column_sums_{DTYPES[element]}", lanes(element), vector_of(element)
    if (found := again(name, "x.sum(0)", otherwise)) is not None:
        return found
    entry = Entry(name, 1)
    x = entry.array(0, DTYPES[element])
    rows, columns = x.shape(2)
    entry.require((rows > 0) & (rows <= PIECE) & (columns >= NARROWEST_SUM) & (rows * columns < MOST_IN_SMALL_SUM))
    result = entry.result(DTYPES[element], 1, [columns])
    slots = entry.code.stack(4, "i64")
    for nr, value in enumerate((x.data, entry.address(result), rows, columns)):
        entry.code.store(value, slots, nr)
    entry.code.do(f"call void @{name}({slots}, i64 0, i64 1, i64 0)")

    loop = Code(name)
    source, target, high, across = (loop.argument(i, kind) for i, kind in enumerate(("ptr", "ptr", "i64", "i64")))

    def strip(n: Value, wide: int) -> None:
        sums = [loop.variable(loop.load(source, n + v * count, type)) for v in range(wide)]
        mask = loop.mask
        with loop.loop(1, high) as row:
            loop.mask = mask
            for v, sum in enumerate(sums):
                sum.set(sum.get() + loop.load(source, row * across + (n + v * count), type))
        for v, sum in enumerate(sums):
            loop.store(sum.get(), target, n + v * count)

    whole = across & -(WIDE * count)
    with loop.loop(0, whole, WIDE * count) as n:
        strip(n, WIDE)
    loop.vectors(whole, across, count, lambda n: strip(n, 1))
    return entry.builtin(result, "x.sum(0)", otherwise, [loop])


EPSILON, LARGEST = 2.0**-52, 1e300
"""The rounding error of a number, and a square beyond which nothing is said of it."""


def moments(element: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin f(rows, freedom) of the variance of each row and of its mean: `[2, rows]` in float64.

    A mean that is a row's first number but for rounding errors is taken for it: equal numbers do not deviate.
    """
    name, note = f"moments_{DTYPES[element]}", "variances and means of rows"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 2)
    code = entry.code
    x = entry.array(0, DTYPES[element])
    rows, length = x.shape(2)
    freedom = code.call("PyFloat_AsDouble", "double", entry.argument(1, "float"))
    entry.require((length > 0) & (rows * length < LARGE))
    result = entry.result("float64", 2, [code.const(2, "i64"), rows])
    source, target = entry.data(x.object), entry.data(result)
    type, few = "<4 x double>", length & -4

    def total(start: Value, mean: Value | None) -> Value:
        """The sum of a row, or that of its squared deviations."""

        def term(i: Value, kind: str) -> Value:
            number = code.convert(code.load(source, start + i, kind), "double")
            if mean is None:
                return number
            away = number - (mean if number.type == "double" else code.splat(mean, 4))
            return away * away

        four, one = code.variable(code.const(0.0, type)), code.variable(code.const(0.0, "double"))
        with code.loop(0, few, 4) as i:
            four.set(four.get() + term(i, f"<4 x {element}>"))
        with code.loop(few, length) as i:
            one.set(one.get() + term(i, element))
        return code.reduce(four.get(), "add") + one.get()

    with code.loop(0, rows) as row:
        number = code.convert(length, "double")
        mean = total(row * length, None) / number
        code.store(mean, target, rows + row)
        first = code.convert(code.load(source, row * length, element), "double")
        apart, error = mean - first, first * number * EPSILON
        near = (apart * apart <= error * error) & (error * error < LARGEST)
        code.store(total(row * length, code.select(near, first, mean)) / freedom, target, row)
    return entry.builtin(result, note, otherwise)
