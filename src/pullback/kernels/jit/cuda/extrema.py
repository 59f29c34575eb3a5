"""The largest or smallest element along a dimension and its place, for a grid of threads.

A block shares a row whose elements lie beside each other; otherwise a thread does a row of its own, so that threads
beside each other read elements beside each other. The first of equal elements is taken, and the first nan before all.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import SHARED, STORED, THREADS, Grid
from pullback.kernels.jit.language.code import FLOATS, Value

INTEGERS = {"i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8", "u8": "i8"}
"""LLVM's types of integers, of which u8 counts from 0 on."""


def name_of(how: str, element: str, rows: bool) -> str:
    """The name of a kernel."""
    return f"extremum_{how}_{element}_{'rows' if rows else 'columns'}"


def text_of(how: str, element: str, rows: bool) -> str:
    """The module. Arguments: what is read, the extrema, their places; how many there are, the length of rows, and how
    many rows lie within one step along them. Row r begins at r // inner * inner * length + r % inner."""
    code = Grid(name_of(how, element, rows), "x out places", "count length inner")
    length, inner, thread = code["length"], code["inner"], code["thread"]
    row = code["x"] if rows else code["x"] * THREADS + thread
    before = code.emit(f"udiv {row}, {inner.name}", "i64")
    base = before * inner * length + (row - before * inner)

    def read(place: Value) -> Value:
        return number_at(code, "%x", base + place * inner, element)

    def search(first: Value, step: int) -> tuple[Value, Value]:
        best, where = code.variable(read(first)), code.variable(first)
        with code.loop(first + step, length, step) as place:
            found = read(place)
            taken = beats(code, how, found, best.get())
            best.set(code.select(taken, found, best.get()))
            where.set(code.select(taken, place, where.get()))
        return best.get(), where.get()

    def write(best: Value, where: Value) -> None:
        code.write(code.convert(best, INTEGERS[element]) if element in INTEGERS else best, "%out", row,
                   INTEGERS.get(element, element))  # fmt: skip
        code.write(where, "%places", row, "i64")

    if not rows:
        with code.when(row < code["count"]):
            write(*search(code.number(0), 1))
        return code.whole()
    code.for_blocks_of(THREADS)
    best, where = search(code.select(thread < length, thread, length - 1), THREADS)
    values, places = code.shared("values", THREADS, best.type), code.shared("indices", THREADS, "i64")
    width = THREADS
    put(code, values, places, thread, best, where)
    while width > 1:
        width //= 2
        code.wait()
        with code.when(thread < width):
            (a, i), (b, j) = (got(code, values, places, at, best.type) for at in (thread, thread + width))
            lower = code.compare("lt", j, i)
            worse, better = beats(code, how, a, b), beats(code, how, b, a)
            same = code.emit(f"xor i1 {code.emit(f'or i1 {worse.name}, {better.name}', 'i1').name}, true", "i1")
            first = code.emit(f"and i1 {same.name}, {lower.name}", "i1")
            taken = code.emit(f"or i1 {better.name}, {first.name}", "i1")
            put(code, values, places, thread, code.select(taken, b, a), code.select(taken, j, i))
    with code.when(code.compare("eq", thread, 0)):
        write(*got(code, values, places, thread, best.type))
    return code.whole()


def number_at(code: Grid, base: str, index: Value, element: str) -> Value:
    """An element as a number that can be compared: halves as floats, integers in 64 bits."""
    if element not in INTEGERS:
        return code.read(base, index, element)
    return code.convert(code.read(base, index, INTEGERS[element]), "i64", element == "u8")


def beats(code: Grid, how: str, a: Value, b: Value) -> Value:
    """Whether one number is beyond another; nan is beyond every number."""
    beyond = code.compare("gt" if how == "max" else "lt", a, b)
    if a.type not in FLOATS:
        return beyond
    unordered, number = code.compare("uno", a, a), code.compare("eq", b, b)
    only = code.emit(f"and i1 {unordered.name}, {number.name}", "i1")
    return code.emit(f"or i1 {beyond.name}, {only.name}", "i1")


def put(code: Grid, values: str, places: str, at: Value, best: Value, where: Value) -> None:
    """Write a pair to shared memory."""
    code.do(f"store {best}, {code.where(values, at, best.type, SHARED)}, align {STORED[best.type]}")
    code.do(f"store {where}, {code.where(places, at, 'i64', SHARED)}, align 8")


def got(code: Grid, values: str, places: str, at: Value, type: str) -> tuple[Value, Value]:
    """Read one."""
    return code.read(values, at, type, space=SHARED), code.read(places, at, "i64", space=SHARED)
