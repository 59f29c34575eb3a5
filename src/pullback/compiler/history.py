"""Results that want gradients: their backward is recorded with the forward, and one node stands for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._runtime import messages
from pullback._runtime.quiet import SILENT, errors
from pullback._tensor import INFERENCE, Parameter, Tensor, counter_of, new, wrap
from pullback.autograd.api import grad
from pullback.autograd.locations import mark
from pullback.autograd.node import Node, edge_to
from pullback.autograd.numbering import numbers
from pullback.autograd.saved import stale
from pullback.autograd.view import edge_of, wants_grad
from pullback.compiler.arrays import TracedArray, TracedTensor
from pullback.compiler.program import Slot
from pullback.compiler.replay import runner, without_dead

DOUBLE = "torch.compile with aot_autograd does not currently support double backward"


class History:
    """The backward of a program."""

    def __init__(self) -> None:
        self.forward = 0
        """How many steps the forward has."""
        self.outs: list[int] = []
        """The leaves of the result that want gradients, by their place."""
        self.given: list[Slot] = []
        """The gradients of these."""
        self.wanted: list[Any] = []
        """The tensors whose gradients are computed."""
        self.made: list[Slot | None] = []
        """Those gradients."""
        self.saved: list[Slot] = []
        """What the backward reads of the forward."""
        self.freed = False
        """Whether the function ran its own backward: nothing is left to run."""
        self.run: Any = None
        self.source = ""
        self.steps: list[Any] = []
        self.signature: Any = None
        self.native = False
        """Whether native code runs it, which takes gradients as they lay when it was recorded."""
        self.sources: Any = None
        """The tensors whose gradients are computed, for a call."""


def windows_of(recorder: Any, leaves: list[Any]) -> dict[int, Any]:
    """Results that are views and follow the history of a tensor that was there before, or of another result: by their
    place, the tensor they are views of. Where several are views of a tensor that is not returned, it is added.
    """
    there = {external.slot.memory: external.tensor for external in recorder.program.externals}
    views = []
    for i, leaf in enumerate(leaves):
        if type(leaf) in (TracedTensor, Tensor) and not is_external(recorder, leaf) and leaf._edge is not None:
            if leaf._view is not None and not leaf._view.steps and leaf._counter is not INFERENCE and wants_grad(leaf):
                views.append((i, leaf, leaf._view.base))
    found = {}
    for i, leaf, base in views:
        memory = slot_of(recorder, leaf).memory
        if memory in there:
            found[i] = base if is_external(recorder, base) else there[memory]
        elif sum([other is base for _, _, other in views]) > 1 or any([other is base for other in leaves]):
            if not any([other is base for other in leaves]):
                leaves.append(base)
            found[i] = base
    return found


def recorded_history(recorder: Any, leaves: list[Any]) -> History | None:
    """Record the backward of results, if some want gradients."""
    history = History()
    history.forward = len(recorder.program.steps)
    wanting = [
        (i, t)
        for i, t in enumerate(leaves)
        if isinstance(t, Tensor) and t._edge is not None and wants_grad(t) and not is_external(recorder, t)
    ]
    if not wanting:
        return None
    history.outs = [i for i, _ in wanting]
    starts = []
    for _, tensor in wanting:
        start = recorder.traced(np.ones(tensor.shape, tensor._array.dtype))
        history.given.append(start.slot)
        starts.append(wrap(start))
    history.wanted = [
        f.tensor for f in recorder.facts.values() if f.requires_grad and FROM_NUMPY[f.dtype].category >= 2
    ]
    try:
        with ending_at(recorder):
            made = grad([t for _, t in wanting], history.wanted, starts, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if messages.BACKWARD_TWICE.split(".")[0] not in str(error):
            recorder.fail(f"the backward of a result cannot be recorded ({error})")
        history.freed = True
        del recorder.program.steps[history.forward :]
        return history
    history.made = [None if g is None else slot_of(recorder, g) for g in made]
    return history


@contextmanager
def ending_at(recorder: Any) -> Iterator[None]:
    """Let graphs end at tensors that were there before, also where one of them was computed of another."""
    edges = [facts.tensor._edge for facts in recorder.facts.values()]
    nodes = [edge[0] if type(edge) is tuple else edge for edge in edges]
    before = {node: node.edges for node in nodes if isinstance(node, Node) and node.sequence_nr < recorder.began}
    for node in before:
        node.edges = ()
    try:
        yield
    finally:
        for node, leading in before.items():
            node.edges = leading


def slot_of(recorder: Any, tensor: Any) -> Slot:
    """The slot a tensor stands in."""
    array = tensor._array
    return array.slot if type(array) is TracedArray else recorder.constant(array)


def is_external(recorder: Any, tensor: Any) -> bool:
    """Whether a tensor was there before."""
    return id(tensor) in recorder.facts


def finish_history(history: History, program: Any) -> None:
    """Compile the backward, once the forward is known."""
    if history.freed:
        return
    steps = program.steps[history.forward :]
    wanted = [slot for slot in history.made if slot is not None]
    steps = without_dead(steps, wanted)
    made = {slot.index for slot in history.given} | set(program.constants)
    saved: dict[int, Slot] = {}
    for step in steps:  # a step may give back what it was given: that is read before it is made
        saved |= {slot.index: slot for slot in step.reads() if slot.index not in made}
        made |= {out.index for out in step.outs if out is not None}
    saved |= {slot.index: slot for slot in wanted if slot.index not in made}
    history.saved = list(saved.values())
    history.steps, history.signature = steps, ([*history.given, *history.saved], wanted)
    history.run, history.source = runner(program, steps, *history.signature)


class CompiledFunctionBackward(Node):
    """The node of a compiled function."""

    __slots__ = ("history", "metas", "saved", "versions")
    multiple = True
    history: History
    metas: list[Any]
    saved: Any
    versions: list[Any]

    def output_meta(self, nr: int) -> tuple[Any, Any]:
        """Shape and dtype of an output."""
        return self.metas[nr]  # type: ignore[no-any-return]

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Run the program of the backward."""
        saved = self.saved
        if self.history.freed or saved is None:
            raise RuntimeError(messages.BACKWARD_TWICE)
        for tensor, version in self.versions:
            if tensor._counter[0] != version:
                stale(self, tensor, version)
        grads = [np.zeros(*self.metas[i]) if g is None else g for i, g in enumerate(grad)]
        if self.history.native:
            given = zip(grads, self.history.given, strict=True)
            grads = [g if g.strides == slot.strides else np.array(g, order="C") for g, slot in given]
        loudness = errors.get()
        try:
            errors.set(SILENT)
            made = iter(self.history.run(*grads, *saved))
        finally:
            errors.set(loudness)
        return tuple([None if slot is None else next(made) for slot in self.history.made])

    def backward_tensors(self, grad: Any) -> tuple[Any, ...]:
        """The same on tensors; it cannot be recorded."""
        if any([g is not None and wants_grad(g) for g in grad]):
            raise RuntimeError(DOUBLE)
        recorder = next((g._array.recorder for g in grad if g is not None and type(g._array) is TracedArray), None)
        if recorder is not None:
            recorder.fail("backward went on into a graph that was there before")
            outs = self.backward([None if g is None else recorder.plain(g._array) for g in grad])
            return tuple([None if out is None else wrap(recorder.traced(out)) for out in outs])
        if any([g is not None and type(g) not in (Tensor, Parameter) for g in grad]):
            raise NotImplementedError(
                "torch.compile: the backward of a compiled function takes plain gradients, no batches of them and none "
                "of other kinds; differentiate the function itself, or compile the transformed one"
            )
        outs = self.backward([None if g is None else g._array for g in grad])
        return tuple([None if out is None else wrap(out) for out in outs])

    def release(self, freed: Any = None) -> None:
        """Forget what was saved."""
        self.saved = None


CompiledFunctionBackward.__module__ = "builtins"


def attach(
    history: History, tensors: list[Any], saved: Any, watched: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Give results the node of the function as their history. `watched` are tensors whose memory was saved."""
    node = new(CompiledFunctionBackward)
    node.history, node.saved = history, saved
    node.hooks = None
    # What ran its own backward leads nowhere any more: the node says so when it is asked.
    node.edges = () if history.freed else tuple([edge_of(t) for t in history.sources(args, kwargs)])
    node.sequence_nr = numbers.next()
    mark(node)
    node.shape = node.dtype = None
    node.metas = [(t._array.shape, t._array.dtype) for t in tensors]
    node.versions = [(t, counter_of(t)[0]) for t in watched if t._counter is not INFERENCE]
    for nr, tensor in enumerate(tensors):
        tensor._requires_grad = True
        tensor._edge = edge_to(node, nr)
