"""Convolutions with few outputs for each group (depthwise ones above all): weighted sums of rows, nothing is packed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pullback.kernels.jit.compiler import target
from pullback.kernels.jit.gemm.pack import smaller, vector
from pullback.kernels.jit.gemm.tile import DTYPES, ROW_BIAS
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls

TOGETHER = 4
"""Pieces of rows, or elements of a kernel, that are summed side by side: as many as an addition takes cycles."""


def rows_kernel(element: str) -> Callable[..., bool]:
    """c[row, window] = sum over elements of a[row, element] * window element (+ bias of the row)."""
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, a: Value, x: Value, c: Value, bias: Value, flags: Value, a_at: Value, x_at: Value,
                 pieces: Value, *numbers: Value) -> None:  # fmt: skip
        rows, depth, count, share, shares, a_row, a_group, x_group, c_row = numbers
        with code.loop(code.begin, code.end) as item:
            plane = item // shares
            begin = (item - plane * shares) * share
            end = smaller(code, begin + share, count)
            group = plane // rows
            weights = code.at(a, group * a_group + (plane - group * rows) * a_row, element)
            source, out = code.at(x, group * x_group, element), code.at(c, plane * c_row, element)
            start = code.variable(code.const(0, element))
            with code.when(code.compare("ne", flags & ROW_BIAS, 0)):
                start.set(code.load(bias, plane, element))
            first = code.splat(start.get(), lanes)
            with code.loop(begin, end, TOGETHER) as p:
                # The last piece may be computed twice.
                here = [smaller(code, p + i, end - 1) * 4 for i in range(TOGETHER)]
                lines = [code.at(source, code.load(pieces, i, "i64"), element) for i in here]
                masks = [code.tail_mask(code.load(pieces, i + 2, "i64"), lanes) for i in here]
                sums = [code.variable(first) for _ in here]
                with code.loop(0, depth) as k:
                    weight = code.splat(code.load(weights, code.load(a_at, k, "i64"), element), lanes)
                    place = code.load(x_at, k, "i64")
                    for sum, line, mask in zip(sums, lines, masks, strict=True):
                        sum.set(code.fma(code.load(line, place, type, mask), weight, sum.get()))
                for sum, i, mask in zip(sums, here, masks, strict=True):
                    code.store(sum.get(), out, code.load(pieces, i + 3, "i64"), mask)

    names = ("rows", "depth", "count", "share", "shares", "a_row", "a_group", "x_group", "c_row")
    table, source, result = calls.array("int64"), calls.array(dtype), calls.array(dtype, write=True)
    params = [source, source, result, source, calls.integer(), *[table] * 3, *map(calls.integer, names)]
    return calls.kernel(f"pullback_conv_rows_{dtype}", params, describe, "weighted sums of rows", element)


def taps_kernel(element: str) -> Callable[..., bool]:
    """c[row, element] = sum over windows of a[row, window] * window element, one row for each item."""
    lanes, type = target.lanes(element), vector(element)
    dtype = DTYPES[element]

    def describe(code: Code, a: Value, x: Value, c: Value, x_at: Value, first: Value, pieces: Value,
                 *numbers: Value) -> None:  # fmt: skip
        rows, depth, images, a_row, x_group, a_image = numbers
        with code.loop(code.begin, code.end) as item:
            given = code.at(a, item * a_row, element)
            source = code.at(x, item // rows * x_group, element)
            out = code.at(c, item * depth, element)
            with code.loop(0, depth, TOGETHER) as t:
                here = [smaller(code, t + i, depth - 1) for i in range(TOGETHER)]
                lines = [code.at(source, code.load(x_at, i, "i64"), element) for i in here]
                totals = [code.variable(code.const(0, type)) for _ in here]
                # Image by image: sums of many terms are rounded less in two steps.
                with code.loop(0, images) as image:
                    sums = [code.variable(code.const(0, type)) for _ in here]
                    begin, end = code.load(first, image, "i64"), code.load(first, image + 1, "i64")
                    grads = code.at(given, image * a_image, element)
                    with code.loop(begin, end) as p:
                        mask = code.tail_mask(code.load(pieces, p * 4 + 2, "i64"), lanes)
                        grad = code.load(grads, code.load(pieces, p * 4 + 1, "i64"), type, mask)
                        place = code.load(pieces, p * 4, "i64")
                        for sum, line in zip(sums, lines, strict=True):
                            sum.set(code.fma(code.load(line, place, type, mask), grad, sum.get()))
                    for total, sum in zip(totals, sums, strict=True):
                        total.set(total.get() + sum.get())
                for total, i in zip(totals, here, strict=True):
                    code.store(code.reduce(total.get(), "add"), out, i)

    names = ("rows", "depth", "images", "a_row", "x_group", "a_image")
    table, source, result = calls.array("int64"), calls.array(dtype), calls.array(dtype, write=True)
    params = [source, source, result, *[table] * 3, *map(calls.integer, names)]
    return calls.kernel(f"pullback_conv_taps_{dtype}", params, describe, "sums of products of rows", element)


rows, taps = cache(rows_kernel), cache(taps_kernel)
