"""`memory_report`: what backward keeps alive, by op, by line of the program and by module.

Memory that several saved tensors share is counted once, for the oldest node that keeps it. Leaves (parameters, inputs)
live anyway, so what they take is told apart. See note: insight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pullback.insight.graph import graph_of, kept_by, node_name, op_name
from pullback.insight.locations import Location, location_of
from pullback.insight.report import Report, Section, counted, kind_text, location_json, location_text, size_text

SHOWN = 20
"""Rows of a table that are printed."""


def memory_report(output: Any) -> MemoryReport:
    """What the graph behind a tensor, or behind everything a model returned, keeps alive for backward.

    >>> import pullback as torch
    >>> x = torch.ones(256, 4, requires_grad=True)
    >>> print(torch.memory_report(x.exp().sin().sum()))  # doctest: +ELLIPSIS
    backward keeps 4.0 KiB alive, in 2 saved tensors
    ...
    """
    report = MemoryReport()
    for kept in kept_by(*graph_of(output)):
        node, saved = kept.node, kept.saved
        report.freed += saved.freed is not None
        report.packed += saved.packed and saved.array is None
        if saved.array is not None:
            kind = (saved.name, saved.shape, saved.dtype, kept.bytes, kept.leaf)
            report.items.append(Item(node_name(node), op_name(node), location_of(node), *kind))
    return report


@dataclass
class Item:
    """One saved tensor, and the bytes that are counted for it: none if an older node keeps the same memory."""

    node: str
    op: str
    place: Location | None
    name: str
    """Under which the node keeps it."""
    shape: list[int]
    dtype: str
    bytes: int
    leaf: bool
    """True if the memory belongs to a leaf, which lives anyway."""


@dataclass(repr=False, eq=False)
class MemoryReport(Report):
    """What a graph keeps alive; `by_op`, `by_line` and `by_module` add it up, largest first."""

    items: list[Item] = field(default_factory=list)
    freed: int = 0
    """Saved tensors that a backward has freed."""
    packed: int = 0
    """Saved tensors that hooks packed into something whose size is not known."""

    @property
    def total(self) -> int:
        """Bytes kept alive, leaves included."""
        return sum(item.bytes for item in self.items)

    @property
    def leaf_bytes(self) -> int:
        """Of these, the bytes of leaves, which live anyway."""
        return sum(item.bytes for item in self.items if item.leaf)

    @property
    def kept(self) -> int:
        """The rest: the bytes that live only for backward."""
        return self.total - self.leaf_bytes

    def added(self, keys: Callable[[Item], Iterable[str]]) -> list[tuple[str, int, int]]:
        """(what, bytes, saved tensors) for every key an item counts for, largest first."""
        table: dict[str, tuple[int, int]] = {}
        for item in self.items:
            for key in () if item.leaf else keys(item):
                size, count = table.get(key, (0, 0))
                table[key] = size + item.bytes, count + 1
        return sorted(((what, *sums) for what, sums in table.items()), key=lambda row: -row[1])

    @property
    def by_op(self) -> list[tuple[str, int, int]]:
        """(op, bytes, saved tensors), leaves left out."""
        return self.added(lambda item: [item.op])

    @property
    def by_line(self) -> list[tuple[str, int, int]]:
        """(file:line: its text, bytes, saved tensors), leaves left out."""
        return self.added(lambda item: [location_text(item.place) or "unknown line"])

    @property
    def by_module(self) -> list[tuple[str, int, int]]:
        """(module, bytes, saved tensors), leaves left out; a module counts with those inside it."""
        return self.added(lambda item: modules_around(item.place))

    def sections(self) -> Iterator[Section]:
        """The total, then the tables."""
        rest = self.kept
        notes = []
        if self.leaf_bytes:
            notes.append([f"and refers to {size_text(self.leaf_bytes)} of leaves, which live anyway"])
        if self.freed:
            notes.append([f"{counted(self.freed, 'saved tensor')} freed: backward has run"])
        if self.packed:
            notes.append([f"{counted(self.packed, 'saved tensor')} packed by hooks, of unknown size"])
        count = sum(not item.leaf for item in self.items)
        yield f"backward keeps {size_text(rest)} alive, in {counted(count, 'saved tensor')}", notes
        modules = self.by_module
        tables = [("by op", self.by_op), ("by line", self.by_line)]
        if [what for what, _, _ in modules] != ["outside of modules"]:
            tables.append(("by module, with the modules inside", modules))
        for heading, rows in tables:
            if rows:
                shown = [[size_text(size), f"{size / max(rest, 1):.0%}", what] for what, size, _ in rows[:SHOWN]]
                more = [["", "", f"and {len(rows) - SHOWN} more"]] if len(rows) > SHOWN else []
                yield heading, shown + more
        largest = sorted((item for item in self.items if item.bytes and not item.leaf), key=lambda item: -item.bytes)
        if largest:
            yield (
                "largest",
                [[size_text(i.bytes), f"{i.node}.{i.name}", kind_text(i.shape, i.dtype)] for i in largest[:5]],
            )

    def json(self) -> dict[str, Any]:
        """Everything as plain data."""
        tables = {"by_op": self.by_op, "by_line": self.by_line, "by_module": self.by_module}
        return {
            "total_bytes": self.total,
            "leaf_bytes": self.leaf_bytes,
            "freed": self.freed,
            "packed": self.packed,
            **{
                name: [{"what": what, "bytes": size, "tensors": count} for what, size, count in rows]
                for name, rows in tables.items()
            },
            "saved": [vars(item) | {"place": location_json(item.place)} for item in self.items],
        }


def modules_around(place: Location | None) -> list[str]:
    """The names of the modules an op ran in: net, net.layers, net.layers.0."""
    if place is None or not place.module:
        return ["outside of modules"]
    parts = place.module.split(" (")[0].split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts)) if end or parts[0] != "self"]
