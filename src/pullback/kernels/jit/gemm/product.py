"""Products of matrices: blocks of the result are shared among the threads, each packs the panels it needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from pullback._thresholds import CLOSE, FEW_ROWS_TO_PACK, SERIAL_PRODUCT
from pullback.kernels import workers
from pullback.kernels.jit.compiler import target
from pullback.kernels.jit.gemm.pack import copy_rows, gather_rows, smaller, turn_columns, vector
from pullback.kernels.jit.gemm.tile import (
    DEPTH,
    DTYPES,
    EARLY,
    OLD,
    PANELS,
    ROWS,
    VECTORS,
    block_size,
    borrow,
    give_back,
    panel_size,
    steps,
    tiles,
    width,
)
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls

DIRECT, COPY, TURN, GATHER = range(4)
"""How the right matrix is read: where it lies, or packed from rows, from columns, from any strides."""
PACKING = (0.5, 5.0, 7.0, 16.0)
"""What packing a vector costs in each of these ways, in multiplications of vectors."""
MOST = 1024
"""Plans kept."""
FAR, DEEP = 1 << 19, 64
"""Bytes of a result that lies beyond the second-level cache; how far k runs at least while its lines are fetched."""


class Left(NamedTuple):
    """The left matrix of a block: its first row and the step to the next one."""

    at: Value
    step: Value


class Cell(NamedTuple):
    """A panel of the right matrix and the columns of the result it gives."""

    depth: Value
    left_table: Value
    """The places along k in the left matrix."""
    panel: Value
    table: Value
    columns: Value
    """How many there are, at most the width of a panel."""
    whole: Value
    """True if tiles may be written straight to the result: no lane is beyond the last column."""
    out: Value
    out_step: Value
    old: Value
    old_step: Value
    flags: Value
    """What the tile adds to its sums."""


Scatter = Callable[[Cell, Value, Value, Value, Value], None]


def multiply_block(
    code: Code, element: str, tile_table: Value, left: Left, rows: tuple[Value, Value], panels: tuple[Value, Value],
    bias: Value, cell: Callable[[Value], Cell], scatter: Scatter | None,
) -> None:  # fmt: skip
    """Tile after tile of a block: a strip of rows stays in the first-level cache while the panels pass.

    Tiles that cannot be written straight to the result, if there are such, are handed to `scatter` with the number of
    their panel, their first row, how many they have and where they lie.
    """
    wide, half = width(element), target.lanes(element) // 2
    buffer = code.stack(ROWS[0] * wide, element)
    row = code.variable(rows[0])
    again, body, done = code.label(), code.label(), code.label()
    code.do(f"br label %{again}")
    code.block(again)
    m = row.get()
    code.do(f"br {m < rows[1]}, label %{body}, label %{done}")
    code.block(body)
    remaining = rows[1] - m
    height, number = code.const(1, "i64"), code.const(len(ROWS) - 1, "i64")
    for nr, candidate in reversed(list(enumerate(ROWS[:-1]))):
        fits = remaining >= candidate
        height = code.select(fits, code.const(candidate, "i64"), height)
        number = code.select(fits, code.const(nr, "i64"), number)
    strip = code.at(left.at, m * left.step, element)
    row_bias = code.at(bias, m, element)
    with code.loop(*panels) as p:
        here = cell(p)
        halves = (here.columns + (half - 1)) // half
        function = code.load(tile_table, number * (2 * VECTORS) + halves - 1, "i64")
        pointer = code.emit(f"inttoptr {function} to ptr", "ptr")
        out, old = code.at(here.out, m * here.out_step, element), code.at(here.old, m * here.old_step, element)
        given = [
            strip,
            left.step,
            here.left_table,
            here.panel,
            here.table,
            here.depth,
            code.select(here.whole, out, buffer),
        ]
        given += [code.select(here.whole, here.out_step, wide), old, here.old_step, row_bias, here.flags]
        code.do(f"call void {pointer.name}({', '.join(map(str, given))})")
        if scatter is not None:
            with code.when(code.compare("eq", here.whole, 0)):
                scatter(here, p, m, height, buffer)
    row.set(m + height)
    code.do(f"br label %{again}")
    code.block(done)


def finish(code: Code, element: str, flags: Value) -> Scatter:
    """The rows of a tile that has fewer columns than its vectors, written under a mask."""
    wide, lanes, type = width(element), target.lanes(element), vector(element)

    def scatter(here: Cell, p: Value, m: Value, height: Value, buffer: Value) -> None:
        with code.loop(m, m + height) as r:
            line, out = code.at(buffer, (r - m) * wide, element), code.at(here.out, r * here.out_step, element)
            old = code.at(here.old, r * here.old_step, element)
            with code.loop(0, here.columns, lanes) as j:
                mask = code.tail_mask(here.columns - j, lanes)
                sum = code.variable(code.load(line, j, type))
                with code.when(code.compare("ne", flags & OLD, 0)):
                    sum.set(sum.get() + code.load(old, j, type, mask))
                code.store(sum.get(), out, j, mask)

    return scatter


def own_scratch(code: Code, element: str, scratch: Value, capacity: Value) -> Value:
    """The worker's part of the scratch; workers that were started since it was made must not write beyond it."""
    return code.at(scratch, smaller(code, code.worker, capacity - 1) * block_size(element), element)


