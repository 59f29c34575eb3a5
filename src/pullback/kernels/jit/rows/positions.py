"""Where the extremum is: the first place of a value that a reduction has found, looked for in a second pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._thresholds import FEW_REDUCTIONS, REDUCTION_SHARE
from pullback.kernels.jit.compiler.target import ELEMENTS, lanes
from pullback.kernels.jit.language.code import Code, Value, element_of
from pullback.kernels.jit.rows.reductions import BLOCK, PIECE, SUMS, reduced, strip_of
from pullback.kernels.jit.runtime import calls

Array = Any
kernels: dict[tuple[str, str], Callable[..., bool]] = {}


def hits(code: Code, x: Value, wanted: Value) -> Value:
    """The lanes that hold the value; where there is a nan, it is the extremum."""
    found = code.compare("eq", x, wanted)
    return found | code.compare("uno", x, x) if element_of(x.type) in ("float", "double") else found


def describe_rows(element: str) -> Callable[..., None]:
    """The first place in each block of each row; the length of the row if there is none."""
    width = lanes(element)
    type = f"<{width} x {element}>"

    def describe(
        code: Code, x: Value, wanted: Value, out: Value, rows: Value, length: Value, blocks: Value, block: Value
    ) -> None:
        with code.loop(code.begin, code.end) as item:
            row = item // blocks
            first = (item - row * blocks) * block
            stop = code.select(first + block < length, first + block, length)
            here = code.at(x, row * length, element)
            value = code.splat(code.load(wanted, row, element), width)
            place = code.variable(length)

            def look(i: Value) -> None:
                with code.when(code.compare("eq", place.get(), length)):
                    hit = hits(code, code.load(here, i, type), value)
                    hit = hit if code.mask is None else hit & code.mask
                    bits = code.emit(f"bitcast {hit} to i{width}", f"i{width}")
                    with code.when(code.emit(f"icmp ne {bits}, 0", "i1")):
                        code.declare(f"llvm.cttz.i{width}", f"i{width}", f"i{width}", "i1")
                        lane = code.emit(f"call i{width} @llvm.cttz.i{width}({bits}, i1 true)", f"i{width}")
                        wide = lane if width == 64 else code.emit(f"zext {lane} to i64", "i64")
                        place.set(i + wide)

            code.vectors(first, stop, width, look)
            code.store(place.get(), out, item)

    return describe


def describe_columns(element: str) -> Callable[..., None]:
    """The first row of each column in each block of rows, found by going through them backwards."""
    width = lanes(element)
    type = f"<{width} x {element}>"

    def describe(
        code: Code, x: Value, wanted: Value, out: Value,
        outer: Value, length: Value, inner: Value, blocks: Value, block: Value,
    ) -> None:  # fmt: skip
        strips = (inner + width - 1) // width
        with code.loop(code.begin, code.end) as item:
            rest, column, o, first, stop = strip_of(code, item, strips, width, outer, length, block)
            here = code.at(x, o * length * inner, element)
            beyond = code.select(column + width < inner, column + width, inner)

            def look(i: Value) -> None:
                value = code.load(wanted, o * inner + i, type)
                place = code.variable(code.splat(length, width))
                mask = code.mask
                with code.loop(first, stop) as k:
                    row = stop - 1 - (k - first)
                    hit = hits(code, code.load(here, row * inner + i, type, mask), value)
                    place.set(code.select(hit, code.splat(row, width), place.get()))
                code.mask = mask
                code.store(place.get(), out, rest * inner + i)

            code.vectors(column, beyond, width, look)

    return describe


def kernel(loop: str, dtype: np.dtype[Any]) -> Callable[..., bool]:
    """The kernel of a dtype, compiled on first use."""
    found = kernels.get((loop, dtype.name))
    if found is None:
        names, size, made, given = ("rows", "length", "blocks", "block"), "rows*length", "rows*blocks", "rows"
        if loop == "columns":
            names = ("outer", "length", "inner", "blocks", "block")  # type: ignore[assignment]
            size, made, given = "outer*length*inner", "blocks*outer*inner", "outer*inner"
        params = [calls.array(dtype.name, size), calls.array(dtype.name, given), calls.array("int64", made, write=True)]
        describe = {"rows": describe_rows, "columns": describe_columns}[loop](ELEMENTS[dtype.name])
        params += map(calls.integer, names)
        found = kernels[loop, dtype.name] = calls.kernel(f"position_{loop}_{dtype.name}", params, describe)
    return found


def position(how: str, array: Array, axis: int | None, keepdim: bool) -> tuple[Array, Array] | None:
    """The extremum and its first index along `axis`, in the flattened array for None; None if NumPy has to look."""
    if not array.flags.c_contiguous or array.dtype.name not in SUMS or array.dtype.kind == "b":
        return None
    best = reduced(how, array, axis, keepdim)  # None for an axis that is not there
    if best is None:
        return None
    shape = array.shape
    inner = 1 if axis is None else int(np.prod(shape[axis % array.ndim + 1 :], dtype=np.int64))
    length = array.size if axis is None else shape[axis]
    outer = array.size // (length * inner)
    if inner == 1:
        blocks = -(-length // BLOCK) if outer < FEW_REDUCTIONS else 1
        block, count = BLOCK if blocks > 1 else length, outer * blocks
        facts: tuple[int, ...] = (outer, length, blocks, block, count, max(1, REDUCTION_SHARE // block))
        out = np.empty((outer, blocks), np.int64)
        run = kernel("rows", array.dtype)
    else:
        strips = -(-inner // lanes(ELEMENTS[array.dtype.name]))
        blocks = (
            max(1, min(-(-FEW_REDUCTIONS // (outer * strips)), length // PIECE))
            if outer * strips < FEW_REDUCTIONS
            else 1
        )
        block = -(-length // blocks)
        blocks = -(-length // block)
        count = blocks * outer * strips
        facts = (outer, length, inner, blocks, block, count, max(1, REDUCTION_SHARE // (block * min(inner, 16))))
        out = np.empty((blocks, outer, inner), np.int64)
        run = kernel("columns", array.dtype)
    if not run(array, best, out, *facts):
        return None
    places = out if blocks == 1 else np.minimum.reduce(out, 1 if inner == 1 else 0)
    return best, places.reshape(best.shape)
