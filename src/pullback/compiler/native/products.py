"""Products of matrices: small ones by loops of a region's own, large ones by the kernel that eager code calls."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._thresholds import DEEPEST_SMALL_PRODUCT, MOST_IN_SMALL_PRODUCT, NARROW_PRODUCT
from pullback.compiler.native.loops import element_of
from pullback.compiler.native.pieces import Dot, Point, Window, fresh, row_major
from pullback.compiler.native.tables import Call, Open, Place, address_of, constant_table, loop
from pullback.kernels import workers
from pullback.kernels.jit.compiler.target import ELEMENTS
from pullback.kernels.jit.gemm import product as gemm
from pullback.kernels.jit.gemm.tile import block_size, tile_names
from pullback.kernels.jit.language.code import Code
from pullback.kernels.jit.small.products import ARGUMENTS, by_rows, rows_by_rows

MOST_CALLS = 1024
"""Products of one stack that are called one by one."""
LEAST_OF_A_STACK = 1 << 12
"""Multiplications of each product of a stack that are worth the packing."""


class Like:
    """What the plan of a product asks of an array."""

    def __init__(self, window: Window) -> None:
        self.dtype, self.itemsize = window.dtype, window.dtype.itemsize
        self.shape, self.ndim = window.shape, len(window.shape)
        self.strides = tuple([s * self.itemsize for s in window.strides])

    def __len__(self) -> int:
        return self.shape[0]


def kind_of(rows: int, depth: int, columns: int, count: int = 1) -> str:
    """Which code does some products of one shape: "small", "large", or "" for NumPy's."""
    work = rows * depth * columns
    if depth <= DEEPEST_SMALL_PRODUCT and count * work < MOST_IN_SMALL_PRODUCT and count <= MOST_CALLS:
        return "small"
    if rows == 1 or columns <= NARROW_PRODUCT or (count > 1 and work < LEAST_OF_A_STACK):
        return ""  # BLAS has loops for vectors
    return "large"


def most_threads() -> int:
    """How many threads have room for their panels: more are asked for rarely, and get a function of their own."""
    return max(workers.threads(), workers.usable_cores())


def panels_for(dtype: np.dtype[Any]) -> Window:
    """Room for what the threads pack."""
    return fresh(dtype, (most_threads() * block_size(ELEMENTS[dtype.name]),))


def takes_in(dot: Dot, point: Point) -> bool:
    """Make a sum that follows a product part of it: a bias. False if it is another kind of sum."""
    out, columns = dot.out, dot.out.shape[-1]
    if dot.added is not None or point.op != "add" or point.out.key() != out.key():
        return False
    if set(point.dtypes) != {out.dtype} or len([a for a in point.reads() if a.key() == out.key()]) != 1:
        return False
    (added,) = [a for a in point.args if type(a) is not Window or a.key() != out.key()]
    if type(added) is not Window or added.dtype != out.dtype or added.base.alias == out.base.alias:
        return False
    if added.strides[-1:] not in ((1,), (0,)) or (added.strides[-1] == 0 and columns > 1):
        return False
    if added.size == columns == added.shape[-1]:
        dot.added = Window(added.base, added.offset, (columns,), (1,))
    elif dot.panels is not None and added.shape == out.shape and len(out.shape) == 2:
        dot.added = added
    return dot.added is not None


def calls_of_product(code: Code, dot: Dot, place: Place) -> list[Call]:
    """The calls of a product, or of each one of a stack."""
    return small_products(code, dot, place) if dot.panels is None else large_products(code, dot, place)


def small_products(code: Code, dot: Dot, place: Place) -> list[Call]:
    """One call for each product: all of a region share a function."""
    element, size = element_of(dot.a), dot.a.dtype.itemsize
    (rows, depth), columns = dot.a.shape[-2:], dot.b.shape[-1]
    turned = dot.b.strides[-2:] != row_major(dot.b.shape[-2:])

    def describe(inner: Code) -> None:
        product = (rows_by_rows if turned else by_rows)(element)
        product(inner, *[inner.argument(i, type) for i, type in enumerate(ARGUMENTS)])

    name = loop(code, f"{'turned' if turned else 'plain'}_{element}", describe)
    out = []
    for index in np.ndindex(dot.out.shape[:-2]):
        places = []
        for window in (dot.a, dot.b, dot.out):
            base, start = place(window)
            moved = sum([i * s for i, s in zip(index, window.strides, strict=False)])
            places.append((base, start + moved * size))
        added = 0 if dot.added is None else place(dot.added)
        numbers = [rows, columns, depth, *dot.a.strides[-2:]]
        out.append(Call(name, [places[0], places[1], added, places[2], *numbers], 1, 0))
    return out


def stack_of(window: Window, index: tuple[int, ...], joins: bool) -> Window:
    """One stack of a window: its dimensions before the last three at an index, or all joined into the third last."""
    shape, strides = window.shape, window.strides
    if joins:
        return Window(window.base, window.offset, (prod(shape[:-2]), *shape[-2:]), strides[-3:])
    moved = sum([i * s for i, s in zip(index, strides, strict=False)])
    return Window(window.base, window.offset + moved, shape[len(index) :], strides[len(index) :])


def are_even(window: Window) -> bool:
    """Whether the matrices of a stack of stacks all lie the same step apart."""
    shape, strides = window.shape, window.strides
    return all([n == 1 or s == strides[d + 1] * shape[d + 1] for d, (n, s) in enumerate(zip(shape[:-3], strides))])


def large_products(code: Code, dot: Dot, place: Place) -> list[Call]:
    """The calls of the kernel for large products, as `gemm.multiply` makes them: mostly one."""
    operands = (dot.a, dot.b, dot.out)
    if len(dot.out.shape) < 4:
        return [large_product(code, *operands, dot.added, dot.panels, place)]
    joins = all([are_even(window) and 1 not in window.shape[:-2] for window in operands])
    indices = [()] if joins else list(np.ndindex(dot.out.shape[:-3]))
    return [
        large_product(code, *[stack_of(window, index, joins) for window in operands], None, dot.panels, place)
        for index in indices
    ]


def large_product(code: Code, a: Window, b: Window, out: Window, old: Any, panels: Any, place: Place) -> Call:
    """One call."""
    threads = min(workers.threads(), most_threads())
    element, _, _, given = gemm.plan(Like(a), Like(b), None if old is None else Like(old), threads)
    kernel, names = f"pullback_gemm_{a.dtype.name}", tile_names(element)
    *numbers, _, items, grain = given[4:]
    windows = [place(window) for window in (a, b, out, out if old is None else old, panels)]
    if type(code) is Open:
        code.kept += given[:4]
        tables = [table.ctypes.data for table in given[:4]]
        return Call(kernel, [*windows, *tables, *numbers, most_threads()], items, grain)
    code.declare(kernel, "void", "ptr", "i64", "i64", "i64")
    for name in names:
        code.declare(name, "void")
    tiles = constant_table(code, f"tiles_{element}", [address_of(name) for name in names])
    steps = [constant_table(code, f"steps_{table[1]}", table.tolist()) for table in given[:3]]
    return Call(kernel, [*windows, *steps, tiles, *numbers, most_threads()], items, grain)
