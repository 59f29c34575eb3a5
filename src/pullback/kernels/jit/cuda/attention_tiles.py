"""Tiles of attention: rows that a block keeps, rows that it meets, and the products of the two.

A block has some rows of its own (queries, or keys where their gradients are made) in shared memory, and meets all rows
on the other side in tiles, also there. It needs two products: scores, of its rows and of those of a tile, and sums of a
tile's rows, weighted by what has been made of the scores. There are two ways to compute them:

    Threads    float32 and float64: 256 threads, 16 share some neighbouring rows, and each has every 16th row of a tile
    Cores      halves: four warps with 16 rows each, mma.m16n8k16, its operands brought to registers by ldmatrix

Both say in `rows` and `columns` which scores a thread has. Rows lie 16 bytes further apart than they are long, so that
neighbouring ones begin in other banks. What lies beyond the matrices is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pullback.kernels.jit.cuda.grid import SHARED, STORED, WARP, Grid, stored_as
from pullback.kernels.jit.cuda.tensor_products import KINDS, RESULT, as_operand, matrices
from pullback.kernels.jit.language.code import Value, Variable
from pullback.kernels.jit.language.elementary import FUNCTIONS

ROOMS = "@rooms"
COPY = "cp.async.cg.shared.global [$0+{skipped}], [$1], 16, $2;"
ARRIVED = "llvm.nvvm.cp.async.wait.all"
LANES = 16
"""Threads that share rows, without tensor cores."""
LOG2E = 1.4426950408889634
PACK = {"half": ("llvm.nvvm.ff2f16x2.rn", "<2 x half>"), "bfloat": ("llvm.nvvm.ff2bf16x2.rn", "<2 x bfloat>")}
"""What rounds two floats to halves at once."""
Scores = list[list[Value]]


class Shape(NamedTuple):
    """The sizes of a block: what its elements are, how many features rows have, its rows, and those of a tile."""

    element: str
    features: int
    rows: int
    columns: int

    @property
    def pitch(self) -> int:
        """How far one row is from the next, in elements."""
        return self.features + 16 // STORED[self.element]

    @property
    def of_halves(self) -> bool:
        """Whether tensor cores compute it."""
        return self.element in PACK

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // 16 * WARP if self.of_halves else LANES * LANES

    def shared_bytes(self, own: int) -> int:
        """Shared memory of a block that keeps its rows of so many matrices, and a tile of two others."""
        exchanged = 0 if self.of_halves else self.rows * self.exchange_pitch
        return ((own * self.rows + 2 * self.columns) * self.pitch + exchanged) * STORED[self.element]

    @property
    def exchange_pitch(self) -> int:
        """How far one row of weights is from the next, where threads tell each other theirs."""
        return self.columns + 16 // STORED[self.element]


class Matrix(NamedTuple):
    """Rows of one head in the memory of the device: their beginning, how far apart they are, how many there are."""

    base: str
    step: Value
    count: Value


def pointer(code: Grid, index: Value, element: str, base: str = ROOMS, space: str = SHARED) -> str:
    """A place in memory; what lies a known distance from it needs no address of its own."""
    return code.emit(f"getelementptr {element}, {space} {base}, {index}", space).name


def address(code: Grid, base: str) -> Value:
    """A place in shared memory as a number."""
    return code.emit(f"ptrtoint {SHARED} {base} to i64", "i64")


class Mover:
    """Brings rows to shared memory and back; 16 bytes at a time if `wide`, without registers if `ahead`."""

    def __init__(self, code: Grid, shape: Shape, wide: bool, ahead: bool) -> None:
        self.code, self.shape, self.wide, self.ahead = code, shape, wide, wide and ahead
        self.element = stored_as(shape.element)
        self.many = 16 // STORED[shape.element] if wide else 1
        self.type = self.element if not wide else f"<{self.many} x {self.element}>"
        self.align = STORED[shape.element] * self.many
        across = shape.features // self.many
        self.down = shape.threads // across
        """Rows that are moved at once; where they do not fill the threads, some have nothing to do."""
        self.row, self.feature = code["thread"] // across, code["thread"] % across * self.many
        self.idle = shape.threads % across != 0
        self.exists = self.feature < code["features"]
        self.here = pointer(code, self.row * shape.pitch + self.feature, self.element)
        code.rooms.append(f"{ROOMS} = external addrspace(3) global [0 x i8], align 16")
        if self.ahead:
            code.declare(ARRIVED, "void")
            self.there = address(code, self.here)

    def each(self, matrix: Matrix, first: Value, count: int, move: Callable[[str, int, Value, Value], None]) -> None:
        """Run `move(base, skipped, place, fits)` for all that this thread moves: a place in shared memory and how far
        beyond, the place in `matrix`, and whether that exists."""
        code, pitch = self.code, self.shape.pitch
        left = matrix.count - first - self.row
        place, step = (first + self.row) * matrix.step + self.feature, matrix.step * self.down
        if not self.wide:  # many are moved
            with code.loop(code.number(0), code.number(count), self.down) as row:
                with code.when((row + self.row < count) & (self.row < self.down)):
                    here = pointer(code, row * pitch, self.element, self.here)
                    move(here, 0, place + row * matrix.step, (left > row) & self.exists)
            return
        for row in range(0, count, self.down):
            fits = (left > row) & self.exists
            place = place + step if row else place
            if row + self.down > count or self.idle:
                with code.when(self.row < min(count - row, self.down)):
                    move(self.here, row * pitch, place, fits)
            else:
                move(self.here, row * pitch, place, fits)

    def bring(self, matrix: Matrix, first: Value, count: int, room: int) -> None:
        """Rows from one on, to a place in shared memory; zeros for rows and features that do not exist."""
        code = self.code
        zero = Value(code, "zeroinitializer", self.type) if self.wide else code.const(0, self.type)

        def move(base: str, skipped: int, place: Value, fits: Value) -> None:
            source = code.where(matrix.base, code.select(fits, place, 0), self.element)
            if self.ahead:
                size = code.emit(f"select {fits}, i32 16, i32 0", "i32")
                text = COPY.format(skipped=(skipped + room) * STORED[self.shape.element])
                code.do(f'call void asm sideeffect "{text}", "l,l,r,~{{memory}}"({self.there}, {source}, {size})')
                return
            value = code.emit(f"load {self.type}, {source}, align {self.align}", self.type)
            target = code.where(base, skipped + room, self.element, SHARED)
            code.do(f"store {code.select(fits, value, zero)}, {target}, align {self.align}")

        self.each(matrix, first, count, move)

    def take(self, matrix: Matrix, first: Value, count: int, room: int) -> None:
        """The other way."""
        code = self.code

        def move(base: str, skipped: int, place: Value, fits: Value) -> None:
            with code.when(fits):
                source = code.where(base, skipped + room, self.element, SHARED)
                value = code.emit(f"load {self.type}, {source}, align {self.align}", self.type)
                code.do(f"store {value}, {code.where(matrix.base, place, self.element)}, align {self.align}")

        self.each(matrix, first, count, move)

    def arrive(self) -> None:
        """Wait until everything that was brought is there, and every thread has come here."""
        if self.ahead:
            self.code.do(f"call void @{ARRIVED}()")
        self.code.wait()


class Threads:
    """Products by single threads: each has some rows and every 16th column of the scores."""

    lanes = LANES
    """Threads that share the rows of one."""
    unit = 1.0
    """What a score is multiplied by so that `powers` are its exponentials."""

    def __init__(self, code: Grid, shape: Shape, exchange: int) -> None:
        self.code, self.shape, self.kind = code, shape, shape.element
        self.lane = code["thread"] & (LANES - 1)
        self.quad = 16 // STORED[self.kind]
        many = shape.rows // LANES
        self.row, self.rows = code["thread"] // LANES * many, list(range(many))
        """The first row of this thread, and how far others are from it; columns alike."""
        self.column, self.columns = self.lane, list(range(0, shape.columns, LANES))
        self.width = next(w for w in (4, 2, 1) if w <= self.quad and shape.features % (LANES * w) == 0)
        """Neighbouring features of a sum that a thread has."""
        self.features = list(range(0, shape.features, LANES * self.width))
        self.ours = pointer(code, self.row * shape.pitch, self.kind)
        self.theirs = pointer(code, self.column * shape.pitch, self.kind)
        self.parts = pointer(code, self.lane * self.width, self.kind)
        self.given = pointer(code, self.row * shape.exchange_pitch + exchange, self.kind)
        code.declare("llvm.nvvm.bar.warp.sync", "void", "i32")

    def together(self) -> None:
        """Wait for the other threads of the warp, with which weights are exchanged."""
        self.code.do("call void @llvm.nvvm.bar.warp.sync(i32 -1)")

    def several(self, base: str, skipped: int, count: int) -> Value:
        """Neighbouring numbers in shared memory."""
        return self.code.read(base, skipped, f"<{count} x {self.kind}>", space=SHARED)

    def beyond(self, base: str, index: Value) -> str:
        """A place further on."""
        return pointer(self.code, index, self.kind, base)

    def scores(self, own: int, tile: int) -> Scores:
        """The products of this thread's rows of the block and of the tile that lie there in shared memory."""
        code, pitch = self.code, self.shape.pitch
        sums = [[code.variable(code.const(0, self.kind)) for _ in self.columns] for _ in self.rows]
        with code.loop(code.number(0), code.number(self.shape.features), self.quad) as k:
            ours, theirs = self.beyond(self.ours, k), self.beyond(self.theirs, k)
            first = [self.several(ours, row * pitch + own, self.quad) for row in self.rows]
            second = [self.several(theirs, column * pitch + tile, self.quad) for column in self.columns]
            for q in range(self.quad):
                for a, line in zip(first, sums, strict=True):
                    for b, total in zip(second, line, strict=True):
                        total.set(code.fma(code.lane(a, q), code.lane(b, q), total.get()))
        return [[total.get() for total in line] for line in sums]

    def zeros(self) -> list[list[Variable]]:
        """Sums over tiles, for each row of this thread."""
        zero = Value(self.code, "zeroinitializer", f"<{self.width} x {self.kind}>")
        return [[self.code.variable(zero) for _ in self.features] for _ in self.rows]

    def scale(self, sums: list[list[Variable]], factors: list[Value]) -> None:
        """Each row of sums times a number."""
        for line, factor in zip(sums, factors, strict=True):
            for total in line:
                total.set(total.get() * self.code.splat(factor, self.width))

    def accumulate(self, sums: list[list[Variable]], weights: Scores, tile: int) -> None:
        """sums[row] += sum of weights[row][column] * the tile's row of that number"""
        code, pitch, apart = self.code, self.shape.pitch, self.shape.exchange_pitch
        mine = self.beyond(self.given, self.lane)
        self.together()
        for row, line in zip(self.rows, weights, strict=True):
            for column, weight in zip(self.columns, line, strict=True):
                code.write(weight, mine, row * apart + column, self.kind, SHARED)
        self.together()
        with code.loop(code.number(0), code.number(self.shape.columns), self.quad) as n:
            given, theirs = self.beyond(self.given, n), self.beyond(self.parts, n * pitch)
            factors = [self.several(given, row * apart, self.quad) for row in self.rows]
            for q in range(self.quad):
                parts = [self.several(theirs, q * pitch + f + tile, self.width) for f in self.features]
                for one, line in zip(factors, sums, strict=True):
                    factor = code.splat(code.lane(one, q), self.width)
                    for part, total in zip(parts, line, strict=True):
                        total.set(code.fma(factor, part, total.get()))

    def put(self, sums: list[list[Variable]], room: int) -> None:
        """Sums to shared memory."""
        base = self.beyond(self.parts, self.row * self.shape.pitch)
        for row, line in zip(self.rows, sums, strict=True):
            for feature, total in zip(self.features, line, strict=True):
                place = row * self.shape.pitch + feature + room
                self.code.write(total.get(), base, place, f"<{self.width} x {self.kind}>", SHARED)

    def powers(self, values: list[Value]) -> list[Value]:
        """e to the power of each."""
        code = self.code
        whole = Value(code, "poison", f"<{len(values)} x {self.kind}>")
        for k, value in enumerate(values):
            whole = code.emit(f"insertelement {whole}, {value}, i64 {k}", whole.type)
        made = FUNCTIONS["exp"][1](code, whole)
        return [code.lane(made, k) for k in range(len(values))]


