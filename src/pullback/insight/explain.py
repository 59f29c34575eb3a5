"""`explain`: how a tensor came to be, who will receive gradients, and what is kept alive for it. See note: insight."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pullback import Tensor
from pullback.autograd import who
from pullback.autograd.engine import target_of
from pullback.autograd.node import Node, parts
from pullback.insight.compiled import CompiledReport
from pullback.insight.graph import Saved, graph_of, node_name, op_name, saved_of
from pullback.insight.locations import Location, location_of, place_text
from pullback.insight.memory import MemoryReport, memory_report
from pullback.insight.names import Names
from pullback.insight.report import Report, Section, counted, kind_text, location_json, location_text, size_text

SHOWN = 12
"""Ops, leaves and saved tensors that are printed of each."""


def explain(tensor: Any, names: Any = None) -> Explanation | CompiledReport:
    """Say how a tensor came to be, who will receive gradients from it, and what is kept alive for that. Of what
    `torch.compile` made: its programs, guards and kernels, and why it runs as it is written where it does.

    Leaves are called what the program calls them: `names` is a module or a dict of tensors; else the variables of the
    caller are looked through, and the parameters of modules among them.

    >>> import pullback as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> print(torch.explain(loss).leaves[0].name)
    x
    """
    if hasattr(tensor, "_compiled"):
        return CompiledReport(tensor._compiled)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"explain expects a Tensor, but got {type(tensor).__name__}")
    known = Names(names, sys._getframe(1))
    nodes, leaves = graph_of(tensor)
    made = Explanation(tensor, known.of(tensor), tensor.grad_fn, nodes)
    if made.node is not None:
        made.operands = [operand(edge, known) for edge in made.node.edges]
    made.leaves = [Leaf(known.of(leaf), leaf, count) for leaf, count in leaves.items()]
    made.memory = memory_report(tensor)
    made.stale = [(node, saved) for node in nodes for saved in saved_of(node) if saved.stale]
    made.hooks = [*hooks_on(nodes, made.leaves, known)]
    made.retained = [(known.of(node, nr) or node_name(node)) for node in nodes for nr in kept_outputs(node)]
    made.story = [*made.tell()]
    return made


@dataclass
class Leaf:
    """One leaf that gradients will reach."""

    name: str | None
    tensor: Tensor
    edges: int
    """How many gradients will be added up for it."""


@dataclass(repr=False, eq=False)
class Explanation(Report):
    """What `explain` found out."""

    tensor: Tensor
    name: str | None
    node: Node | None
    """The node that made the tensor; None for a leaf."""
    nodes: list[Node]
    """Everything backward would run, newest first."""
    operands: list[str] = field(default_factory=list)
    """What the op was given, in words."""
    leaves: list[Leaf] = field(default_factory=list)
    memory: MemoryReport = field(default_factory=MemoryReport)
    hooks: list[str] = field(default_factory=list)
    retained: list[str] = field(default_factory=list)
    """The computed tensors that will keep their gradient."""
    stale: list[tuple[Node, Saved]] = field(default_factory=list)
    """Saved tensors that were written over since: backward will fail."""
    story: list[Section] = field(default_factory=list)

    @property
    def op(self) -> str | None:
        """The op that made the tensor; None for a leaf."""
        return None if self.node is None else op_name(self.node)

    @property
    def place(self) -> Location | None:
        """Where that was."""
        return None if self.node is None else location_of(self.node)

    @property
    def freed(self) -> bool:
        """True if a backward has freed what this one would need."""
        return self.memory.freed > 0

    def sections(self) -> Iterator[Section]:
        """The story, as things were when it was asked for."""
        yield from self.story

    def tell(self) -> Iterator[Section]:
        """The story, newest first."""
        yield from self.origin()
        if self.node is None:
            return
        yield f"backward will run {counted(len(self.nodes), 'op')}, newest first", self.history() + more(self.nodes)
        yield (
            self.reached(),
            [
                [leaf.name or "(unnamed)", kind_text(leaf.tensor.shape, leaf.tensor.dtype), *notes_on(leaf)]
                for leaf in self.leaves[:SHOWN]
            ]
            + more(self.leaves),
        )
        yield from self.kept()

    def origin(self) -> Iterator[Section]:
        """What the tensor is and what made it."""
        tensor, subject = self.tensor, self.name or "this tensor"
        kind = kind_text(tensor.shape, tensor.dtype)
        if self.node is None:
            yield f"{subject}: {kind}, {leaf_text(tensor)}", []
            return
        nr = f", its output {tensor.output_nr}" if tensor.output_nr else ""
        rows = [[f"operand {i}", text] for i, text in enumerate(self.operands)]
        if self.place is not None:
            rows.insert(0, ["at", location_text(self.place)])
            if self.place.module:
                rows.insert(1, ["in module", self.place.module])
        yield f"{subject}: {kind}, made by {self.op} ({node_name(self.node)}{nr})", rows

    def history(self) -> list[list[str]]:
        """The newest ops: name, shape, module if there are any, and the line where it changes."""
        newest = [(node, location_of(node)) for node in self.nodes[:SHOWN]]
        inside = any(spot is not None and spot.module for _, spot in newest)
        rows, before = [], None
        for node, spot in newest:
            text = location_text(spot)
            module = [(spot and spot.module) or ""] if inside else []
            rows.append([op_name(node), shape_of(node), *module, "" if text == before else text])
            before = text
        return rows

    def reached(self) -> str:
        """How many leaves gradients will reach."""
        if not self.leaves:
            return "gradients will reach no leaf"
        return f"gradients will reach {counted(len(self.leaves), 'leaf')}"

    def kept(self) -> Iterator[Section]:
        """Memory, hooks, and what stands in the way."""
        memory = self.memory
        sizes = [[size_text(size), what] for what, size, _ in memory.by_op[:5]]
        if memory.leaf_bytes:
            sizes.append([size_text(memory.leaf_bytes), "leaves, which live anyway"])
        yield f"kept alive for backward: {size_text(memory.kept)}", sizes
        if self.hooks:
            yield counted(len(self.hooks), "hook"), [[hook] for hook in self.hooks]
        if self.retained:
            yield "keep their gradient though they are no leaves", [[name] for name in self.retained]
        if self.freed:
            by = next(s.freed_at for n in self.nodes for s in saved_of(n) if s.freed)
            rows = [] if by is None else [["at", location_text(by)]]
            yield "backward has run already and freed what it needs: retain_graph=True would have kept it", rows
        if self.stale:
            yield (
                "backward will fail: written over since they were saved",
                [
                    [
                        f"{node_name(n)}.{s.name}",
                        f"saved at version {s.version}, now {s.now}",
                        location_text(location_of(n)),
                    ]
                    for n, s in self.stale[:SHOWN]
                ],
            )

    def json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "name": self.name,
            "shape": list(self.tensor.shape),
            "dtype": str(self.tensor.dtype),
            "requires_grad": self.tensor.requires_grad,
            "op": self.op,
            "node": None if self.node is None else node_name(self.node),
            "place": location_json(self.place),
            "operands": self.operands,
            "ops": len(self.nodes),
            "leaves": [
                {"name": leaf.name, "shape": list(leaf.tensor.shape), "dtype": str(leaf.tensor.dtype)}
                for leaf in self.leaves
            ],
            "kept_bytes": self.memory.kept,
            "hooks": self.hooks,
            "retained": self.retained,
            "freed": self.freed,
            "stale": [
                {
                    "node": node_name(n),
                    "name": s.name,
                    "saved_version": s.version,
                    "version": s.now,
                    "saved_at": location_json(location_of(n)),
                    "written_at": location_json(s.written_at),
                }
                for n, s in self.stale
            ],
        }


# ------------------------------------------------------------------ in words


def more(items: list[Any]) -> list[list[str]]:
    """The last row of a long list."""
    return [[f"and {len(items) - SHOWN:,} more"]] if len(items) > SHOWN else []


def shape_of(node: Any) -> str:
    """The shape of a node's first output."""
    shape = node.output_meta(0)[0]
    return "" if shape is None else str(list(shape))


