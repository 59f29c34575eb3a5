"""Walking through a backward pass: one step per node, in the engine's own order, before its gradients are applied.

    for step in pullback.autograd.steps(loss):
        print(step)                 # 2 MulBackward0 at train.py:7: z = x * y | in [3] 1 .. 1 | out x [3] 2 .. 4

The loop below is the engine's (autograd/engine.py), written for looking rather than for speed: it pauses in every
round, outside of which grad mode and everything else is as the program set it. See note: insight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np

from pullback._modes import current_task, grad_enabled, is_grad_enabled, modes
from pullback._runtime.interrupts import Block
from pullback._runtime.quiet import SILENT, errors, heard
from pullback._tensor import Tensor, wrap
from pullback.autograd import anomaly_check, run_hooks
from pullback.autograd.accumulate import accumulate_array, accumulate_tensor, in_grad_dtype
from pullback.autograd.api import as_tuple, grads_tuple, input_key, inputs_tuple, root_edges, starting_grads
from pullback.autograd.collector import collector
from pullback.autograd.engine import as_hooks_see, deliver, needed_for, schedule, step_for, target_of
from pullback.autograd.locations import Location, caller_at, getframe, location_of, place_text, scopes
from pullback.autograd.node import AccumulateGrad, Node, accumulator_of, parts
from pullback.autograd.saved import Freed, forward_name
from pullback.autograd.task import Target, Task

__all__ = ["Step", "steps"]


def steps(
    tensors: Any,
    inputs: Any = None,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    break_on: Any = None,
) -> Iterator[Step]:
    """Run `backward` one node at a time, yielding each step before its gradients are applied.

    `break_on` yields only at some steps and runs through the others: the name of a node or op ("MulBackward0", "mul",
    "*Norm*"), a line ("train.py:12"), a tensor, a module or its name, a function of the step, or a list of these.

    A loop that runs to its end has done exactly what `backward` does. One that is left early has done nothing: every
    `.grad` is as it was and the graph is whole, though hooks that have run, have run.

    >>> import pullback as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> for step in torch.autograd.steps((x * x).sum()):
    ...     print(step.name, [grad.tolist() for grad in step.incoming])
    SumBackward0 [1.0]
    MulBackward0 [[1.0, 1.0]]
    AccumulateGrad [[2.0, 4.0]]
    """
    roots = as_tuple(tensors)
    grads = starting_grads(roots, grads_tuple(gradient, len(roots)))
    on_tensors = create_graph or modes.dual_level >= 0
    starts = root_edges(roots, grads, on_tensors)
    stops = matcher(break_on)
    wanted: set[Target] | None = None
    if inputs is not None:
        chosen = inputs_tuple(inputs, "backward")
        wanted = {input_key(tensor)[0] for tensor in chosen}
        for tensor in chosen:
            if isinstance(tensor, Tensor):
                tensor.retain_grad()
    task = Task(create_graph if retain_graph is None else retain_graph, on_tensors, None)
    task.record = create_graph
    return walk(task, starts, wanted, stops)


class Step:
    """One node of a backward pass, with its gradients; nothing of them has been applied yet."""

    __slots__ = ("create_graph", "incoming", "index", "leaf", "node", "outgoing")

    def __init__(self, index: int, node: Node, incoming: list[Any], outgoing: list[Any], create_graph: bool) -> None:
        self.index = index
        """The how-manieth step of the pass this is, from 0."""
        self.node = node
        self.incoming = incoming
        """The gradients of the node's outputs; at a leaf, what will be added to its `.grad`. None where none came."""
        self.outgoing = outgoing
        """The gradients of the node's inputs, one for each of `targets`; none at a leaf."""
        self.leaf: Tensor | None = node.variable if isinstance(node, AccumulateGrad) else None
        """At the end of the graph, the tensor whose `.grad` is about to change."""
        self.create_graph = create_graph

    @property
    def name(self) -> str:
        """The name of the node, as in torch."""
        return self.node.name().removeprefix("torch::autograd::")

    @property
    def op(self) -> str:
        """The name of the op that made the node."""
        declared = getattr(self.node, "op", None)
        return forward_name(self.node).removeprefix("torch::autograd::") if declared is None else declared.name

    @property
    def place(self) -> Location | None:
        """Where the node was made; None at a leaf."""
        return location_of(self.node)

    @property
    def targets(self) -> list[Any]:
        """Where each outgoing gradient goes: a node, a leaf tensor, or None."""
        return [target_of(edge) for edge in self.node.edges]

    @property
    def leaves(self) -> list[tuple[Tensor, Any]]:
        """What this step hands to leaves: (leaf, gradient)."""
        if self.leaf is not None:
            return [(self.leaf, self.incoming[0])]
        pairs = zip(self.targets, self.outgoing, strict=True)
        return [(target, grad) for target, grad in pairs if isinstance(target, Tensor)]

    def replace(self, grad: Tensor | None, index: int = 0) -> None:
        """Apply another gradient instead: at a node in place of `outgoing[index]`, at a leaf of what it would get."""
        grads = self.incoming if self.leaf is not None else self.outgoing
        if grad is not None:
            if grads[index] is None:
                raise RuntimeError(f"{self.name} sends no gradient at index {index} that could be replaced")
            run_hooks.check_replacement(self.replace, grads[index], grad)
        grads[index] = grad

    def __str__(self) -> str:
        place = self.place
        inside = "" if place is None or place.module is None else f" in {place.module}"
        where = "" if place is None else f"{inside} at {place}"
        shown = [f"{self.index} {self.name}{where}", *(f"in {describe(grad)}" for grad in self.incoming)]
        for target, grad in zip(self.targets, self.outgoing, strict=True):
            if target is not None:
                to = "leaf" if isinstance(target, Tensor) else type(target).__name__
                shown.append(f"out to {to} {describe(grad)}")
        return " | ".join(shown)

    def __repr__(self) -> str:
        return f"<Step {self}>"


