"""Running sums, products and extremes along one dimension.

Each step waits for the one before it, so rows that lie side by side are walked four at a time, and dimensions that
others follow in memory by vectors. The order of the additions is NumPy's; float32 is summed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language import elementary
from pullback.kernels.jit.language.code import FLOATS, Code, Value, element_of
from pullback.kernels.jit.rows.programs import share
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
ELEMENTS = {"f": "float", "d": "double", "l": "i64"}
DTYPES = {"float": "float32", "double": "float64", "i64": "int64"}
TOGETHER = 4
"""How many rows are walked at once."""


def sums(code: Code, how: str, element: str, width: int) -> tuple[Value, Callable[[Value, Value], Value], str]:
    """Where a running sum or product starts, its step, and the type it is kept in."""
    kept = "double" if element == "float" else element
    type = f"<{width} x {kept}>" if width else kept
    start = code.const({"add": 0.0, "mul": 1.0}[how], type)
    return start, (lambda a, b: a + b) if how == "add" else (lambda a, b: a * b), kept


@cache
def along_rows(how: str, element: str) -> Callable[..., bool]:
    """A running sum (add) or product (mul) of rows, forwards or backwards. An item is four rows."""
    dtype = DTYPES[element]

    def describe(code: Code, x: Value, out: Value, count: Value, length: Value, first: Value, step: Value) -> None:
        start, combine, kept = sums(code, how, element, 0)

        def walk(rows: list[Value]) -> None:
            totals = [code.variable(start) for _ in rows]
            with code.loop(0, length) as k:
                place = first + k * step
                for row, total in zip(rows, totals, strict=True):
                    at = row * length + place
                    new = combine(total.get(), code.convert(code.load(x, at, element), kept))
                    total.set(new)
                    code.store(code.convert(new, element), out, at)

        with code.loop(code.begin, code.end) as item:
            row = item * TOGETHER
            whole = row + TOGETHER <= count
            with code.when(whole):
                walk([row + i for i in range(TOGETHER)])
            with code.when(whole ^ 1), code.loop(row, count) as single:
                walk([single])

    params = [calls.array(dtype, "count*length"), calls.array(dtype, "count*length", write=True)]
    params += [calls.integer(name) for name in ("count", "length", "first", "step")]
    return calls.kernel(f"running_{how}_{dtype}", params, describe)


@cache
def across(how: str, element: str) -> Callable[..., bool]:
    """The same along a dimension that others follow. An item is one vector of neighbours of one outer index."""
    dtype, width = DTYPES[element], lanes(element)

    def describe(
        code: Code, x: Value, out: Value, n: Value, length: Value, inner: Value, first: Value, step: Value
    ) -> None:
        start, combine, kept = sums(code, how, element, width)
        blocks = (inner + (width - 1)) // width
        with code.loop(code.begin, code.end) as item:
            outer = item // blocks
            column = (item - outer * blocks) * width
            code.mask = code.tail_mask(inner - column, width)
            total = code.variable(start)
            with code.loop(0, length) as k:
                at = (outer * length + (first + k * step)) * inner + column
                new = combine(total.get(), code.convert(code.load(x, at, f"<{width} x {element}>"), kept))
                total.set(new)
                code.store(code.convert(new, element), out, at)
            code.mask = None

    params = [calls.array(dtype, "n*length*inner"), calls.array(dtype, "n*length*inner", write=True)]
    params += [calls.integer(name) for name in ("n", "length", "inner", "first", "step")]
    return calls.kernel(f"running_{how}_across_{dtype}", params, describe)


def running(how: str, x: Array, dim: int, reverse: bool) -> Array | None:
    """The running sum (add) or product (mul) along a dimension; None if unsupported."""
    element, shape = ELEMENTS.get(x.dtype.char), x.shape
    ndim = len(shape)
    if element is None or not x.size or not -ndim <= dim < ndim:
        return None
    x, out = np.ascontiguousarray(x), np.empty(shape, x.dtype)
    dim %= ndim
    length, inner = shape[dim], prod(shape[dim + 1 :])
    count = x.size // (length * inner)
    first, step = (length - 1, -1) if reverse else (0, 1)
    if inner == 1:
        items = -(-count // TOGETHER)
        done = along_rows(how, element)(x, out, count, length, first, step, items, share(length * TOGETHER))
    else:
        items, grain = count * -(-inner // lanes(element)), share(length * lanes(element))
        done = across(how, element)(x, out, count, length, inner, first, step, items, grain)
    return out if done else None


@cache
def logsumexp_kernel(element: str) -> Callable[..., bool]:
    """The logarithm of running sums of exponentials, kept in double precision. An item is a vector of rows."""
    dtype, width = DTYPES[element], lanes("double")
    type, index = f"<{width} x double>", f"<{width} x i64>"

    def describe(code: Code, x: Value, out: Value, *sizes: Value) -> None:
        n, length, inner, first, step = sizes
        lane = Value(code, f"<{', '.join(f'i64 {i}' for i in range(width))}>", index)
        apart = code.splat(inner, width)
        with code.loop(code.begin, code.end) as item:
            code.mask = mask = code.tail_mask(n * inner - item * width, width)
            rows = code.splat(item * width, width) + lane
            outer = rows // apart
            start = outer * code.splat(length * inner, width) + (rows - outer * apart)
            total = code.variable(code.const(-float("inf"), type))
            with code.loop(0, length) as k:
                at = start + code.splat((first + k * step) * inner, width)
                value, so_far = code.convert(code.gather(x, at, element), "double"), total.get()
                below = -code.intrinsic("fabs", value - so_far)
                # The difference of two equal infinities would be nan.
                below = code.select(code.compare("eq", value, so_far), 0.0, below)
                added = elementary.log1p(code, elementary.exp(code, below))
                total.set(code.maximum(value, so_far) + added)
                code.scatter(code.convert(total.get(), element), out, at, mask)
            code.mask = None

    params = [calls.array(dtype, "n*length*inner"), calls.array(dtype, "n*length*inner", write=True)]
    params += [calls.integer(name) for name in ("n", "length", "inner", "first", "step")]
    return calls.kernel(f"running_logsumexp_{dtype}", params, describe)


def running_logsumexp(x: Array, dim: int, reverse: bool) -> Array | None:
    """The logarithm of the running sum of exponentials; None if unsupported, as for one long row."""
    element, shape = ELEMENTS.get(x.dtype.char), x.shape
    ndim = len(shape)
    if element not in FLOATS or not x.size or not -ndim <= dim < ndim or x.size < 4 * shape[dim]:
        return None
    x, out = np.ascontiguousarray(x), np.empty(shape, x.dtype)
    dim %= ndim
    length, inner = shape[dim], prod(shape[dim + 1 :])
    first, step = (length - 1, -1) if reverse else (0, 1)
    rows, width = x.size // length, lanes("double")
    numbers = rows // inner, length, inner, first, step
    done = logsumexp_kernel(element)(x, out, *numbers, -(-rows // width), share(16 * length * width))
    return out if done else None


# ------------------------------------------------------------------ extremes


@cache
def extremes_along_rows(largest: bool, element: str) -> Callable[..., bool]:
    """The extreme so far of rows and the last index at which it was reached; nan stays. An item is a row."""
    dtype, width = DTYPES[element], lanes(element)
    type = f"<{width} x {element}>"

    def describe(code: Code, x: Value, out: Value, places: Value, count: Value, length: Value) -> None:
        with code.loop(code.begin, code.end) as row:
            source, values = (code.at(p, row * length, element) for p in (x, out))
            indices = code.at(places, row * length, "i64")
            best, at = code.variable(code.load(source, 0, element)), code.variable(code.const(0, "i64"))

            def step(k: Value) -> None:
                value = code.load(source, k, element)
                better = reached(code, largest, value, best.get())
                best.set(code.select(better, value, best.get()))
                at.set(code.select(better, k, at.get()))
                code.store(best.get(), values, k)
                code.store(at.get(), indices, k)

            whole = length & -width
            with code.loop(0, whole, width) as first:
                vector = code.load(source, first, type)
                hits = reached(code, largest, vector, code.splat(best.get(), width))
                bits = code.emit(f"bitcast {hits} to i{width}", f"i{width}")
                none = code.compare("eq", bits, 0)
                # Far into a row most vectors hold no new extreme.
                with code.when(none):
                    code.store(code.splat(best.get(), width), values, first)
                    code.store(code.splat(at.get(), width), indices, first)
                with code.when(none ^ 1), code.loop(first, first + width) as k:
                    step(k)
            with code.loop(whole, length) as k:
                step(k)

    params = [calls.array(dtype, "count*length")]
    params += [calls.array(name, "count*length", write=True) for name in (dtype, "int64")]
    name = f"running_{'max' if largest else 'min'}_{dtype}"
    return calls.kernel(name, [*params, calls.integer("count"), calls.integer("length")], describe)


def reached(code: Code, largest: bool, value: Value, best: Value) -> Value:
    """Whether a value is an extreme: not beyond is not enough against nan, which nothing but nan replaces."""
    better = value >= best if largest else value <= best
    return better | code.compare("uno", value, value) if element_of(value.type) in FLOATS else better


@cache
def extremes_across(largest: bool, element: str) -> Callable[..., bool]:
    """The same along a dimension that others follow."""
    dtype, width = DTYPES[element], lanes(element)
    type, index = f"<{width} x {element}>", f"<{width} x i64>"

    def describe(code: Code, x: Value, out: Value, places: Value, n: Value, length: Value, inner: Value) -> None:
        blocks = (inner + (width - 1)) // width
        with code.loop(code.begin, code.end) as item:
            outer = item // blocks
            column = (item - outer * blocks) * width
            code.mask = code.tail_mask(inner - column, width)
            start = outer * length * inner + column
            best, at = code.variable(code.load(x, start, type)), code.variable(code.const(0, index))
            with code.loop(0, length) as k:
                value = code.load(x, start + k * inner, type)
                better = reached(code, largest, value, best.get())
                best.set(code.select(better, value, best.get()))
                at.set(code.select(better, code.splat(k, width), at.get()))
                code.store(best.get(), out, start + k * inner)
                code.store(at.get(), places, start + k * inner)
            code.mask = None

    params = [calls.array(dtype, "n*length*inner")]
    params += [calls.array(name, "n*length*inner", write=True) for name in (dtype, "int64")]
    params += [calls.integer(name) for name in ("n", "length", "inner")]
    return calls.kernel(f"running_{'max' if largest else 'min'}_across_{dtype}", params, describe)


def running_extreme(largest: bool, x: Array, dim: int) -> tuple[Array, Array] | None:
    """The extreme so far along a dimension and the last index at which it was reached; None if NumPy must do it."""
    element, shape = ELEMENTS.get(x.dtype.char), x.shape
    ndim = len(shape)
    if element is None or not x.size or not -ndim <= dim < ndim:
        return None
    x, out, places = np.ascontiguousarray(x), np.empty(shape, x.dtype), np.empty(shape, np.int64)
    dim %= ndim
    length, inner = shape[dim], prod(shape[dim + 1 :])
    count = x.size // (length * inner)
    if inner == 1:
        done = extremes_along_rows(largest, element)(x, out, places, count, length, count, share(length))
    else:
        items, grain = count * -(-inner // lanes(element)), share(length * lanes(element))
        done = extremes_across(largest, element)(x, out, places, count, length, inner, items, grain)
    return (out, places) if done else None