class Cores:
    """Products by tensor cores: a warp has 16 rows, a thread of it two of them and pairs of columns."""

    lanes = 4
    unit = LOG2E
    kind = "float"

    def __init__(self, code: Grid, shape: Shape, exchange: int) -> None:
        self.code, self.shape = code, shape
        number, top, pitch = code["thread"] & (WARP - 1), code["thread"] // WARP * 16, shape.pitch
        self.lane = number & 3
        self.row, self.rows = top + number // 4, [0, 8]
        self.column, self.columns = self.lane * 2, [n + e for n in range(0, shape.columns, 8) for e in (0, 1)]
        # Where the row of a matrix begins that this thread names, of the block's rows, a tile's, and a tile turned.
        low, high = number & 15, number // 16 * 8
        places = [(top + low) * pitch + high, ((number & 7) + high) * pitch + number // 8 % 2 * 8, low * pitch + high]
        self.ours, self.theirs, self.turned = (address(code, pointer(code, place, "i16")) for place in places)
        self.mine = pointer(code, self.row * pitch + self.column, "i16")
        self.product = f"llvm.nvvm.mma.m16n8k16.row.col.{KINDS[shape.element]}"
        self.operand = "<2 x half>" if shape.element == "half" else "i32"
        code.declare(self.product, RESULT, *[self.operand] * 6, *["float"] * 4)
        code.declare(PACK[shape.element][0], PACK[shape.element][1], "float", "float")

    def matrices(self, base: Value, skipped: int, turned: bool = False) -> list[Value]:
        """Four matrices of 8 x 8 halves as operands."""
        found = matrices(self.code, base, 2 * skipped, turned)
        return [as_operand(self.code, word, self.operand) for word in found]

    def multiplied(self, a: list[Value], b: list[Value], sums: list[Variable]) -> None:
        """16 x 8 sums += a b"""
        given = ", ".join(map(str, [*a, *b, *[total.get() for total in sums]]))
        made = self.code.emit(f"call {RESULT} @{self.product}({given})", RESULT)
        for q, total in enumerate(sums):
            total.set(self.code.emit(f"extractvalue {made}, {q}", "float"))

    def pieces(self, count: int) -> list[list[Variable]]:
        """Sums of 16 rows and so many columns: two of each of this thread's rows in every eight."""
        return [[self.code.variable(self.code.const(0, "float")) for _ in range(4)] for _ in range(count // 8)]

    def scores(self, own: int, tile: int) -> Scores:
        """The products of this thread's rows of the block and of the tile that lie there in shared memory."""
        sums = self.pieces(self.shape.columns)
        for k in range(0, self.shape.features, 16):
            ours = self.matrices(self.ours, own + k)
            for n in range(0, self.shape.columns, 16):
                theirs = self.matrices(self.theirs, n * self.shape.pitch + k + tile)
                self.multiplied(ours, theirs[:2], sums[n // 8])
                self.multiplied(ours, theirs[2:], sums[n // 8 + 1])
        return [[total.get() for piece in sums for total in piece[2 * h : 2 * h + 2]] for h in range(2)]

    def zeros(self) -> list[list[Variable]]:
        """Sums over tiles, for each eight features."""
        return self.pieces(self.shape.features)

    def scale(self, sums: list[list[Variable]], factors: list[Value]) -> None:
        """Each row of sums times a number."""
        for piece in sums:
            for q, total in enumerate(piece):
                total.set(total.get() * factors[q // 2])

    def packed(self, low: Value, high: Value) -> Value:
        """Two numbers rounded to halves, as the instruction names them."""
        name, type = PACK[self.shape.element]
        return as_operand(self.code, self.code.emit(f"call {type} @{name}({high}, {low})", type), self.operand)

    def accumulate(self, sums: list[list[Variable]], weights: Scores, tile: int) -> None:
        """sums[row] += sum of weights[row][column] * the tile's row of that number"""
        for n in range(0, self.shape.columns, 16):
            first = n // 4  # two of every eight columns are this thread's
            ours = [self.packed(*line[first + skip : first + skip + 2]) for skip in (0, 2) for line in weights]
            for f in range(0, self.shape.features, 16):
                theirs = self.matrices(self.turned, n * self.shape.pitch + f + tile, True)
                self.multiplied(ours, theirs[:2], sums[f // 8])
                self.multiplied(ours, theirs[2:], sums[f // 8 + 1])

    def put(self, sums: list[list[Variable]], room: int) -> None:
        """Sums to shared memory, rounded to halves."""
        code = self.code
        for f, piece in enumerate(sums):
            for h, row in enumerate(self.rows):
                pair = self.packed(*[total.get() for total in piece[2 * h : 2 * h + 2]])
                place = code.where(self.mine, row * self.shape.pitch + f * 8 + room, "i16", SHARED)
                code.do(f"store {pair}, {place}, align 4")

    def powers(self, values: list[Value]) -> list[Value]:
        """2 to the power of each, by one instruction: what is less than float32's smallest normal number is zero."""
        return [self.code.call("llvm.nvvm.ex2.approx.ftz.f", "float", value) for value in values]
