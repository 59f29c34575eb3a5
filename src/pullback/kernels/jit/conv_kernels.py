"""Matrix products whose right matrix is made of the windows of images, which become panels while they are packed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pullback.kernels.jit import calls, target
from pullback.kernels.jit.code import Code, Value
from pullback.kernels.jit.gemm import Cell, Left, finish, multiply_block, own_scratch, rectangle
from pullback.kernels.jit.gemm_tile import DTYPES, OLD, panel_size, width
from pullback.kernels.jit.pack import smaller, transposed, vector


def columns_kernel(element: str) -> Callable[..., bool]:
    """c[row, window] = sum over elements of a[row, element] * window element (+ bias of the row)."""
    wide, lanes, type = width(element), target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, a: Value, x: Value, c: Value, bias: Value, scratch: Value, flags: Value, a_at: Value,
                 x_at: Value, first: Value, pieces: Value, out_at: Value, packed_at: Value, tile_table: Value,
                 *numbers: Value) -> None:  # fmt: skip
        (rows, columns, depth, deep, a_row, a_group, x_group, c_row, c_group, capacity, strip, across, strips,
         acrosses) = numbers  # fmt: skip
        mine = own_scratch(code, element, scratch, capacity)
        with code.loop(code.begin, code.end) as item:
            group = item // (strips * acrosses)
            inside = item - group * (strips * acrosses)
            p0, p1, m0, m1 = rectangle(code, inside, acrosses, (across, columns, wide), (strip, rows))
            x_here, c_here = code.at(x, group * x_group, element), code.at(c, group * c_group, element)
            a_here, bias_here = code.at(a, group * a_group, element), code.at(bias, group * rows, element)
            with code.loop(0, depth, deep) as k0:
                count = smaller(code, deep, depth - k0)
                offsets = code.at(x_at, k0, "i64")
                with code.loop(p0, p1) as p:
                    panel = code.at(mine, (p - p0) * panel_size(element), element)
                    with code.loop(code.load(first, p, "i64"), code.load(first, p + 1, "i64")) as piece:
                        source = code.at(x_here, code.load(pieces, piece * 4, "i64"), element)
                        place = code.at(panel, code.load(pieces, piece * 4 + 1, "i64"), element)
                        length = code.load(pieces, piece * 4 + 2, "i64")
                        mask = code.tail_mask(length, lanes)
                        for condition, kept in ((length >= lanes, None), (length < lanes, mask)):
                            with code.when(condition), code.loop(0, count) as k:
                                here = code.load(source, code.load(offsets, k, "i64"), type, kept)
                                code.store(here, place, k * wide, kept)
                now = code.select(code.compare("eq", k0, 0), flags, OLD)

                def cell(p: Value) -> Cell:
                    out = code.load(out_at, p, "i64")
                    here = smaller(code, columns - p * wide, wide)
                    whole = (out >= 0) & code.compare("eq", here % lanes, 0)
                    panel = code.at(mine, (p - p0) * panel_size(element), element)
                    at = code.at(c_here, out, element)
                    return Cell(panel, packed_at, here, whole, at, at)

                def scatter(p: Value, m: Value, height: Value, buffer: Value) -> None:
                    with code.loop(code.load(first, p, "i64"), code.load(first, p + 1, "i64")) as piece:
                        source = code.at(buffer, code.load(pieces, piece * 4 + 1, "i64"), element)
                        length = code.load(pieces, piece * 4 + 2, "i64")
                        place = code.at(c_here, code.load(pieces, piece * 4 + 3, "i64") + m * c_row, element)
                        with code.loop(0, height) as r:
                            line = code.at(place, r * c_row, element)
                            finish(code, element, code.at(source, r * wide, element), line, line, length,
                                   code.at(bias_here, m + r, element), now)  # fmt: skip

                left = Left(a_here, a_row, code.at(a_at, k0, "i64"))
                multiply_block(code, element, tile_table, left, (m0, m1), (p0, p1), count, (c_row, c_row), bias_here,
                               now, cell, scatter)  # fmt: skip

    names = (
        "rows", "columns", "depth", "deep", "a_row", "a_group", "x_group", "c_row", "c_group", "capacity",
        "strip", "across", "strips", "acrosses",
    )  # fmt: skip
    table, source = calls.array("int64"), calls.array(dtype)
    result = calls.array(dtype, write=True)
    params = [source, source, result, source, result, calls.integer(), *[table] * 7]
    note = "c[row, window] = sum of a[row, element] * x[element_at + window_at] (+ bias[row])"
    return calls.kernel(f"pullback_conv_{dtype}", [*params, *map(calls.integer, names)], describe, note, element)


def weight_kernel(element: str) -> Callable[..., bool]:
    """c[share, row, element] = sum over the share's windows of a[row, window] * window element."""
    wide, lanes, type = width(element), target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, a: Value, x: Value, c: Value, scratch: Value, a_at: Value, x_at: Value, first: Value,
                 pieces: Value, packed_at: Value, tile_table: Value, *numbers: Value) -> None:  # fmt: skip
        (rows, columns, span, deep, each_blocks, blocks, share, a_row, a_group, x_group, a_image, x_image, linear,
         c_group, c_share, capacity, strip, across, strips, acrosses, shares) = numbers  # fmt: skip
        mine = own_scratch(code, element, scratch, capacity)
        with code.loop(code.begin, code.end) as item:
            each = strips * acrosses * shares
            group = item // each
            rest = item - group * each
            part = rest // (strips * acrosses)
            inside = rest - part * (strips * acrosses)
            p0, p1, m0, m1 = rectangle(code, inside, acrosses, (across, columns, wide), (strip, rows))
            x_here, a_here = code.at(x, group * x_group, element), code.at(a, group * a_group, element)
            c_here = code.at(c, group * c_group + part * c_share, element)
            begin = part * share
            with code.loop(begin, smaller(code, begin + share, blocks)) as block:
                image = block // each_blocks
                cut = block - image * each_blocks
                k0 = cut * deep
                count = smaller(code, deep, span - k0)
                x_now = code.at(x_here, image * x_image, element)
                left = Left(code.at(a_here, image * a_image + k0 * linear, element), a_row,
                            code.at(a_at, k0 - k0 * linear, "i64"))  # fmt: skip
                with code.loop(p0, p1) as p:
                    panel = code.at(mine, (p - p0) * panel_size(element), element)
                    with code.loop(0, smaller(code, columns - p * wide, wide), lanes) as v:
                        lines = [
                            code.at(
                                x_now, code.load(x_at, smaller(code, p * wide + v + j, columns - 1), "i64"), element
                            )
                            for j in range(lanes)
                        ]
                        with code.loop(code.load(first, cut, "i64"), code.load(first, cut + 1, "i64")) as piece:
                            source = code.load(pieces, piece * 4, "i64")
                            place = code.load(pieces, piece * 4 + 1, "i64")
                            mask = code.tail_mask(code.load(pieces, piece * 4 + 2, "i64"), lanes)
                            square = transposed(code, [code.load(line, source, type, mask) for line in lines])
                            # Rows beyond the piece are written over by the next one.
                            for t, line in enumerate(square):
                                code.store(line, panel, (place + t) * wide + v)

                def cell(p: Value) -> Cell:
                    here = smaller(code, columns - p * wide, wide)
                    panel = code.at(mine, (p - p0) * panel_size(element), element)
                    at = code.at(c_here, p * wide, element)
                    return Cell(panel, packed_at, here, code.compare("eq", here % lanes, 0), at, at)

                flags = code.select(code.compare("eq", block, begin), 0, code.const(OLD, "i64"))
                multiply_block(code, element, tile_table, left, (m0, m1), (p0, p1), count, (columns, columns), c,
                               flags, cell)  # fmt: skip

    names = (
        "rows", "columns", "span", "deep", "each_blocks", "blocks", "share", "a_row", "a_group", "x_group", "a_image",
        "x_image", "linear", "c_group", "c_share", "capacity", "strip", "across", "strips", "acrosses", "shares",
    )  # fmt: skip
    table, source, result = calls.array("int64"), calls.array(dtype), calls.array(dtype, write=True)
    params = [source, source, result, result, *[table] * 6]
    note = "c[row, element] = sum over windows of a[row, window] * x[element_at + window_at]"
    return calls.kernel(f"pullback_conv_weight_{dtype}", [*params, *map(calls.integer, names)], describe, note, element)