def describe(grad: Any) -> str:
    """A gradient in a few words: its shape and range."""
    if grad is None:
        return "None"
    array = grad._array
    shape = str(list(array.shape))
    if not array.size or array.dtype.kind not in "fiu":
        return shape
    low, high = array.min(), array.max()
    return f"{shape} {low:.4g}" if low == high else f"{shape} {low:.4g} .. {high:.4g}"


# ------------------------------------------------------------------ the pass


class scene(Block):
    """What holds while the engine works, and not while the program looks at a step."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def _before(self) -> Any:
        """The grad mode, the task and NumPy's error state around."""
        return is_grad_enabled(), current_task.get(), errors.get()

    def _begin(self, before: Any) -> None:
        """The engine works."""
        grad_enabled.set(self.task.record)
        current_task.set(self.task)
        self.task.loudness = before[2]
        errors.set(SILENT)

    def _end(self, before: Any) -> None:
        """It has stopped."""
        mode, outer, loudness = before
        grad_enabled.set(mode)
        current_task.set(outer)
        errors.set(loudness)


def walk(
    task: Task, roots: list[tuple[Target, int, Any]], wanted: set[Target] | None, stops: Callable[[Step], bool]
) -> Iterator[Step]:
    """The engine's loop, with a pause in every round."""
    task.order, task.waiting = schedule(roots)
    if wanted is not None:
        task.needed, task.partial = needed_for(task.order, wanted)
    arrived: dict[Target, Any] = {}
    before = Before()
    ready: list[Tensor] = []
    index = 0
    finished = False
    try:
        for root, nr, grad in roots:
            hand_on(task, root, nr, grad, arrived, ready)
        for node in (None, *task.order):
            if node is not None and (task.needed is None or node in task.needed):
                with scene(task):
                    step = node_step(task, node, index, arrived, before)
                index += 1
                if stops(step):
                    yield step
                for edge, out in zip(node.edges, step.outgoing, strict=True):
                    if edge is not None:
                        grad = run_hooks.as_travelling(out, task.create_graph)
                        hand_on(task, target_of(edge), parts(edge)[1], grad, arrived, ready)
            while ready:
                leaf = ready.pop(0)
                if task.needed is not None and leaf not in task.needed:
                    continue
                with scene(task):
                    step = leaf_step(task, leaf, index, arrived)
                index += 1
                if stops(step):
                    yield step
                before.note(leaf)
                with scene(task):
                    if modes.profiler is None:
                        accumulate(task, step)
                    else:
                        modes.profiler.run_node(step.node, partial(accumulate, task, step))
        with scene(task):
            for callback in task.callbacks or ():
                heard(callback)
        if not task.keep_graph:
            freed = Freed()
            freed.code, freed.offset = caller_at(getframe(1))
            for node in task.order:
                if task.needed is None or node in task.needed:
                    node.release(freed)
        if collector.frozen:
            collector.thaw()
        finished = True
    finally:
        if not finished:
            before.restore()


def hand_on(task: Task, target: Target, nr: int, grad: Any, arrived: dict[Target, Any], ready: list[Tensor]) -> None:
    """Add a gradient to what has arrived at a node or leaf; a leaf that waits for no other one is ready."""
    if grad is None:
        arrived.setdefault(target, None)
    else:
        deliver(target, nr, grad, arrived)
    if target in task.waiting:
        task.waiting[target] -= 1
        if not task.waiting[target]:
            ready.append(target)