def written(node: Any, saved: Saved) -> list[str]:
    """Where a tensor was saved and where it was written over."""
    return [
        f"saved at {location_text(location_of(node))}",
        f"written at {location_text(saved.written_at) or 'an unknown line'}",
    ]


def leaf_text(tensor: Tensor) -> str:
    """What a tensor without history is."""
    if tensor.requires_grad:
        has = "it has one" if tensor._grad is not None else "it has none yet"
        return f"a leaf that collects gradients in .grad; {has}"
    if tensor._view is not None and tensor._view.base.requires_grad:
        return "a view made where grad mode was off: no gradient flows through it"
    if tensor.is_inference():
        return "made in inference mode: it can take no part in autograd"
    what, place = who.detached_at(tensor) or (None, None)
    if what is not None:
        return f"no history: cut off by {what.rstrip(',')} at {location_text(place) or 'an unknown line'}"
    return "no history and requires_grad=False: nothing to differentiate"


def operand(edge: Any, known: Names) -> str:
    """One input of an op, by where its gradient goes."""
    if edge is None:
        return "wants no gradient"
    target, (_, nr) = target_of(edge), parts(edge)
    name = known.of(target, nr)
    if isinstance(target, Tensor):
        return f"{name or 'a leaf'}, leaf {kind_text(target.shape, target.dtype)}"
    shape, dtype = target.output_meta(nr)
    kind = "" if shape is None else f" {kind_text(shape, dtype)}"
    return f"{name + ', ' if name else ''}result of {op_name(target)}{kind}"


def notes_on(leaf: Leaf) -> list[str]:
    """What is special about a leaf."""
    notes = []
    if leaf.edges > 1:
        notes.append(f"sum of {leaf.edges} gradients")
    if not leaf.tensor.requires_grad:
        notes.append("requires_grad was switched off since: it will get none")
    elif leaf.tensor._grad is not None:
        notes.append("added to the .grad it has")
    return ["; ".join(notes)] if notes else []


def kept_outputs(node: Any) -> list[int]:
    """The outputs of a node whose tensors retain their gradient."""
    return [] if node.hooks is None else [nr for nr, reference in node.hooks.retain.items() if reference() is not None]


def hooks_on(nodes: list[Node], leaves: list[Leaf], known: Names) -> Iterator[str]:
    """Every hook backward will run, with what it hangs on."""
    for node in nodes:
        if node.hooks is not None:
            for nr, table in node.hooks.tensor_pre:
                owner = known.of(node, nr) or f"the result of {op_name(node)}"
                yield from (f"{called(hook)} on {owner}" for hook in table.values())
            for when, tables in (("before", node.hooks.pre), ("after", node.hooks.post)):
                yield from (f"{called(h)} {when} {node_name(node)}" for table in tables for h in table.values())
    for leaf in leaves:
        extra, name = leaf.tensor._extra, leaf.name or "a leaf"
        if extra is not None:
            yield from (f"{called(hook)} on {name}" for hook in (extra.hooks or {}).values())
            yield from (
                f"{called(hook)} after {name} has its gradient" for hook in (extra.post_accumulate or {}).values()
            )


def called(hook: Any) -> str:
    """A hook by its name and line."""
    code = getattr(hook, "__code__", None)
    name = getattr(hook, "__name__", type(hook).__name__)
    return name if code is None else f"{name} ({place_text(code.co_filename, code.co_firstlineno, short=True)})"
