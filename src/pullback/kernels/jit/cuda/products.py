"""Products of matrices for a grid of threads: C = alpha * A B + beta * D, any strides, batched, in parts of the depth.

A block of 256 threads computes a tile of 64 or 128 rows by 64 or 128 columns from slices of 16 that it brings to shared
memory; every thread has 4 x 4 to 8 x 8 results in registers. While a slice is computed with, the next one is on its way
to registers. What lies beyond the matrices is read as zero and not written, so that every size will do.

    loaders    k   16 bytes at a time along the depth          r   16 bytes at a time along rows (columns of B)
               e   elements, neighbouring threads along it     s   elements, neighbouring threads along rows
               t   elements at row_table[row] + depth_table[k]: convolutions without their columns written out
               u   the same, neighbouring threads along the depth

Tensor cores do the same for halves and tf32: see tensor_products.py.
"""

from __future__ import annotations

from typing import Any

from pullback.kernels.jit.cuda.grid import SHARED, STORED, THREADS, Grid
from pullback.kernels.jit.language.code import Value, Variable

DEPTH = 16
QUAD = 4
POINTERS = "A B C D rows_a depth_a rows_b depth_b columns_c"
INTEGERS = "rows columns depth splits chunk ab ar ac bb br bc cb cr cc cs db dr dc"
"""Sizes; how many parts the depth has and how long each is; strides along the batch, rows and columns of A, B, C, D,
and of C along the parts."""
NUMBERS = "alpha beta"


