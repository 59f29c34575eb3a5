"""Windows that slide over planes: maxima with their places, averages, and their derivatives.

One, two and three dimensions are all three here: the missing ones have size one. An item is a plane (of one sample's
channel). Neighbouring windows of a row stand in the lanes of a vector; with stride one their elements are neighbours
too, otherwise they are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, share, vector_of
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
NAMES = [f"{what}{dim}" for what in ("size", "count", "kernel", "stride", "padding", "dilation") for dim in "dhw"]
LARGEST = 2**31
"""Places in a plane are counted in 32 bits."""


class Geometry(NamedTuple):
    """The sizes of planes and windows as a kernel sees them, three of each."""

    size: list[Value]
    count: list[Value]
    kernel: list[Value]
    stride: list[Value]
    padding: list[Value]
    dilation: list[Value]


def geometry(values: tuple[Value, ...]) -> Geometry:
    """The integer arguments, by meaning."""
    return Geometry(*[list(values[i : i + 3]) for i in range(0, 18, 3)])


class Block:
    """Neighbouring windows of one row: where they begin, which exist, and their elements."""

    def __init__(self, code: Code, g: Geometry, element: str, unit: bool, depth: Value, row: Value, first: Value):
        self.code, self.g, self.element, self.unit = code, g, element, unit
        self.width = lanes(element)
        self.depth, self.row, self.first = depth, row, first
        self.exist = code.tail_mask(g.count[2] - first, self.width)
        numbers = ", ".join(f"i32 {lane}" for lane in range(self.width))
        self.type = f"<{self.width} x i32>"
        lane = Value(code, f"<{numbers}>", self.type)
        begin = code.splat(code.convert(first, "i32"), self.width) + lane
        stride, padding = (code.splat(code.convert(v, "i32"), self.width) for v in (g.stride[2], g.padding[2]))
        self.start = begin * stride - padding
        self.at = (depth * g.count[1] + row) * g.count[2] + first
        """Where the results of these windows stand in their plane."""

    @contextmanager
    def elements(self) -> Iterator[tuple[Value, Value, Value]]:
        """For each place of the window: the row's offset in the plane, the columns, and which lanes have an element."""
        code, g = self.code, self.g
        with code.loop(0, g.kernel[0]) as i:
            z = self.depth * g.stride[0] - g.padding[0] + i * g.dilation[0]
            with code.when((z >= 0) & (z < g.size[0])), code.loop(0, g.kernel[1]) as j:
                y = self.row * g.stride[1] - g.padding[1] + j * g.dilation[1]
                with code.when((y >= 0) & (y < g.size[1])), code.loop(0, g.kernel[2]) as k:
                    step = code.splat(code.convert(k * g.dilation[2], "i32"), self.width)
                    columns = self.start + step
                    size = code.splat(code.convert(g.size[2], "i32"), self.width)
                    # As unsigned numbers the columns left of the plane are huge.
                    inside = code.emit(f"icmp ult {columns}, {size.name}", f"<{self.width} x i1>")
                    yield (z * g.size[1] + y) * g.size[2], columns, inside & self.exist

    def load(self, plane: Value, offset: Value, columns: Value, inside: Value) -> Value:
        """One element of each window."""
        row = self.code.at(plane, offset, self.element)
        if self.unit:
            return self.code.load(row, self.leftmost(columns), vector_of(self.element), inside)
        return self.code.gather(row, columns, self.element, inside)

    def leftmost(self, columns: Value) -> Value:
        return self.code.convert(self.code.lane(columns, 0), "i64")


@contextmanager
def blocks(code: Code, g: Geometry, element: str, unit: bool) -> Iterator[Block]:
    """All windows of a plane."""
    with code.loop(0, g.count[0]) as depth, code.loop(0, g.count[1]) as row:
        with code.loop(0, g.count[2], lanes(element)) as first:
            yield Block(code, g, element, unit, depth, row, first)


def plane_of(code: Code, array: Value, item: Value, sizes: list[Value], element: str) -> Value:
    """Where a plane begins."""
    return code.at(array, item * (sizes[0] * sizes[1] * sizes[2]), element)


@cache
def kernel_for(name: str, element: str, unit: bool) -> Callable[..., bool]:
    """One of the kernels below; `unit` if windows are one column apart."""
    describe, arrays = {
        "max": (maxima, (("", "out"), ("int64", "out"))),
        "average": (averages, (("", "out"), ("", "divisors"))),
        "average_backward": (averages_backward, (("", "divisors"),)),
        "max_backward": (maxima_backward, (("int64", "out"),)),
    }[name]
    dtype = DTYPES[element]
    backward = name.endswith("backward")
    whole, windows = "*".join(["items", *NAMES[:3]]), "*".join(["items", *NAMES[3:6]])
    sizes = {"out": windows, "divisors": "*".join(NAMES[3:6])}
    # The plane (written in backward), the windows' own arrays, then all sizes.
    params = [calls.array(dtype, whole, write=backward)]
    if backward:
        params.append(calls.array(dtype, windows))
    for kind, size in arrays:
        params.append(calls.array(kind or dtype, sizes[size], write=not backward and size == "out"))
    params += [calls.integer("items"), *[calls.integer(n) for n in NAMES]]
    return calls.kernel(
        f"pool_{name}_{'unit_' * unit}{dtype}", params, lambda code, *given: describe(code, element, unit, *given)
    )


