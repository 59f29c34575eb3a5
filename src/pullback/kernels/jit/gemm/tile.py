"""The innermost loop of every matrix product: a tile of the result held in registers while k runs.

Both operands are addressed by tables, a[row * step + a_at[k]] and b[b_at[k] + column]: rows of a matrix, columns of
one, packed panels and the windows of an image are all read where they lie at the full speed of the multipliers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback.kernels.jit.compiler import engine, target
from pullback.kernels.jit.language.code import FLOATS, mangled

MANY = target.VECTOR_BYTES == 64 or target.TRIPLE.startswith(("aarch64", "arm64"))
"""There are 32 vector registers, not 16."""
ROWS = (8, 4, 2, 1) if MANY else (4, 2, 1)
"""Heights of tiles: as tall as the registers allow, and smaller ones for what is left."""
VECTORS = 3
"""Width of a tile in vectors."""
DEPTH = 192
"""How far k runs before the next block: a block of panels of this depth stays in the second-level cache.

256 is no quicker, and sums of fewer terms are rounded less: as little as torch's.
"""
PANELS = 8
"""The most panels a block has."""
DTYPES = {"float": "float32", "double": "float64", "i64": "int64", "i32": "int32"}
"""The numbers that can be multiplied."""
OLD, ROW_BIAS, EARLY = 1, 2, 4
"""Flags of a tile: add what `old` holds, add a number to each row, fetch the lines of the result while k runs."""
PREFETCH = "@llvm.prefetch.p0"

Table = np.ndarray[Any, np.dtype[np.int64]]
ARGUMENTS = (
    "ptr %a, i64 %step, ptr %a_at, ptr %b, ptr %b_at, i64 %depth, "
    "ptr %c, i64 %c_step, ptr %old, i64 %old_step, ptr %bias, i64 %flags"
)


def width(element: str) -> int:
    """The columns of a panel."""
    return VECTORS * target.lanes(element)


def tile_text(name: str, element: str, rows: int, halves: int) -> str:
    """A tile of rows by half vectors: c = sum over k of a * b, plus what the flags ask for."""
    lanes, size = target.lanes(element), target.SIZES[element]
    parts = [lanes] * (halves // 2) + [lanes // 2] * (halves % 2)
    types = [f"<{n} x {element}>" for n in parts]
    floating = element in FLOATS
    plus = "fadd" if floating else "add"
    cells = [(m, v) for m in range(rows) for v in range(len(parts))]
    out = [f"define void @{name}({ARGUMENTS}) #0 {{", "entry:"]

    def at(result: str, base: str, index: str) -> str:
        return f"  %{result} = getelementptr {element}, ptr %{base}, i64 {index}"

    def spread(name: str) -> list[str]:
        """A number in every lane of a vector of each length there is."""
        made = []
        for n in sorted(set(parts)):
            type = f"<{n} x {element}>"
            made.append(f"  %{name}i{n} = insertelement {type} poison, {element} %{name}s, i64 0")
            made.append(f"  %{name}_{n} = shufflevector {type} %{name}i{n}, {type} poison, <{n} x i32> zeroinitializer")
        return made

    for m in range(rows):
        out += [f"  %lead{m} = mul i64 %step, {m}", at(f"row{m}", "a", f"%lead{m}")]
    out += [f"  %f0 = and i64 %flags, {EARLY}", "  %fetch = icmp ne i64 %f0, 0"]
    out += ["  br i1 %fetch, label %early, label %before", "early:"]
    for m, v in cells:
        out += [f"  %l{m}_{v} = mul i64 %c_step, {m}", f"  %m{m}_{v} = add i64 %l{m}_{v}, {v * lanes}"]
        out += [at(f"e{m}_{v}", "c", f"%m{m}_{v}"), f"  call void {PREFETCH}(ptr %e{m}_{v}, i32 1, i32 3, i32 1)"]
    out += ["  br label %before", "before:"]
    out += ["  br label %loop", "loop:", "  %k = phi i64 [0, %before], [%next, %loop]"]
    out += [f"  %s{m}_{v} = phi {types[v]} [zeroinitializer, %before], [%n{m}_{v}, %loop]" for m, v in cells]
    for side in "ab":
        out += [f"  %{side}p = getelementptr i64, ptr %{side}_at, i64 %k", f"  %{side}k = load i64, ptr %{side}p"]
    out.append(at("bk0", "b", "%bk"))
    for v, type in enumerate(types):
        out += [at(f"b{v}p", "bk0", str(v * lanes)), f"  %b{v} = load {type}, ptr %b{v}p, align {size}"]
    for m in range(rows):
        out += [
            at(f"a{m}p", f"row{m}", "%ak"),
            f"  %a{m}s = load {element}, ptr %a{m}p, align {size}",
            *spread(f"a{m}"),
        ]
        for v, (n, type) in enumerate(zip(parts, types, strict=True)):
            if floating:
                given = f"{type} %a{m}_{n}, {type} %b{v}, {type} %s{m}_{v}"
                out.append(f"  %n{m}_{v} = call {type} @llvm.fma.{mangled(type)}({given})")
            else:
                out += [f"  %x{m}_{v} = mul {type} %a{m}_{n}, %b{v}", f"  %n{m}_{v} = add {type} %x{m}_{v}, %s{m}_{v}"]
    out += ["  %next = add i64 %k, 1", "  %more = icmp slt i64 %next, %depth"]
    out += ["  br i1 %more, label %loop, label %done", "done:"]
    for m in range(rows):
        out += [f"  %c_lead{m} = mul i64 %c_step, {m}", f"  %old_lead{m} = mul i64 %old_step, {m}"]
        out += [at(f"c{m}", "c", f"%c_lead{m}"), at(f"old{m}", "old", f"%old_lead{m}")]
    out += [f"  %f1 = and i64 %flags, {OLD}", "  %add_old = icmp ne i64 %f1, 0"]
    out += ["  br i1 %add_old, label %with_old, label %after_old", "with_old:"]
    for m, v in cells:
        out += [
            at(f"o{m}_{v}p", f"old{m}", str(v * lanes)),
            f"  %o{m}_{v} = load {types[v]}, ptr %o{m}_{v}p, align {size}",
        ]
        out.append(f"  %p{m}_{v} = {plus} {types[v]} %n{m}_{v}, %o{m}_{v}")
    out += ["  br label %after_old", "after_old:"]
    out += [f"  %q{m}_{v} = phi {types[v]} [%n{m}_{v}, %done], [%p{m}_{v}, %with_old]" for m, v in cells]
    out += [f"  %f2 = and i64 %flags, {ROW_BIAS}", "  %add_bias = icmp ne i64 %f2, 0"]
    out += ["  br i1 %add_bias, label %with_bias, label %after_bias", "with_bias:"]
    for m in range(rows):
        out += [at(f"bias{m}p", "bias", str(m)), f"  %bias{m}s = load {element}, ptr %bias{m}p, align {size}"]
        out += spread(f"bias{m}")
    out += [f"  %t{m}_{v} = {plus} {types[v]} %q{m}_{v}, %bias{m}_{parts[v]}" for m, v in cells]
    out += ["  br label %after_bias", "after_bias:"]
    out += [f"  %u{m}_{v} = phi {types[v]} [%q{m}_{v}, %after_old], [%t{m}_{v}, %with_bias]" for m, v in cells]
    for m, v in cells:
        out += [
            at(f"c{m}_{v}p", f"c{m}", str(v * lanes)),
            f"  store {types[v]} %u{m}_{v}, ptr %c{m}_{v}p, align {size}",
        ]
    return "\n".join([*out, "  ret void", "}", ""])


SHAPES = [(rows, halves) for rows in ROWS for halves in range(1, 2 * VECTORS + 1)]
"""Rows and half vectors of all tiles."""


def tile_names(element: str) -> list[str]:
    """What the tiles of an element type are called where code is linked."""
    return [f"pullback_tile_{element}_{rows}x{halves}" for rows, halves in SHAPES]


@cache
def tiles(element: str) -> Table:
    """The addresses of the tiles of an element type: for each height those of 1, 2, ... half vectors."""
    names, recipe = tile_names(element), f"tiles of {element}"
    found = engine.recall(recipe, names)
    if found is not None:
        return np.array(found[0], np.int64)
    texts = [tile_text(name, element, *shape) for name, shape in zip(names, SHAPES, strict=True)]
    declared = [f"declare void {PREFETCH}(ptr, i32, i32, i32)\n"]
    for lanes in (target.lanes(element), target.lanes(element) // 2) if element in FLOATS else ():
        type = f"<{lanes} x {element}>"
        declared.append(f"declare {type} @llvm.fma.{mangled(type)}({type}, {type}, {type})\n")
    return np.array(engine.load("".join(declared + texts), names, recipe), np.int64)


@cache
def steps(stride: int) -> Table:
    """The table of a matrix whose elements lie a stride apart along k."""
    return np.arange(DEPTH, dtype=np.int64) * stride


spare: dict[str, list[Any]] = {}
"""Scratch not in use now: a call takes one and gives it back, so that calls from several threads do not share it."""


def borrow(element: str, workers: int) -> Any:
    """Room for one block of packed panels for each worker."""
    rest = spare.setdefault(element, [])
    size = workers * block_size(element)
    while rest:
        found = rest.pop()
        if found.size >= size:
            return found
    dtype = np.dtype(DTYPES[element])
    raw = np.empty(size * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


def give_back(element: str, scratch: Any) -> None:
    """Keep scratch for the next call."""
    spare[element].append(scratch)


def panel_size(element: str) -> int:
    """Elements of a packed panel; transposing writes whole vectors of k."""
    return (DEPTH + target.lanes(element)) * width(element)


def block_size(element: str) -> int:
    """Elements of the scratch of a worker."""
    return PANELS * panel_size(element)
