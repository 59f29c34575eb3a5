"""Loops that follow each other and work on rows of their own: all of them for some rows, then for the next ones.

The layer norm of a token needs nothing of another token. So its sums and its loops are one call that threads share:
they wait for each other once, and what one loop writes the next one reads while it is in the first-level cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback._thresholds import REGION_SHARE
from pullback.compiler.native.loops import Call, Group, Place, address_of, call_of_reduction, loop
from pullback.compiler.native.pieces import Reduce, Window
from pullback.kernels.jit.gemm.pack import smaller
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.expression import order_of

FEWEST = 16
"""Rows that are worth it."""
NEAR = 1 << 15
"""Bytes that stay in the first-level cache."""
BACK = 4
"""How many items back a row of loops may be that takes in another one."""


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
        body = item.body(order_of(*[node for _, node in item.stores]))
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

    def take(self, item: Any, facts: tuple[int, list[Span]]) -> bool:
        """Take one more loop in, if its rows are these rows."""
        wanted = [*self.facts, facts]
        count = min([outer for outer, _ in wanted])
        if count < FEWEST or any([outer % count for outer, _ in wanted]):
            return False
        joined = []
        for outer, spans in wanted:
            many = outer // count
            joined += [s._replace(step=s.step * many, length=s.length + s.step * (many - 1)) for s in spans]
        if not are_apart(joined):
            return False
        self.items.append(item)
        self.facts, self.count = wanted, count
        self.bytes = sum({(s.alias, s.start): s.length for s in joined}.values())
        return True

    def reads(self) -> list[Window]:
        """The windows read."""
        return [window for item in self.items for window in (
            [w for w, _ in item.loads.values()] if type(item) is Group else item.reads())]  # fmt: skip

    def writes(self) -> list[Window]:
        """The windows written."""
        return [window for item in self.items for window in (
            [w for w, _ in item.stores] if type(item) is Group else [item.out])]  # fmt: skip

    def call(self, code: Code, place: Place, work: int) -> Call:
        """The call of a function that calls the loops for one block of rows after the other."""
        arguments: list[Any] = [max(NEAR // self.bytes, 1), len(self.items)]
        for item in self.items:
            if type(item) is Group:
                made = item.call(code, place, ranged=True)
            else:
                made = call_of_reduction(code, item, place, ranged=True)
            arguments += [address_of(made.function), made.count // self.count, len(made.arguments), *made.arguments]
        return Call(loop(code, "rows", walk), arguments, self.count, max(REGION_SHARE * self.count // work, 1))


def walk(code: Code) -> None:
    """Arguments: the rows of a block, how many loops, and for each its function, its indices for each row, how many
    arguments it has, and these."""
    given = Value(code, "%args", "ptr")
    rows, loops = code.load(given, 0, "i64"), code.load(given, 1, "i64")
    with code.loop(code.begin, code.end, rows) as first:
        last = smaller(code, first + rows, code.end)
        at = code.variable(code.const(2, "i64"))
        with code.loop(0, loops):
            here = code.at(given, at.get(), "i64")
            function, many, count = (code.load(here, i, "i64") for i in range(3))
            pointer = code.emit(f"inttoptr {function} to ptr", "ptr")
            passed = code.at(here, 3, "i64")
            code.do(f"call void {pointer.name}({passed}, {first * many}, {last * many}, {code.worker})")
            at.set(at.get() + count + 3)


def in_rows(items: list[Any], work_of: Any) -> list[Any]:
    """The items of a region, with loops over the same rows in one. A loop may pass what it has nothing to do with."""
    out: list[Any] = []
    for item in items:
        facts = spans_of(item)
        if facts is None or not taken_in(out, item, facts):
            out.append(item)
            if facts is not None:
                rows = Rows()
                if rows.take(item, facts):
                    out[-1] = rows
    large = [type(item) is Rows and len(item.items) > 1 and work_of(item) > REGION_SHARE // 4 for item in out]
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