def maxima(
    code: Code, element: str, unit: bool, x: Value, out: Value, places: Value, items: Value, *sizes: Value
) -> None:
    """The maximum of each window, nan above all, and where it stands: the first, but the last nan."""
    g, type = geometry(sizes), vector_of(element)
    with code.loop(code.begin, code.end) as item:
        plane, to = plane_of(code, x, item, g.size, element), plane_of(code, out, item, g.count, element)
        where = plane_of(code, places, item, g.count, "i64")
        with blocks(code, g, element, unit) as block:
            best = code.variable(code.const(-float("inf"), type))
            place = code.variable(code.const(-1, block.type))
            with block.elements() as (offset, columns, inside):
                value = block.load(plane, offset, columns, inside)
                above = code.compare("ugt", value, best.get())
                # A nan is above a number, and above a nan before it; what comes after is not above it.
                kept = code.compare("uno", best.get(), best.get()) & code.compare("eq", value, value)
                unset = code.compare("lt", place.get(), 0)
                better = inside & (unset | (above & (kept ^ 1)))
                at = columns + code.splat(code.convert(offset, "i32"), block.width)
                best.set(code.select(better, value, best.get()))
                place.set(code.select(better, at, place.get()))
            code.store(best.get(), to, block.at, block.exist)
            code.store(code.convert(place.get(), "i64"), where, block.at, block.exist)


def averages(
    code: Code, element: str, unit: bool, x: Value, out: Value, divisors: Value, items: Value, *sizes: Value
) -> None:
    """The sum of each window divided by its divisor."""
    g, type = geometry(sizes), vector_of(element)
    with code.loop(code.begin, code.end) as item:
        plane, to = plane_of(code, x, item, g.size, element), plane_of(code, out, item, g.count, element)
        with blocks(code, g, element, unit) as block:
            total = code.variable(code.const(0.0, type))
            with block.elements() as (offset, columns, inside):
                total.set(total.get() + block.load(plane, offset, columns, inside))
            by = code.load(divisors, block.at, type, block.exist)
            code.store(total.get() / by, to, block.at, block.exist)


def clear(code: Code, plane: Value, g: Geometry, element: str) -> None:
    """Zeros in a whole plane."""
    zero = code.const(0.0, vector_of(element))
    count = g.size[0] * g.size[1] * g.size[2]
    code.vectors(0, count, lanes(element), lambda i: code.store(zero, plane, i), 4)


def averages_backward(
    code: Code, element: str, unit: bool, out: Value, grad: Value, divisors: Value, items: Value, *sizes: Value
) -> None:
    """Each window's gradient, shared among its elements. The lanes of one place of the window never meet."""
    g, type = geometry(sizes), vector_of(element)
    with code.loop(code.begin, code.end) as item:
        plane, given = plane_of(code, out, item, g.size, element), plane_of(code, grad, item, g.count, element)
        clear(code, plane, g, element)
        with blocks(code, g, element, unit) as block:
            by = code.load(divisors, block.at, type, block.exist)
            part = code.load(given, block.at, type, block.exist) / by
            with block.elements() as (offset, columns, inside):
                total = block.load(plane, offset, columns, inside) + part
                row = code.at(plane, offset, element)
                if unit:
                    code.store(total, row, block.leftmost(columns), inside)
                else:
                    code.scatter(total, row, columns, inside)


def maxima_backward(
    code: Code, element: str, unit: bool, out: Value, grad: Value, places: Value, items: Value, *sizes: Value
) -> None:
    """Each window's gradient, added where its maximum came from. A place outside the plane is left alone."""
    g = geometry(sizes)
    total = g.size[0] * g.size[1] * g.size[2]
    with code.loop(code.begin, code.end) as item:
        plane, given = plane_of(code, out, item, g.size, element), plane_of(code, grad, item, g.count, element)
        where = plane_of(code, places, item, g.count, "i64")
        clear(code, plane, g, element)
        with code.loop(0, g.count[0] * g.count[1] * g.count[2]) as i:
            place = code.load(where, i, "i64")
            with code.when((place >= 0) & (place < total)):
                code.store(code.load(plane, place, element) + code.load(given, i, element), plane, place)


