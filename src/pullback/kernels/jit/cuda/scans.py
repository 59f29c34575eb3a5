"""Running sums, products, extrema and logarithms of sums for a grid of threads: a block walks a row.

It does so in pieces of 256 threads times 8 elements. A thread adds up 8 neighbouring elements; warps, then the block,
add up what their threads have, in one order always; the sum of all pieces before is carried along. Rows have any
stride, and may be walked from the end.
"""

from __future__ import annotations

from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.cuda.grid import SHARED, THREADS, WARP, Grid
from pullback.kernels.jit.cuda.reductions import join, start_of
from pullback.kernels.jit.language.code import Value
from pullback.kernels.jit.language.emit import emit_float

OWN = 8


def name_of(element: str, how: str = "sum") -> str:
    """The name of a kernel."""
    return f"running_{how}_{element}"


def text_of(element: str, how: str = "sum") -> str:
    """The module. Arguments: what is read, what is written, the length of rows, how many rows lie within one step of
    the dimension, and whether to begin at the end. Row r begins at r // inner * inner * length + r % inner."""
    code = Grid(name_of(element, how), "x out", "length inner backwards")
    code.for_blocks_of(THREADS)
    row, inner, length, thread = code["x"], code["inner"], code["length"], code["thread"]
    before = code.emit(f"udiv {row}, {inner.name}", "i64")
    base = before * inner * length + (row - before * inner)
    turned = code.compare("ne", code["backwards"], 0)
    room, size = code.shared("sums", THREADS // WARP + 1, element), SIZES[element]
    zero = code.const(start_of("max" if how == "logaddexp" else how, element), element)
    lane, warp = thread & (WARP - 1), thread // WARP

    def add(a: Value, b: Value) -> Value:
        return emit_float(code, how, [a, b]) if how == "logaddexp" else join(code, how, a, b)

    def place(index: Value) -> Value:
        return base + code.select(turned, length - 1 - index, index) * inner

    carried = code.variable(zero)
    with code.loop(0, length, THREADS * OWN) as start:
        first = start + thread * OWN
        own: list[Value] = []
        for k in range(OWN):
            inside = first + k < length
            found = code.read("%x", code.select(inside, place(first + k), base), element)
            found = code.select(inside, found, zero)
            own.append(add(own[-1], found) if own else found)
        total = own[-1]
        distance = 1
        while distance < WARP:  # what the lanes below have; the lanes that lie that far above others read theirs
            below = code.shuffled_up(total, distance)
            total = code.select(lane >= distance, add(total, below), total)
            distance *= 2
        code.wait()
        with code.when(code.compare("eq", lane, WARP - 1)):
            code.do(f"store {total}, {code.where(room, warp, element, SHARED)}, align {size}")
        code.wait()
        lower, whole = carried.get(), carried.get()
        for k in range(THREADS // WARP):
            other = code.read(room, k, element, space=SHARED)
            lower = code.select(warp > k, add(lower, other), lower)
            whole = add(whole, other)
        carried.set(whole)
        lower = add(lower, code.select(lane > 0, code.shuffled_up(total, 1), zero))
        for k in range(OWN):
            with code.when(first + k < length):
                code.write(add(lower, own[k]), "%out", place(first + k), element)
    return code.whole()
