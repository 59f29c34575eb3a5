"""The explorer: the graph behind a tensor as a page to look at, a picture, or a DOT file."""

from __future__ import annotations

import webbrowser
from html import escape
from pathlib import Path
from typing import Any

from pullback.insight.explorer.collect import Graph, collect, forget, roots_of, user_frame
from pullback.insight.explorer.dot import dot
from pullback.insight.explorer.page import outline, page
from pullback.insight.explorer.run import run, starting
from pullback.insight.explorer.svg import svg
from pullback.insight.names import Names
from pullback.insight.report import counted

__all__ = ["Exploration", "explore"]


class Exploration:
    """The graph behind a tensor as it was when `explore` looked: plain data, which keeps no tensor alive."""

    def __init__(self, graph: Graph, path: Path | None) -> None:
        self.graph = graph
        self.path = path

    def html(self) -> str:
        """One self-contained page."""
        return page(self.graph)

    def svg(self, group: str | None = None) -> str:
        """A picture; `group` may be "module" or "line" to draw each as one box."""
        return svg(self.graph, group)

    def dot(self) -> str:
        """The graph for Graphviz, with a cluster for each module."""
        return dot(self.graph)

    def json(self) -> dict[str, Any]:
        """Nodes and edges as columns of plain values."""
        return outline(self.graph)

    def _repr_html_(self) -> str:
        style = "width:100%;height:620px;border:1px solid #ccc;border-radius:6px"
        return f'<iframe srcdoc="{escape(self.html())}" style="{style}" title="{escape(self.graph.title)}"></iframe>'

    def __repr__(self) -> str:
        leaves = sum(entry.kind == "leaf" for entry in self.graph.entries)
        where = "" if self.path is None else f" in {self.path}"
        nodes = counted(len(self.graph.entries) - leaves, "node")
        return f"<graph of {self.graph.title}: {nodes}, {counted(leaves, 'leaf')}{where}>"


def explore(
    loss: Any,
    path: str | Path | None = "graph.html",
    open: bool = False,
    backward: bool = True,
    gradient: Any = None,
    names: Any = None,
    title: str | None = None,
    group: str | None = None,
) -> Exploration:
    """Write the graph behind a tensor to a file: a page (.html), a picture (.svg) or Graphviz's language (.dot).

    The page needs no network and no server. It shows every backward step with its formula, what it saved, the line
    that made it and the gradient that reaches it, and plays the backward pass in the engine's own order.

    Looking changes nothing: the graph is kept, `.grad` is not touched, hooks do not run.

    Args:
        loss: a tensor, several, or a `grad_fn`.
        path: where to write; None writes nothing.
        open: show the file in a browser.
        backward: compute gradients; False only looks at the graph.
        gradient: what backward starts with; ones if not given.
        names: what to call the leaves: a module, or a dict from name to tensor. The caller's variables are known.
        title: the heading; the caller's name for the tensor if not given.
        group: in a picture, "module" or "line" to draw each as one box.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> loss = (x * x).sum()
        >>> torch.explore(loss, path=None)
        <graph of loss: 2 nodes, 1 leaf>
    """
    target = None if path is None else Path(path)
    if target is not None and target.suffix not in WRITERS:
        raise ValueError(f"explore() writes .html, .svg and .dot files, not {target.name!r}")
    roots = roots_of(loss)
    starts = starting(roots, gradient) if backward else None
    frame = user_frame()
    own, known = title_of(loss, frame), Names({} if names is None else names, frame)
    forget(frame)
    graph, targets = collect(roots, known, title or own or "graph")
    if own and len(graph.roots) == 1:
        graph.entries[graph.roots[0]].label = own
    if starts is not None:
        run(graph, targets, starts)
    graph.keeping.close()
    found = Exploration(graph, target)
    if target is not None:
        target.write_text(WRITERS[target.suffix](found, group), encoding="utf-8")
        if open:
            webbrowser.open(target.resolve().as_uri())
    return found


def title_of(loss: Any, frame: Any) -> str:
    """What the caller calls the tensor."""
    scopes = () if frame is None else (frame.f_locals, frame.f_globals)
    named = (name for scope in scopes for name, value in scope.items() if value is loss and name[0] != "_")
    return next(named, "")


WRITERS: dict[str, Any] = {
    ".html": lambda found, group: found.html(),
    ".htm": lambda found, group: found.html(),
    ".svg": lambda found, group: found.svg(group),
    ".dot": lambda found, group: found.dot(),
    ".gv": lambda found, group: found.dot(),
}
"""How each kind of file is written."""
