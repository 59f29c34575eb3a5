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

from pullback.kernels.jit.cuda.grid import SHARED, STORED, THREADS, WARP, Grid
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
        self.offsets = [self.row_offset(first + row) for row, _ in self.places]

    def row_offset(self, row: Value) -> Value:
        """Where a row begins; the first stands for those that do not exist, of which no result is written."""
        row = self.code.select(row < self.limit, row, 0)
        return self.base + row * self.row_step if self.kind not in "tu" else self.code.read(self.tables[0], row, "i32")

    def fetch(self, start: Value, stop: Value) -> list[Value]:
        """The loads of this thread for the slice that begins at a depth; zeros beyond `stop`."""
        code, found = self.code, []
        type = self.element if self.wide == 1 else f"<{self.wide} x {self.element}>"
        zero = Value(code, "zeroinitializer", type) if self.wide > 1 else code.const(0, self.element)
        for (_, k), offset in zip(self.places, self.offsets, strict=True):
            depth = start + k
            fits = depth < stop
            if self.kind in "tu":  # tables go on beyond the depth, so that there is always something to read
                place = self.base + code.convert(offset + code.read(self.tables[1], depth, "i32"), "i64")
            else:
                place = code.select(fits, offset + depth * self.depth_step, 0)
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


def place_of(code: Grid) -> tuple[Value, Value]:
    """The first row and column of a thread: a warp has 4 x 8 threads.

    Of two neighbours one is below the other, and those of the second half of a warp are below all of the first: so each
    half reads 128 bytes or less of either operand, and lanes that read the same are those that memory serves at once.
    """
    lane, warp = code["thread"] & (WARP - 1), code["thread"] // WARP
    row = warp // 2 * 4 + (lane & 1) + lane // 16 * 2
    return row * QUAD, (warp % 2 * 8 + lane // 2 % 8) * QUAD


def batch_and_part(code: Grid) -> tuple[Value, Value, Value, Value]:
    """Which product of the batch and which part of the depth a block is for, and where that part begins and ends."""
    splits, chunk = code["splits"], code["chunk"]
    batch = code.emit(f"udiv {code['z']}, {splits.name}", "i64")
    part = code["z"] - batch * splits
    start = part * chunk
    stop = start + chunk
    return batch, part, start, code.select(stop < code["depth"], stop, code["depth"])


def write_results(
    code: Grid, totals: list[list[Value]], rows: list[Value], columns: list[Value], batch: Value, part: Value,
    types: Any, scattered: bool,
) -> None:  # fmt: skip
    """alpha * total + beta * D, where they belong. `types` are the elements of D and of C."""
    kind = totals[0][0].type
    alpha, beta = (code.convert(code[name], kind) for name in ("alpha", "beta"))
    down, across = [row < code["rows"] for row in rows], [column < code["columns"] for column in columns]
    made = [[code.variable(total * alpha) for total in line] for line in totals]
    with code.when(code.compare("ne", beta, 0)):
        for i, row in enumerate(rows):
            line = batch * code["db"] + row * code["dr"]
            for j, column in enumerate(columns):
                with code.when(down[i] & across[j]):
                    more = code.read("%D", line + column * code["dc"], types[0])
                    made[i][j].set(made[i][j].get() + more * beta)
    if scattered:
        known = [code.select(there, column, 0) for there, column in zip(across, columns, strict=True)]
        along = [code.convert(code.read("%columns_c", column, "i32"), "i64") for column in known]
    else:
        along = [column * code["cc"] for column in columns]
    for i, row in enumerate(rows):
        line = batch * code["cb"] + part * code["cs"] + row * code["cr"]
        for j, place in enumerate(along):
            with code.when(down[i] & across[j]):
                code.write(made[i][j].get(), "%C", line + place, types[1])


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
    top, left = place_of(code)
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
    to_rows = [first_row + top + (h * 64 + i) for h in range(down) for i in range(QUAD)]
    to_columns = [first_column + left + (h * 64 + n) for h in range(across) for n in range(QUAD)]
    totals = [
        [code.lane(total, n) for total in [sums[i, j].get() for j in range(across)] for n in range(QUAD)]
        for i in range(QUAD * down)
    ]
    write_results(code, totals, to_rows, to_columns, batch, part, (element, result), scattered)
    return code.whole()
