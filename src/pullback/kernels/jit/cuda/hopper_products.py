"""Products of halves on devices of compute capability 9.0, whose tensor cores read shared memory by themselves (wgmma).

A block of 256 threads, two groups of four warps, computes a tile of 128 rows by 128 or 256 columns from slices of the
depth of 64. Four slices are in shared memory at a time: while the tensor cores work on one, or are given the next
before they have done with it, copies of later ones are on their way (cp.async); what lies beyond the matrices is filled
with zeros. Both operands may lie either way:

    loaders    k   16 bytes along the depth: a slice is rows of 128 bytes
               r   16 bytes along rows (columns of B): a slice is blocks of 64 rows, in each 128 bytes for every depth

In every 128 bytes the 16-byte pieces are exchanged by the number of their line (the 128-byte swizzle), so that neither
copies nor tensor cores meet in a bank. Edges of other sizes, strides, batches and parts are those of products.py.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import GLOBAL, SHARED, THREADS, WARP, Grid
from pullback.kernels.jit.cuda.products import INTEGERS, NUMBERS, POINTERS, batch_and_part, write_results
from pullback.kernels.jit.language.code import Value

ROWS = 128
DEPTH = 64
LINE = 128
"""Bytes of a line: 64 halves."""
BLOCK = DEPTH * LINE
"""Bytes of 64 lines."""
STAGES = 4
TOGETHER = 8
"""Tiles below each other that are computed at the same time: they share what they read of B."""
KINDS = {"half": "f16", "bfloat": "bf16"}


def shared_bytes(columns: int) -> int:
    """The shared memory of a block."""
    return STAGES * (ROWS + columns) * LINE


class Slices:
    """One operand: where its slices come from and how the tensor cores find them in shared memory."""

    def __init__(self, code: Grid, which: str, kind: str, tile: int, base: Value, first: Value, room: int) -> None:
        self.code, self.kind, self.matrix, self.room = code, kind, f"%{which}", room
        limit = code["rows" if which == "A" else "columns"]
        row_step, self.depth_step = (code["ar"], code["ac"]) if which == "A" else (code["bc"], code["br"])
        self.copies: list[tuple[Value, Value, Value, Value]] = []
        """Of each copy of this thread: where it comes from at first, its depth, whether its row exists, where it
        goes."""
        for part in range(tile * DEPTH // 8 // THREADS):
            index = code["thread"] + part * THREADS
            if kind == "k":
                row, piece = index // 8, index % 8
                depth, goes = piece * 8, row * LINE + (piece ^ (row & 7)) * 16
            else:
                depth, piece = index // (tile // 8), index % (tile // 8)
                row = piece * 8
                goes = piece // 8 * BLOCK + depth * LINE + ((piece & 7) ^ (depth & 7)) * 16
            comes = base + (first + row) * row_step + depth * self.depth_step
            self.copies.append((comes, depth, first + row < limit, goes + room))

    def copy(self, start: Value, stop: Value, stage: Value) -> None:
        """Send for the slice that begins at a depth; of what does not exist nothing is read, zeros are written."""
        code = self.code
        gone, left = start * self.depth_step, stop - start
        for comes, depth, exists, goes in self.copies:
            fits = code.emit(f"and {exists}, {(depth < left).name}", "i1")
            size = code.emit(f"select {fits}, i32 16, i32 0", "i32")
            source, target = (
                code.where(self.matrix, comes + gone, "i16"),
                code.where("@rooms", goes + stage, "i8", SHARED),
            )
            code.do(f"call void @{COPY}({target}, {source}, {size})")

    def descriptor(self, stage: Value, skipped: Value | int, step: int) -> Value:
        """What tells the tensor cores where 16 depths of a slice lie: address, distances, swizzle."""
        beyond = (1 if self.kind == "k" else BLOCK >> 4) << 16 | (8 * LINE >> 4) << 32 | 1 << 62
        at = stage + skipped + (self.room + step * (32 if self.kind == "k" else 16 * LINE))
        address = self.code.emit(f"lshr {at}, 4", "i64")
        return (address & 0x3FFF) | beyond

    @property
    def turned(self) -> int:
        """Whether the depth is not the direction in which elements are neighbours."""
        return int(self.kind == "r")


COPY = "llvm.nvvm.cp.async.cg.shared.global.16.s"


def name_of(element: str, columns: int, loaders: str, result: str, paired: bool) -> str:
    """The name of a kernel; `paired` says that results are written by two, nothing being added to them."""
    return f"hopper_product_{element}_{columns}_{loaders}_{result}{'_paired' if paired else ''}"


def tile_of(code: Grid, columns: int) -> tuple[Value, Value]:
    """The first row and column of a block's tile: blocks that run together have tiles that share operands."""
    across = code.emit(f"udiv {code['columns'] + (columns - 1)}, {columns}", "i64")
    down = code.emit(f"udiv {code['rows'] + (ROWS - 1)}, {ROWS}", "i64")
    linear = code["y"] * across + code["x"]
    group = code.emit(f"udiv {linear}, {(across * TOGETHER).name}", "i64")
    rest, top = linear - group * across * TOGETHER, group * TOGETHER
    left = down - top
    together = code.select(left < TOGETHER, left, TOGETHER)
    x = code.emit(f"udiv {rest}, {together.name}", "i64")
    return (top + rest - x * together) * ROWS, x * columns


