"""Loops that follow each other and work on rows of their own: all of them for some rows, then for the next ones.

The layer norm of a token needs nothing of another token. So its sums and its loops are one call that threads share:
they wait for each other once, and what one loop writes the next one reads while it is in the first-level cache. What
only these loops see has no other place than that: each thread has memory for one block of rows.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback._thresholds import REGION_SHARE
from pullback.compiler.native.loops import Group, call_of_reduction
from pullback.compiler.native.pieces import Base, Reduce, Window, fresh
from pullback.compiler.native.products import most_threads
from pullback.compiler.native.tables import Call, Place, address_of, loop
from pullback.kernels.jit.gemm.pack import smaller
from pullback.kernels.jit.language.code import Code, Value

FEWEST = 16
"""Rows that are worth it."""
NEAR = 1 << 15
"""Bytes that stay in the first-level cache."""
BACK = 4
"""How many items back a row of loops may be that takes in another one."""
MOST = 32
"""Arrays of a loop."""
ALIGNED = 128
"""Bytes between what two threads write to."""


class Span(NamedTuple):
    """What a loop touches of some memory at one index of its outer dimension, in bytes."""

    alias: Any
    written: bool
    start: int
    step: int
    length: int


def span(window: Window, written: bool, step: int, others: list[tuple[int, int]]) -> Span | None:
    """The span of a window that moves by `step` elements; others are the sizes and steps of its inner dimensions."""
    if step < 0 or any([s < 0 for _, s in others]):
        return None
    size, length = window.dtype.itemsize, 1 + sum([(n - 1) * s for n, s in others])
    return Span(window.base.alias, written, window.offset * size, step * size, length * size)


def spans_of(item: Any) -> tuple[int, list[Span]] | None:
    """The outer size of a loop and what it touches; None if it has no rows."""
    found: list[Span | None]
    if type(item) is Group:
        body = item.planned()
        count = body.sizes[0]
        found = [
            span(window, k >= len(body.loads), body.steps[0][k],
                 [(n, steps[k]) for n, steps in zip(body.sizes[1:], body.steps[1:], strict=True)])
            for k, (window, _) in enumerate([*body.loads, *body.stores])
        ]  # fmt: skip
    elif type(item) is Reduce:
        x, out = item.x, item.out
        kept = [d for d in range(len(x.shape)) if d not in item.axes]
        outer = next((d for d in kept if x.shape[d] > 1), None)
        if outer is None:
            return None
        count, at = x.shape[outer], kept.index(outer)
        inner = [(n, s) for d, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)) if d != outer]
        found = [span(x, False, x.strides[outer], inner),
                 span(out, True, out.strides[at], [(x.shape[d], s) for d, s in zip(kept, out.strides, strict=True)
                                                   if d != outer])]  # fmt: skip
        if found[0] is None or found[0].length > found[0].step:  # sums of columns
            return None
    else:
        return None
    spans = [s for s in found if s is not None]
    return (count, spans) if len(spans) == len(found) else None


def are_apart(spans: list[Span]) -> bool:
    """Whether no row of what is written is touched by another row."""
    by_alias: dict[Any, list[Span]] = {}
    for one in spans:
        by_alias.setdefault(one.alias, []).append(one)
    for found in by_alias.values():
        if not any([one.written for one in found]):
            continue
        step = found[0].step
        if any([one.step != step for one in found]):
            return False
        if max([one.start + one.length for one in found]) - min([one.start for one in found]) > step:
            return False
    return True


class Rows:
    """Loops over the rows of one number of them."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.facts: list[tuple[int, list[Span]]] = []
        self.count = 0
        self.joined: list[Span] = []
        """What is touched at each row."""
        self.inside: dict[Any, tuple[int, int]] = {}
        """Memory that only these loops see: where it lies in that of a thread, and the bytes of a row."""
        self.each = 0
        self.local: Window | None = None
        """The memory of all threads."""

    def take(self, item: Any, facts: tuple[int, list[Span]]) -> bool:
        """Take one more loop in, if its rows are these rows."""
        wanted = [*self.facts, facts]
        count = min([outer for outer, _ in wanted])
        if count < FEWEST or len(facts[1]) > MOST or any([outer % count for outer, _ in wanted]):
            return False
        joined = []
        for outer, spans in wanted:
            many = outer // count
            joined += [s._replace(step=s.step * many, length=s.length + s.step * (many - 1)) for s in spans]
        if not are_apart(joined):
            return False
        self.items.append(item)
        self.facts, self.count, self.joined = wanted, count, joined
        return True

    def block(self) -> int:
        """How many rows are worked on together."""
        return max(NEAR // sum({(s.alias, s.start): s.length for s in self.joined}.values()), 1)

    def keep_inside(self, bases: list[Base]) -> None:
        """Make room for what nobody else sees: a block of rows for each thread."""
        at = 0
        for base in bases:
            spans = [s for s in self.joined if s.alias == base.alias]
            self.inside[base] = at, spans[0].step
            room = (self.block() - 1) * spans[0].step + max([s.start + s.length for s in spans])
            at += -(-room // ALIGNED) * ALIGNED
        self.each = at
        self.widen()

    def widen(self) -> None:
        """The same room for as many threads as there may be now."""
        if self.inside:
            self.local = fresh(np.dtype(np.uint8), (most_threads() * self.each,))

    def reads(self) -> list[Window]:
        """The windows read of what others see, too."""
        return [window for item in self.items for window in windows_of(item)[0] if window.base not in self.inside]

    def writes(self) -> list[Window]:
        """The windows written, and the memory of the threads."""
        found = [window for item in self.items for window in windows_of(item)[1] if window.base not in self.inside]
        return found if self.local is None else [*found, self.local]

    def call(self, code: Code, place: Place) -> Call:
        """The call of a function that calls the loops for one block of rows after the other."""

        def inner(window: Window) -> tuple[int, ...]:
            if window.base not in self.inside:
                return (*place(window), 0)
            assert self.local is not None
            (argument, start), (at, step) = place(self.local), self.inside[window.base]
            return argument, start + at + window.offset * window.dtype.itemsize, step

        room = MOST
        arguments: list[Any] = [self.block(), self.each, most_threads(), len(self.items)]
        for item in self.items:
            if type(item) is Group:
                made = item.call(code, inner, ranged=True)
            else:
                made = call_of_reduction(code, item, inner, ranged=True)
            arguments += [address_of(made.function), made.count // self.count, len(made.arguments)]
            for argument in made.arguments:  # a place, or a number
                arguments += [argument[:2], argument[2]] if type(argument) is tuple else [argument, 0]
            while room < len(made.arguments):
                room *= 2
        name = loop(code, f"rows_{room}", partial(walk, room=room))
        grain = max(REGION_SHARE * self.count // max([size_of(item) for item in self.items]), 1)
        return Call(name, arguments, self.count, grain)


def walk(code: Code, room: int) -> None:
    """Arguments: the rows of a block, the memory of a thread and for how many there is some, how many loops, and for
    each its function, its indices for each row, how many arguments it has, at most `room`, and these: an address or a
    number, and the bytes of a row if it is in the memory of a thread, where the first row of a block is the first."""
    given = Value(code, "%args", "ptr")
    rows, each, threads, loops = (code.load(given, i, "i64") for i in range(4))
    mine = smaller(code, code.worker, threads - 1) * each
    slots = code.stack(room, "i64")
    with code.loop(code.begin, code.end, rows) as first:
        last = smaller(code, first + rows, code.end)
        at = code.variable(code.const(4, "i64"))
        with code.loop(0, loops):
            here = code.at(given, at.get(), "i64")
            function, many, count = (code.load(here, i, "i64") for i in range(3))
            with code.loop(0, count) as i:
                address, step = (code.load(here, i * 2 + k, "i64") for k in (3, 4))
                moved = code.select(code.compare("eq", step, 0), 0, mine - first * step)
                code.store(address + moved, slots, i)
            pointer = code.emit(f"inttoptr {function} to ptr", "ptr")
            code.do(f"call void {pointer.name}({slots}, {first * many}, {last * many}, {code.worker})")
            at.set(at.get() + count * 2 + 3)


def size_of(item: Any) -> int:
    """How many elements a loop goes through."""
    return prod(item.shape) if type(item) is Group else item.x.size if type(item) is Reduce else 0


def in_rows(items: list[Any]) -> list[Any]:
    """The items of a region, with loops over the same rows in one. A loop may pass what it has nothing to do with."""
    if not any([size_of(item) > 2 * REGION_SHARE for item in items]):
        return items
    out: list[Any] = []
    for item in items:
        facts = spans_of(item)
        if facts is None or not taken_in(out, item, facts):
            out.append(item)
            if facts is not None:
                rows = Rows()
                if rows.take(item, facts):
                    out[-1] = rows
    large = [
        type(item) is Rows and len(item.items) > 1 and max([size_of(one) for one in item.items]) > 2 * REGION_SHARE
        for item in out
    ]
    if not any(large):
        return items
    return [one for item, keeps in zip(out, large, strict=True)
            for one in ([item] if keeps or type(item) is not Rows else item.items)]  # fmt: skip


def taken_in(out: list[Any], item: Any, facts: tuple[int, list[Span]]) -> bool:
    """Whether one of the last rows of loops takes an item in."""
    touched = {one.alias for one in facts[1]}
    written = {one.alias for one in facts[1] if one.written}
    for other in reversed(out[-BACK:]):
        if type(other) is Rows and other.take(item, facts):
            return True
        reads, writes = windows_of(other)
        if {w.base.alias for w in writes} & touched or {w.base.alias for w in reads} & written:
            return False
    return False


def windows_of(item: Any) -> tuple[list[Window], list[Window]]:
    """What an item reads and writes."""
    if type(item) is Group:
        return [w for w, _ in item.loads.values()], [w for w, _ in item.stores]
    return list(item.reads()), list(item.writes()) if hasattr(item, "writes") else [item.out]
