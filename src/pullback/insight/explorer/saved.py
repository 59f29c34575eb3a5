"""What nodes keep for backward, as rows of a table; nothing is unpacked, so no hook runs."""

from __future__ import annotations

from typing import Any

from pullback.insight.explorer.numbers import describe
from pullback.insight.graph import Kept


class Keeping:
    """Every saved array once, however many nodes share it."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        """The largest side of a heat map."""
        self.tensors: list[dict[str, Any]] = []
        self.number: dict[int, int] = {}
        self.held: list[Any] = []

    def add(self, saved: Any) -> int:
        """The number of an array in `tensors`."""
        array = saved.array
        number = self.number.get(id(array))
        if number is None:
            number = self.number[id(array)] = len(self.tensors)
            self.held.append(array)  # an id means something only while its object lives
            self.tensors.append(describe(array, self.cells))
        return number

    def close(self) -> None:
        """Let go of the arrays."""
        self.held.clear()
        self.number.clear()


def rows_of(node: Any, kept: list[Kept], keeping: Keeping) -> list[dict[str, Any]]:
    """The saved values of a node, tensors first; `shared` says whose the memory of one is that is not counted here."""
    rows: list[dict[str, Any]] = []
    for one in kept:
        saved = one.saved
        row: dict[str, Any] = {"name": saved.name}
        if saved.freed:
            row["freed"] = True
        if saved.packed:
            row["packed"] = True
        if saved.array is not None:
            row |= {"tensor": keeping.add(saved), "version": saved.version}
            if one.leaf or not one.bytes:
                row["shared"] = "a leaf" if one.leaf else "an older node"
            if saved.stale and not saved.packed:
                row["now"] = saved.now
        rows.append(row)
    return rows + plain_rows(getattr(node, "fn", node))


def plain_rows(node: Any) -> list[dict[str, Any]]:
    """The arguments and shapes a node keeps."""
    op: Any = getattr(node, "op", None)
    rows = []
    for name in getattr(op, "saved", ()):
        if name in op.tensors or name in op.outputs or op.hides(name):
            continue
        text = repr(getattr(node, f"{name}_", None))
        rows.append({"name": name, "text": text if len(text) < 200 else text[:200] + "…"})
    return rows
