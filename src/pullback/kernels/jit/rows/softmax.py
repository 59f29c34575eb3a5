"""softmax, log_softmax and logsumexp as row programs: along the last dimension, and across memory along any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from pullback._thresholds import ROWS_SHARE
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language import elementary
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows import programs as rows
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, fold, scalar, share, spread, vector_of, write_row
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]


@cache
def along_rows(name: str, element: str) -> Callable[..., bool]:
    """The kernel `name` for rows that lie in memory one after the other. A nan makes its row's sum nan."""
    dtype, type = DTYPES[element], vector_of(element)

    def forward(code: Code, x: Value, out: Value, count: Value, length: Value) -> None:
        with code.loop(code.begin, code.end) as row:
            source, target = code.at(x, row * length, element), code.at(out, row * length, element)
            (top,) = fold(code, length, element, lambda i: (code.load(source, i, type),), ["top"])
            top = spread(code, finite(code, top) if name == "logsumexp" else top)

            def power(i: Value) -> Value:
                return elementary.exp(code, code.load(source, i, type) - top)

            if name == "softmax":

                def keep(i: Value) -> tuple[Value]:
                    value = power(i)
                    code.store(value, target, i)
                    return (value,)

                (total,) = fold(code, length, element, keep, ["add"], 2)
                factor = spread(code, rows.constant(code, 1.0, element) / total)
                write_row(code, length, element, lambda i: code.store(code.load(target, i, type) * factor, target, i))
            elif name == "logsumexp":
                (total,) = fold(code, length, element, lambda i: (power(i),), ["add"], 2)
                code.store(scalar(code, elementary.log, total) + code.lane(top, 0), out, row)
            else:
                (total,) = fold(code, length, element, lambda i: (power(i),), ["add"], 2)
                log = spread(code, scalar(code, elementary.log, total))
                write_row(
                    code, length, element, lambda i: code.store((code.load(source, i, type) - top) - log, target, i)
                )

    def backward(code: Code, grad: Value, output: Value, out: Value, count: Value, length: Value) -> None:
        with code.loop(code.begin, code.end) as row:
            g, y, target = (code.at(p, row * length, element) for p in (grad, output, out))

            def part(i: Value) -> tuple[Value]:
                value = code.load(g, i, type)
                return (value * code.load(y, i, type) if name == "softmax_backward" else value,)

            (total,) = fold(code, length, element, part, ["add"])
            total = spread(code, total)

            def write(i: Value) -> None:
                gi, yi = code.load(g, i, type), code.load(y, i, type)
                value = (gi - total) * yi if name == "softmax_backward" else gi - elementary.exp(code, yi) * total
                code.store(value, target, i)

            write_row(code, length, element, write)

    given = calls.array(dtype, "count*length")
    made = calls.array(dtype, "count" if name == "logsumexp" else "count*length", write=True)
    sizes = [calls.integer("count"), calls.integer("length")]
    if name.endswith("backward"):
        return calls.kernel(f"{name}_{dtype}", [given, given, made, *sizes], backward)
    return calls.kernel(f"{name}_{dtype}", [given, made, *sizes], forward)


