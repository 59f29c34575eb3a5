"""The graph behind a tensor as plain data: what each step is, what it saved, where it was made, where gradients go.

Entries stand in the order the engine would run them, each leaf right after its last gradient has arrived, so the
number of an entry is also its step in the backward pass.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from typing import Any

from pullback.autograd.api import GradientEdge, as_tuple, key_of
from pullback.autograd.engine import schedule, target_of
from pullback.autograd.node import Node, parts
from pullback.insight.explorer.calls import Call, Calls
from pullback.insight.explorer.formula import formulas_of
from pullback.insight.explorer.saved import Keeping, rows_of
from pullback.insight.graph import Kept, kept_by
from pullback.insight.locations import Location, location_of, place_text
from pullback.insight.names import Names


@dataclass(slots=True)
class Entry:
    """One step of the backward pass: a node, or a leaf that receives its gradient."""

    name: str
    kind: str
    """op, view, function (a custom one) or leaf."""
    outputs: list[list[Any]]
    """[shape, dtype] of each output of the op."""
    label: str = ""
    """The variable's name, where one was found."""
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    """(entry, output of its op, input of this op) for each gradient that goes out."""
    sequence: int = -1
    line: int = -1
    module: str = ""
    call: int = -1
    """The innermost call of a module it was made in, by number."""
    saved: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0
    """What it keeps alive, counted as `memory_report` counts it."""
    hooks: list[str] = field(default_factory=list)
    gradient: list[Any] | None = None
    """What arrived in the end, one description per output."""
    norm: Any = None
    arrived: list[list[Any]] = field(default_factory=list)
    """[from entry, input, norm of what came, norm of the sum so far] in the order of arrival."""
    error: str = ""

    @property
    def title(self) -> str:
        """What is written on the box."""
        return f"{self.label} = {self.name}" if self.label and self.kind != "leaf" else self.label or self.name

    @property
    def size(self) -> str:
        """Shape and dtype of the first output."""
        return size_text(*self.outputs[0]) if self.outputs else ""


@dataclass(slots=True)
class Line:
    """A line of a program."""

    file: str
    line: int
    function: str
    text: str


