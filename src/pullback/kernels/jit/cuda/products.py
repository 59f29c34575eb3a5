"""Products of matrices for a grid of threads: C = alpha * A B + beta * D, any strides, batched.

A block of 256 threads computes a tile of 64 x 64 from slices of 16 that it brings to shared memory; every thread has
4 x 4 results in registers. What lies beyond the matrices is read as zero and not written, so that every size will do.
"""

from __future__ import annotations

from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.code import Code, Value

GLOBAL = "ptr addrspace(1)"
SHARED = "ptr addrspace(3)"
TILE, DEPTH, OWN, THREADS = 64, 16, 4, 256
STRIDES = ("ab", "ar", "ac", "bb", "br", "bc", "cb", "cr", "cc", "db", "dr", "dc")
"""Strides along the batch, rows and columns of A, B, C and D."""


def name_of(element: str, along_rows: tuple[bool, bool]) -> str:
    """The name of a kernel."""
    return f"product_{element}_{along_rows[0]:d}{along_rows[1]:d}"


def text_of(element: str, along_rows: tuple[bool, bool]) -> str:
    """The module. Arguments: A, B, C, D, rows, columns, depth, the strides, alpha and beta.

    Neighbouring threads read along the dimension in which each matrix is contiguous.
    """
    code = Code("kernel")
    params = [f"{GLOBAL} %{m}" for m in "ABCD"] + ["i64 %rows", "i64 %columns", "i64 %depth"]
    params += [f"i64 %{name}" for name in STRIDES] + ["double %alpha", "double %beta"]
    size = SIZES[element]
    for short, register in (("t", "tid.x"), ("bx", "ctaid.x"), ("by", "ctaid.y"), ("bz", "ctaid.z")):
        code.do(f"%{short}32 = call i32 @llvm.nvvm.read.ptx.sreg.{register}()")
        code.do(f"%{short} = zext i32 %{short}32 to i64")

    def value(name: str) -> Value:
        return Value(code, f"%{name}", "i64")

    thread, rows, columns, depth = value("t"), value("rows"), value("columns"), value("depth")
    first_row, first_column = value("by") * TILE, value("bx") * TILE
    base_a, base_b = value("bz") * value("ab"), value("bz") * value("bb")
    left, top = thread % (TILE // OWN), thread // (TILE // OWN)
    zero = code.const(0, element)
    sums = [[code.variable(zero) for _ in range(OWN)] for _ in range(OWN)]

    def read(
        matrix: str, base: Value, row: Value, column: Value, last: Value, end: Value, steps: tuple[str, str]
    ) -> Value:
        """An element, or zero beyond the edge."""
        inside = code.emit(f"and i1 {(row < last).name}, {(column < end).name}", "i1")
        where = base + row * value(steps[0]) + column * value(steps[1])
        where = code.select(inside, where, 0)
        place = code.emit(f"getelementptr {element}, {GLOBAL} %{matrix}, i64 {where.name}", GLOBAL)
        found = code.emit(f"load {element}, {GLOBAL} {place.name}, align {size}", element)
        return code.select(inside, found, zero)

    def shared(room: str, index: Value) -> str:
        made = code.emit(f"getelementptr {element}, {SHARED} @{room}, i64 {index.name}", SHARED)
        return f"{SHARED} {made.name}"

    with code.loop(0, depth, DEPTH) as start:
        for part in range(TILE * DEPTH // THREADS):
            index = thread + part * THREADS
            if along_rows[0]:
                row, k = index % TILE, index // TILE
            else:
                row, k = index // DEPTH, index % DEPTH
            found = read("A", base_a, first_row + row, start + k, rows, depth, ("ar", "ac"))
            code.do(f"store {found}, {shared('sa', k * (TILE + 1) + row)}, align {size}")
            if along_rows[1]:
                k, column = index // TILE, index % TILE
            else:
                k, column = index % DEPTH, index // DEPTH
            found = read("B", base_b, start + k, first_column + column, depth, columns, ("br", "bc"))
            code.do(f"store {found}, {shared('sb', k * (TILE + 1) + column)}, align {size}")
        code.do("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
        for k in range(DEPTH):
            ours = [top + i * (TILE // OWN) + k * (TILE + 1) for i in range(OWN)]
            theirs = [left + j * (TILE // OWN) + k * (TILE + 1) for j in range(OWN)]
            a = [code.emit(f"load {element}, {shared('sa', i)}, align {size}", element) for i in ours]
            b = [code.emit(f"load {element}, {shared('sb', j)}, align {size}", element) for j in theirs]
            for i in range(OWN):
                for j in range(OWN):
                    sums[i][j].set(code.fma(a[i], b[j], sums[i][j].get()))
        code.do("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
    alpha, beta = (code.convert(Value(code, f"%{name}", "double"), element) for name in ("alpha", "beta"))
    adds = code.compare("ne", beta, 0)
    for i in range(OWN):
        for j in range(OWN):
            row, column = first_row + top + i * (TILE // OWN), first_column + left + j * (TILE // OWN)
            inside = code.emit(f"and i1 {(row < rows).name}, {(column < columns).name}", "i1")
            with code.when(inside):
                made = code.variable(sums[i][j].get() * alpha)
                with code.when(adds):
                    where = value("bz") * value("db") + row * value("dr") + column * value("dc")
                    place = code.emit(f"getelementptr {element}, {GLOBAL} %D, i64 {where.name}", GLOBAL)
                    more = code.emit(f"load {element}, {GLOBAL} {place.name}, align {size}", element)
                    made.set(made.get() + more * beta)
                where = value("bz") * value("cb") + row * value("cr") + column * value("cc")
                place = code.emit(f"getelementptr {element}, {GLOBAL} %C, i64 {where.name}", GLOBAL)
                code.do(f"store {made.get()}, {GLOBAL} {place.name}, align {size}")
    rooms = [
        f"@{room} = internal addrspace(3) global [{DEPTH * (TILE + 1)} x {element}] undef, align 16"
        for room in ("sa", "sb")
    ]
    head = f"define ptx_kernel void @{name_of(element, along_rows)}({', '.join(params)}) {{\nentry:"
    declared = [line for line in sorted(code.declared) if line not in DECLARATIONS]
    return "\n".join([*rooms, DECLARATIONS, *declared, head, *code.entry, *code.lines, "  ret void\n}\n"])
