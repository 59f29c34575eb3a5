"""Packing: a panel of the right matrix copied to where the tiles read it, a row of the panel for each k."""

from __future__ import annotations

from pullback.kernels.jit.compiler import target
from pullback.kernels.jit.gemm.tile import VECTORS, width
from pullback.kernels.jit.language.code import Code, Value


def smaller(code: Code, a: Value, b: Value | int) -> Value:
    """The smaller of two integers."""
    b = b if isinstance(b, Value) else code.const(b, a.type)
    return code.select(a < b, a, b)


def vector(element: str) -> str:
    """The type of a whole vector."""
    return f"<{target.lanes(element)} x {element}>"


def whole_or_masked(code: Code, element: str, columns: Value) -> list[Value | None]:
    """For each vector of a panel, the lanes that are columns of the matrix."""
    lanes = target.lanes(element)
    return [code.tail_mask(columns - v * lanes, lanes) for v in range(VECTORS)]


def copy_rows(code: Code, element: str, source: Value, step: Value, columns: Value, depth: Value, panel: Value) -> None:
    """A panel of a matrix whose rows are contiguous: source[k * step + column]."""
    lanes, type = target.lanes(element), vector(element)
    masks = whole_or_masked(code, element, columns)
    full = columns >= width(element)
    for condition, kept in ((full, [None] * VECTORS), (columns < width(element), masks)):
        with code.when(condition), code.loop(0, depth) as k:
            row = code.at(source, k * step, element)
            for v in range(VECTORS):
                here = code.load(row, v * lanes, type, kept[v])
                code.store(here, panel, k * width(element) + v * lanes)


def gather_rows(
    code: Code, element: str, source: Value, step: Value, apart: Value, columns: Value, depth: Value, panel: Value
) -> None:
    """A panel of a matrix with any strides: source[k * step + column * apart]."""
    lanes = target.lanes(element)
    numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
    places = Value(code, f"<{numbers}>", f"<{lanes} x i64>") * code.splat(apart, lanes)
    with code.loop(0, smaller(code, columns, width(element)), lanes) as j:
        mask = code.tail_mask(columns - j, lanes)
        with code.loop(0, depth) as k:
            row = code.at(source, k * step + j * apart, element)
            code.store(code.gather(row, places, element, mask), panel, k * width(element) + j)


def transposed(code: Code, rows: list[Value]) -> list[Value]:
    """As many vectors as they have lanes, transposed by exchanging halves, quarters, ... of pairs."""
    count = len(rows)
    type, rows = rows[0].type, list(rows)
    half = count // 2
    while half:
        takes = [
            ", ".join(f"i32 {lane if not lane & half else count + lane - half}" for lane in range(count)),
            ", ".join(f"i32 {lane + half if not lane & half else count + lane}" for lane in range(count)),
        ]
        for i in range(count):
            if not i & half:
                a, b = rows[i], rows[i | half]
                rows[i], rows[i | half] = (
                    code.emit(f"shufflevector {a}, {b}, <{count} x i32> <{take}>", type) for take in takes
                )
        half //= 2
    return rows


def turn_columns(
    code: Code, element: str, source: Value, apart: Value, columns: Value, depth: Value, panel: Value
) -> None:
    """A panel of a matrix whose columns are contiguous: source[k + column * apart], square by square."""
    lanes, type = target.lanes(element), vector(element)
    with code.loop(0, smaller(code, columns, width(element)), lanes) as j:
        rows = [code.at(source, smaller(code, columns - 1, j + lane) * apart, element) for lane in range(lanes)]
        with code.loop(0, depth, lanes) as k:
            mask = code.tail_mask(depth - k, lanes)
            square = transposed(code, [code.load(row, k, type, mask) for row in rows])
            for t, line in enumerate(square):
                code.store(line, panel, (k + t) * width(element) + j)
