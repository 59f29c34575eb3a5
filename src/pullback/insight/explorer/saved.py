"""What nodes keep for backward, as rows of a table; nothing is unpacked, so no hook runs."""

from __future__ import annotations

from typing import Any

from pullback.insight.explorer.numbers import describe
from pullback.insight.graph import saved_of


class Keeping:
    """Every saved array once, however many nodes share it, and how much memory they hold together."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        """The largest side of a heat map."""
        self.tensors: list[dict[str, Any]] = []
        self.number: dict[int, int] = {}
        self.held: list[Any] = []
        self.owners: dict[int, int] = {}

    def add(self, saved: Any) -> int:
        """The number of an array in `tensors`."""
        array = saved.array
        number = self.number.get(id(array))
        if number is None:
            number = self.number[id(array)] = len(self.tensors)
            self.held.append(array)  # an id means something only while its object lives
            self.tensors.append(describe(array, self.cells))
            owner = saved.memory
            self.owners[id(owner)] = int(owner.nbytes)
        return number

    @property
    def bytes(self) -> int:
        """The memory of all saved tensors, shared memory counted once."""
        return sum(self.owners.values())

    def close(self) -> None:
        """Let go of the arrays."""
        self.held.clear()
        self.number.clear()


def rows_of(node: Any, keeping: Keeping) -> tuple[list[dict[str, Any]], int]:
    """The saved values of a node, tensors first, and the bytes of the tensors."""
    rows: list[dict[str, Any]] = []
    size = 0
    for saved in saved_of(node):
        row: dict[str, Any] = {"name": saved.name}
        if saved.freed:
            row["freed"] = True
        if saved.packed:
            row["packed"] = True
        if saved.array is not None:
            row |= {"tensor": keeping.add(saved), "version": saved.version}
            size += int(saved.array.nbytes)
            if saved.stale and not saved.packed:
                row["now"] = saved.now
        rows.append(row)
    return rows + plain_rows(getattr(node, "fn", node)), size


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
