"""From the arrays of a program to what the function returns: one generated function."""

from __future__ import annotations

from collections import deque
from typing import Any

from pullback._modes import is_inference_mode_enabled
from pullback._pytree import tree_flatten, tree_unflatten
from pullback._tensor import INFERENCE, Parameter, Tensor, bump_version, counter_of, fresh
from pullback.autograd.view import make_view
from pullback.compiler.arguments import Arguments
from pullback.compiler.arrays import TracedParameter, TracedTensor
from pullback.compiler.capture import Recorder
from pullback.compiler.guards import SCALARS
from pullback.compiler.history import attach, slot_of
from pullback.compiler.numbers import TracedNumber, exact
from pullback.compiler.texts import function_of

PLAIN = (Tensor, Parameter, TracedTensor, TracedParameter)


class Results:
    """From the arrays of a program to what the function returns, and to the tensors it wrote to."""

    def __init__(
        self, recorder: Recorder, arguments: Arguments, leaves: list[Any], spec: Any, windows: dict[int, Any]
    ) -> None:
        self.recorder, self.leaves, self.spec, self.windows = recorder, leaves, spec, windows
        self.history: Any = None
        self.late: list[int] = []
        """Results that become views once all are there."""
        self.where = {id(tensor): where for tensor, _, where in arguments.tensors}
        self.slots: list[Any] = []
        """The arrays of new tensors."""
        self.counted = True
        """Whether writes are counted: the recorded run has counted its own."""
        self.space: dict[str, Any] = {}
        self.lines: list[str] = []
        self.named: dict[int, str] = {}

    def expression(self, tensor: Any) -> str:
        """How a tensor that was there before is found."""
        where = self.where.get(id(tensor))
        if where is not None:
            return where
        for external in self.recorder.program.externals:
            if external.tensor is tensor and external.leaf is not None:
                return f"{self.expression(external.leaf)}._grad"
        name = f"t{len(self.space)}"
        self.space[name] = tensor
        return name

    def plan(self) -> None:
        """Say what each result is."""
        recorder = self.recorder
        program = recorder.program
        there = {external.slot.memory: external.tensor for external in program.externals}
        constants = {program.slots[i].memory for i in program.constants}
        grads = {id(grad): key for key, grad in recorder.grads.items() if grad is not None}
        memories: dict[int, str] = {}
        for i, leaf in enumerate(self.leaves):
            if type(leaf) is TracedNumber:
                self.lines.append(f"r{i} = made[{len(self.slots)}]")
                self.slots.append(leaf.slot)
                continue
            if not isinstance(leaf, Tensor):
                if not isinstance(leaf, SCALARS):
                    recorder.fail(f"the function returns a {type(leaf).__name__}")
                self.space[f"r{i}"] = leaf
                continue
            if id(leaf) in self.named:
                self.lines.append(f"r{i} = {self.named[id(leaf)]}")
                continue
            self.named[id(leaf)] = f"r{i}"
            if id(leaf) in recorder.facts:
                self.lines.append(f"r{i} = {self.expression(leaf)}")
                continue
            if id(leaf) in grads:
                self.lines.append(f"r{i} = {self.expression(recorder.facts[grads[id(leaf)]].tensor)}._grad")
                continue
            if type(leaf) not in PLAIN:
                recorder.fail(f"the function returns a {type(leaf).__name__} of another kind")
                continue
            slot = slot_of(recorder, leaf)
            base = there.get(slot.memory)
            if i in self.windows:
                self.lines.append(f"r{i} = fresh(made[{len(self.slots)}])")
                self.slots.append(slot)
                self.late.append(i)
                continue
            if base is not None and (leaf._requires_grad or is_inference_mode_enabled()):
                recorder.fail("the function returns a view of a tensor that was there before")
            wants = self.history is not None and i in self.history.outs
            copied = ".copy('K')" if slot.memory in constants else ""
            self.lines.append(f"r{i} = fresh(made[{len(self.slots)}]{copied})")
            self.slots.append(slot)
            if base is not None and leaf._view is None:
                if leaf._counter is base._counter:
                    self.lines.append(f"r{i}._counter = counter_of({self.expression(base)})")
            elif base is not None:
                self.lines.append(f"make_view(r{i}, {self.expression(base)})")
            elif slot.memory in memories:
                if wants and memories[slot.memory].startswith("!"):
                    recorder.fail("two results share memory and want gradients")
                self.lines.append(f"r{i}._counter = counter_of({memories[slot.memory].strip('!')})")
            if wants or slot.memory not in memories:
                memories[slot.memory] = f"{'!' if wants else ''}r{i}"
            if leaf._requires_grad and not wants:
                self.lines.append(f"r{i}._requires_grad = True")

    def function(self) -> Any:
        """`results(made, args, kwargs)`."""
        recorder, history = self.recorder, self.history
        lines = list(self.lines)
        space = self.space | {
            "fresh": fresh,
            "counter_of": counter_of,
            "attach": attach,
            "history": history,
            "make_view": make_view,
        }
        space |= {"unflatten": tree_unflatten, "spec": self.spec, "count": count_writes}
        if self.counted:
            for facts in recorder.facts.values():
                if facts.counter is not INFERENCE:
                    moved = facts.tensor._counter[0] - facts.version - recorder.bumped.get(id(facts.tensor), 0)
                    if moved:
                        lines.append(f"count({self.expression(facts.tensor)}, {moved})")
            for key, grad in recorder.grads.items():
                if grad is not None and id(grad) not in recorder.facts:
                    moved = grad._counter[0] - recorder.bumped.get(id(grad), 0)
                    if moved:
                        lines.append(f"count({self.expression(recorder.facts[key].tensor)}._grad, {moved})")
        for i in self.late:
            source = self.windows[i]
            known = self.expression(source) if id(source) in recorder.facts else self.named[id(source)]
            lines.append(f"make_view(r{i}, {known}, {self.leaves[i]._view.creation})")
        if history is not None:
            wanted = ", ".join([self.expression(tensor) for tensor in history.wanted])
            source = f"def sources(args, kwargs): return ({wanted},)"
            exec(compile(source, "<pullback sources>", "exec"), self.space)
            history.sources = self.space["sources"]
            outs = ", ".join([f"r{i}" for i in history.outs])
            memories = {slot.memory for slot in history.saved}
            watched = [self.expression(e.tensor) for e in recorder.program.externals if e.slot.memory in memories]
            watched += [self.named[id(t)] for t in self.leaves if isinstance(t, Tensor) and id(t) not in recorder.facts
                        and slot_of(recorder, t).memory in memories]  # fmt: skip
            lines.append(f"attach(history, [{outs}], made[{len(self.slots)}:], [{', '.join(watched)}], args, kwargs)")
        space |= self.space
        returned = ", ".join([f"r{i}" for i in range(self.spec.num_leaves)])
        if self.spec.num_leaves == 1 and self.spec.is_leaf():
            lines.append("return r0")
        else:
            lines.append(f"return unflatten([{returned}], spec)")
        source = "\n    ".join(["def results(made, args, kwargs):", *lines])
        return function_of(source, space, "results", "<pullback results>")


def count_writes(tensor: Any, number: int) -> None:
    """Count writes to a tensor."""
    for _ in range(number):
        bump_version(tensor)


def kept_containers(result: Any, seen: dict[int, Any]) -> bool:
    """Whether among lists and dicts that are returned is one that was there before, or one twice: results are new."""
    met: set[int] = set()
    stack = [result]
    while stack:
        value = stack.pop()
        if not isinstance(value, (list, dict, deque, tuple)):
            continue
        if not isinstance(value, tuple):
            if id(value) in seen or id(value) in met:
                return True
            met.add(id(value))
        stack += value.values() if isinstance(value, dict) else value
    return False


def with_exact(value: Any) -> Any:
    """A result with plain floats for numbers that tell; lists and dicts stay the objects they are."""
    if type(value) is TracedNumber:
        return exact(value)
    if isinstance(value, (list, deque)):
        for i, item in enumerate(value):
            value[i] = with_exact(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            value[key] = with_exact(item)
    elif isinstance(value, tuple):
        items = [with_exact(item) for item in value]
        changed = any([new is not old for new, old in zip(items, value, strict=True)])
        return tree_unflatten(items, tree_flatten(value, lambda x: x is not value)[1]) if changed else value
    return value
