"""Graphs drawn with fewer boxes: the steps of a module, or of a line, as one.

A module is one box for each time it ran: steps that follow each other, so no path leaves a box and comes back. A line
is one box however often it ran; in a loop, gradients then travel back up, and the picture shows the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pullback.insight.explorer.collect import Entry, Graph
from pullback.insight.locations import place_text


@dataclass(slots=True)
class Box:
    """What is drawn: one step, or several that belong together."""

    title: str
    more: str
    kind: str
    entries: list[Entry] = field(default_factory=list)


def boxes_of(graph: Graph, group: str | None) -> tuple[list[Box], list[tuple[int, int]]]:
    """The boxes in the order of their first steps, and the edges between different ones, each once."""
    if group not in (None, "module", "line"):
        raise ValueError(f'group must be "module", "line" or None, not {group!r}')
    boxes: list[Box] = []
    of: list[int] = []
    users: dict[int, set[int]] = {}
    known: dict[str, int] = {}
    last = ""
    for number, entry in enumerate(graph.entries):
        around = users.get(number, set())
        if entry.kind == "leaf":  # a leaf stands with its users, if they are together
            where = min(around) if len(around) == 1 and boxes[min(around)].kind == "group" else -1
        else:
            key, title, more = key_of(graph, entry, group)
            if group == "module" and key != last:
                known.pop(key, None)
            last = key
            where = known.get(key, -1)
            if key and where < 0:
                where = known[key] = len(boxes)
                boxes.append(Box(title, more, "group"))
        if where < 0:
            where = len(boxes)
            boxes.append(Box(cut(entry.title, 48), entry.size, entry.kind))
        boxes[where].entries.append(entry)
        of.append(where)
        for to, _, _ in entry.edges:
            users.setdefault(to, set()).add(where)
    for box in boxes:
        if len(box.entries) == 1:
            (entry,) = box.entries
            box.title, box.more, box.kind = cut(entry.title, 48), entry.size, entry.kind
        else:
            box.more = f"{box.more} · {len(box.entries)} nodes" if box.more else f"{len(box.entries)} nodes"
    edges = dict.fromkeys((of[a], of[b]) for a, b in graph.edges if of[a] != of[b])
    return boxes, sorted(edges, key=lambda edge: edge[0])


def key_of(graph: Graph, entry: Entry, group: str | None) -> tuple[str, str, str]:
    """What a step belongs to: a key, a title and a second line; an empty key if it stands alone."""
    if group == "module":
        if entry.call < 0:
            return "", "", ""
        call = graph.calls[entry.call]
        return call.key, call.path, " · ".join(filter(None, (call.kind, call.which)))
    if group == "line" and entry.line >= 0:
        line = graph.lines[entry.line]
        where = place_text(line.file, line.line, short=True)
        text = cut(line.text, 36)
        return where, text or where, where if text else ""
    return "", "", ""


def cut(text: str, length: int) -> str:
    """A text that is not too long for its box."""
    return text if len(text) <= length else text[: length - 1] + "…"
