"""Reading a graph without changing it: its nodes, its leaves, and what every node has saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import Tensor
from pullback._arrays.memory import memory_of
from pullback.autograd.api import GradientEdge, key_of
from pullback.autograd.engine import schedule
from pullback.autograd.function import BackwardCFunction
from pullback.autograd.locations import Location, resolve
from pullback.autograd.node import Node
from pullback.autograd.saved import Freed, SavedTensor, forward_name
from pullback.autograd.view import CopySlices, wants_grad


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors and gradient edges in what a model returned: one, or lists, tuples and dicts of them."""
    if isinstance(value, (Tensor, GradientEdge)):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def graph_of(value: Any) -> tuple[list[Node], dict[Tensor, int]]:
    """The nodes behind some tensors, newest first, and their leaves with the number of edges that lead to each."""
    roots = [tensor for tensor in tensors_in(value) if isinstance(tensor, GradientEdge) or wants_grad(tensor)]
    keys = [key_of(root) for root in roots]
    nodes, leaves = schedule([(target, nr, None) for target, nr in keys if target is not None])
    for target, _ in keys:
        if isinstance(target, Tensor):
            leaves[target] -= 1
    return nodes, leaves


def op_name(node: Any) -> str:
    """The op a node stands for: mul for MulBackward0, the class for a custom Function."""
    declared = getattr(node, "op", None)
    if declared is not None:
        return str(declared.name)
    if isinstance(node, BackwardCFunction):
        return str(node._forward_cls.__name__)
    return forward_name(node).removeprefix("torch::autograd::")


def node_name(node: Any) -> str:
    """The name of a node without torch's namespace."""
    return str(node.name()).removeprefix("torch::autograd::")


@dataclass
class Saved:
    """One tensor a node keeps for backward."""

    name: str
    """Under which `grad_fn._saved_<name>` shows it."""
    array: Any = None
    """Its elements; None if they were freed or hooks packed them into something else."""
    tensor: Tensor | None = None
    """The tensor itself where that is what is kept: an input."""
    version: int = 0
    """The version it had when it was saved."""
    now: int = 0
    """The version it has now."""
    counter: Any = None
    """What counts the writes to its memory."""
    freed: Freed | None = None
    """Stands for it after a backward has freed it."""
    packed: bool = False
    """True if saved-tensor hooks decide what is kept."""

    @property
    def stale(self) -> bool:
        """True if it was written over since: backward would refuse to use it."""
        return self.version != self.now

    @property
    def written_at(self) -> Location | None:
        """The line that last wrote to its memory, where that is known."""
        notes: Any = self.counter if type(self.counter) is list else getattr(self.counter, "shared", ())
        return resolve(notes[1], notes[2], None) if len(notes) == 3 else None

    @property
    def freed_at(self) -> Location | None:
        """The line whose backward freed it."""
        return None if self.freed is None else resolve(self.freed.code, self.freed.offset, None)

    @property
    def memory(self) -> Any:
        """The array that owns the memory."""
        return None if self.array is None else memory_of(self.array)

    @property
    def bytes(self) -> int:
        """The size of the memory that is kept alive."""
        return 0 if self.array is None else int(self.memory.nbytes)

    @property
    def shape(self) -> list[int]:
        """Its shape."""
        return [] if self.array is None else list(self.array.shape)

    @property
    def dtype(self) -> str:
        """The name of its dtype."""
        return "" if self.array is None else str(self.array.dtype.name)


def saved_of(node: Any) -> list[Saved]:
    """What a node keeps for backward. Nothing is unpacked, so no hook runs."""
    if isinstance(node, CopySlices):
        return saved_of(node.fn)
    if isinstance(node, BackwardCFunction):
        return [*kept_by_function(node)]
    inner = getattr(node, "node", None)
    if inner is not None:
        return saved_of(inner)
    declared: Any = getattr(node, "op", None)
    out: list[Saved] = []
    for name in declared.saved if declared is not None else ():
        if name in declared.tensors or name in declared.outputs:
            value = getattr(node, name + "_", None)
            version: Any = getattr(node, name + "_version", 0)
            counter = getattr(node, name + "_counter", None)
            if type(value) is list:
                pairs = enumerate(zip(value, version, strict=True))
                out += [s for i, (v, n) in pairs for s in one(f"{name}[{i}]", v, n, None)]
            else:
                out += one(name, value, version, counter)
    return out


def kept_by(nodes: list[Any], leaves: Iterable[Any]) -> Iterator[Kept]:
    """What nodes, newest first, keep for backward, oldest first: what every tool of this package counts by.

    Memory that several of them share is counted once, for the oldest node that keeps it.
    """
    own = {id(Saved("leaf", leaf._array).memory) for leaf in leaves}
    seen: set[int] = set()
    for node in reversed(nodes):
        for saved in saved_of(node):
            memory = None if saved.array is None else id(saved.memory)
            yield Kept(node, saved, 0 if memory is None or memory in seen else saved.bytes, memory in own)
            if memory is not None:
                seen.add(memory)


@dataclass
class Kept:
    """One tensor that a node keeps, and the bytes that are counted for it."""

    node: Any
    saved: Saved
    bytes: int
    """0 if an older node keeps the same memory."""
    leaf: bool
    """True if the memory belongs to a leaf, which lives anyway."""


def one(name: str, value: Any, version: int, counter: Any) -> Iterable[Saved]:
    """The entry of one slot; none for a number or where nothing was needed."""
    if isinstance(value, Freed):
        return [Saved(name, freed=value)]
    if isinstance(value, SavedTensor):
        packed = value.packed
        return [Saved(name, packed._array if isinstance(packed, Tensor) else None, packed=True)]
    if isinstance(value, Tensor):
        return [Saved(name, value._array, value, version, value._counter[0], value._counter)]
    if isinstance(value, np.ndarray):
        return [Saved(name, value, None, version, version if counter is None else counter[0], counter)]
    return []


def kept_by_function(node: Any) -> Iterator[Saved]:
    """What a custom Function keeps: by save_for_backward, and as attributes of its ctx."""
    if isinstance(node.kept, Freed):
        yield from one("saved_tensors", node.kept, 0, None)
    else:
        for i, keeper in enumerate(node.kept):
            counter = None if keeper.nr is None else getattr(keeper, "counter", None)
            yield from one(f"saved_tensors[{i}]", keeper.value, keeper.version, counter)
    for name, value in vars(node).items():
        if isinstance(value, Tensor):
            yield Saved(f"ctx.{name}", value._array, value)
