"""Reductions for a grid of threads: sums, maxima and minima over some dimensions, in an order that never changes.

A block of 256 threads shares the elements of one result ("rows"), or of 32 neighbouring results ("columns", where the
results rather than their elements lie beside each other in memory). What every thread found is joined in shared memory,
always in the same order. Long reductions are cut into parts, each a result of its own, which are reduced in turn.
"""

from __future__ import annotations

from typing import Any

from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.code import FLOATS, Code, Value

GLOBAL = "ptr addrspace(1)"
SHARED = "ptr addrspace(3)"
THREADS = 256
COLUMNS = 32
BLOCKS = 4
"""Blocks for which a multiprocessor shall have registers: as many as make whole waves of all blocks (see native.py)."""
AT_ONCE, AT_ONCE_WIDE = 8, 4
"""Elements a thread asks for before it needs the first, each added to a sum of its own; and pieces of 16 bytes."""


def start_of(how: str, element: str) -> float | int:
    """What nothing reduces to."""
    if how in ("sum", "prod"):
        return int(how == "prod")
    if element in FLOATS:
        return float("-inf") if how == "max" else float("inf")
    bits = 8 * SIZES[element]
    return -(1 << (bits - 1)) if how == "max" else (1 << (bits - 1)) - 1


def join(code: Code, how: str, a: Value, b: Value) -> Value:
    """Two parts as one; nan in either is nan."""
    if how == "sum":
        return a.binary(b, ("fadd", "add"))
    if how == "prod":
        return a.binary(b, ("fmul", "mul"))
    return code.maximum(a, b) if how == "max" else code.minimum(a, b)


def name_of(how: str, element: str, outer: int, inner: int, columns: bool, wide: int = 1) -> str:
    """The name of a kernel."""
    several = f"_by_{wide}" if wide > 1 else ""
    return f"reduce_{how}_{element}_{outer}_{inner}_{'columns' if columns else 'rows'}{several}"


