"""The graph as one HTML file: the page, its style, its program and its data, with nothing to fetch."""

from __future__ import annotations

import json
import linecache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from pullback.insight.explorer.collect import Graph
from pullback.insight.locations import place_text

KINDS = ("op", "view", "function", "leaf")
BLOCK = 256
"""Details travel in blocks of so many entries; the page reads a block when one of its entries is looked at."""
AROUND = 3
"""Lines of source shown before and after the one a node was made on."""


class Numbered:
    """Texts by number: most nodes share a few."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.number.setdefault(text, len(self.number))

    @property
    def texts(self) -> list[str]:
        """The texts in the order of their numbers."""
        return list(self.number)


def page(graph: Graph) -> str:
    """The whole page."""
    return Template(read("page.html")).substitute(
        title=escape(graph.title),
        style=read("style.css"),
        layout=read("layout.js"),
        app=read("app.js") + read("places.js") + read("panel.js"),
        data="\n".join(data_blocks(graph)),
    )


def read(name: str) -> str:
    """A file of the page."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def data_blocks(graph: Graph) -> list[str]:
    """Script elements that hold data: what the first picture needs, then the details in blocks."""
    out = [block("data", outline(graph)), block("more", {"formulas": graph.formulas, "context": context(graph)})]
    details = [detail(entry) for entry in graph.entries]
    for name, items in (("d", details), ("t", graph.keeping.tensors)):
        out += [block(f"{name}{i // BLOCK}", items[i : i + BLOCK]) for i in range(0, len(items), BLOCK)]
    return out


def block(name: str, value: Any) -> str:
    """A value as JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f'<script type="application/json" id="{name}">{text.replace("<", chr(92) + "u003c")}</script>'


def outline(graph: Graph) -> dict[str, Any]:
    """What is drawn: columns with one value for each entry, and the edges."""
    names, sizes, modules = Numbered(), Numbered(), Numbered()
    entries = graph.entries
    edges = [(i, to, k) for i, entry in enumerate(entries) for to, _, k in entry.edges]
    came = {(source, k, i): size for i, entry in enumerate(entries) for source, k, size, _ in entry.arrived}
    return {
        "block": BLOCK,
        "ran": graph.ran,
        "roots": graph.roots,
        "saved": graph.bytes,
        "name": [names(entry.name) for entry in entries],
        "kind": [KINDS.index(entry.kind) for entry in entries],
        "size": [sizes(entry.size) for entry in entries],
        "module": [modules(entry.module) for entry in entries],
        "call": [entry.call for entry in entries],
        "line": [entry.line for entry in entries],
        "bytes": [entry.bytes for entry in entries],
        "norm": [entry.norm for entry in entries],
        "label": {i: entry.label for i, entry in enumerate(entries) if entry.label},
        "hooks": {i: len(entry.hooks) for i, entry in enumerate(entries) if entry.hooks},
        "errors": {i: entry.error for i, entry in enumerate(entries) if entry.error},
        "from": [a for a, _, _ in edges],
        "to": [b for _, b, _ in edges],
        "flow": [came.get((a, k, b)) for a, b, k in edges],
        "names": names.texts,
        "sizes": sizes.texts,
        "modules": modules.texts,
        "calls": [[call.key, call.path, call.kind, call.which, call.parent] for call in graph.calls],
        "lines": [
            [
                place_text(line.file, line.line),
                line.line,
                line.function,
                line.text,
                place_text(line.file, line.line, True),
            ]
            for line in graph.lines
        ],
    }


def detail(entry: Any) -> dict[str, Any]:
    """What is shown of an entry once it is chosen."""
    out = {
        "outputs": entry.outputs,
        "sequence": entry.sequence,
        "saved": entry.saved,
        "hooks": entry.hooks,
        "gradient": entry.gradient,
        "arrived": entry.arrived,
    }
    return {name: value for name, value in out.items() if value}


def context(graph: Graph) -> list[Any]:
    """[number of the first line, lines] around each line of the program."""
    out = []
    for line in graph.lines:
        first = max(1, line.line - AROUND)
        text = [linecache.getline(line.file, nr).rstrip("\n") for nr in range(first, line.line + AROUND + 1)]
        while len(text) > line.line - first + 1 and not text[-1]:
            text.pop()
        out.append([first, text])
    return out
