"""Products of matrices by tensor cores: float16, bfloat16, and float32 rounded to tf32; sums in float32.

A block of 256 threads, eight warps, computes a tile of 128 x 128 (or 64 x 64) from slices of the depth that it brings
to shared memory in words of 32 bits: two halves, or one float. A slice is 16 words deep. There every row of A and every
column of B lies in one piece, 20 words from the next, so that the 32 lanes of a warp read from 32 banks. Each warp
computes 64 x 32 (32 x 16) results by mma.m16n8k16 (of halves) or mma.m16n8k8 (of tf32), whose operands are laid out
alike when counted in words. Loaders, edges, strides, batches and parts are those of products.py.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import SHARED, THREADS, WARP, Grid
from pullback.kernels.jit.cuda.products import INTEGERS, NUMBERS, POINTERS, batch_and_part, write_results
from pullback.kernels.jit.language.code import Value, Variable

WORDS = 16
PITCH = 20
KINDS = {"half": "f32.f32", "bfloat": "bf16", "float": "tf32"}
"""What LLVM calls the instruction: for float16 by what it adds to and what it gives."""
MATRICES = "ldmatrix.sync.aligned.m8n8.x4{turned}.shared.b16 {{$0, $1, $2, $3}}, [$4+{skipped}];"
"""Written out, as LLVM would keep the sum of an address and a distance in a register for each distance there is."""
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
        self.limit = code["rows" if which == "A" else "columns"]
        self.row_step, self.depth_step = (code["ar"], code["ac"]) if which == "A" else (code["bc"], code["br"])
        self.wide = 4 * self.per
        """Elements of 16 bytes."""
        thread = code["thread"]
        self.places: list[tuple[Value, Value]] = []
        """Row and word in the slice where this thread's loads begin."""
        self.many = tile * WORDS // THREADS
        """Words of this thread."""
        if kind in "st":  # all of one row, so that they are stored together
            self.places.append((thread % tile, thread // tile * self.many))
        words = {"k": 4, "r": self.wide}.get(kind, 1)
        for part in range((self.many // words or 1) if kind not in "st" else 0):
            index = thread + part * THREADS
            if kind == "k":
                row, word = index // 4, index % 4 * 4
            elif kind == "r":  # neighbouring threads differ in depth, or their words would meet in one bank
                row, word = index // WORDS * self.wide, index % WORDS
            else:
                row, word = index // WORDS, index % WORDS
            self.places.append((row, word))
        self.idle = kind == "r" and tile // self.wide * WORDS < THREADS
        """Whether some threads have nothing to load."""
        self.mine = [row < tile for row, _ in self.places] if self.idle else []
        self.offsets = [self.row_offset(first + row) for row, _ in self.places]

    def row_offset(self, row: Value) -> Value:
        """Where a row begins; the first stands for those that do not exist, of which no result is written."""
        row = self.code.select(row < self.limit, row, 0)
        return self.base + row * self.row_step if self.kind not in "tu" else self.code.read(self.tables[0], row, "i32")

    def read(self, offset: Value, depth: Value, fits: Value, count: int, step: Value | None = None) -> Value:
        """Elements as bits, zeros beyond the depth; `step` is what a table says of it."""
        code = self.code
        if step is not None:  # tables go on beyond the depth, so that there is always something to read
            place = self.base + code.convert(offset + step, "i64")
        else:
            place = code.select(fits, offset + depth * self.depth_step, 0)
        if count == 1:
            return code.select(fits, code.read(self.matrix, place, self.stored), 0)
        type = f"<{count} x {self.stored}>"
        found = code.read(self.matrix, place, type)
        return code.select(fits, found, Value(code, "zeroinitializer", type))

    def steps(self, depth: Value, count: int) -> list[Value | None]:
        """What the table of depths says of some neighbouring ones, which begin where 16 bytes do if there are more."""
        if self.kind not in "tu":
            return [None] * count
        wide = min(count, 4) if self.kind == "t" else 1
        found: list[Value | None] = []
        for first in range(0, count, wide):
            several = self.code.read(self.tables[1], depth + first, f"<{wide} x i32>" if wide > 1 else "i32")
            found += [self.code.lane(several, k) for k in range(wide)] if wide > 1 else [several]
        return found

    def fetch(self, start: Value, stop: Value) -> list[list[Value]]:
        """The words of this thread, each load's: they begin at a depth that is counted in elements."""
        code, found, per = self.code, [], self.per
        for (_, word), offset in zip(self.places, self.offsets, strict=True):
            depth = start + word * per
            left = code.convert(code.minimum(stop - depth, code.number(1 << 16)), "i32")  # 32 bits are compared at once
            if self.kind == "k":
                bits = self.read(offset, depth, left > 0, self.wide)
                words = code.emit(f"bitcast {bits} to <4 x i32>", "<4 x i32>")
                parts = [code.lane(words, j) for j in range(4)]
            elif self.kind == "r":
                several = [self.read(offset, depth + j, left > j, self.wide) for j in range(per)]
                parts = [self.word([code.lane(one, j) for one in several]) for j in range(self.wide)]
            else:
                count = self.many * per if self.kind in "st" else per
                steps = enumerate(self.steps(depth, count))
                elements = [self.read(offset, depth + j, left > j, 1, step) for j, step in steps]
                parts = [self.word(elements[j : j + per]) for j in range(0, count, per)]
            found.append(parts)
        return found

    def word(self, parts: list[Value]) -> Value:
        """One word of its elements."""
        if self.per == 1:
            return parts[0]
        low, high = (self.code.emit(f"zext {part} to i32", "i32") for part in parts)
        return low | (high << 16)

    def rounded(self, word: Value) -> Value:
        """A float to the nearest of ten bits behind the point: tensor cores leave out what is behind them.

        Infinities and nans stay what they are.
        """
        if self.element != "float":
            return word
        code = self.code
        number = code.emit(f"bitcast {word} to float", "float")
        size = code.call("llvm.fabs.f32", "float", number)
        return code.select(code.compare("lt", size, float("inf")), word + 0x1000, word)

    def store(self, loads: list[list[Value]], buffer: Value) -> None:
        """Put the words into one of the two rooms."""
        code = self.code
        for nr, (parts, (row, word)) in enumerate(zip(loads, self.places, strict=True)):
            at, parts = buffer + row * PITCH + word, [self.rounded(part) for part in parts]
            if self.kind in "kst":
                for first in range(0, len(parts), 4):
                    whole = Value(code, "poison", "<4 x i32>")
                    for j, part in enumerate(parts[first : first + 4]):
                        whole = code.emit(f"insertelement {whole}, {part}, i64 {j}", "<4 x i32>")
                    code.do(f"store {whole}, {code.where(self.room, at + first, 'i32', SHARED)}, align 16")
            elif self.idle:
                with code.when(self.mine[nr]):
                    self.spread(parts, at)
            else:
                self.spread(parts, at)

    def spread(self, parts: list[Value], at: Value) -> None:
        """Words of neighbouring rows."""
        for j, part in enumerate(parts):
            self.code.do(f"store {part}, {self.code.where(self.room, at + j * PITCH, 'i32', SHARED)}, align 4")


def matrices(code: Grid, base: Value, skipped: int, turned: bool = False) -> list[Value]:
    """Four matrices of 8 x 8 halves, or 8 x 4 words, as operands: each lane says where a row of one begins."""
    several = "{i32, i32, i32, i32}"
    text = MATRICES.format(turned=".trans" * turned, skipped=skipped)
    asm = f'asm sideeffect "{text}", "=r,=r,=r,=r,l,~{{memory}}"'
    made = code.emit(f"call {several} {asm}({base}) convergent", several)
    return [code.emit(f"extractvalue {made}, {k}", "i32") for k in range(4)]


def name_of(element: str, rows: int, columns: int, loaders: str, scattered: bool, result: str) -> str:
    """The name of a kernel."""
    return f"tensor_product_{element}_{rows}x{columns}_{loaders}{'t' if scattered else ''}_{result}"


def text_of(element: str, rows: int, columns: int, loaders: str, scattered: bool, result: str) -> str:
    """The module: a tile of so many rows and columns."""
    code = Grid(name_of(element, rows, columns, loaders, scattered, result), POINTERS, INTEGERS, NUMBERS)
    code.for_blocks_of(THREADS, 2)
    batch, part, start, stop = batch_and_part(code)
    first_row, first_column = code["y"] * rows, code["x"] * columns
    for room, tile in (("sa", rows), ("sb", columns)):
        code.shared(room, 2 * tile * PITCH, "i32")
    a = Loader(code, "A", loaders[0], element, rows, batch * code["ab"], first_row)
    b = Loader(code, "B", loaders[1], element, columns, batch * code["bb"], first_column)
    kind, down, across = KINDS[element], rows // 32, columns // 32
    lane, warp = code["thread"] & (WARP - 1), code["thread"] // WARP
    top, left = warp % 2 * (rows // 2), warp // 2 * (columns // 4)
    # Where the row of a matrix begins that this thread names: 16 rows of A, two times 8 columns of B, of 8 words each.
    ours = (top + (lane & 15)) * PITCH + lane // 16 * 4
    theirs = (left + (lane & 7) + lane // 16 * 8) * PITCH + lane // 8 % 2 * 4
    places = [
        code.emit(f"ptrtoint {code.where(room, place, 'i32', SHARED)} to i64", "i64")
        for room, place in ((a.room, ours), (b.room, theirs))
    ]
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
        here = [place + now * (tile * PITCH * 4) for place, tile in zip(places, (rows, columns), strict=True)]
        for word in range(0, WORDS, 8):
            lines = [matrices(code, here[0], (i * 16 * PITCH + word) * 4) for i in range(down)]
            pairs = [matrices(code, here[1], (j * 8 * PITCH + word) * 4) for j in range(0, across, 2)]
            for i in range(down):
                for j in range(across):
                    given = [as_operand(code, x, operand) for x in (*lines[i], *pairs[j // 2][j % 2 * 2 :][:2])]
                    before = [sums[i, j, q].get() for q in range(4)]
                    made = code.emit(f"call {RESULT} @{name}({', '.join(map(str, [*given, *before]))})", RESULT)
                    for q in range(4):
                        sums[i, j, q].set(code.emit(f"extractvalue {made}, {q}", "float"))
        other = 1 - now
        for loader, values in zip((a, b), coming, strict=True):
            loader.store(values, other * (loader.tile * PITCH))
        turn.set(other)
        code.wait()
    to_rows = [first_row + top + lane // 4 + (i * 16 + h * 8) for i in range(down) for h in range(2)]
    to_columns = [first_column + left + (lane & 3) * 2 + (j * 8 + e) for j in range(across) for e in range(2)]
    totals = [
        [sums[i, j, 2 * h + e].get() for j in range(across) for e in range(2)] for i in range(down) for h in range(2)
    ]
    write_results(code, totals, to_rows, to_columns, batch, part, (element, result), scattered)
    return code.whole()


def as_operand(code: Grid, word: Value, operand: str) -> Value:
    """A word as the instruction names it."""
    return word if word.type == operand else code.emit(f"bitcast {word} to {operand}", operand)
