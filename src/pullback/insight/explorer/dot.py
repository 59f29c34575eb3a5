"""The graph in Graphviz's language: nodes in the clusters of their modules, edges in the direction of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.insight.explorer.collect import Entry, Graph

LOOKS = {
    "op": 'fillcolor="#e8effb" color="#6f93d6"',
    "view": 'fillcolor="#eef0f3" color="#a3adba"',
    "function": 'fillcolor="#f1e9fb" color="#a783dd"',
    "leaf": 'fillcolor="#e4f4e8" color="#5fae78" shape=box style="rounded,filled" penwidth=1.5',
}


def quoted(text: str) -> str:
    """A string as DOT writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot(graph: Graph) -> str:
    """The whole graph."""
    tree: dict[str, Any] = {}
    for number, entry in enumerate(graph.entries):
        branch = tree
        for part in entry.module.partition(" ")[0].split(".") if entry.module else ():
            branch = branch.setdefault(part, {})
        branch.setdefault("", []).append((number, entry))
    lines = [f"digraph {quoted(graph.title)} {{"]
    lines.append('  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11]; edge [color="#8a95a3"];')
    lines += cluster(tree, "")
    for number, entry in enumerate(graph.entries):
        for to, nr, k in entry.edges:
            label = f" [taillabel={k}]" if len(entry.edges) > 1 else ""
            lines.append(f"  n{number} -> n{to}{label};" if not nr else f"  n{number} -> n{to} [headlabel={nr}];")
    return "\n".join([*lines, "}\n"])


def cluster(tree: dict[str, Any], path: str) -> Iterator[str]:
    """The nodes of a module, then the modules inside it."""
    pad = "  " * (path.count(".") + (2 if path else 1))
    for number, entry in tree.get("", ()):
        yield f"{pad}n{number} [{LOOKS[entry.kind]} label={label(entry)}];"
    for name, branch in tree.items():
        if name:
            inner = f"{path}.{name}" if path else name
            yield f"{pad}subgraph {quoted('cluster_' + inner)} {{"
            yield f'{pad}  label={quoted(inner)}; style=rounded; color="#d8a63c"; fontname="Helvetica";'
            yield from cluster(branch, inner)
            yield f"{pad}}}"


def label(entry: Entry) -> str:
    """Title and size."""
    return quoted("\n".join(filter(None, (entry.title, entry.size))))