def node_step(task: Task, node: Node, index: int, arrived: dict[Target, Any], before: Before) -> Step:
    """Run one node, with its hooks, on what has arrived there."""
    create_graph = task.create_graph
    grad = arrived.pop(node, None)
    task.node = node
    if node.hooks is not None:
        for reference in node.hooks.retain.values():
            before.note(reference())
        grad = run_hooks.before(node, grad, create_graph)
    outs: Any = (None,) * len(node.edges)
    if grad is not None or node.takes_none:
        outs = anomaly_check.run_node(node, grad, lambda: step_for(task, node, grad))
    outs = as_hooks_see(node, outs, task.needed)
    if node.hooks is not None and node.hooks.post:
        outs = run_hooks.after(node, outs, grad, create_graph)
    if not node.multiple:
        grads = [grad]
    else:
        grads = [None] * len(node.metas) if grad is None else grad  # type: ignore[attr-defined]
    return Step(index, node, [seen(g) for g in grads], [seen(o) for o in outs], create_graph)


def leaf_step(task: Task, leaf: Tensor, index: int, arrived: dict[Target, Any]) -> Step:
    """All gradients of a leaf have arrived: what its hooks make of them."""
    node = task.node = accumulator_of(leaf)
    grad = in_grad_dtype(leaf, arrived.pop(leaf, None))
    grad = run_hooks.before_leaf(node, grad, task.create_graph, False)
    return Step(index, node, [seen(grad)], [], task.create_graph)


def accumulate(task: Task, step: Step) -> None:
    """Add a gradient to `.grad` of its leaf."""
    leaf, grad = step.leaf, step.incoming[0]
    assert leaf is not None
    if grad is not None:
        if task.create_graph:
            accumulate_tensor(leaf, grad)
        else:
            accumulate_array(leaf, {leaf: grad._array}, leaf)
    run_hooks.after_leaf(step.node, run_hooks.as_travelling(grad, task.create_graph), task.create_graph)


def seen(grad: Any) -> Any:
    """A gradient as a tensor to look at."""
    return grad if grad is None or isinstance(grad, Tensor) else wrap(np.asarray(grad))


class Before:
    """What `.grad` of some tensors was before the pass."""

    def __init__(self) -> None:
        self.notes: dict[Tensor, tuple[Tensor | None, Any]] = {}

    def note(self, tensor: Tensor | None) -> None:
        """Remember `.grad`, and its values since they may be added to in place."""
        if tensor is not None and tensor not in self.notes:
            grad = tensor._grad
            self.notes[tensor] = (grad, None if grad is None else grad._array.copy())

    def restore(self) -> None:
        """Make it as it was."""
        for tensor, (grad, values) in self.notes.items():
            if grad is not None:
                grad._array[...] = values
            tensor._grad = grad


# ------------------------------------------------------------------ where to stop


def matcher(wish: Any) -> Callable[[Step], bool]:
    """`break_on` as a test of a step."""
    if wish is None:
        return lambda step: True
    if isinstance(wish, str):
        return lambda step: is_named(step, wish)
    if isinstance(wish, Tensor):
        return lambda step: step.leaf is wish or (step.leaf is None and step.node is wish.grad_fn)
    if isinstance(wish, (list, tuple, set, frozenset)):
        tests = [matcher(item) for item in wish]
        return lambda step: any([test(step) for test in tests])
    if hasattr(wish, "named_modules"):
        return lambda step: is_inside(step, wish)
    if not callable(wish):
        raise TypeError(
            "break_on expects a name, a tensor, a module, a function of the step or a list of these, "
            f"but got {type(wish).__name__}"
        )
    return lambda step: bool(wish(step))


def is_named(step: Step, pattern: str) -> bool:
    """True if a pattern names the node of a step, its op, its line or its module."""
    names = [step.name, step.op]
    place = step.place
    if place is not None:
        names += [place_text(place.file, place.line), place_text(place.file, place.line, short=True)]
    if place is not None and place.module is not None:
        names += [place.module, *place.module.removesuffix(")").split(" (")]
    return any(fnmatchcase(name, pattern) for name in names)


def is_inside(step: Step, module: Any) -> bool:
    """True if the node of a step was made while a module ran, or ends at one of its parameters."""
    if step.leaf is not None:
        return any(parameter is step.leaf for parameter in module.parameters())
    return any(scope[2] is not None and scope[2]() is module for scope in scopes(getattr(step.node, "_scope", None)))