def arrange_kernel(element: str) -> Callable[..., bool]:
    """Images with zeros around them, the last dimension split by its remainder modulo the stride.

    One item is a row of the result: out[plane, d, h, phase, q] = x[plane, d - pd, h - ph, q * stride + phase - pw].
    """
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, x: Value, out: Value, *numbers: Value) -> None:
        deep, high, wide, out_deep, out_high, out_wide, stride, pd, ph, pw = numbers
        lane_numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        spread = Value(code, f"<{lane_numbers}>", f"<{lanes} x i64>") * code.splat(stride, lanes)
        zero = code.const(0, type)
        with code.loop(code.begin, code.end) as item:
            plane = item // (out_deep * out_high)
            inside = item - plane * (out_deep * out_high)
            d = inside // out_high - pd
            h = inside % out_high - ph
            row = code.at(out, item * out_wide * stride, element)
            outside = (d < 0) | (d >= deep) | (h < 0) | (h >= high)
            with code.when(outside):
                code.vectors(0, out_wide * stride, lanes, lambda j: code.store(zero, row, j))
            with code.when(code.compare("eq", outside, 0)):
                source = code.at(x, ((plane * deep + d) * high + h) * wide, element)
                with code.loop(0, stride) as phase:
                    line = code.at(row, phase * out_wide, element)
                    with code.loop(0, out_wide, lanes) as q:
                        start = q * stride + phase - pw
                        found = code.variable(zero)
                        with code.when(code.compare("eq", stride, 1)):
                            found.set(code.load(source, start, type, within(code, start, wide, lanes)))
                        with code.when(code.compare("eq", stride, 2)):
                            parts = [start, start + lanes]
                            halves = [code.load(source, at, type, within(code, at, wide, lanes)) for at in parts]
                            take = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))
                            even = f"shufflevector {halves[0]}, {halves[1]}, <{lanes} x i32> <{take}>"
                            found.set(code.emit(even, type))
                        with code.when(stride > 2):
                            there = code.splat(start, lanes) + spread
                            inner = code.compare("ge", there, 0) & code.compare("lt", there, code.splat(wide, lanes))
                            found.set(code.gather(source, there, element, inner))
                        code.store(found.get(), line, q, code.tail_mask(out_wide - q, lanes))

    names = ("deep", "high", "wide", "out_deep", "out_high", "out_wide", "stride", "pd", "ph", "pw")
    params = [calls.array(dtype), calls.array(dtype, write=True), *map(calls.integer, names)]
    return calls.kernel(f"pullback_arrange_{dtype}", params, describe, "zeros around images", element)


