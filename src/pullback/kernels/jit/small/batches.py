"""Products of the matrices of small batches, by a builtin that makes its result: one thread, no plan, no packing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pullback._thresholds import MOST_IN_SMALL_BATCH
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, vector_of
from pullback.kernels.jit.runtime.entries import Entry, again


@cache
def product(char: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """f(a, b) for row-major batches of a dtype; what it does not take it hands on."""
    element = ELEMENTS[char]
    type, count = vector_of(element), lanes(element)
    name, note = f"small_batches_{DTYPES[element]}", "a @ b for each pair"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 2)
    code = entry.code
    a, b = entry.array(0, DTYPES[element]), entry.array(1, DTYPES[element])
    (batch, rows, depth), (same, inner, columns) = a.shape(3), b.shape(3)
    entry.require(code.compare("eq", batch, same) & code.compare("eq", depth, inner))
    entry.require(batch * rows * depth * columns < MOST_IN_SMALL_BATCH)
    made = entry.result(DTYPES[element], 3, [batch, rows, columns])
    left, right, out = (entry.data(array) for array in (a.object, b.object, made))
    with code.loop(0, batch * rows) as row:
        source = code.at(right, row // rows * depth * columns, element)

        def piece(column: Value, row: Value = row, source: Value = source) -> None:
            total = code.variable(code.const(0.0, type))
            with code.loop(0, depth) as k:
                number = code.splat(code.load(left, row * depth + k, element), count)
                total.set(code.fma(number, code.load(source, k * columns + column, type), total.get()))
            code.store(total.get(), out, row * columns + column)

        code.vectors(0, columns, count, piece)
    return entry.builtin(made, note, otherwise)
