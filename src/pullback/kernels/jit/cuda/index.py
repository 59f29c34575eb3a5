"""Elements looked up by number, for a grid of threads: read, written, or added to.

    read    plain[i, j, ...] = table[...]       write   table[...] = plain[i, j, ...]       add     table[...] += ...
    prod, max, min      table[...] joined with plain[i, j, ...] as reductions join

A thread does one element, or as many neighbouring ones as 16 bytes hold where rows lie in one piece. The plain side is
walked along its dimensions; each dimension moves by a stride in the table, and by one in every array of numbers, whose
numbers move by a stride in the table in turn. A number that is out of bounds is not followed but noted in `flag`.
Sums of several threads in one place come in any order.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import GLOBAL, STORED, THREADS, Grid
from pullback.kernels.jit.cuda.reductions import join
from pullback.kernels.jit.language.code import Value

WIDE = "<2 x i64>"
WIDTHS = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: WIDE}
"""Elements that are only moved, by their bytes."""


def name_of(how: str, element: str, dims: int, numbers: str) -> str:
    """The name of a kernel; `numbers` has a letter for each array of numbers: l for int64, i for int32."""
    return f"index_{how}_{'wide' if element == WIDE else element}_{dims}_{numbers}"


def text_of(how: str, element: str, dims: int, numbers: str) -> str:
    """The module. Arguments: the plain array, the table, the flag, the arrays of numbers; how many elements there are;
    the sizes of the dimensions, their strides in the plain array and in the table; for each array of numbers its
    strides, the lowest number allowed, the number of entries and the stride of an entry in the table."""
    several = range(len(numbers))
    integers = ["count"] + [f"{letter}{d}" for letter in "dps" for d in range(dims)]
    for k in several:
        integers += [f"n{k}_{d}" for d in range(dims)] + [f"low{k}", f"size{k}", f"step{k}"]
    pointers = "plain table flag " + " ".join([f"numbers{k}" for k in several])
    code = Grid(name_of(how, element, dims, numbers), pointers, " ".join(integers))
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]):
        places = code.parts_of(index, [code[f"d{d}"] for d in range(dims)])

        def offset(letter: str) -> Value:
            total = code.number(0)
            for d, place in enumerate(places):
                total = total + place * code[f"{letter}{d}"]
            return total

        plain, entry = offset("p"), offset("s")
        valid = code.const(1, "i1")
        for k, letter in enumerate(numbers):
            found = code.read(f"%numbers{k}", offset(f"n{k}_"), "i64" if letter == "l" else "i32")
            found = code.convert(found, "i64")
            size = code[f"size{k}"]
            inside = code.emit(f"and i1 {(found >= code[f'low{k}']).name}, {(found < size).name}", "i1")
            valid = code.emit(f"and i1 {valid.name}, {inside.name}", "i1")
            entry = entry + code.select(found < 0, found + size, found) * code[f"step{k}"]
        if element == WIDE:  # addresses are counted in its halves
            plain, entry = plain * 2, entry * 2
        with code.when(valid):
            if how == "read":
                code.write(code.read("%table", entry, element), "%plain", plain, element)
            elif how == "write":
                code.write(code.read("%plain", plain, element), "%table", entry, element)
            elif how != "add":
                combine(code, how, code.where("%table", entry, element), code.read("%plain", plain, element))
            else:
                more = code.read("%plain", plain, element)
                word = "fadd" if element in ("float", "double") else "add"
                place = code.where("%table", entry, element)
                code.do(f"%old = atomicrmw {word} {place}, {more} monotonic")
        with code.when(code.emit(f"xor {valid}, true", "i1")):
            code.do(f"store i32 1, {GLOBAL} %flag, align 4")
    return code.whole()


def combine(code: Grid, how: str, place: str, more: Value) -> None:
    """Join a number to what lies in memory, again and again until nobody has come in between."""
    type = more.type
    bits = {"float": "i32", "double": "i64"}.get(type, type)
    seen = code.variable(code.emit(f"load {bits}, {place}, align {STORED[type]}", bits))
    again, done = code.label(), code.label()
    code.do(f"br label %{again}")
    code.block(again)
    before = seen.get()
    new = join(code, how, before if bits == type else code.emit(f"bitcast {before} to {type}", type), more)
    new = new if bits == type else code.emit(f"bitcast {new} to {bits}", bits)
    pair = code.emit(f"cmpxchg {place}, {before}, {new} monotonic monotonic", f"{{ {bits}, i1 }}")
    seen.set(code.emit(f"extractvalue {pair}, 0", bits))
    success = code.emit(f"extractvalue {pair}, 1", "i1")
    code.do(f"br {success}, label %{done}, label %{again}")
    code.block(done)


def zeros_name(element: str) -> str:
    """The name of the kernel that writes zeros."""
    return f"index_zeros_{element}"


def zeros_text(element: str) -> str:
    """The module. Arguments: where, and how many."""
    code = Grid(zeros_name(element), "out", "count")
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]):
        code.write(code.const(0, element), "%out", index, element)
    return code.whole()