def text_of(how: str, element: str, outer: int, inner: int, columns: bool, wide: int = 1) -> str:
    """The module: results are counted along `outer` dimensions, the elements of each along `inner` ones.

    Arguments: the array, the results, the number of results, of elements and of parts, the sizes and strides of the
    outer dimensions, then those of the inner ones, outermost first. Part p of result r is written at p * results + r.
    With `wide` the elements of a result are contiguous and are read so many at a time: so are they counted.
    """
    code = Code("kernel")
    params = [f"{GLOBAL} %a", f"{GLOBAL} %out", "i64 %results", "i64 %count", "i64 %parts"]
    for letter, dims in (("o", outer), ("i", inner)):
        params += [f"i64 %{letter}d{d}" for d in range(dims)] + [f"i64 %{letter}s{d}" for d in range(dims)]
    for short, register in (("t", "tid"), ("b", "ctaid"), ("p", "ctaid")):
        axis = "y" if short == "p" else "x"
        code.do(f"%{short}32 = call i32 @llvm.nvvm.read.ptx.sreg.{register}.{axis}()")
        code.do(f"%{short} = zext i32 %{short}32 to i64")
    thread, block, part, results, count, parts = (
        Value(code, f"%{name}", "i64") for name in ("t", "b", "p", "results", "count", "parts")
    )
    if columns:
        column, row = thread % COLUMNS, thread // COLUMNS
        result, lead, step = block * COLUMNS + column, row, THREADS // COLUMNS
    else:
        result, lead, step = block, thread, THREADS
    inside = result < results
    base = offset_of(code, result, "o", outer)
    type = element if wide == 1 else f"<{wide} x {element}>"
    total = code.variable(code.const(start_of(how, element), type))
    stop = code.select(inside, count, 0)
    stride = parts * step
    begin = lead + part * step
    left = code.select(begin < stop, stop - begin, 0)
    rounds = (left + stride - 1) // stride
    many = AT_ONCE if wide == 1 else AT_ONCE_WIDE
    whole = rounds - rounds % many

    def read(turn: Value) -> Value:
        if wide == 1:
            where = base + offset_of(code, begin + turn * stride, "i", inner)
        else:
            where = base + (begin + turn * stride) * wide
        place = code.emit(f"getelementptr {element}, {GLOBAL} %a, i64 {where.name}", GLOBAL)
        return code.emit(f"load {type}, {GLOBAL} {place.name}, align {SIZES[element] * wide}", type)

    several = [total] + [code.variable(code.const(start_of(how, element), type)) for _ in range(many - 1)]
    with code.loop(0, whole, many) as turn:
        found = [read(turn + k) for k in range(many)]
        for one, sum in zip(found, several, strict=True):
            sum.set(join(code, how, sum.get(), one))
    with code.when(whole < rounds):  # what is left, asked for at once as well
        start, last = code.const(start_of(how, element), type), rounds - 1
        there = [whole + k < rounds for k in range(many - 1)]
        found = [read(code.select(fits, whole + k, last)) for k, fits in enumerate(there)]
        for fits, one, sum in zip(there, found, several, strict=False):
            sum.set(join(code, how, sum.get(), code.select(fits, one, start)))
    for sum in several[1:]:
        total.set(join(code, how, total.get(), sum.get()))
    mine = shared(code, thread, element)
    found = total.get()
    if wide > 1:
        parts = [code.lane(found, k) for k in range(wide)]
        found = parts[0]
        for one in parts[1:]:
            found = join(code, how, found, one)
    code.do(f"store {found}, {SHARED} {mine.name}, align {SIZES[element]}")
    width = THREADS
    while width > (COLUMNS if columns else 1):
        width //= 2
        code.do("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
        with code.when(thread < width):
            other = shared(code, thread + width, element)
            one, two = (
                code.emit(f"load {element}, {SHARED} {p.name}, align {SIZES[element]}", element) for p in (mine, other)
            )
            code.do(f"store {join(code, how, one, two)}, {SHARED} {mine.name}, align {SIZES[element]}")
    writes = code.emit(f"and i1 {(thread < (COLUMNS if columns else 1)).name}, {inside.name}", "i1")
    with code.when(writes):
        found = code.emit(f"load {element}, {SHARED} {mine.name}, align {SIZES[element]}", element)
        at = part * results + result
        place = code.emit(f"getelementptr {element}, {GLOBAL} %out, i64 {at.name}", GLOBAL)
        code.do(f"store {found}, {GLOBAL} {place.name}, align {SIZES[element]}")
    room = f"@shared = internal addrspace(3) global [{THREADS} x {element}] undef, align 16"
    registers = f' "nvvm.maxntid"="{THREADS}"' + (f' "nvvm.minctasm"="{BLOCKS}"' if wide > 1 else "")
    name = name_of(how, element, outer, inner, columns, wide)
    head = f"define ptx_kernel void @{name}({', '.join(params)}){registers} {{\nentry:"
    declared = [line for line in sorted(code.declared) if line not in DECLARATIONS]
    return "\n".join([room, DECLARATIONS, *declared, head, *code.entry, *code.lines, "  ret void\n}\n"])


def shared(code: Code, index: Value, element: str) -> Value:
    """The address of an element of shared memory."""
    return code.emit(f"getelementptr {element}, {SHARED} @shared, i64 {index.name}", SHARED)


def offset_of(code: Code, index: Value, letter: str, dims: int) -> Value:
    """Where the index-th element of some dimensions lies."""
    offset: Any = code.const(0, "i64")
    for d in reversed(range(dims)):
        here = index
        if d:
            size = Value(code, f"%{letter}d{d}", "i64")
            above = index // size
            here, index = index - above * size, above
        offset = offset + here * Value(code, f"%{letter}s{d}", "i64")
    return offset  # type: ignore[no-any-return]
