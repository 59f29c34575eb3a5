"""Matrix products whose right matrix is made of the windows of images, which become panels while they are packed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pullback.kernels.jit.compiler import target
from pullback.kernels.jit.conv.cut import FIELDS
from pullback.kernels.jit.gemm.pack import smaller, transposed, vector
from pullback.kernels.jit.gemm.product import Cell, Left, finish, multiply_block, own_scratch, rectangle
from pullback.kernels.jit.gemm.tile import DTYPES, OLD, panel_size, width
from pullback.kernels.jit.language.code import Code, Value, count_of
from pullback.kernels.jit.runtime import calls


def columns_kernel(element: str) -> Callable[..., bool]:
    """c[row, window] = sum over elements of a[row, element] * window element (+ bias of the row)."""
    wide, lanes, type = width(element), target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, a: Value, x: Value, c: Value, bias: Value, scratch: Value, kept: Value, flags: Value,
                 a_at: Value, x_at: Value, panels: Value, pieces: Value, items: Value, first: Value, packed_at: Value,
                 tile_table: Value, *numbers: Value) -> None:  # fmt: skip
        rows, blocks, a_row, a_group, x_group, c_row, kept_group, capacity = numbers

        def of(panel: Value, nr: int) -> Value:
            return code.load(panels, panel * FIELDS + nr, "i64")

        mine = own_scratch(code, element, scratch, capacity)
        with code.loop(code.load(first, code.begin, "i64"), code.load(first, code.end, "i64")) as item:
            group, p0, p1, m0, m1 = [code.load(items, item * 5 + i, "i64") for i in range(5)]
            x_here, c_here = code.at(x, group * x_group, element), code.at(c, group * rows * c_row, element)
            a_here, bias_here = code.at(a, group * a_group, element), code.at(bias, group * rows, element)
            kept_here = code.at(kept, group * kept_group, element)
            with code.loop(0, blocks) as block:

                def part(p: Value) -> tuple[Value, Value]:
                    """Where the block's share of the sum begins, and how many elements it has."""
                    depth = of(p, 7)
                    begin = depth * block // blocks
                    return of(p, 6) + begin, depth * (block + 1) // blocks - begin

                with code.loop(p0, p1) as p:
                    begin, count = part(p)
                    offsets = code.at(x_at, begin, "i64")
                    panel = code.at(mine, (p - p0) * panel_size(element), element)
                    with code.loop(of(p, 3), of(p, 4)) as piece:
                        source = code.at(x_here, code.load(pieces, piece * 4, "i64"), element)
                        place = code.at(panel, code.load(pieces, piece * 4 + 1, "i64"), element)
                        length = code.load(pieces, piece * 4 + 2, "i64")
                        half = code.compare("eq", length, lanes // 2)
                        other = (length < lanes) & code.compare("ne", length, lanes // 2)
                        ways = ((length >= lanes, type, None), (half, f"<{lanes // 2} x {element}>", None),
                                (other, type, code.tail_mask(length, lanes)))  # fmt: skip
                        for condition, taken, some in ways:
                            with code.when(condition), code.loop(0, count) as k:
                                here = code.load(source, code.load(offsets, k, "i64"), taken, some)
                                code.store(here, place, k * wide, some)
                now = code.select(code.compare("eq", block, 0), flags, OLD)
                more = block + 1 < blocks

                def cell(p: Value) -> Cell:
                    begin, count = part(p)
                    source, columns, out = [of(p, i) for i in range(3)]
                    direct, straight = source >= 0, out >= 0
                    packed = code.at(mine, (p - p0) * panel_size(element), element)
                    panel = code.select(direct, code.at(x_here, source, element), packed)
                    table = code.select(direct, code.at(x_at, begin, "i64"), packed_at)
                    # What does not lie in one piece is summed aside and written once.
                    aside = code.at(kept_here, of(p, 5), element)
                    at = code.select(straight, code.at(c_here, out, element), aside)
                    step = code.select(straight, c_row, wide)
                    left_table = code.at(a_at, begin, "i64")
                    return Cell(count, left_table, panel, table, columns, straight | more, at, step, at, step, now)

                def scatter(here: Cell, p: Value, m: Value, height: Value, buffer: Value) -> None:
                    with code.loop(of(p, 3), of(p, 4)) as piece:
                        source = code.at(buffer, code.load(pieces, piece * 4 + 1, "i64"), element)
                        mask = code.tail_mask(code.load(pieces, piece * 4 + 2, "i64"), lanes)
                        place = code.at(c_here, code.load(pieces, piece * 4 + 3, "i64") + m * c_row, element)
                        with code.loop(0, height) as r:
                            code.store(code.load(source, r * wide, type), place, r * c_row, mask)

                left = Left(a_here, a_row)
                multiply_block(code, element, tile_table, left, (m0, m1), (p0, p1), bias_here, cell, scatter)

    names = ("rows", "blocks", "a_row", "a_group", "x_group", "c_row", "kept_group", "capacity")
    table, source = calls.array("int64"), calls.array(dtype)
    result = calls.array(dtype, write=True)
    params = [source, source, result, source, result, result, calls.integer(), *[table] * 8]
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
                left = Left(code.at(a_here, image * a_image + k0 * linear, element), a_row)
                left_table = code.at(a_at, k0 - k0 * linear, "i64")
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
                    at, whole = code.at(c_here, p * wide, element), code.compare("eq", here % (lanes // 2), 0)
                    own = code.select(whole, flags, 0)
                    return Cell(count, left_table, panel, packed_at, here, whole, at, columns, at, columns, own)

                flags = code.select(code.compare("eq", block, begin), 0, code.const(OLD, "i64"))
                multiply_block(code, element, tile_table, left, (m0, m1), (p0, p1), c, cell,
                               finish(code, element, flags))  # fmt: skip

    names = (
        "rows", "columns", "span", "deep", "each_blocks", "blocks", "share", "a_row", "a_group", "x_group", "a_image",
        "x_image", "linear", "c_group", "c_share", "capacity", "strip", "across", "strips", "acrosses", "shares",
    )  # fmt: skip
    table, source, result = calls.array("int64"), calls.array(dtype), calls.array(dtype, write=True)
    params = [source, source, result, result, *[table] * 6]
    note = "c[row, element] = sum over windows of a[row, window] * x[element_at + window_at]"
    return calls.kernel(f"pullback_conv_weight_{dtype}", [*params, *map(calls.integer, names)], describe, note, element)


def zipped(code: Code, vectors: list[Value], apart: bool) -> list[Value]:
    """A power of two of vectors whose elements are taken in turns, or put back: first of each, second of each, ..."""
    count, type = count_of(vectors[0].type), vectors[0].type
    half = len(vectors) // 2
    for _ in range(len(vectors).bit_length() - 1):
        made = []
        for nr in range(half):
            a, b = (vectors[2 * nr], vectors[2 * nr + 1]) if apart else (vectors[nr], vectors[nr + half])
            for part in range(2):
                if apart:
                    order = [2 * lane + part for lane in range(count)]
                else:
                    order = [(lane + part * count) // 2 + (lane % 2) * count for lane in range(count)]
                take = ", ".join(f"i32 {lane}" for lane in order)
                made.append(code.emit(f"shufflevector {a}, {b}, <{count} x i32> <{take}>", type))
        vectors = made[::2] + made[1::2] if apart else made
    return vectors


def arrange_kernel(element: str, together: int) -> Callable[..., bool]:
    """Images with zeros around them, some of them element by element, rows split by the remainder modulo the stride.

    One item is a row of the result:
    out[batch, channel, d, h, phase, q, image] = x[batch, image, channel, d - pd, h - ph, q * stride + phase - pw].
    """
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, x: Value, out: Value, *numbers: Value) -> None:
        channels, deep, high, wide, out_deep, out_high, out_wide, stride, pd, ph, pw = numbers
        lane_numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        spread = Value(code, f"<{lane_numbers}>", f"<{lanes} x i64>") * code.splat(stride, lanes)
        zero = code.const(0, type)
        image = channels * deep * high * wide
        with code.loop(code.begin, code.end) as item:
            plane = item // (out_deep * out_high)
            inside = item - plane * (out_deep * out_high)
            batch = plane // channels
            d = inside // out_high - pd
            h = inside % out_high - ph
            row = code.at(out, item * out_wide * stride * together, element)
            outside = (d < 0) | (d >= deep) | (h < 0) | (h >= high)
            with code.when(outside):
                code.vectors(0, out_wide * stride * together, lanes, lambda j: code.store(zero, row, j))
            with code.when(code.compare("eq", outside, 0)):
                first = (batch * (together - 1) * channels + plane) * deep
                sources = [code.at(x, ((first + d) * high + h) * wide + image * n, element) for n in range(together)]
                with code.loop(0, stride) as phase:
                    line = code.at(row, phase * out_wide * together, element)
                    with code.loop(0, out_wide, lanes) as q:
                        start = q * stride + phase - pw
                        found = [code.variable(zero) for _ in sources]
                        with code.when(code.compare("eq", stride, 1)):
                            mask = within(code, start, wide, lanes)
                            for source, made in zip(sources, found, strict=True):
                                made.set(code.load(source, start, type, mask))
                        with code.when(code.compare("eq", stride, 2)):
                            parts = [(at, within(code, at, wide, lanes)) for at in (start, start + lanes)]
                            take = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))
                            for source, made in zip(sources, found, strict=True):
                                halves = [code.load(source, at, type, mask) for at, mask in parts]
                                even = f"shufflevector {halves[0]}, {halves[1]}, <{lanes} x i32> <{take}>"
                                made.set(code.emit(even, type))
                        with code.when(stride > 2):
                            there = code.splat(start, lanes) + spread
                            inner = code.compare("ge", there, 0) & code.compare("lt", there, code.splat(wide, lanes))
                            for source, made in zip(sources, found, strict=True):
                                made.set(code.gather(source, there, element, inner))
                        for nr, made in enumerate(zipped(code, [made.get() for made in found], False)):
                            left = (out_wide - q) * together - nr * lanes
                            code.store(made, line, q * together + nr * lanes, code.tail_mask(left, lanes))

    names = ("channels", "deep", "high", "wide", "out_deep", "out_high", "out_wide", "stride", "pd", "ph", "pw")
    params = [calls.array(dtype), calls.array(dtype, write=True), *map(calls.integer, names)]
    name, note = f"pullback_arrange_{together}_{dtype}", "zeros around images"
    return calls.kernel(name, params, describe, note, element)


def separate_kernel(element: str, together: int) -> Callable[..., bool]:
    """out[batch, image, row, window] = c[row, batch, window, image]; an item is a row of a batch."""
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, c: Value, out: Value, *numbers: Value) -> None:
        batches, rows, windows = numbers
        with code.loop(code.begin, code.end) as item:
            row = item // batches
            source = code.at(c, item * windows * together, element)
            first = ((item - row * batches) * together * rows + row) * windows
            lines = [code.at(out, first + rows * windows * n, element) for n in range(together)]
            with code.loop(0, windows, lanes) as w:
                mask = code.tail_mask(windows - w, lanes)
                given = [
                    code.load(source, w * together + nr * lanes, type,
                              code.tail_mask((windows - w) * together - nr * lanes, lanes))
                    for nr in range(together)
                ]  # fmt: skip
                for line, made in zip(lines, zipped(code, given, True), strict=True):
                    code.store(made, line, w, mask)

    params = [calls.array(dtype), calls.array(dtype, write=True), *map(calls.integer, ("batches", "rows", "windows"))]
    return calls.kernel(f"pullback_separate_{together}_{dtype}", params, describe, "images one by one", element)


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


columns, weights = map(cache, (columns_kernel, weight_kernel))
arrange, spread, separate = map(cache, (arrange_kernel, spread_kernel, separate_kernel))
