"""A backward pass that only looks: gradients are computed on the retained graph and kept here, not in `.grad`.

Hooks do not run, since a hook may do anything; so gradients are those the nodes themselves compute.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import from_numpy
from pullback.autograd.api import grads_tuple, root_edges, shape_and_dtype, starting_grads
from pullback.autograd.engine import target_of
from pullback.autograd.fit import fit
from pullback.autograd.leaf import dtype_of_grad
from pullback.autograd.node import Node, parts
from pullback.autograd.stepper import scene
from pullback.autograd.task import Task
from pullback.insight.explorer.collect import Graph
from pullback.insight.explorer.numbers import describe, short


class LeafEnd:
    """What a gradient must look like to fit a leaf."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    def output_meta(self, nr: int) -> Any:
        """Shape and dtype."""
        wanted = dtype_of_grad(self.leaf)
        return self.leaf._array.shape, None if wanted is None else wanted.numpy


def run(graph: Graph, targets: list[Any], starts: list[tuple[Any, int, Any]]) -> None:
    """Fill in the gradients: what arrives at each entry, in the engine's order."""
    task = Task(True, False, {})  # with captures, nothing below may accumulate into leaves
    task.order, task.waiting, task.needed = [t for t in targets if isinstance(t, Node)], {}, set(targets)
    with scene(task):
        Pass(graph, targets).go(starts)
    graph.ran = True


class Pass:
    """One walk over the entries."""

    def __init__(self, graph: Graph, targets: list[Any]) -> None:
        self.graph, self.targets = graph, targets
        self.sums: list[Any] = [None] * len(targets)
        """What has arrived so far: for each entry one array, or a list for nodes with several outputs."""

    def go(self, starts: list[tuple[Any, int, Any]]) -> None:
        """From the roots to the leaves."""
        for root, (_, nr, start) in zip(self.graph.roots, starts, strict=True):
            self.arrive(root, nr, -1, 0, start)
        for i, target in enumerate(self.targets):
            entry, grad = self.graph.entries[i], self.sums[i]
            self.sums[i] = None
            self.describe(i, grad)
            if not isinstance(target, Node) or (grad is None and not target.takes_none):
                continue
            try:
                outs = target.backward(grad)
                for to, nr, k in entry.edges:
                    if outs[k] is not None:
                        self.arrive(to, nr, i, k, self.fitted(outs[k], target, k))
            except Exception as error:
                entry.error = f"{type(error).__name__}: {error}"

    def fitted(self, out: Any, node: Any, k: int) -> Any:
        """A gradient in the shape and dtype of where it goes."""
        to, nr = parts(node.edges[k])
        end = target_of(to)
        return fit(out, end if isinstance(end, Node) else LeafEnd(end), nr, node, k)  # type: ignore[arg-type]

    def arrive(self, to: int, nr: int, source: int, k: int, array: Any) -> None:
        """Add a gradient to what has arrived, out of place: nobody else's array may change."""
        target, entry = self.targets[to], self.graph.entries[to]
        several = isinstance(target, Node) and target.multiple
        if several and self.sums[to] is None:
            self.sums[to] = [None] * len(target.metas)
        before = self.sums[to][nr] if several else self.sums[to]
        total = array if before is None else before + array
        if several:
            self.sums[to][nr] = total
        else:
            self.sums[to] = total
        came = norm(array)
        entry.arrived.append([source, k, came, came if before is None else norm(total)])

    def describe(self, i: int, grad: Any) -> None:
        """Keep what the page shows of a gradient."""
        entry = self.graph.entries[i]
        if grad is None:
            return
        arrays = grad if type(grad) is list else [grad]
        cells = self.graph.keeping.cells
        entry.gradient = [None if a is None else describe(a, cells) for a in arrays]
        norms = [norm(a) for a in arrays if a is not None]
        entry.norm = norms[0] if len(norms) == 1 else short(math.hypot(*map(float, norms)))


def norm(array: Any) -> Any:
    """The length of a gradient, short."""
    flat = array.reshape(-1)
    if flat.dtype.kind not in "fc":
        flat = flat.astype(np.float64)
    square = np.vdot(flat, flat).real
    return short(math.sqrt(square) if square >= 0 else square)


def starting(roots: tuple[Any, ...], gradient: Any) -> list[tuple[Any, int, Any]]:
    """Where a pass starts and with what: gradients as given, else ones."""
    given = [
        from_numpy(np.ones(shape, dtype)) if start is None else start
        for start, (shape, dtype) in zip(grads_tuple(gradient, len(roots)), map(shape_and_dtype, roots), strict=False)
    ]
    return root_edges(roots, starting_grads(roots, tuple(given)), False)