class Loader:
    """Brings slices of one operand to shared memory, where they lie depth by depth: [k][row]."""

    def __init__(self, code: Grid, which: str, kind: str, element: str, tile: int, base: Value, first: Value) -> None:
        self.code, self.kind, self.element, self.tile, self.base = code, kind, element, tile, base
        self.matrix, self.room = f"%{which}", f"@s{which.lower()}"
        self.tables = (f"%rows_{which.lower()}", f"%depth_{which.lower()}")
        self.limit = code["rows" if which == "A" else "columns"]
        self.row_step, self.depth_step = (code["ar"], code["ac"]) if which == "A" else (code["bc"], code["br"])
        self.pitch = tile + QUAD
        thread = code["thread"]
        self.wide = QUAD if kind in "kr" else 1
        count = tile * DEPTH // THREADS // self.wide
        self.places: list[tuple[Value, Value]] = []
        """Where in the slice the loads of this thread begin: row and depth."""
        for part in range(count):
            index = thread + part * THREADS
            if kind == "k":
                row, k = index // (DEPTH // QUAD), index % (DEPTH // QUAD) * QUAD
            elif kind in "eu":
                row, k = index // DEPTH, index % DEPTH
            elif kind == "r":
                row, k = index % (tile // QUAD) * QUAD, index // (tile // QUAD)
            else:
                row, k = index % tile, index // tile
            self.places.append((row, k))
        self.rows = [first + row for row, _ in self.places]
        self.inside = [row < self.limit for row in self.rows]
        self.offsets = [self.row_offset(row, fits) for row, fits in zip(self.rows, self.inside, strict=True)]

    def row_offset(self, row: Value, fits: Value) -> Value:
        """Where a row begins."""
        if self.kind not in "tu":
            return self.base + row * self.row_step
        found = self.code.read(self.tables[0], self.code.select(fits, row, 0), "i32")
        return self.base + self.code.convert(found, "i64")

    def fetch(self, start: Value, stop: Value) -> list[Value]:
        """The loads of this thread for the slice that begins at a depth; zeros beyond `stop`."""
        code, found = self.code, []
        type = self.element if self.wide == 1 else f"<{self.wide} x {self.element}>"
        zero = Value(code, "zeroinitializer", type) if self.wide > 1 else code.const(0, self.element)
        for (_, k), fits, offset in zip(self.places, self.inside, self.offsets, strict=True):
            depth = start + k
            fits = code.emit(f"and i1 {fits.name}, {(depth < stop).name}", "i1")
            if self.kind in "tu":
                step = code.convert(code.read(self.tables[1], code.select(fits, depth, 0), "i32"), "i64")
            else:
                step = depth * self.depth_step
            place = code.select(fits, offset + step, 0)
            found.append(code.select(fits, code.read(self.matrix, place, type), zero))
        return found

    def store(self, values: list[Value], buffer: Value) -> None:
        """Put them into one of the two rooms."""
        code, size = self.code, STORED[self.element]
        for value, (row, k) in zip(values, self.places, strict=True):
            at = buffer + k * self.pitch + row
            if self.wide == 1 or self.kind == "r":
                align = size * self.wide
                code.do(f"store {value}, {code.where(self.room, at, self.element, SHARED)}, align {align}")
                continue
            for j in range(self.wide):
                place = code.where(self.room, at + j * self.pitch, self.element, SHARED)
                code.do(f"store {code.lane(value, j)}, {place}, align {size}")

    def quad(self, buffer: Value, k: int, row: Value) -> Value:
        """Four neighbouring rows at a depth."""
        return self.code.read(self.room, buffer + row + k * self.pitch, f"<{QUAD} x {self.element}>", space=SHARED)


def name_of(element: str, rows: int, columns: int, loaders: str, scattered: bool, result: str) -> str:
    """The name of a kernel; `scattered` says that the columns of C lie where a table says, `result`
    what the elements of C are."""
    return f"product_{element}_{rows}x{columns}_{loaders}{'t' if scattered else ''}_{result}"


def batch_and_part(code: Grid) -> tuple[Value, Value, Value, Value]:
    """Which product of the batch and which part of the depth a block is for, and where that part begins and ends."""
    splits, chunk = code["splits"], code["chunk"]
    batch = code.emit(f"udiv {code['z']}, {splits.name}", "i64")
    part = code["z"] - batch * splits
    start = part * chunk
    stop = start + chunk
    return batch, part, start, code.select(stop < code["depth"], stop, code["depth"])


def write_result(
    code: Grid, total: Value, row: Value, column: Value, batch: Value, part: Value, types: Any, scattered: bool
) -> None:
    """alpha * total + beta * D, where it belongs. `types` are the elements of D and of C."""
    inside = code.emit(f"and i1 {(row < code['rows']).name}, {(column < code['columns']).name}", "i1")
    with code.when(inside):
        kind = total.type
        alpha, beta = (code.convert(code[name], kind) for name in ("alpha", "beta"))
        made = code.variable(total * alpha)
        with code.when(code.compare("ne", beta, 0)):
            more = code.read("%D", batch * code["db"] + row * code["dr"] + column * code["dc"], types[0])
            made.set(made.get() + more * beta)
        if scattered:
            along = code.convert(code.read("%columns_c", column, "i32"), "i64")
        else:
            along = column * code["cc"]
        place = batch * code["cb"] + part * code["cs"] + row * code["cr"] + along
        code.write(made.get(), "%C", place, types[1])


def text_of(element: str, rows: int, columns: int, loaders: str, scattered: bool, result: str) -> str:
    """The module."""
    code = Grid(name_of(element, rows, columns, loaders, scattered, result), POINTERS, INTEGERS, NUMBERS)
    code.for_blocks_of(THREADS, 2)
    batch, part, start, stop = batch_and_part(code)
    first_row, first_column = code["y"] * rows, code["x"] * columns
    for room, tile in (("sa", rows), ("sb", columns)):
        code.shared(room, 2 * DEPTH * (tile + QUAD), element)
    a = Loader(code, "A", loaders[0], element, rows, batch * code["ab"], first_row)
    b = Loader(code, "B", loaders[1], element, columns, batch * code["bb"], first_column)
    down, across = rows // 64, columns // 64
    top, left = code["thread"] // 16 * QUAD, code["thread"] % 16 * QUAD
    vector = f"<{QUAD} x {element}>"
    zero = Value(code, "zeroinitializer", vector)
    sums: dict[tuple[int, int], Variable] = {}
    for i in range(QUAD * down):
        for j in range(across):
            sums[i, j] = code.variable(zero)
    for loader in (a, b):
        loader.store(loader.fetch(start, stop), code.number(0))
    code.wait()
    turn = code.variable(code.number(0))
    with code.loop(start, stop, DEPTH) as k0:
        now = turn.get()
        coming = [loader.fetch(k0 + DEPTH, stop) for loader in (a, b)]
        here = [now * (DEPTH * loader.pitch) for loader in (a, b)]
        for k in range(DEPTH):
            ours = [a.quad(here[0], k, top + 64 * h) for h in range(down)]
            theirs = [b.quad(here[1], k, left + 64 * h) for h in range(across)]
            for i in range(QUAD * down):
                one = code.splat(code.lane(ours[i // QUAD], i % QUAD), QUAD)
                for j in range(across):
                    sums[i, j].set(code.fma(one, theirs[j], sums[i, j].get()))
        other = 1 - now
        for loader, values in zip((a, b), coming, strict=True):
            loader.store(values, other * (DEPTH * loader.pitch))
        turn.set(other)
        code.wait()
    for i in range(QUAD * down):
        row = first_row + top + (i // QUAD * 64 + i % QUAD)
        for j in range(across):
            total = sums[i, j].get()
            for n in range(QUAD):
                column = first_column + left + (j * 64 + n)
                write_result(code, code.lane(total, n), row, column, batch, part, (element, result), scattered)
    return code.whole()
