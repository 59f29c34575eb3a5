"""The gradient of the weight of a convolution with many windows: channels of the input times turned gradients.

    c[tap, channel, output] = sum over windows of x[channel, window + tap] * grad[output, window]

The gradient is packed once for all elements of the kernel. The input is read number by number where it lies: only
windows that meet it at a tap are summed there, and nothing has to be copied or padded unless images are large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback._thresholds import LARGE_RESULT, LEAST_WINDOWS, LISTED_TAPS, LONG_TABLE, MANY_WINDOWS, NEAR_SUMS
from pullback.kernels.jit.compiler import target
from pullback.kernels.jit.conv.cut import Axis, Problem, Source, bundled, everything, grid_of, offsets_of
from pullback.kernels.jit.conv.tables import Sizes, Table, grid
from pullback.kernels.jit.gemm.pack import smaller, transposed, vector
from pullback.kernels.jit.gemm.product import Cell, Left, multiply_block
from pullback.kernels.jit.gemm.tile import DEPTH, DTYPES, OLD, PANELS, ROWS, tiles, width
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls

READ = 4.0
"""What it costs an item to read a vector of the gradient."""


class Turned(NamedTuple):
    """The shapes of the packed gradient and the result before it is turned, and the arguments of the three kernels."""

    packed: int
    made: Sizes
    everywhere: bool
    pack: tuple[Any, ...]
    multiply: tuple[Any, ...]
    turn: tuple[Any, ...]


def is_suited(rows: int, each: int, taps: int, depth: int) -> bool:
    """Whether there are enough channels, taps and windows."""
    least = LEAST_WINDOWS if rows * each * taps <= LARGE_RESULT else MANY_WINDOWS
    return each >= ROWS[0] and taps > 1 and depth >= least


def is_listed(axes: tuple[Axis, ...], batch: int) -> bool:
    """Whether the windows that meet the input are listed for each tap: then it is read where it lies."""
    windows = prod(axis.count for axis in axes)
    return together(windows, batch) * windows * prod(len(axis.offsets) for axis in axes) <= LISTED_TAPS


def together(windows: int, batch: int) -> int:
    """How many images have their windows in one table."""
    return (
        1 if windows >= DEPTH else max(n for n in range(1, batch + 1) if batch % n == 0 and n * windows <= LONG_TABLE)
    )


def plan(element: str, threads: int, problem: Problem, source: Source | None, channels: int) -> Turned:
    """Everything about one gradient; the input lies where it does if there is no `source`."""
    batch, groups, rows, each, axes = problem[:5]
    counts, sizes = [axis.count for axis in axes], [axis.size for axis in axes]
    wide, half = width(element), target.lanes(element) // 2
    windows, taps = prod(counts), prod(len(axis.offsets) for axis in axes)
    images = together(windows, batch)
    span = images * windows
    deep = -(-span // -(-span // DEPTH))
    valid = []
    for axis in axes:
        there = np.arange(axis.count) * axis.stride + np.array(axis.offsets)[:, None]
        valid.append((there >= 0) & (there < axis.size))
    met = [np.tile((a[:, None, None] & b[:, None] & c).reshape(-1), images) for a, b, c in product(*valid)]
    if source is None:
        plane, image = prod(sizes), channels * prod(sizes)
        steps = (sizes[1] * sizes[2], sizes[2], 1)
        at = grid((images, *counts), (image, *[axis.stride * step for axis, step in zip(axes, steps, strict=True)]))
        places = [sum(o * s for o, s in zip(one, steps, strict=True)) for one in product(*[a.offsets for a in axes])]
    else:
        plane, image = source.plane, source.image
        box = everything(problem)
        at = grid((images, *counts), grid_of(problem, box, source)[1])
        places = offsets_of(problem._replace(each=1), box, source)[1].tolist()
    edges = np.arange(0, span, deep)
    tasks = np.zeros((len(edges), taps, 4), np.int64)
    tasks[:, :, 0] = places
    a_at, b_at = [at], [np.arange(span) * wide]
    if source is None:
        a_at, b_at = [], []
        before = 0
        for t, here in enumerate(met):
            found = np.flatnonzero(here)
            cuts = np.searchsorted(found, np.append(edges, span))
            tasks[:, t, 1], tasks[:, t, 2] = before + cuts[:-1], np.diff(cuts)
            a_at.append(at[found])
            b_at.append(found * wide)
            before += len(found)
    else:
        tasks[:, :, 1] = edges[:, None]
        lengths = np.minimum(edges + deep, span) - edges
        tasks[:, :, 2] = lengths[:, None] * np.stack([np.logical_or.reduceat(here, edges) for here in met], 1)
    some = tasks[:, :, 2] > 0
    tasks[:, :, 3] = some & (np.cumsum(some, 0) == 1)
    panels, across_row = -(-rows // wide), -(-rows // half) * half
    cycles = batch // images
    items, first = shared(tasks[:, :, 2].sum(0) * cycles, len(edges) * cycles, rows, each, groups, element, threads)
    turn_at = (np.arange(taps) * each + np.arange(each)[:, None]).reshape(-1) * across_row
    multiply = (
        np.concatenate(a_at), np.concatenate(b_at), tasks, items, first, tiles(element), rows, each, taps, len(edges),
        cycles, images * image, plane, each * plane, span * wide, batch * windows * wide, panels, across_row,
        len(first) - 1, 1,
    )  # fmt: skip
    pack = (rows, windows, batch, groups, panels, batch * groups * panels, 1)
    blocks = -(-rows // target.lanes(element))
    turn = (turn_at, rows, each * taps, across_row, blocks, groups * blocks, 1)
    made = (groups, taps, each, across_row)
    return Turned(groups * panels * batch * windows * wide, made, bool(some.any(0).all()), pack, multiply, turn)


def shared(
    depths: Table, blocks: int, rows: int, each: int, groups: int, element: str, threads: int
) -> tuple[Table, Table]:
    """Items (group, panels, taps, channels; first and the one after the last) and bundles of them."""
    wide, half, taps = width(element), target.lanes(element) // 2, len(depths)
    panels = -(-rows // wide)
    vectors = np.full(panels, wide // half / 2)
    vectors[-1] = -(-(rows - (panels - 1) * wide) // half) / 2
    best, found = float("inf"), None
    widths = sorted({min(PANELS, -(-panels // parts)) for parts in (1, 2, 3, 4)}, reverse=True)
    for across, tap_parts, strips in product(widths, sorted({1, 2, 3, taps}), (1, 2, 4, 8)):
        some, strip = -(-taps // tap_parts), -(-each // strips // ROWS[0]) * ROWS[0]
        starts = [np.arange(0, taps, some), np.arange(0, each, strip), np.arange(0, panels, across)]
        ends = [
            np.minimum(a + n, most)
            for a, n, most in zip(starts, (some, strip, across), (taps, each, panels), strict=True)
        ]
        depth, v = np.add.reduceat(depths, starts[0])[:, None, None], np.add.reduceat(vectors, starts[2])
        height = (ends[1] - starts[1])[:, None]
        cells = (ends[0] - starts[0])[:, None, None] * height * v
        # Each item reads gradients and images anew. Partial sums that leave the second-level cache come back slowly.
        cost = depth * height * (v + 1 / 8) + depths.max() * (READ * v + height / 4)
        cost = cost + cells * (blocks * np.where(cells > NEAR_SUMS, 6.0, 1.0))
        bundles, time = bundled(np.broadcast_to(cost, (groups, *cost.shape)).reshape(-1), threads)
        if time < best:
            best, found = time, (starts, ends, bundles)
        if threads == 1 and cells.max() <= NEAR_SUMS:
            break
    assert found is not None
    (t0, m0, p0), (t1, m1, p1), bundles = found
    items = np.zeros((groups, len(t0), len(m0), len(p0), 7), np.int64)
    items[..., 0] = np.arange(groups)[:, None, None, None]
    items[..., 1], items[..., 2], items[..., 3], items[..., 4] = p0, p1, t0[:, None, None], t1[:, None, None]
    items[..., 5], items[..., 6] = m0[:, None], m1[:, None]
    order = np.concatenate([np.array(bundle, np.int64) for bundle in bundles])
    return items.reshape(-1, 7)[order], np.cumsum([0, *map(len, bundles)]).astype(np.int64)


def pack_kernel(element: str) -> Callable[..., bool]:
    """out[group, panel, image, window, output] = grad[image, group, output, window]; an item is a panel of an image."""
    lanes, type, wide = target.lanes(element), vector(element), width(element)
    dtype = DTYPES[element]

    def describe(code: Code, grad: Value, out: Value, *numbers: Value) -> None:
        rows, windows, batch, groups, panels = numbers
        with code.loop(code.begin, code.end) as item:
            nr = item // batch
            image, group = item - nr * batch, nr // panels
            column = (nr - group * panels) * wide
            source = code.at(grad, ((image * groups + group) * rows + column) * windows, element)
            panel = code.at(out, item * windows * wide, element)
            with code.loop(0, smaller(code, rows - column, wide), lanes) as j:
                lines = [
                    code.at(source, smaller(code, rows - column - 1, j + lane) * windows, element)
                    for lane in range(lanes)
                ]
                with code.loop(0, windows, lanes) as k:
                    mask = code.tail_mask(windows - k, lanes)
                    square = transposed(code, [code.load(line, k, type, mask) for line in lines])
                    for t, line in enumerate(square):
                        with code.when(k + t < windows):
                            code.store(line, panel, (k + t) * wide + j)

    names = ("rows", "windows", "batch", "groups", "panels")
    params = [calls.array(dtype), calls.array(dtype, write=True), *map(calls.integer, names)]
    return calls.kernel(f"pullback_conv_grad_{dtype}", params, describe, "outputs side by side", element)


def multiply_kernel(element: str) -> Callable[..., bool]:
    """c[group, tap, channel, output] = sum over windows of x[channel, window + tap] * packed[window, output]."""
    wide = width(element)
    dtype = DTYPES[element]

    def describe(code: Code, x: Value, packed: Value, c: Value, a_at: Value, b_at: Value, tasks: Value, items: Value,
                 first: Value, tile_table: Value, *numbers: Value) -> None:  # fmt: skip
        (rows, each, taps, blocks, cycles, x_cycle, plane, x_group, cycle, panel_step, panels, c_row) = numbers
        with code.loop(code.load(first, code.begin, "i64"), code.load(first, code.end, "i64")) as item:
            group, p0, p1, t0, t1, m0, m1 = [code.load(items, item * 7 + i, "i64") for i in range(7)]
            with code.loop(0, cycles) as nr, code.loop(0, blocks) as block, code.loop(t0, t1) as t:
                place, k, count, is_first = [code.load(tasks, (block * taps + t) * 4 + i, "i64") for i in range(4)]
                with code.when(count > 0):
                    c_here = code.at(c, (group * taps + t) * each * c_row, element)
                    flags = code.select((is_first > 0) & code.compare("eq", nr, 0), 0, code.const(OLD, "i64"))

                    def cell(p: Value) -> Cell:
                        panel = code.at(packed, (group * panels + p) * panel_step + nr * cycle, element)
                        out, columns = code.at(c_here, p * wide, element), smaller(code, rows - p * wide, wide)
                        left_table, table = code.at(a_at, k, "i64"), code.at(b_at, k, "i64")
                        whole = code.compare("eq", group, group)
                        return Cell(count, left_table, panel, table, columns, whole, out, c_row, out, c_row, flags)

                    left = Left(code.at(x, group * x_group + nr * x_cycle + place, element), plane)
                    multiply_block(code, element, tile_table, left, (m0, m1), (p0, p1), c, cell, None)

    names = (
        "rows", "each", "taps", "blocks", "cycles", "x_cycle", "plane", "x_group", "cycle", "panel_step", "panels",
        "c_row",
    )  # fmt: skip
    table, source, result = calls.array("int64"), calls.array(dtype), calls.array(dtype, write=True)
    params = [source, source, result, *[table] * 6, *map(calls.integer, names)]
    note = "c[tap, channel, output] = sum over windows of x[channel, window + tap] * grad[output, window]"
    return calls.kernel(f"pullback_conv_taps_by_{dtype}", params, describe, note, element)


def turn_kernel(element: str) -> Callable[..., bool]:
    """out[group, output, element] = c[group, at[element] + output]; an item is a vector of outputs."""
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, c: Value, out: Value, at: Value, *numbers: Value) -> None:
        rows, columns, c_row, blocks = numbers
        with code.loop(code.begin, code.end) as item:
            group = item // blocks
            row = (item - group * blocks) * lanes
            some = code.tail_mask(rows - row, lanes)
            source = code.at(c, group * columns * c_row + row, element)
            lines = code.at(out, (group * rows + row) * columns, element)
            with code.loop(0, columns, lanes) as j:
                places = [code.load(at, smaller(code, columns - 1, j + lane), "i64") for lane in range(lanes)]
                square = transposed(code, [code.load(source, place, type, some) for place in places])
                mask = code.tail_mask(columns - j, lanes)
                for lane, line in enumerate(square):
                    with code.when(row + lane < rows):
                        code.store(line, lines, columns * lane + j, mask)

    names = ("rows", "columns", "c_row", "blocks")
    params = [calls.array(dtype), calls.array(dtype, write=True), calls.array("int64"), *map(calls.integer, names)]
    return calls.kernel(f"pullback_conv_turn_{dtype}", params, describe, "a gradient turned", element)


pack, multiply, turn = map(cache, (pack_kernel, multiply_kernel, turn_kernel))


def gradient(element: str, x: Any, grad: Any, out: Any, plan: Turned) -> bool:
    """Write the gradient of the weight to `out`."""
    packed = np.empty(plan.packed, x.dtype)
    made = (np.empty if plan.everywhere else np.zeros)(plan.made, x.dtype)
    return (
        pack(element)(grad, packed, *plan.pack)
        and multiply(element)(x, packed, made, *plan.multiply)
        and turn(element)(made, out, *plan.turn)
    )