INTEGERS = (
    "rows", "columns", "depth", "deep", "a_row", "a_column", "b_row", "b_column", "c_row", "old_row", "a_batch",
    "b_batch", "c_batch", "old_batch", "strip", "across", "strips", "acrosses", "how", "flags",
    "capacity",
)  # fmt: skip


def rectangle(
    code: Code, inside: Value, acrosses: Value, panels: tuple[Value, Value, int], strips: tuple[Value, Value]
) -> tuple[Value, Value, Value, Value]:
    """First and last panel and row of a work item, from (panels per item, columns, width) and (rows per item, rows)."""
    across, columns, wide = panels
    strip, rows = strips
    nr = inside // acrosses
    p0 = (inside - nr * acrosses) * across
    p1 = smaller(code, p0 + across, (columns + (wide - 1)) // wide)
    m0 = nr * strip
    return p0, p1, m0, smaller(code, m0 + strip, rows)


@cache
def dense(element: str) -> Callable[..., bool]:
    """The kernel for matrices with any strides: c[n] = a[n] @ b[n] (+ old[n])."""
    dtype = DTYPES[element]
    wide, half = width(element), target.lanes(element) // 2

    def describe(code: Code, a: Value, b: Value, c: Value, old: Value, scratch: Value, a_at: Value, b_at: Value,
                 packed_at: Value, tile_table: Value, *numbers: Value) -> None:  # fmt: skip
        (rows, columns, depth, deep, a_row, a_column, b_row, b_column, c_row, old_row, a_batch, b_batch, c_batch,
         old_batch, strip, across, strips, acrosses, how, flags, capacity) = numbers  # fmt: skip
        mine = own_scratch(code, element, scratch, capacity)
        with code.loop(code.begin, code.end) as item:
            batch = item // (strips * acrosses)
            inside = item - batch * (strips * acrosses)
            nr = inside // acrosses
            first, m0 = (inside - nr * acrosses) * across, nr * strip
            end, m1 = smaller(code, first + across, columns), smaller(code, m0 + strip, rows)
            panels = (end - first + (wide - 1)) // wide
            a_here, b_here = code.at(a, batch * a_batch, element), code.at(b, batch * b_batch, element)
            c_here, old_here = code.at(c, batch * c_batch, element), code.at(old, batch * old_batch, element)
            with code.loop(0, depth, deep) as k0:
                count = smaller(code, deep, depth - k0)
                with code.loop(0, panels) as p:
                    column = first + p * wide
                    left = end - column
                    panel = code.at(mine, p * panel_size(element), element)
                    source = code.at(b_here, k0 * b_row + column * b_column, element)
                    ragged = code.compare("ne", smaller(code, left, wide) % half, 0)
                    copied = (code.compare("eq", how, DIRECT) & ragged) | code.compare("eq", how, COPY)
                    with code.when(copied):
                        copy_rows(code, element, source, b_row, left, count, panel)
                    with code.when(code.compare("eq", how, TURN)):
                        turn_columns(code, element, source, b_column, left, count, panel)
                    with code.when(code.compare("eq", how, GATHER)):
                        gather_rows(code, element, source, b_row, b_column, left, count, panel)
                begins = code.compare("eq", k0, 0)
                before = code.select(begins, old_here, c_here)
                before_row = code.select(begins, old_row, c_row)
                now = code.select(begins, flags, OLD)

                def cell(p: Value) -> Cell:
                    column = first + p * wide
                    here = smaller(code, end - column, wide)
                    whole = code.compare("eq", here % half, 0)
                    direct = code.compare("eq", how, DIRECT) & whole
                    packed = code.at(mine, p * panel_size(element), element)
                    panel = code.select(direct, code.at(b_here, k0 * b_row + column, element), packed)
                    out, was = code.at(c_here, column, element), code.at(before, column, element)
                    table, tile_flags = code.select(direct, b_at, packed_at), code.select(whole, now, 0)
                    return Cell(count, a_at, panel, table, here, whole, out, c_row, was, before_row, tile_flags)

                lines = Left(code.at(a_here, k0 * a_column, element), a_row)
                multiply_block(code, element, tile_table, lines, (m0, m1), (code.const(0, "i64"), panels), old, cell,
                               finish(code, element, now))  # fmt: skip

    any, table = calls.array(dtype, strided=True), calls.array("int64")
    result = calls.array(dtype, write=True, strided=True)
    params = [any, any, result, any, calls.array(dtype, write=True), table, table, table, table]
    return calls.kernel(
        f"pullback_gemm_{dtype}", [*params, *map(calls.integer, INTEGERS)], describe, "c = a @ b (+ old)", element
    )


def grain(work: int, items: int) -> int:
    """The smallest share of a thread: everything, if there is little work."""
    return items if work < SERIAL_PRODUCT else 1


def longest(items: int, acrosses: int, across: int, vectors: int, threads: int) -> tuple[int, int]:
    """Vectors of columns and items of the thread that has most: the pool cuts them into spans of four chunks each."""
    chunk = -(-items // (4 * threads))
    chunks = -(-items // chunk)
    most = (0, 0)
    for span in range(min(threads, 4)):
        begin, end = (min(chunks * nr // threads * chunk, items) for nr in (span, span + 1))
        at, to = (i // acrosses * vectors + min(i % acrosses * across, vectors) for i in (begin, end))
        most = max(most, (to - at, end - begin))
    return most


@lru_cache(MOST)
def shares(
    rows: int, columns: int, batches: int, threads: int, packing: float, element: str, unit: int = 1
) -> tuple[int, int]:
    """How many rows and vectors of columns, a multiple of `unit`, an item has, so that the busiest thread is done
    soonest.

    Time is counted in multiplications of vectors: `packing` says how many of them the packing of a vector costs. A row
    of the left matrix costs one where it comes from afar, a sixteenth where it is read again for another item, and a
    little for each panel.
    """
    vectors = -(-columns // target.lanes(element))
    best, found = float("inf"), (rows, min(PANELS * VECTORS, vectors))
    units = -(-vectors // unit)
    widths = {min(PANELS * VECTORS, -(-units // parts) * unit) for parts in (*range(1, 9), 10, 12, 16, 24, units)}
    for across in sorted(widths, reverse=True):
        acrosses = -(-vectors // across)
        for strips in (1, 2, 3, 4, 6, 8, 12, 16) if threads > 1 else (1,):
            strip = -(-rows // strips // ROWS[0]) * ROWS[0] if strips > 1 else rows
            items = batches * acrosses * -(-rows // strip)
            mine, many = longest(items, acrosses, across, vectors, threads)
            reading = many * (strip / 16 + -(-across // VECTORS) * strip / 64)
            fetching = min(-(-many // acrosses) * strip, rows)
            # A little for what disturbs a thread: the others cannot help it with its last item.
            last = min(across, vectors) * (strip + packing) / 16
            time = mine * (strip + packing) + reading + fetching + last + items / 4
            if time < best:
                best, found = time, (strip, across)
    return found


plans: dict[Any, tuple[Any, ...]] = {}
"""The arguments of products by the shapes and strides of the operands."""


def plan(a: Any, b: Any, old: Any, threads: int) -> tuple[Any, ...]:
    """The kernel, the shape of the result, and the arguments from the tables on."""
    element = target.ELEMENTS[a.dtype.name]
    size, wide = a.itemsize, width(element)
    (rows, depth), columns = a.shape[-2:], b.shape[-1]
    batches = len(a) if a.ndim == 3 else 1
    a_row, a_column = (s // size for s in a.strides[-2:])
    b_row, b_column = (s // size for s in b.strides[-2:])
    a_batch, b_batch = (a.strides[0] // size, b.strides[0] // size) if a.ndim == 3 else (0, 0)
    # A matrix of one row or column has any stride along it.
    how = COPY if b_column == 1 or columns == 1 else TURN if b_row == 1 or depth == 1 else GATHER
    if how == COPY and (rows <= FEW_ROWS_TO_PACK or 0 < b_row * depth <= CLOSE):
        how = DIRECT
    old_row = old.strides[-2] // size if old is not None and old.ndim > 1 else 0
    old_batch = old.strides[0] // size if old is not None and old.ndim > 2 else 0
    work = batches * rows * depth * columns
    strip, across = shares(rows, columns, batches, threads if work >= SERIAL_PRODUCT else 1, PACKING[how], element)
    across *= target.lanes(element)
    strips, acrosses = -(-rows // strip), -(-columns // across)
    items = batches * strips * acrosses
    far = batches * rows * columns * size >= FAR and depth >= DEEP
    flags = (0 if old is None else OLD) | (EARLY if far else 0)
    arguments = (
        steps(a_column), steps(b_row), steps(wide), tiles(element), rows, columns, depth,
        -(-depth // -(-depth // DEPTH)), a_row, a_column, b_row, b_column, columns, old_row, a_batch, b_batch,
        rows * columns, old_batch, strip, across, strips, acrosses, how, flags, threads,
        items, grain(work, items) if batches < items else max(1, SERIAL_PRODUCT * items // (2 * work)),
    )  # fmt: skip
    if len(plans) >= MOST:
        plans.clear()
    return element, dense(element), (*a.shape[:-1], columns), arguments


def multiply(a: Any, b: Any, old: Any = None) -> Any:
    """a @ b of two matrices or two batches of matrices with any strides, plus `old`.

    `old` is a row, a matrix or a batch of them whose last dimension is contiguous. Nothing is empty. The answer is None
    if an operand is not aligned or not of the machine's byte order.
    """
    threads = workers.threads()
    key = (a.dtype, a.shape, a.strides, b.shape, b.strides, threads, None if old is None else old.strides)
    found = plans.get(key)
    if found is None:
        found = plans[key] = plan(a, b, old, threads)
    element, kernel, shape, arguments = found
    out = np.empty(shape, a.dtype)
    scratch = borrow(element, threads)
    done = kernel(a, b, out, out if old is None else old, scratch, *arguments)
    give_back(element, scratch)
    return out if done else None