def text_of(element: str, columns: int, loaders: str, result: str, paired: bool) -> str:
    """The module: tiles of so many columns."""
    code = Grid(name_of(element, columns, loaders, result, paired), POINTERS, INTEGERS, NUMBERS)
    code.for_blocks_of(THREADS)
    code.rooms.append("@rooms = external addrspace(3) global [0 x i8], align 1024")
    code.declare(COPY, "void", SHARED, GLOBAL, "i32")
    code.declare("llvm.nvvm.cp.async.commit.group", "void")
    code.declare("llvm.nvvm.cp.async.wait.group", "void", "i32")
    batch, part, start, stop = batch_and_part(code)
    first_row, first_column = tile_of(code, columns)
    size = (ROWS + columns) * LINE
    a = Slices(code, "A", loaders[0], ROWS, batch * code["ab"], first_row, 0)
    b = Slices(code, "B", loaders[1], columns, batch * code["bb"], first_column, ROWS * LINE)

    def send(begin: Value, stage: Value) -> None:
        for operand in (a, b):
            operand.copy(begin, stop, stage)
        code.do("call void @llvm.nvvm.cp.async.commit.group()")

    def command(text: str) -> None:
        code.do(f'call void asm sideeffect "{text};", "~{{memory}}"()')

    def waited(values: list[Value], left: int) -> list[Value]:
        """Sums once all products but the last so many that were sent off are done."""
        wait = f'"wgmma.wait_group.sync.aligned {left};"'
        made = code.emit(f'call {several} asm sideeffect {wait}, "{tied}"({", ".join(map(str, values))})', several)
        return [code.emit(f"extractvalue {made}, {q}", "float") for q in range(count)]

    for ahead in range(STAGES - 2):
        send(start + ahead * DEPTH, code.number(ahead * size))
    count = columns // 2
    sums = [code.variable(code.const(0, "float")) for _ in range(count)]
    several = "{" + ", ".join(["float"] * count) + "}"
    tied = ",".join(["=f"] * count + [str(q) for q in range(count)])
    registers = ", ".join(f"${q}" for q in range(count))
    instruction = (
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{KINDS[element]}.{KINDS[element]} {{{registers}}}, "
        f"${2 * count}, ${2 * count + 1}, 1, 1, 1, {a.turned}, {b.turned};"
    )
    base = code.emit("ptrtoint ptr addrspace(3) @rooms to i64", "i64")
    group = code["thread"] // 128
    reading, writing = code.variable(code.number(0)), code.variable(code.number((STAGES - 2) * size))
    with code.loop(start, stop, DEPTH) as k0:
        code.do(f"call void @llvm.nvvm.cp.async.wait.group(i32 {STAGES - 3})")
        command("fence.proxy.async.shared::cta")
        code.wait()
        command("wgmma.fence.sync.aligned")
        here = base + reading.get()
        totals = [total.get() for total in sums]
        for step in range(DEPTH // 16):
            ours, theirs = a.descriptor(here, group * BLOCK, step), b.descriptor(here, 0, step)
            given = ", ".join(map(str, [*totals, ours, theirs]))
            made = code.emit(f'call {several} asm sideeffect "{instruction}", "{tied},l,l"({given})', several)
            totals = [code.emit(f"extractvalue {made}, {q}", "float") for q in range(count)]
        command("wgmma.commit_group.sync.aligned")
        send(k0 + (STAGES - 2) * DEPTH, writing.get())
        for total, made in zip(sums, waited(totals, 1), strict=True):
            total.set(made)
        for stage in (reading, writing):
            following = stage.get() + size
            stage.set(code.select(following < STAGES * size, following, 0))
    code.do("call void @llvm.nvvm.cp.async.wait.group(i32 0)")
    for total, made in zip(sums, waited([total.get() for total in sums], 0), strict=True):
        total.set(made)
    lane, warp = code["thread"] & (WARP - 1), code["thread"] // WARP
    row = first_row + group * 64 + (warp & 3) * 16 + lane // 4
    column = first_column + (lane & 3) * 2
    if not paired:
        to_rows = [row + half * 8 for half in range(2)]
        to_columns = [column + (q // 2 * 8 + q % 2) for q in range(count // 2)]
        totals = [[sums[q // 2 * 4 + half * 2 + q % 2].get() for q in range(count // 2)] for half in range(2)]
        write_results(code, totals, to_rows, to_columns, batch, part, (element, result), False)
        return code.whole()
    for half in range(2):
        to_row = row + half * 8
        place = batch * code["cb"] + part * code["cs"] + to_row * code["cr"]
        with code.when(to_row < code["rows"]):
            for q in range(2 * half, count, 4):
                to_column = column + q // 4 * 8
                with code.when(to_column < code["columns"]):
                    pair = code.splat(sums[q].get(), 2)
                    pair = code.emit(f"insertelement {pair}, {sums[q + 1].get()}, i64 1", "<2 x float>")
                    code.write(pair, "%C", place + to_column, f"<2 x {result}>")
    return code.whole()
