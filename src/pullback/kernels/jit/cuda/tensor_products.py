"""Products of matrices by tensor cores: float16, bfloat16, and float32 rounded to tf32; sums in float32.

A block of 256 threads, eight warps, computes a tile of 128 x 128 (or 64 x 64) from slices of the depth that it brings
to shared memory in words of 32 bits: two halves, or one float. A slice is 16 words deep. There every row of A and every
column of B lies in one piece, 20 words from the next, so that the 32 lanes of a warp read from 32 banks. Each warp
computes 64 x 32 (32 x 16) results by mma.m16n8k16 (of halves) or mma.m16n8k8 (of tf32), whose operands are laid out
alike when counted in words. Loaders, edges, strides, batches and parts are those of products.py.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import SHARED, THREADS, WARP, Grid
from pullback.kernels.jit.cuda.products import INTEGERS, NUMBERS, POINTERS, batch_and_part, write_result
from pullback.kernels.jit.language.code import Value, Variable

WORDS = 16
PITCH = 20
KINDS = {"half": "f32.f32", "bfloat": "bf16", "float": "tf32"}
"""What LLVM calls the instruction: for float16 by what it adds to and what it gives."""
RESULT = "{float, float, float, float}"


class Loader:
    """Brings slices of one operand to shared memory, row by row, as words."""

    def __init__(self, code: Grid, which: str, kind: str, element: str, tile: int, base: Value, first: Value) -> None:
        self.code, self.kind, self.element, self.tile, self.base = code, kind, element, tile, base
        self.matrix, self.room = f"%{which}", f"@s{which.lower()}"
        self.tables = (f"%rows_{which.lower()}", f"%depth_{which.lower()}")
        self.per = 1 if element == "float" else 2
        """Elements of a word."""
        self.stored = "i32" if element == "float" else "i16"
        limit = code["rows" if which == "A" else "columns"]
        self.row_step, self.depth_step = (code["ar"], code["ac"]) if which == "A" else (code["bc"], code["br"])
        self.wide = 4 * self.per
        """Elements of 16 bytes."""
        thread = code["thread"]
        self.places: list[tuple[Value, Value]] = []
        """Row and word in the slice where this thread's loads begin."""
        words = {"k": 4, "r": self.wide}.get(kind, 1)
        for part in range(tile * WORDS // THREADS // words or 1):
            index = thread + part * THREADS
            if kind == "k":
                row, word = index // 4, index % 4 * 4
            elif kind == "r":  # neighbouring threads differ in depth, or their words would meet in one bank
                row, word = index // WORDS * self.wide, index % WORDS
            elif kind in "eu":
                row, word = index // WORDS, index % WORDS
            else:
                row, word = index % tile, index // tile
            self.places.append((row, word))
        self.idle = kind == "r" and tile // self.wide * WORDS < THREADS
        """Whether some threads have nothing to load."""
        self.rows = [first + row for row, _ in self.places]
        self.inside = [row < limit for row in self.rows]
        if self.idle:
            mine = [row < tile for row, _ in self.places]
            self.mine = mine
            self.inside = [
                code.emit(f"and i1 {a.name}, {b.name}", "i1") for a, b in zip(self.inside, mine, strict=True)
            ]
        self.offsets = [self.row_offset(row, fits) for row, fits in zip(self.rows, self.inside, strict=True)]

    def row_offset(self, row: Value, fits: Value) -> Value:
        """Where a row begins."""
        if self.kind not in "tu":
            return self.base + row * self.row_step
        found = self.code.read(self.tables[0], self.code.select(fits, row, 0), "i32")
        return self.base + self.code.convert(found, "i64")

    def read(self, offset: Value, depth: Value, fits: Value, stop: Value, count: int) -> Value:
        """Elements as bits, zeros beyond the edge."""
        code = self.code
        fits = code.emit(f"and i1 {fits.name}, {(depth < stop).name}", "i1")
        if self.kind in "tu":
            step = code.convert(code.read(self.tables[1], code.select(fits, depth, 0), "i32"), "i64")
        else:
            step = depth * self.depth_step
        place = code.select(fits, offset + step, 0)
        if count == 1:
            return code.select(fits, code.read(self.matrix, place, self.stored), 0)
        type = f"<{count} x {self.stored}>"
        found = code.read(self.matrix, place, type)
        return code.select(fits, found, Value(code, "zeroinitializer", type))

    def fetch(self, start: Value, stop: Value) -> list[list[Value]]:
        """The words of this thread, each load's: they begin at a depth that is counted in elements."""
        code, found = self.code, []
        for (_, word), fits, offset in zip(self.places, self.inside, self.offsets, strict=True):
            depth = start + word * self.per
            if self.kind == "k":
                bits = self.read(offset, depth, fits, stop, self.wide)
                words = code.emit(f"bitcast {bits} to <4 x i32>", "<4 x i32>")
                parts = [code.lane(words, j) for j in range(4)]
            elif self.kind == "r":
                several = [self.read(offset, depth + j, fits, stop, self.wide) for j in range(self.per)]
                parts = [self.word([code.lane(one, j) for one in several]) for j in range(self.wide)]
            else:
                parts = [self.word([self.read(offset, depth + j, fits, stop, 1) for j in range(self.per)])]
            found.append([self.rounded(part) for part in parts])
        return found

    def word(self, parts: list[Value]) -> Value:
        """One word of its elements."""
        if self.per == 1:
            return parts[0]
        low, high = (self.code.emit(f"zext {part} to i32", "i32") for part in parts)
        return low | (high << 16)

    def rounded(self, word: Value) -> Value:
        """A float to the nearest of ten bits behind the point; infinities and nans stay what they are."""
        if self.element != "float":
            return word
        finite = self.code.compare("ne", word & 0x7F800000, 0x7F800000)
        return self.code.select(finite, (word + 0x1000) & -0x2000, word)

    def store(self, loads: list[list[Value]], buffer: Value) -> None:
        """Put the words into one of the two rooms."""
        code = self.code
        for nr, (parts, (row, word)) in enumerate(zip(loads, self.places, strict=True)):
            at = buffer + row * PITCH + word
            if self.kind == "k":
                whole = Value(code, "poison", "<4 x i32>")
                for j, part in enumerate(parts):
                    whole = code.emit(f"insertelement {whole}, {part}, i64 {j}", "<4 x i32>")
                code.do(f"store {whole}, {code.where(self.room, at, 'i32', SHARED)}, align 16")
            elif self.idle:
                with code.when(self.mine[nr]):
                    self.spread(parts, at)
            else:
                self.spread(parts, at)

    def spread(self, parts: list[Value], at: Value) -> None:
        """Words of neighbouring rows."""
        for j, part in enumerate(parts):
            self.code.do(f"store {part}, {self.code.where(self.room, at + j * PITCH, 'i32', SHARED)}, align 4")

    def get(self, buffer: Value, row: Value, word: int) -> Value:
        """A word of a row."""
        return self.code.read(self.room, buffer + row * PITCH + word, "i32", space=SHARED)


def name_of(element: str, tile: int, loaders: str, scattered: bool, result: str) -> str:
    """The name of a kernel."""
    return f"tensor_product_{element}_{tile}_{loaders}{'t' if scattered else ''}_{result}"


def text_of(element: str, tile: int, loaders: str, scattered: bool, result: str) -> str:
    """The module: a tile of so many rows and columns."""
    code = Grid(name_of(element, tile, loaders, scattered, result), POINTERS, INTEGERS, NUMBERS)
    code.for_blocks_of(THREADS, 2)
    batch, part, start, stop = batch_and_part(code)
    first_row, first_column = code["y"] * tile, code["x"] * tile
    for room in ("sa", "sb"):
        code.shared(room, 2 * tile * PITCH, "i32")
    a = Loader(code, "A", loaders[0], element, tile, batch * code["ab"], first_row)
    b = Loader(code, "B", loaders[1], element, tile, batch * code["bb"], first_column)
    kind, down, across = KINDS[element], tile // 32, tile // 32
    lane, warp = code["thread"] & (WARP - 1), code["thread"] // WARP
    group, pair = lane // 4, lane & 3
    top, left = warp % 2 * (tile // 2), warp // 2 * (tile // 4)
    sums: dict[tuple[int, int, int], Variable] = {}
    for i in range(down):
        for j in range(across):
            for q in range(4):
                sums[i, j, q] = code.variable(code.const(0, "float"))
    name = f"llvm.nvvm.mma.{'m16n8k8' if kind == 'tf32' else 'm16n8k16'}.row.col.{kind}"
    operand = "<2 x half>" if element == "half" else "i32"
    code.declare(name, RESULT, *[operand] * 6, *["float"] * 4)
    for loader in (a, b):
        loader.store(loader.fetch(start, stop), code.number(0))
    code.wait()
    turn = code.variable(code.number(0))
    with code.loop(start, stop, WORDS * a.per) as k0:
        now = turn.get()
        coming = [loader.fetch(k0 + WORDS * a.per, stop) for loader in (a, b)]
        here = now * (tile * PITCH) + pair
        for word in range(0, WORDS, 8):
            ours, theirs = [], []
            for i in range(down):
                rows = [top + group + (i * 16 + h) for h in (0, 8)]
                ours.append([a.get(here, rows[h], word + w) for w in (0, 4) for h in (0, 1)])
            for j in range(across):
                column = left + group + j * 8
                theirs.append([b.get(here, column, word + w) for w in (0, 4)])
            for i in range(down):
                for j in range(across):
                    given = [as_operand(code, x, operand) for x in (*ours[i], *theirs[j])]
                    before = [sums[i, j, q].get() for q in range(4)]
                    made = code.emit(f"call {RESULT} @{name}({', '.join(map(str, [*given, *before]))})", RESULT)
                    for q in range(4):
                        sums[i, j, q].set(code.emit(f"extractvalue {made}, {q}", "float"))
        other = 1 - now
        for loader, values in zip((a, b), coming, strict=True):
            loader.store(values, other * (tile * PITCH))
        turn.set(other)
        code.wait()
    for i in range(down):
        for j in range(across):
            for q in range(4):
                row = first_row + top + group + (i * 16 + q // 2 * 8)
                column = first_column + left + pair * 2 + (j * 8 + q % 2)
                write_result(code, sums[i, j, q].get(), row, column, batch, part, (element, result), scattered)
    return code.whole()


def as_operand(code: Grid, word: Value, operand: str) -> Value:
    """A word as the instruction names it."""
    return word if operand == "i32" else code.emit(f"bitcast {word} to {operand}", operand)
