"""Builtins that make their result: a pointwise program on small arrays at a third of what a ufunc's call takes.

    multiply = pointwise(program, "11", 0, 4096, np.multiply)
    multiply(x, y)                      # a new array

The layout has a letter for each array: 1 for a row-major one of the result's shape, 0 for one without dimensions, e for
one number stretched to that shape, as the gradient of a sum is. Arrays whose rows are contiguous are R if they have the
result's shape and r if they are broadcast to it, C and c if their rows are one number each; these take the result row
by row. A matrix that lies column by column is t; the first of several that have the result's shape says how it lies.
Everything else is handed on to the function the builtin was given, with the same arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from pullback._thresholds import LARGE
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.pointwise.loops import FLAT, Loop, Program
from pullback.kernels.jit.runtime.entries import C, Entry, F, Given, again

FULL = "1eRCt"
"""Letters of arrays that have the result's shape."""
PIECE = 64
"""Elements of a row that are brought together at a time where they lie far from each other."""


def pointwise(
    program: Program, layout: str, least: int, limit: int, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """The builtin of a program for one layout and arrays of at least `least` and fewer than `limit` elements."""
    program = program.closed()
    text = f"{program.structure}|{layout}|{least}|{limit}"
    name, note = f"making_{hashlib.sha256(text.encode()).hexdigest()[:16]}", f"{program.name}: {program.root}"
    if (found := again(name, note, otherwise)) is not None:
        return found
    loop = Code(name)
    inner = "".join(["1" if way in "1Rrt" else "0" for way in layout]) + "1"
    pointers = [loop.argument(i, "ptr") for i in range(len(inner))]
    Loop(program, inner, FLAT, False).describe(loop, *pointers, pointers[0])

    entry = Entry(name, len(layout))
    code = entry.code
    dtypes = [program.dtypes[place].name for place in program.inputs]
    arrays = [entry.array(i, dtype, way not in "10") for i, (way, dtype) in enumerate(zip(layout, dtypes, strict=True))]
    whole = next(array for way, array in zip(layout, arrays, strict=True) if way in FULL)
    size = whole.size()
    entry.require((size >= least) & (size < limit))
    by_rows = bool(set(layout) & set("RCrc"))
    order = next(way for way in layout if way in FULL)
    across = [i for i, way in enumerate(layout) if "t" in layout and way in FULL and way != order]
    if by_rows:
        entry.require(whole.ndim > 0)
    if "t" in layout:
        entry.require(code.compare("eq", whole.ndim, 2))
    for way, array in zip(layout, arrays, strict=True):
        if way == "0":
            entry.require(code.compare("eq", array.ndim, 0))
        if way in FULL and array is not whole:
            entry.require(code.compare("eq", array.ndim, whole.ndim))
            entry.same(array.ndim, array.dims, whole.dims)
        if way == "t":
            entry.require(code.compare("eq", array.flags & (C | F), F))
        elif way == "e":
            entry.same(array.ndim, array.strides, None)
        elif way in "RCrc":
            require_rows(entry, array, whole, way)
    made = entry.result(program.dtype.name, whole.ndim, whole.dims, F if order == "t" else C)
    addresses = [array.data for array in arrays] + [entry.address(made)]
    slots = code.stack(len(addresses), "i64")
    for i, address in enumerate(addresses):
        code.store(address, slots, i)
    if across:
        width = code.load(whole.dims, 0 if order == "t" else 1, "i64")
        elements = [ELEMENTS[dtype] for dtype in (*dtypes, program.dtype.name)]
        along = {i: addresses[i] for i, way in enumerate(layout + order) if way == order}
        far = {i: entry.data(arrays[i].object) for i in across}
        for count in by_pieces(code, width, size // width, slots, elements, along, far):
            code.do(f"call void @{name}({slots}, i64 0, {count}, i64 0)")
    elif not by_rows:
        code.do(f"call void @{name}({slots}, i64 0, {size}, i64 0)")
    else:
        length = code.load(whole.dims, code.convert(whole.ndim, "i64") - 1, "i64")
        with code.when(size > 0), code.loop(0, size, length) as start:
            for i, (way, dtype) in enumerate(zip(layout + "1", [*dtypes, program.dtype.name], strict=True)):
                if way == "1":
                    code.store(addresses[i] + start * SIZES[ELEMENTS[dtype]], slots, i)
                elif way in "RCrc":
                    code.store(addresses[i] + offset(code, arrays[i], whole, start // length), slots, i)
            code.do(f"call void @{name}({slots}, i64 0, {length}, i64 0)")
    return entry.builtin(made, note, otherwise, [loop])


def takes(program: Program) -> bool:
    """Whether builtins know the dtypes of a program: half precision is not among them."""
    return all(dtype.name in ELEMENTS for dtype in (program.dtype, *program.dtypes.values()))


def require_rows(entry: Entry, array: Given, whole: Given, way: str) -> None:
    """Hand on an array that is not broadcast to the shape of another in rows of the right kind.

    One whose dimensions lie in another order would give a result that is not row-major, and is handed on too.
    """
    code = entry.code
    entry.require((array.ndim > 0) & (array.ndim <= whole.ndim))
    ahead, last = code.convert(whole.ndim - array.ndim, "i64"), code.convert(array.ndim, "i64") - 1
    across, step = code.load(array.dims, last, "i64"), code.load(array.strides, last, "i64")
    if way in "Rr":
        entry.require(code.compare("eq", step, SIZES[ELEMENTS[array.dtype]]))
        entry.require(code.compare("eq", across, code.load(whole.dims, last + ahead, "i64")))
    else:
        entry.require(code.compare("eq", across, 1) | code.compare("eq", step, 0))
    before, fits = code.variable(code.const(0, "i64")), code.variable(code.const(1, "i1"))
    with code.loop(0, last + 1) as i:
        axis = last - i
        size, stride = code.load(array.dims, axis, "i64"), code.load(array.strides, axis, "i64")
        alone = code.compare("eq", size, 1)
        still = alone | code.compare("eq", stride, 0)
        right = alone | code.compare("eq", size, code.load(whole.dims, axis + ahead, "i64"))
        fits.set(fits.get() & right & (still | (stride >= before.get())))
        before.set(code.select(still, before.get(), stride))
    entry.require(fits.get())


def offset(code: Code, array: Given, whole: Given, row: Value) -> Value:
    """Where a row of the result begins in an array, in bytes."""
    ahead = code.convert(whole.ndim - array.ndim, "i64")
    left, place = code.variable(row), code.variable(code.const(0, "i64"))
    outer = code.convert(whole.ndim, "i64") - 1
    with code.loop(0, outer) as i:
        axis = outer - 1 - i
        many = code.load(whole.dims, axis, "i64")
        above = left.get() // many
        index = left.get() - above * many
        left.set(above)
        with code.when(axis >= ahead):
            alone = code.compare("eq", code.load(array.dims, axis - ahead, "i64"), 1)
            step = code.select(alone, 0, code.load(array.strides, axis - ahead, "i64"))
            place.set(place.get() + index * step)
    return place.get()


def by_pieces(
    code: Code,
    width: Value,
    rows: Value,
    slots: Value,
    elements: list[str],
    along: dict[int, Value],
    far: dict[int, Value],
) -> Iterator[Value]:
    """The sizes of pieces of the result's rows, each with everything in its slot.

    What lies as the result does is read where it is, at the addresses `along`; what lies across it, `far`, is copied.
    """
    copies = {i: code.stack(PIECE, elements[i]) for i in far}
    for i, copy in copies.items():
        code.store(code.emit(f"ptrtoint {copy} to i64", "i64"), slots, i)
    with code.loop(0, rows) as row, code.loop(0, width, PIECE) as start:
        count = code.select(width - start < PIECE, width - start, PIECE)
        for i, address in along.items():
            code.store(address + (row * width + start) * SIZES[elements[i]], slots, i)
        for i, copy in copies.items():
            with code.loop(0, count) as k:
                code.store(code.load(far[i], (start + k) * rows + row, elements[i]), copy, k)
        yield count


# ------------------------------------------------------------------ sums

FEW = 128
"""Up to this many elements NumPy adds in eight columns; beyond, it halves the array."""


def adding(dtype: str, mean: bool, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin that adds all elements of a short row-major array, in the order in which NumPy adds them."""
    name, note = f"adding_{dtype}{'_mean' if mean else ''}", "the mean" if mean else "the sum"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 1)
    code, element = entry.code, ELEMENTS[dtype]
    x = entry.array(0, dtype)
    size = x.size()
    entry.require((size <= FEW) & (size > 0))
    made = entry.result(dtype, 0, [])
    data = entry.data(x.object)
    total = code.variable(code.const(0.0, element))
    whole = size & -8
    with code.when(whole > 0):
        columns = code.variable(code.load(data, 0, f"<8 x {element}>"))
        with code.loop(8, whole, 8) as i:
            columns.set(columns.get() + code.load(data, i, f"<8 x {element}>"))
        parts = [code.lane(columns.get(), lane) for lane in range(8)]
        while len(parts) > 1:
            parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
        total.set(parts[0])
    with code.loop(whole, size) as i:
        total.set(total.get() + code.load(data, i, element))
    out = total.get() + 0.0
    code.store(out / code.convert(size, element) if mean else out, entry.data(made), 0)
    return entry.builtin(made, note, otherwise)


def scanning(dtype: str, times: bool, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin of running sums, or products, along the rows of a row-major array, computed in double precision."""
    name = f"scanning_{dtype}{'_product' if times else ''}"
    note = "running products" if times else "running sums"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 1)
    code, element = entry.code, ELEMENTS[dtype]
    x = entry.array(0, dtype)
    size = x.size()
    entry.require((x.ndim > 0) & (size < LARGE))
    length = code.load(x.dims, code.convert(x.ndim, "i64") - 1, "i64")
    made = entry.result(dtype, x.ndim, x.dims)
    source, target = entry.data(x.object), entry.data(made)
    with code.when(size > 0), code.loop(0, size, length) as start:
        total = code.variable(code.const(1.0 if times else 0.0, "double"))
        with code.loop(start, start + length) as i:
            number = code.convert(code.load(source, i, element), "double")
            total.set(total.get() * number if times else total.get() + number)
            code.store(code.convert(total.get(), element), target, i)
    return entry.builtin(made, note, otherwise)