@cache
def across(name: str, element: str) -> Callable[..., bool]:
    """The kernel `name` along a dimension that others follow in memory: each lane has a row of its own.

    An item is one vector of neighbouring rows of one outer index.
    """
    dtype, type, width = DTYPES[element], vector_of(element), lanes(element)

    def each(code: Code, length: Value, inner: Value, body: Callable[[Value, Value], None]) -> None:
        """Find the rows of every item and run `body(start, first)`, where `first` is the number of the first row."""
        blocks = (inner + (width - 1)) // width
        with code.loop(code.begin, code.end) as item:
            outer = item // blocks
            column = (item - outer * blocks) * width
            code.mask = code.tail_mask(inner - column, width)
            body(outer * length * inner + column, outer * inner + column)
            code.mask = None

    def reduce(code: Code, start: float, length: Value, step: Callable[[Value, Value], Value]) -> Value:
        """Run through the rows, one element of each at a time."""
        slot = code.variable(code.const(start, type))
        with code.loop(0, length) as k:
            slot.set(step(slot.get(), k))
        return slot.get()

    def forward(code: Code, x: Value, out: Value, n: Value, length: Value, inner: Value) -> None:
        def body(start: Value, first: Value) -> None:
            def load(k: Value) -> Value:
                return code.load(x, start + k * inner, type)

            top = reduce(code, -float("inf"), length, lambda t, k: rows.combine(code, "top", t, load(k)))
            top = finite(code, top) if name == "logsumexp" else top
            total = reduce(code, 0.0, length, lambda t, k: t + elementary.exp(code, load(k) - top))
            log = elementary.log(code, total)
            if name == "logsumexp":
                code.store(log + top, out, first)
                return
            with code.loop(0, length) as k:
                centred = load(k) - top
                value = elementary.exp(code, centred) / total if name == "softmax" else centred - log
                code.store(value, out, start + k * inner)

        each(code, length, inner, body)

    def backward(code: Code, grad: Value, output: Value, out: Value, n: Value, length: Value, inner: Value) -> None:
        def body(start: Value, first: Value) -> None:
            def load(k: Value) -> tuple[Value, Value]:
                return code.load(grad, start + k * inner, type), code.load(output, start + k * inner, type)

            def step(total: Value, k: Value) -> Value:
                g, y = load(k)
                return total + (g * y if name == "softmax_backward" else g)

            total = reduce(code, 0.0, length, step)
            with code.loop(0, length) as k:
                g, y = load(k)
                value = (g - total) * y if name == "softmax_backward" else g - elementary.exp(code, y) * total
                code.store(value, out, start + k * inner)

        each(code, length, inner, body)

    given = calls.array(dtype, "n*length*inner")
    made = calls.array(dtype, "n*inner" if name == "logsumexp" else "n*length*inner", write=True)
    sizes = [calls.integer("n"), calls.integer("length"), calls.integer("inner")]
    if name.endswith("backward"):
        return calls.kernel(f"{name}_across_{dtype}", [given, given, made, *sizes], backward)
    return calls.kernel(f"{name}_across_{dtype}", [given, made, *sizes], forward)


def finite(code: Code, top: Value) -> Value:
    """What is taken from every element: the largest, but nothing if that is infinite."""
    return code.select(code.abs(top) < float("inf"), top, code.const(0.0, top.type))


quickest: dict[Any, Callable[..., bool]] = {}
"""Kernels for rows by name and dtype: one look-up, which a softmax of a few numbers notices (1.42 of torch or 1.58)."""


def run(name: str, dim: int, x: Array, *more: Array) -> Array | None:
    """Kernel `name` (softmax, log_softmax or either's _backward) along a dimension; None if unsupported."""
    shape, dtype, size = x.shape, x.dtype, x.size
    ndim = len(shape)
    if size and (dim == -1 or dim == ndim - 1) and ndim:
        kernel = quickest.get((name, dtype)) or row_kernel(name, dtype)
        if kernel is None:
            return None
        length = shape[-1]
        count = size // length
        out = np.empty(shape, dtype)
        return (
            out if kernel(x, *more, out, count, length, count, count if size <= ROWS_SHARE else share(length)) else None
        )
    element = ELEMENTS.get(dtype.char)
    if element is None or not size or not -ndim <= dim < ndim:
        return None
    out = np.empty(shape, dtype)
    dim %= ndim
    length, inner = shape[dim], 1
    for other in shape[dim + 1 :]:
        inner *= other
    n = size // (length * inner)
    blocks = -(-inner // lanes(element))
    done = across(name, element)(x, *more, out, n, length, inner, n * blocks, share(length * lanes(element)))
    return out if done else None


def row_kernel(name: str, dtype: np.dtype[Any]) -> Callable[..., bool] | None:
    """The kernel for rows, or None for another dtype."""
    if dtype.char not in ELEMENTS:
        return None
    found = quickest[name, dtype] = along_rows(name, ELEMENTS[dtype.char])
    return found


def logsumexp(x: Array, dims: Sequence[int], keepdim: bool) -> Array | None:
    """The logarithm of the sum of exponentials over dimensions that follow each other; None if unsupported."""
    element, ndim = ELEMENTS.get(x.dtype.char), x.ndim
    first, last = min(dims), max(dims)
    if element is None or not x.size or last - first + 1 != len(dims) or not x.flags.c_contiguous:
        return None
    shape = x.shape
    out = np.empty((*shape[:first], *((1,) * len(dims) if keepdim else ()), *shape[last + 1 :]), x.dtype)
    length = prod(shape[first : last + 1])
    if last == ndim - 1:
        count = x.size // length
        kernel = along_rows("logsumexp", element)
        return out if kernel(x, out, count, length, count, count if x.size <= ROWS_SHARE else share(length)) else None
    inner = prod(shape[last + 1 :])
    n, width = x.size // (length * inner), lanes(element)
    items = n * -(-inner // width)
    return out if across("logsumexp", element)(x, out, n, length, inner, items, share(length * width)) else None