@dataclass(slots=True)
class Graph:
    """Everything the page, the picture and the DOT file are made of."""

    title: str
    entries: list[Entry]
    roots: list[int]
    lines: list[Line]
    formulas: dict[str, list[list[str]]]
    keeping: Keeping
    calls: list[Call] = field(default_factory=list)
    ran: bool = False
    """True once gradients were computed."""

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(from, to) for each gradient that travels."""
        return [(i, edge[0]) for i, entry in enumerate(self.entries) for edge in entry.edges]

    @property
    def bytes(self) -> int:
        """What the whole graph keeps alive for backward, without its leaves."""
        return sum(entry.bytes for entry in self.entries)


def size_text(shape: Iterable[int], dtype: str) -> str:
    """float32 [2, 3]."""
    return f"{dtype} [{', '.join(map(str, shape))}]"


def ordered(roots: list[tuple[Any, int, Any]]) -> list[Any]:
    """Nodes and leaves in the order the engine runs them."""
    nodes, waiting = schedule(roots)
    out: list[Any] = []
    for root, _, _ in roots:
        if root in waiting:
            waiting[root] -= 1
            if not waiting[root]:
                out.append(root)
    for node in nodes:
        out.append(node)
        for edge in node.edges:
            target = None if edge is None else target_of(edge)
            if target in waiting:
                waiting[target] -= 1
                if not waiting[target]:
                    out.append(target)
    return out


def roots_of(loss: Any) -> tuple[Any, ...]:
    """Tensors and gradient edges where a backward pass may begin."""
    roots = (GradientEdge(loss, 0),) if isinstance(loss, Node) else as_tuple(loss)
    for i, root in enumerate(roots):
        if key_of(root)[0] is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn\nThere is no graph to "
                "explore. Give a tensor computed from one with requires_grad=True, or see pullback.why_no_grad."
            )
    return roots


class Places:
    """The places of nodes; those made by the same calls are looked up once."""

    def __init__(self) -> None:
        self.known: dict[Any, Location | None] = {}

    def of(self, node: Any) -> Location | None:
        """Where a node was made."""
        key = [getattr(node, "_code", None), getattr(node, "_offset", 0)]
        scope = getattr(node, "_scope", None)
        while scope is not None:  # its third item refers weakly to a module, which may be gone
            code, offset, module, scope, *_ = scope
            key += (code, offset, id(module))
        found = tuple(key)
        if found not in self.known:
            self.known[found] = location_of(node)
        return self.known[found]


def collect(roots: tuple[Any, ...], names: Names, title: str, cells: int | None = None) -> tuple[Graph, list[Any]]:
    """The graph as data, and the nodes and leaves its entries stand for."""
    starts = [(*key_of(root), None) for root in roots]
    targets = ordered(starts)
    number = {id(target): i for i, target in enumerate(targets)}
    lines: dict[tuple[str, int, str], int] = {}
    places = Places()
    keeping = Keeping((24 if len(targets) < 3000 else 8) if cells is None else cells)
    graph = Graph(title, [], [number[id(start[0])] for start in starts], [], {}, keeping)
    parameters: dict[int, str] = {}
    kept: dict[Any, list[Kept]] = {}
    for one in kept_by([t for t in targets if isinstance(t, Node)], [t for t in targets if not isinstance(t, Node)]):
        kept.setdefault(one.node, []).append(one)
    for target in targets:
        leaf = not isinstance(target, Node)
        entry = leaf_entry(target) if leaf else node_entry(target)
        entry.label = names.of(target) or parameters.get(id(target), "")
        graph.entries.append(entry)
        if leaf:
            continue
        edges = [(i, *parts(edge)) for i, edge in enumerate(target.edges) if edge is not None]
        entry.edges = [(number[id(target_of(to))], nr, i) for i, to, nr in edges]
        entry.saved = rows_of(target, kept.get(target, []), keeping)
        entry.bytes = sum(one.bytes for one in kept.get(target, ()) if not one.leaf)
        if entry.name not in graph.formulas:
            graph.formulas[entry.name] = formulas_of(target)
        place = places.of(target)
        if place is not None and place.module:
            entry.module = place.module
            parameters |= parameters_of(target, place.module.partition(" ")[0])
        if place is not None:
            key = (place.file, place.line, place.function)
            entry.line = lines.setdefault(key, len(lines))
            if entry.line == len(graph.lines):
                graph.lines.append(Line(*key, place.text))
    calls = Calls()
    for entry, target in zip(reversed(graph.entries), reversed(targets), strict=True):
        if entry.kind != "leaf":
            entry.call = calls.of(target)
    calls.fold()
    graph.calls = calls.all
    settle_leaves(graph, calls)
    return graph, targets


def parameters_of(node: Any, path: str) -> dict[int, str]:
    """The names of the parameters a node takes from the module it ran in."""
    ends = [target_of(edge) for edge in node.edges if edge is not None]
    leaves = {id(end) for end in ends if not isinstance(end, Node)}
    scope = node._scope if leaves else None
    while scope is not None:
        module = scope[2] and scope[2]()
        if module is not None:
            return {id(p): f"{path}.{name}" for name, p in module.named_parameters(recurse=False) if id(p) in leaves}
        scope = scope[3]
    return {}


def node_entry(node: Any) -> Entry:
    """A node without its surroundings."""
    op = getattr(node, "op", None)
    kind = "function" if hasattr(node, "_forward_cls") else "view" if getattr(op, "view", False) else "op"
    metas = [node.output_meta(nr) for nr in range(len(node.metas) if node.multiple else 1)]
    outputs = [[list(shape or ()), "" if dtype is None else dtype.name] for shape, dtype in metas]
    return Entry(
        type(node).__name__, kind, outputs, sequence=getattr(node, "sequence_nr", -1), hooks=hooks_of(node.hooks)
    )


def leaf_entry(leaf: Any) -> Entry:
    """A leaf."""
    array, extra = leaf._array, leaf._extra
    node = None if extra is None or extra.accumulator is None else extra.accumulator()
    hooks = [] if node is None else hooks_of(node.hooks)
    if extra is not None:
        for word, table in (("tensor hook", extra.hooks), ("after accumulation", extra.post_accumulate)):
            hooks += [f"{word}: {name_of(fn)}" for fn in (table or {}).values()]
    return Entry("AccumulateGrad", "leaf", [[list(array.shape), array.dtype.name]], hooks=hooks)


def hooks_of(hooks: Any) -> list[str]:
    """The hooks of a node, in words."""
    if hooks is None:
        return []
    out = [f"tensor hook: {name_of(fn)}" for _, table in hooks.tensor_pre for fn in table.values()]
    out += ["keeps its gradient (retain_grad)"] * len(hooks.retain)
    for word, tables in (("before the node", hooks.pre), ("after the node", hooks.post)):
        out += [f"{word}: {name_of(fn)}" for table in tables for fn in table.values()]
    return out


def name_of(function: Any) -> str:
    """A function and where it is written."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or repr(function)
    return name if code is None else f"{name} ({place_text(code.co_filename, code.co_firstlineno, short=True)})"


def settle_leaves(graph: Graph, calls: Calls) -> None:
    """A leaf belongs where all its users are: to their line, and to the call they have in common."""
    users: dict[int, list[Entry]] = {}
    for entry in graph.entries:
        for to, _, _ in entry.edges:
            if graph.entries[to].kind == "leaf":
                users.setdefault(to, []).append(entry)
    for number, entries in users.items():
        leaf, first = graph.entries[number], entries[0]
        if all(entry.line == first.line for entry in entries):
            leaf.line = first.line
        for shared in zip(*map(calls.around, {entry.call for entry in entries}), strict=False):
            if len(set(shared)) > 1:
                break
            leaf.call = shared[0]
        if leaf.call >= 0:
            call = calls.all[leaf.call]
            leaf.module = f"{call.path} ({call.kind})"


def user_frame() -> Any:
    """The frame of the program that called, the first outside of this library."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pullback":
        frame = frame.f_back
    return frame


def forget(frame: Any) -> None:
    """Drop the copy of a function's variables that reading them left in its frame (before Python 3.13)."""
    if frame is not None and frame.f_code.co_flags & CO_OPTIMIZED and type(frame.f_locals) is dict:
        frame.f_locals.clear()
