"""Streams in a backward pass: a node runs on the streams that its op ran on, as torch has it.

A gradient that is made on one stream and wanted on another lets that one wait for it. Gradients are added up on the
stream of the node, or the leaf, they are for. In the end the streams of whoever called backward wait for all others.

The streams of an op are part of the number of its node (autograd/numbering.py), from the first time on that a stream
other than a default one is used. A leaf has those of the oldest op that used it: gradients are added up there. Memory
that was taken on one stream and is read on another is kept until the other has done its work (`Pool.lend`).
"""

from __future__ import annotations

from typing import Any

from pullback._tensor import Tensor
from pullback.autograd import engine, numbering
from pullback.autograd.fit import fit, fit_leaf
from pullback.autograd.task import Task, lanes
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.device import follow, streams
from pullback.kernels.cuda.memory import pool_of

DEFAULT: dict[int, int] = {}
"""The streams of what ran on default ones alone."""


class Lanes:
    """The streams of one backward pass."""

    def __init__(self) -> None:
        self.caller = streams.current
        self.leaves: dict[Any, dict[int, int]] = {}
        self.used: set[tuple[int, int]] = set()
        """Devices and streams that gradients were made on, or brought to."""

    # ---------------------------------------------------------------- streams
    def of(self, target: Any) -> dict[int, int]:
        """The streams of a node or a leaf; a leaf that nothing leads to is the caller's business."""
        return self.leaves.get(target, self.caller) if isinstance(target, Tensor) else streams_of(target)

    def enter(self, target: Any) -> None:
        """Let work go to the streams of a node or a leaf."""
        streams.use_all(self.of(target))

    def arrive(self, target: Any, grad: Any) -> None:
        """Let the streams of a target wait for a gradient made on the current ones, and work go there."""
        made_on, wanted_on = streams.current, self.of(target)
        array = array_of(grad)
        if array is not None:
            index = array.device.index or 0
            first, then = made_on.get(index, 0), wanted_on.get(index, 0)
            self.used |= {(index, first), (index, then)}
            follow(index, first, then)
            lend(array, first, then)
        streams.use_all(wanted_on)

    def keep(self, grad: Any) -> None:
        """A gradient that was made on the current streams will be used on those of the caller."""
        array = array_of(grad)
        if array is not None:
            index = array.device.index or 0
            lend(array, streams.current.get(index, 0), self.caller.get(index, 0))

    # ---------------------------------------------------------------- the pass
    def run(self, task: Task, roots: list[tuple[Any, int, Any]], freed: Any) -> bool:
        """Carry gradients from the roots to the leaves; False, with nothing done, if all is on default streams."""
        if not self.caller and not any([streams_of(node) for node in task.order]):
            return False
        for node in reversed(task.order):
            for edge in node.edges:
                if edge is not None and isinstance(leaf := engine.target_of(edge), Tensor):
                    self.leaves.setdefault(leaf, streams_of(node))
        before = streams.use_all(self.caller)  # the thread may be another than the caller's
        try:
            for root, nr, grad in roots:
                streams.use_all(self.caller)
                self.deliver(task, root, nr, grad)
                self.settle(task, root)
            for node in task.order:
                self.step(task, node, freed)
        finally:
            streams.use_all(before)
            for index, handle in self.used:
                follow(index, handle, self.caller.get(index, 0))
        return True

    def step(self, task: Task, node: Any, freed: Any) -> None:
        """Run a node, and hand on what it made."""
        grad = task.arrived.pop(node, None)
        self.enter(node)
        if task.needed is not None and engine.ends_at(task, node, grad):
            self.keep(grad)
            return
        task.node = node
        outs = engine.run_node(task, node, grad)
        if freed is not None:
            node.release(freed)
        for i, edge in enumerate(node.edges):
            if edge is None:
                continue
            target, nr = engine.target_of(edge), edge[1] if type(edge) is tuple else 0
            if outs[i] is not None:
                self.enter(node)
                self.deliver(task, target, nr, fitted(outs[i], target, nr, node, i))
            elif not isinstance(target, Tensor):
                task.arrived.setdefault(target, None)
            self.settle(task, target)

    def deliver(self, task: Task, target: Any, nr: int, grad: Any) -> None:
        """Add a gradient to what has arrived, on the streams where it is wanted."""
        self.arrive(target, grad)
        engine.deliver(target, nr, grad, task.arrived)

    def settle(self, task: Task, target: Any) -> None:
        """One of the gradients that a leaf waits for has arrived; the last of them is its turn."""
        if target not in task.waiting:
            return
        task.waiting[target] -= 1
        if not task.waiting[target]:
            self.enter(target)
            engine.settle(task, target)
            self.keep(target._grad)


def fitted(grad: Any, target: Any, nr: int, node: Any, index: int) -> Any:
    """A gradient as a node or a leaf wants it."""
    if not isinstance(target, Tensor):
        return fit(grad, target, nr, node, index)
    array: Any = grad._array if isinstance(grad, Tensor) else grad
    same = array.shape == target._array.shape and array.dtype is target._array.dtype
    return grad if same else fit_leaf(grad, target, node, index)


def array_of(grad: Any) -> DeviceArray | None:
    """The array of a gradient, if it is on a device."""
    array = grad._array if isinstance(grad, Tensor) else grad
    return array if type(array) is DeviceArray else None


def streams_of(node: Any) -> dict[int, int]:
    """The streams that the op of a node ran on."""
    return getattr(node.sequence_nr, "streams", None) or DEFAULT


def lend(array: DeviceArray, own: int, other: int) -> None:
    """Keep the memory of an array of a stream until another has done what it was given before nobody else needs it."""
    owner = array if array.base is None else array.base
    if own != other and owner.memory is not None:
        pool_of(array.device.index or 0).lend(owner.memory, other)


numbering.follow(streams)
lanes.append(Lanes)
