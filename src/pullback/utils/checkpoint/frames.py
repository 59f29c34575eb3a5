"""The new way: saved tensors are replaced by empty holders, and the first one asked for in backward fills them all.

    forward      every tensor an op saves ........ becomes a Holder in the graph
    backward     the first Holder unpacked ....... runs the segment again; what its ops save fills the holders
                 every later one ................. is full already

Each backward pass fills the holders for itself, so a retained graph can run several times.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, ref

import pullback as torch
from pullback.autograd.graph import saved_tensors_hooks
from pullback.autograd.saved import stale
from pullback.autograd.task import current_task
from pullback.utils.checkpoint.errors import (
    TOO_MANY,
    UNPACKED_TWICE,
    CheckpointError,
    different_metadata,
    different_number,
)


class StopRecomputation(Exception):
    """Everything that was needed has been computed again."""


class Holder:
    """Stands in the graph for a tensor that was not kept."""

    __slots__ = ("__weakref__", "keys")

    def __init__(self) -> None:
        self.keys: dict[Any, Any] = {}
        """For each backward pass: where its recomputed tensor is found, None once it was taken."""


class Key:
    """Under which a recomputed tensor lies, as long as its holder lives."""

    __slots__ = ("__weakref__",)


class Frame:
    """One checkpointed call."""

    def __init__(
        self,
        recompute: Callable[..., None],
        args: tuple[Any, ...],
        early_stop: bool,
        metadata_of: Callable[[Any], Any],
        explain: Callable[[CheckpointError], Any] | None,
    ) -> None:
        self.recompute = recompute
        self.args = [(arg, arg._version if is_counted(arg) else None) for arg in args]
        self.early_stop = early_stop
        self.metadata_of = metadata_of
        self.explain = explain
        self.holders: list[ref[Holder]] = []
        self.metadata: list[Any] = []
        self.recomputed: dict[Any, WeakKeyDictionary[Key, Any]] = {}
        self.counts: dict[Any, int] = {}
        self.done: set[Any] = set()
        self.forward_completed = False
        self.ignore_mismatch = False

    # ---------------------------------------------------------------- forward

    def pack(self, tensor: Any) -> Holder:
        """Keep a holder instead of the tensor."""
        holder = Holder()
        self.holders.append(ref(holder))
        self.metadata.append(self.metadata_of(tensor))
        return holder

    # ---------------------------------------------------------------- backward

    def unpack(self, holder: Holder) -> Any:
        """The tensor of a holder, computed again if this backward pass has not done so yet."""
        try:
            return self.take(holder)
        except CheckpointError as error:
            if self.explain is not None:
                self.explain(error)
            raise

    def take(self, holder: Holder) -> Any:
        """The recomputed tensor, once."""
        task = current_task.get() or object()
        if task not in self.done:
            self.run_again(task)
        key = holder.keys[task]
        if key is None:
            raise CheckpointError(UNPACKED_TWICE)
        holder.keys[task] = None
        return self.recomputed[task][key]

    def run_again(self, task: Any) -> None:
        """Fill the holders for one backward pass."""
        self.recomputed[task], self.counts[task] = WeakKeyDictionary(), 0
        args = self.inputs()
        hooks = saved_tensors_hooks(lambda tensor: self.receive(task, tensor), lambda packed: packed)
        # It stops when all holders are full: the rest of the segment is not needed.
        with suppress(StopRecomputation), hooks, torch.enable_grad():
            self.recompute(*args)
        self.done.add(task)
        self.check(task)

    def inputs(self) -> list[Any]:
        """The arguments of the call, unless somebody has written over one."""
        for arg, version in self.args:
            if version is not None and arg._version != version:
                stale(None, arg, version)  # type: ignore[arg-type]
        return [arg for arg, _ in self.args]

    def receive(self, task: Any, tensor: Any) -> Any:
        """An op of the second run saves a tensor: it belongs to the holder at the same place of the first run."""
        tensor = tensor.detach() if tensor.requires_grad else tensor
        position = self.counts[task]
        self.counts[task] += 1
        if position >= len(self.holders):
            if not self.forward_completed:
                # A backward inside the segment itself: the first run has not saved everything yet.
                self.ignore_mismatch = True
                return tensor
            raise CheckpointError(TOO_MANY)
        holder = self.holders[position]()
        if holder is not None:
            holder.keys[task] = key = Key()
            self.recomputed[task][key] = tensor
        if self.early_stop and self.counts[task] == len(self.holders):
            raise StopRecomputation
        return tensor

    def check(self, task: Any) -> None:
        """Raise if the second run saved something else than the first."""
        if self.ignore_mismatch:
            return
        if len(self.holders) != self.counts[task]:
            raise CheckpointError(different_number(len(self.holders), self.counts[task]))
        different = []
        for position, reference in enumerate(self.holders):
            holder = reference()
            if holder is None:
                continue
            before, after = self.metadata[position], self.metadata_of(self.recomputed[task][holder.keys[task]])
            if before != after:
                different.append((position, before, after))
        if different:
            raise CheckpointError(different_metadata(different))


def is_counted(arg: Any) -> bool:
    """True for tensors whose writes are counted."""
    return isinstance(arg, torch.Tensor) and not arg.is_inference()