def within(code: Code, start: Value, size: Value, lanes: int) -> Value:
    """Which of the elements from `start` on lie in a row: those whose numbers, as unsigned ones, are below its size."""
    numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
    counted = Value(code, f"<{numbers}>", f"<{lanes} x i32>")
    here, limit = (code.splat(code.convert(value, "i32"), lanes) for value in (start, size))
    return code.compare("ult", here + counted, limit)


def spread_kernel(element: str) -> Callable[..., bool]:
    """Rows written with gaps: out[plane, d * sd, h * sh, w * sw] = x[plane, d, h, w]; an item is a row."""
    lanes, type = target.lanes(element), vector(element)
    dtype, size = DTYPES[element], target.SIZES[element]

    def describe(code: Code, x: Value, out: Value, *numbers: Value) -> None:
        deep, high, wide, plane_step, deep_step, high_step, step = numbers
        lane_numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        apart = Value(code, f"<{lane_numbers}>", f"<{lanes} x i64>") * code.splat(step, lanes)
        pattern = ", ".join(f"i1 {'false' if lane % 2 else 'true'}" for lane in range(lanes))
        even = Value(code, f"<{pattern}>", f"<{lanes} x i1>")
        name = f"llvm.masked.scatter.v{lanes}f{size * 8}.v{lanes}p0"
        code.declare(name, "void", type, f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>")
        with code.loop(code.begin, code.end) as item:
            plane = item // (deep * high)
            inside = item - plane * (deep * high)
            d = inside // high
            row = code.at(out, plane * plane_step + d * deep_step + (inside - d * high) * high_step, element)
            source = code.at(x, item * wide, element)
            with code.loop(0, wide, lanes) as w:
                mask = code.tail_mask(wide - w, lanes)
                start = code.at(row, w * step, element)
                given = code.load(source, w, type, mask)
                with code.when(code.compare("eq", step, 2)):
                    for half in range(2):
                        # Each element twice; the second ones are not written.
                        take = ", ".join(f"i32 {(half * lanes + lane) // 2}" for lane in range(lanes))
                        twice = code.emit(f"shufflevector {given}, {type} poison, <{lanes} x i32> <{take}>", type)
                        some = code.tail_mask((wide - w) * 2 - half * lanes, lanes)
                        code.store(twice, start, half * lanes, some & even)
                with code.when(code.compare("ne", step, 2)):
                    places = code.emit(f"getelementptr {element}, {start}, {apart}", f"<{lanes} x ptr>")
                    code.do(f"call void @{name}({given}, {places}, i32 {size}, {mask})")

    names = ("deep", "high", "wide", "plane_step", "deep_step", "high_step", "step")
    params = [calls.array(dtype), calls.array(dtype, write=True), *map(calls.integer, names)]
    return calls.kernel(f"pullback_spread_{dtype}", params, describe, "rows written with gaps", element)


columns, weights, arrange, spread = map(cache, (columns_kernel, weight_kernel, arrange_kernel, spread_kernel))
