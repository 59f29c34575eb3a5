"""Products of small matrices, read where they lie: no plan, no packing, one thread.

Layers compute x @ weight.T + bias. The few rows of x are turned once, so that each lane of a vector is a row of x; the
weight is read number by number, and squares of the result are turned back. What is row-major on the right is read in
vectors, and the left matrix may lie as it likes: x.T @ y is the gradient of a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._thresholds import (
    DEEPEST_SMALL_PRODUCT,
    FEW_IN_WEIGHT,
    FEWEST_ROWS,
    MOST_IN_SMALL_PRODUCT,
    NARROWEST_PRODUCT,
)
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.gemm.pack import smaller, transposed
from pullback.kernels.jit.language.code import Code, Value, Variable
from pullback.kernels.jit.rows.programs import DTYPES, vector_of
from pullback.kernels.jit.runtime.entries import C, Entry, F, again

UNROLL = 4
"""Steps along k in a row: the address of a row serves them all."""
TALL = WIDE = 4
"""Rows and vectors of a tile of x @ y."""


def turn_rows(code: Code, element: str, x: Value, rows: Value, depth: Value, out: Value) -> None:
    """At most as many rows as a vector has lanes, written as vectors of columns: out[k][row]."""
    count, type = lanes(element), vector_of(element)
    starts = [code.at(x, smaller(code, rows - 1, code.const(r, "i64")) * depth, element) for r in range(count)]

    with code.loop(0, depth, count) as k:
        mask = code.tail_mask(depth - k, count)
        for t, column in enumerate(transposed(code, [code.load(start, k, type, mask) for start in starts])):
            code.store(column, out, (k + t) * count)


def bias_at(code: Code, bias: Value, n: Value, type: str) -> Value:
    """What is added to some columns: nothing, if there is no bias."""
    added = code.variable(code.const(0.0, type))
    with code.when(code.emit(f"icmp ne {bias}, null", "i1")):
        added.set(code.load(bias, n, type))
    return added.get()


def rows_by_rows(element: str) -> Callable[..., None]:
    """out[m, n] = sum of x[m, k] * weight[n, k] over k, plus bias[n] if there is one."""
    type, count = vector_of(element), lanes(element)
    together = min(8, count)

    def describe(
        code: Code, x: Value, weight: Value, bias: Value, out: Value, rows: Value, columns: Value, depth: Value,
        *strides: Value,
    ) -> None:  # fmt: skip
        turned = code.stack((DEEPEST_SMALL_PRODUCT + count) * count, element)

        def add_up(pointers: list[Value]) -> list[Variable]:
            """Some rows of the weight times all rows in `turned`."""
            sums = [code.variable(code.const(0.0, type)) for _ in pointers]
            whole = depth & -UNROLL
            for start, stop, step in ((code.const(0, "i64"), whole, UNROLL), (whole, depth, 1)):
                with code.loop(start, stop, step) as k:
                    for t in range(step):
                        column = code.load(turned, (k + t) * count, type)
                        for sum, pointer in zip(sums, pointers, strict=True):
                            number = code.splat(code.load(pointer, k + t, element), count)
                            sum.set(code.fma(number, column, sum.get()))
            return sums

        with code.loop(0, rows, count) as m:
            here = smaller(code, rows - m, count)
            turn_rows(code, element, code.at(x, m * depth, element), here, depth, turned)
            with code.loop(0, columns, count) as n:
                starts = [
                    code.at(weight, smaller(code, n + r, columns - 1) * depth, element) for r in range(count)
                ]  # rows beyond the last are it again, and not written
                sums = [s for r in range(0, count, together) for s in add_up(starts[r : r + together])]
                square = transposed(code, [s.get() for s in sums])
                mask = code.tail_mask(columns - n, count)
                code.mask = mask
                added = bias_at(code, bias, n, type)
                code.mask = None
                square = [line + added for line in square]
                target = code.at(out, m * columns + n, element)
                whole = (here >= count) & (n + count <= columns)
                with code.when(whole):
                    for r, line in enumerate(square):
                        code.store(line, target, columns * r)
                with code.when(whole ^ 1):
                    for r, line in enumerate(square):
                        with code.when(here > r):
                            code.store(line, target, columns * r, mask)

    return describe


def by_rows(element: str) -> Callable[..., None]:
    """out[m, n] = sum of x[m, k] * y[k, n] over k, plus bias[n] if there is one; x has any strides."""
    type, count = vector_of(element), lanes(element)

    def describe(
        code: Code, x: Value, y: Value, bias: Value, out: Value, rows: Value, columns: Value, depth: Value,
        x_row: Value, x_column: Value,
    ) -> None:  # fmt: skip
        def tile(m: Value, tall: int, n: Value, wide: int) -> None:
            sums = [[code.variable(code.const(0.0, type)) for _ in range(wide)] for _ in range(tall)]
            lines = [code.at(x, (m + r) * x_row, element) for r in range(tall)]
            right, target = code.at(y, n, element), code.at(out, m * columns + n, element)
            with code.loop(0, depth) as k:
                line = [code.load(right, k * columns + v * count, type) for v in range(wide)]
                for r in range(tall):
                    number = code.splat(code.load(lines[r], k * x_column, element), count)
                    for v in range(wide):
                        sums[r][v].set(code.fma(number, line[v], sums[r][v].get()))
            for v in range(wide):
                added = bias_at(code, bias, n + v * count, type)
                for r in range(tall):
                    code.store(sums[r][v].get() + added, target, columns * r + v * count)

        whole = rows & -TALL
        for start, stop, tall in ((code.const(0, "i64"), whole, TALL), (whole, rows, 1)):
            with code.loop(start, stop, tall) as m:
                done = code.const(0, "i64")
                for wide in (WIDE, WIDE // 2) if tall > 1 else (WIDE,):
                    far = done + ((columns - done) & -(wide * count))
                    with code.loop(done, far, wide * count) as n:
                        tile(m, tall, n, wide)
                    done = far
                with code.loop(done, columns, count) as n:
                    code.mask = code.tail_mask(columns - n, count)
                    tile(m, tall, n, 1)
                    code.mask = None

    return describe


ARGUMENTS = ("ptr", "ptr", "ptr", "ptr", "i64", "i64", "i64", "i64", "i64")
"""Both matrices, the bias or nothing, the result, the three sizes, and the strides of the left matrix."""


def product(element: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin f(a, b) or f(a, b, bias) that makes a @ b + bias; what it does not take it hands on to `otherwise`."""
    name, count = f"small_product_{DTYPES[element]}", lanes(element)
    if (found := again(name, "a @ b + bias", otherwise)) is not None:
        return found
    entry, dtype = Entry(name, 2, 3), DTYPES[element]
    code = entry.code
    biased = code.compare("eq", entry.argc, 3)
    a, b = entry.array(0, dtype, strided=True), entry.array(1, dtype, strided=True)
    (rows, depth), (inner, columns) = a.shape(2), b.shape(2)
    entry.require(
        code.compare("eq", depth, inner)
        & (depth <= DEEPEST_SMALL_PRODUCT)
        & (rows * depth * columns < MOST_IN_SMALL_PRODUCT)
    )
    turned = b.lies(F) & a.lies(C) & ((rows >= FEWEST_ROWS) | (columns * depth <= FEW_IN_WEIGHT))
    filled = ((columns + (count - 1)) & -count) * 4 <= columns * 5
    entry.require(
        turned | (b.lies(C) & (rows >= TALL) & (filled | (columns <= count)) & (columns >= NARROWEST_PRODUCT))
    )
    slots = code.stack(len(ARGUMENTS), "i64")
    code.store(code.const(0, "i64"), slots, 2)
    with code.when(biased):
        bias = entry.array(2, dtype)
        entry.require(code.compare("eq", bias.shape(1)[0], columns))
        code.store(bias.data, slots, 2)
    result = entry.result(dtype, 2, [rows, columns])
    for nr, value in enumerate((a.data, b.data, None, entry.address(result), rows, columns, depth, *a.steps(2))):
        if value is not None:
            code.store(value, slots, nr)
    loops = []
    for condition, loop, describe in ((turned, "turned", rows_by_rows), (turned ^ 1, "plain", by_rows)):
        with code.when(condition):
            code.do(f"call void @{name}_{loop}({slots}, i64 0, i64 1, i64 0)")
        loops.append(Code(f"{name}_{loop}"))
        describe(element)(loops[-1], *[loops[-1].argument(i, type) for i, type in enumerate(ARGUMENTS)])
    return entry.builtin(result, "a @ b + bias", otherwise, loops)
