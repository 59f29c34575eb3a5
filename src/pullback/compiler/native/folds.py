"""Sums and extrema of large arrays: block by block, which threads share, then of the blocks.

What is summed up may be computed on the way, and is not stored then. Blocks are cut by size alone, so the result does
not depend on how many threads there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.native.loops import STARTS, Group, call_of_reduction, combined, described, element_of, places_in
from pullback.compiler.native.pieces import Point, Reduce, Window, fresh
from pullback.compiler.native.tables import Call, Open, Place, shared
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.expression import Node, order_of

BLOCK = 2048
"""Elements of a block: sums of as many round about as little as NumPy's, by halves."""
MOST = 8192
"""Blocks: larger arrays have larger ones."""
PARTS = 4
"""Sums of a block that do not wait for each other, and round less."""
TOGETHER = 7
"""Blocks that are worth a thread: an odd number, so that chunks may be cut between any two."""


class Fold:
    """A reduction of everything a group computes at one place."""

    def __init__(self, reduce: Reduce, group: Group, node: Node) -> None:
        self.reduce, self.group, self.node = reduce, group, node
        self.size = reduce.x.size
        self.block = max(BLOCK, -(-self.size // MOST // 64) * 64)
        # Sums of blocks are added in double precision.
        dtype = np.dtype(np.float64) if reduce.how == "add" else reduce.x.dtype
        self.partial = fresh(dtype, (-(-self.size // self.block),))
        self.total = fresh(dtype, reduce.out.shape)

    def reads(self) -> list[Window]:
        """The windows read."""
        return [window for window, _ in self.group.loads.values()]

    def writes(self) -> list[Window]:
        """The windows written."""
        return [*[window for window, _ in self.group.stores], self.partial, self.total, self.reduce.out]

    def calls(self, code: Code, place: Place) -> list[Call]:
        """One call for the blocks, one for what came of them."""
        how, element = self.reduce.how, self.reduce.x.dtype
        order = order_of(self.node, *[node for _, node in self.group.stores])
        body = self.group.body(order)
        key = f"{how} {described(order, type(code) is Open)} {order.index(self.node)} {places_in(order, body.loads)} "
        key += f"{places_in(order, body.stores)} {body.steps}"
        numbers: list[Any] = [self.size, self.block]
        if type(code) is Open:
            numbers += body.numbers()
        else:
            key += f" {self.size} {self.block}"

        def build(inner: Code, pointers: list[Value], begin: Any, end: Any, given: Any = None) -> None:
            *arrays, partial = pointers
            size, length = numbers if given is None else given[:2]
            loops = body if given is None else body.opened(given[2:])
            still = loops.still(inner, arrays)
            with inner.loop(begin, end) as block:
                first = block * length
                last = first + length
                last = inner.select(last < size, last, size)
                totals = [inner.variable(inner.const(STARTS[how], body.vector(element))) for _ in range(PARTS)]

                def take(i: Value, part: int) -> None:
                    values = loops.values(inner, arrays, i, still)
                    loops.store(inner, arrays, i, values)
                    value = values[id(self.node)]
                    if inner.mask is not None:
                        value = inner.select(inner.mask, value, inner.const(STARTS[how], value.type))
                    totals[part].set(combined(inner, how, totals[part].get(), value))

                width = body.lanes * PARTS
                whole = first + ((last - first) & -width)
                with inner.loop(first, whole, width) as i:
                    for part in range(PARTS):
                        take(i + part * body.lanes, part)
                inner.vectors(whole, last, body.lanes, lambda i: take(i, 0))
                parts = [total.get() for total in totals]
                while len(parts) > 1:
                    parts = [combined(inner, how, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
                reduced = inner.reduce(parts[0], how)
                found = inner.convert(reduced, element_of(self.partial))
                inner.store(found, partial, block)

        windows = [*[window for window, _ in (*body.loads, *body.stores)], self.partial]
        blocks = shared(code, key, windows, place, build, self.partial.size, TOGETHER, numbers)
        rest = call_of_reduction(code, Reduce(how, self.partial, [0], self.total), place)
        rounded = Group(self.total.shape)
        rounded.add(Point("positive", [self.total], [self.reduce.out.dtype] * 2, self.reduce.out))
        rounded.keep(lambda window: True)
        return [blocks, rest, rounded.call(code, place)]


def fold_of(reduce: Reduce, before: Any) -> Fold | None:
    """A reduction of everything as blocks; it takes in the group before it, if that computes what is reduced."""
    x = reduce.x
    if len(reduce.axes) != len(x.shape) or not x.is_row_major():
        return None
    if type(before) is Group and x.key() in before.values and before.shape == x.shape and before.is_flat():
        return Fold(reduce, before, before.values[x.key()][1])
    group = Group(x.shape)
    return Fold(reduce, group, group.operand(x, x.dtype))
