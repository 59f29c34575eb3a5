"""Reports: what the tools of this package answer, as text, as plain data and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from pullback.insight.locations import place_text

Section = tuple[str, Sequence[Sequence[Any]]]
"""A heading and the rows of cells below it."""


class Report:
    """An answer in sections; printing shows the text, a notebook the tables, `json()` gives plain dicts and lists."""

    def sections(self) -> Iterator[Section]:
        """Headings and rows, in reading order."""
        raise NotImplementedError(f"{type(self).__name__} has no sections")

    def json(self) -> dict[str, Any]:
        """The answer as dicts, lists, numbers and strings."""
        raise NotImplementedError(f"{type(self).__name__} has no json")

    def __str__(self) -> str:
        lines = []
        for heading, rows in self.sections():
            lines.append(heading)
            lines += ["  " + line for line in aligned(rows)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        for heading, rows in self.sections():
            parts.append(f"<p><b>{escape(heading)}</b></p>")
            if rows:
                body = "".join("<tr>" + "".join(map(cell_html, row)) + "</tr>" for row in rows)
                parts.append(f"<table>{body}</table>")
        return "".join(parts)


def cell_html(cell: Any) -> str:
    """A cell of a table; sizes and numbers end where those above and below end."""
    side = "right" if is_size(str(cell)) or isinstance(cell, (int, float)) else "left"
    return f"<td style='text-align:{side}'>{escape(str(cell))}</td>"


def is_size(text: str) -> bool:
    """True for 1.5 KiB and 12%."""
    return text.endswith((" B", "iB", "%"))


def aligned(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows as lines whose columns begin below each other; a cell that looks like a size ends where the others end."""
    texts = [[str(cell) for cell in row] for row in rows]
    count = max(map(len, texts), default=0)
    widths = [max((len(row[i]) for row in texts if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in texts:
        cells = [t.rjust(w) if is_size(t) else t.ljust(w) for t, w in zip(row, widths, strict=False)]
        lines.append("  ".join(cells).rstrip())
    return lines


def size_text(count: int) -> str:
    """A number of bytes as people say it: 512 B, 1.5 KiB."""
    if count < 1024:
        return f"{count} B"
    step = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**step:.1f} {'KMGT'[step - 1]}iB"


def counted(number: int, what: str) -> str:
    """1 op, 2 ops; 1 leaf, 2 leaves."""
    many = what[:-1] + "ves" if what.endswith("f") else what + "s"
    return f"{number:,} {what if number == 1 else many}"


def kind_text(shape: Any, dtype: Any) -> str:
    """A shape and dtype in a few characters: float32 [3, 4]."""
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def location_text(place: Any) -> str:
    """A line of source without the folder of its file: train.py:12: loss = net(x).sum()"""
    if place is None:
        return ""
    return place_text(place.file, place.line, short=True) + (f": {place.text}" if place.text else "")


def location_json(place: Any) -> dict[str, Any] | None:
    """A line of source as plain data."""
    if place is None:
        return None
    return {name: getattr(place, name) for name in ("file", "line", "function", "text", "module")}
