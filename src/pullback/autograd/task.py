"""One backward pass: what it was asked for, and what must happen at its end."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from pullback._modes import current_task as current_task
from pullback._tensor import Tensor
from pullback.autograd.node import Node

Target = Any
"""Where gradients arrive: a node or a leaf tensor."""
Key = tuple[Target, int]
NONE_OF_THEM: frozenset[Any] = frozenset()


lanes: list[Callable[[], Any]] = []
"""What makes the streams of a pass, once one is used that is not a default one: see kernels/cuda/calls/lanes.py."""


class Task:
    """One call of backward or grad: what it was asked for and what must happen at its end."""

    __slots__ = ("__weakref__", "arrived", "callbacks", "captures", "create_graph", "depth", "keep_graph", "loudness",
                 "lanes", "lost", "needed", "node", "order", "outer", "partial", "record", "stops",
                 "waiting")  # fmt: skip

    order: list[Node]
    """The nodes that can be reached, newest first."""
    waiting: dict[Tensor, int]
    """How many gradients each leaf waits for."""
    needed: set[Target] | None
    """What lies on the way to the captures; None for everything."""
    partial: Set[Node]
    """Nodes of which some gradients alone are wanted."""
    stops: Set[Target]
    """Captures from which nothing goes on."""
    arrived: dict[Target, Any]
    """The gradients that have arrived at nodes and leaves whose turn has not come."""
    lost: str | None
    """What is known of why a leaf asked for is not reached; None if nobody wants to know."""
    loudness: Any
    """NumPy's error state as the user has it: the pass itself is quiet."""
    lanes: Any
    """What runs the nodes where streams of devices have been used that are not default ones; None otherwise."""
    outer: Task | None
    """The pass in which this one was started."""
    depth: int

    def __init__(
        self,
        keep_graph: bool,
        create_graph: bool,
        captures: dict[Key, Any] | None,
        record: bool = True,
        lost: str | None = None,
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.captures = captures
        """Gradients asked for by grad(inputs=...): {(node, output_nr): gradient}; None to accumulate into leaves."""
        self.callbacks: list[Callable[[], None]] | None = None
        self.outer = outer = current_task.get()
        self.depth = 0 if outer is None else outer.depth + 1
        self.record = record and create_graph
        self.node: Node | None = None
        self.lost = lost
        self.needed = None
        self.partial = self.stops = NONE_OF_THEM
        self.lanes = lanes[0]() if lanes else None

    def reached(self) -> set[Target]:
        """Every node and leaf this pass will run."""
        return {*self.order, *self.waiting} if self.needed is None else self.needed


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` once the running backward is done."""
    task = current_task.get()
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if task.callbacks is None:
        task.callbacks = []
    task.callbacks.append(callback)