# ------------------------------------------------------------------ calls


@lru_cache(256)
def plan(shape: Sizes, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    """The integer arguments of a kernel, whether the stride is one, and planes per share; None if too large."""
    ndim = len(kernel)
    sizes = shape[-ndim:]
    if ndim > 3 or prod(sizes) >= LARGEST or min(counts, default=0) <= 0:
        return None
    items = prod(shape[:-ndim])
    triples = [(*[fill] * (3 - ndim), *values) for fill, values in
               ((1, sizes), (1, counts), (1, kernel), (1, stride), (0, padding), (1, dilation))]  # fmt: skip
    work = prod(counts) * prod(kernel)
    return (items, *[n for triple in triples for n in triple]), triples[3][2] == 1, share(work)


@lru_cache(64)
def divisor_array(divisor: Any, counts: Sizes, char: str) -> Array:
    """One divisor for each window."""
    return np.full(counts, divisor, char)


def run(name: str, plane: Array, made: Any, *arrays: Array) -> bool:
    """Call a kernel with a plan."""
    sizes, unit, grain = made
    return kernel_for(name, ELEMENTS[plane.dtype.char], unit)(plane, *arrays, *sizes, sizes[0], grain)


@lru_cache(256)
def maximizer(
    shape: Sizes, dtype: Any, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> Callable[[Array], tuple[Array, Array] | None] | None:
    """What takes the maxima of arrays of a shape and dtype; None if NumPy must."""
    made = plan(shape, counts, kernel, stride, padding, dilation) if dtype.char in "fd" and prod(shape) else None
    if made is None:
        return None
    sizes, unit, grain = made
    compiled, items = kernel_for("max", ELEMENTS[dtype.char], unit), sizes[0]
    to = (*shape[: -len(kernel)], *counts)

    def call(x: Array) -> tuple[Array, Array] | None:
        out, places = np.empty(to, dtype), np.empty(to, np.int64)
        return (out, places) if compiled(x, out, places, *sizes, items, grain) else None

    return call


def max_pool(
    x: Array, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[Array, Array] | None:
    """The maximum of each window and its place; None if unsupported."""
    call = maximizer(x.shape, x.dtype, counts, kernel, stride, padding, dilation)
    return None if call is None else call(x)


def max_pool_backward(grad: Array, places: Array, sizes: Sizes) -> Array | None:
    """The gradient of the input of a max_pool, or of anything that picked places of planes."""
    ndim = len(sizes)
    ones, counts = (1,) * ndim, grad.shape[-ndim:]
    if grad.dtype.char not in "fd" or not grad.size:
        return None
    made = plan((*grad.shape[:-ndim], *sizes), counts, ones, ones, (0,) * ndim, ones)
    out = np.empty((*grad.shape[:-ndim], *sizes), grad.dtype)
    return out if made is not None and run("max_backward", out, made, grad, places) else None


def averager(
    shape: Sizes, dtype: Any, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, divisor: Any
) -> Callable[[Array], Array | None] | None:
    """What averages the windows of arrays of a shape and dtype; None if NumPy must."""
    ones = (1,) * len(kernel)
    made = plan(shape, counts, kernel, stride, padding, ones) if dtype.char in "fd" and prod(shape) else None
    if made is None:
        return None
    sizes, unit, grain = made
    compiled, items = kernel_for("average", ELEMENTS[dtype.char], unit), sizes[0]
    to, by = (*shape[: -len(kernel)], *counts), by_window(divisor, counts, dtype.char)

    def call(x: Array) -> Array | None:
        out = np.empty(to, dtype)
        return out if compiled(x, out, by, *sizes, items, grain) else None

    return call


def avg_pool(x: Array, counts: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, divisor: Any) -> Array | None:
    """The average of each window; None if unsupported."""
    call = averager(x.shape, x.dtype, counts, kernel, stride, padding, divisor)
    return None if call is None else call(x)


def avg_pool_backward(
    grad: Array, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, divisor: Any
) -> Array | None:
    """The gradient of the input of an avg_pool."""
    ndim = len(kernel)
    shape, counts = (*grad.shape[:-ndim], *sizes), grad.shape[-ndim:]
    made = plan(shape, counts, kernel, stride, padding, (1,) * ndim) if grad.dtype.char in "fd" and grad.size else None
    if made is None:
        return None
    out = np.empty(shape, grad.dtype)
    return out if run("average_backward", out, made, grad, by_window(divisor, counts, grad.dtype.char)) else None


def by_window(divisor: Any, counts: Sizes, char: str) -> Array:
    """Divisors as an array of the right dtype."""
    if isinstance(divisor, (int, float)):
        return divisor_array(divisor, counts, char)
    return np.ascontiguousarray(np.broadcast_to(divisor, counts), char)
