"""The recorder: a function runs as it would anyhow, on arrays that tell what is done to them.

Every step is computed here, by the same function eager code calls, and noted. What cannot be noted is computed too,
and `why` says why the recording is of no use: the first reason counts.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from pullback._arrays.memory import data_ptr, memory_of
from pullback._modes import modes
from pullback._runtime.quiet import quiet
from pullback._tensor import INFERENCE, Parameter, Tensor
from pullback.autograd.numbering import numbers
from pullback.autograd.view import follow
from pullback.compiler.arguments import Facts, takes
from pullback.compiler.arrays import TracedArray, TracedParameter, TracedTensor, own_grad
from pullback.compiler.effects import Leaf, stepped_by, updated_by
from pullback.compiler.numbers import TracedNumber, exact
from pullback.compiler.program import CALL, EFFECT, METHOD, NUMBER, External, Program, Slot, Step
from pullback.compiler.reads import Reads
from pullback.compiler.watch import MOST_TRAILS, Trail, suspended, trail_of, user_line
from pullback.kernels.numpy.random.engine import Engine
from pullback.ops.random.generator import Generator, default_generator

PLAIN = {int, float, bool, str, type(None), np.dtype}
"""Classes of arguments in which there are no arrays."""


class Recorder(Reads):
    """Records what one thread does."""

    def __init__(self, whole: bool = False) -> None:
        self.program = Program()
        self.values: list[Any] = []
        """The array in each slot."""
        self.by_id: dict[int, TracedArray] = {}
        """Arrays that stand in slots, by identity."""
        self.memories: dict[int, int] = {}
        """The first slot that showed a piece of memory, by the identity of the array that owns it."""
        self.owners: list[Any] = []
        self.holders: list[Any] = []
        """Every tensor around a traced array."""
        self.facts: dict[int, Facts] = {}
        """Tensors that were there before, as they were."""
        self.grads: dict[int, Any] = {}
        """The gradient that each of them has, as far as effects tell."""
        self.asked: set[int] = set()
        """Those of them whose gradient somebody looked at before it was forgotten: whether there is one matters."""
        self.forgotten: set[int] = set()
        self.bumped: dict[int, int] = {}
        """Writes to them that effects count themselves."""
        self.why: str | None = None
        self.trails: list[tuple[Trail, str]] = []
        """Where something was done that cannot be recorded, and what."""
        self.whole = whole
        """Whether a program with branches is of no use."""
        self.live: list[Any] = []
        """Numbers that were given to Python, as far as they are still there."""
        self.numbers_read = False
        """Whether Python looked at a number that is an argument."""
        self.thread = threading.get_ident()
        self.began = numbers.next()
        self.streams: dict[Any, Any] = {default_generator._engine: None}
        """Sources of random numbers, and how far each has come."""
        self.leaves: dict[int, Leaf] = {}
        self.places: dict[int, str] = {}
        """Where tensors are among the arguments, by identity."""
        self.kept: dict[int, tuple[Any, Any]] = {}
        """Memory that was written to, as it was before."""
        self.arrived: dict[int, tuple[Any, Any, Any]] = {}
        """Tensors that the function does not reach and that were given gradients: the one they had, and its version."""
        self.began_at = self.states()
        self.probe: list[str] | None = None
        """While it is asked whether a function looks at elements: how it did."""
        self.ended = False
        """Whether the run is over: an array that somebody kept computes as a plain one from there on."""
        self.busy = False
        """Whether a step is being computed."""
        self.note_streams()

    def states(self) -> dict[Any, Any]:
        """The sources of random numbers as they are."""
        return {engine: engine.get_state() for engine in self.streams}

    # ---------------------------------------------------------------- ends
    def fail(self, why: str) -> None:
        """The recording is of no use."""
        if len(self.trails) < MOST_TRAILS:
            self.trails.append((trail_of(sys._getframe(1)), why))
        if self.why is None:
            line = user_line()
            self.why = f"{why} at {line}" if line else why

    def value_read(self, how: str) -> None:
        """Somebody looked at elements in a way that cannot be followed."""
        if self.probe is not None:
            self.probe.append(how)
            return
        self.fail(f"a value was read by {how}")

    # ---------------------------------------------------------------- slots
    def slot(self, value: Any) -> Slot:
        """A new slot for an array."""
        owner = memory_of(value)
        index = len(self.program.slots)
        memory = self.memories.setdefault(id(owner), index)
        if memory == index:
            self.owners.append(owner)  # or another array might get its identity
        offset = 0 if memory == index else data_ptr(value) - data_ptr(self.values[memory])
        slot = Slot(index, value, memory, offset)
        self.program.slots.append(slot)
        self.values.append(value)
        return slot

    def traced(self, value: Any) -> TracedArray:
        """An array in a slot of its own."""
        made = self.by_id[id(value)] = TracedArray(self, self.slot(value), value)
        return made

    def constant(self, value: Any) -> Slot:
        """The slot of an array that was made by what cannot change."""
        known = self.by_id.get(id(value))
        if known is None:
            known = self.traced(value)
            self.program.constants[known.slot.index] = value
        return known.slot

    def owner(self, array: TracedArray, owner: Any) -> TracedArray:
        """The array that owns the memory of another."""
        known = self.by_id.get(id(owner))
        return known if known is not None else self.call(memory_of, (array,), {})  # type: ignore[no-any-return]

    def lift(self, tensor: Any, name: str, leaf: Any = None) -> bool:
        """From here on the tensor tells what is done to it. False if it cannot."""
        if id(tensor) in self.facts:
            return True
        if not takes(tensor):
            return False
        if tensor._view is not None:
            follow(tensor)
        array = tensor._array
        self.facts[id(tensor)] = Facts(tensor)
        known = self.by_id.get(id(array))
        if known is None:
            known = self.traced(array)
        self.program.externals.append(External(known.slot, tensor, name, leaf))
        raised(tensor, known)
        grad = self.grads[id(tensor)] = own_grad(tensor)
        if grad is not None:
            self.lift(grad, f"{name}.grad", tensor)
        return True

    def found(self, tensor: Any, name: str) -> None:
        """A tensor that the function can reach."""
        self.lift(tensor, name)

    def begin(self) -> None:
        """Record what this thread does from here on."""
        modes.recorders[self.thread] = self
        modes.hold(self)
        self.note_streams()

    def end(self) -> None:
        """Record no more."""
        self.ended = True
        for one in self.live:
            if (number := one()) is not None:
                number.recorder = None
        modes.recorders.pop(self.thread, None)
        modes.drop(self)
        self.lower()

    def undo(self) -> bool:
        """After an error: make everything as it was before the run. False if that cannot be."""
        if any([step.kind == EFFECT and step.function is updated_by for step in self.program.steps]):
            return False
        for owner, before in self.kept.values():
            owner[...] = before
        for facts in self.facts.values():
            facts.tensor._grad = facts.grad
            bring_back(facts.tensor, facts.counter, facts.version)
        for tensor, grad, version in self.arrived.values():
            tensor._grad = grad
            if grad is not None:
                bring_back(grad, *version)
        for engine, state in self.began_at.items():
            engine.set_state(state)
        return True

    def check_tensors(self) -> None:
        """Fail if something was done to tensors that no step tells of."""
        for key, facts in self.facts.items():
            array = facts.tensor._array
            changed = facts.changed(array.value if type(array) is TracedArray else array, self.grads[key])
            if changed:
                self.fail(f"a tensor of shape {facts.shape} {changed}")
        written = {slot.memory for step in self.program.steps for slot in step.writes}
        if written.intersection([self.program.slots[i].memory for i in self.program.constants]):
            self.fail("a tensor that nobody knows was written to")

    def lower(self) -> None:
        """Make all tensors plain again."""
        for tensor in self.holders:
            lowered(tensor)

    def aside(self, work: Any, tensors: Any = None) -> Any:
        """Do something on plain tensors, unrecorded, that is an effect of the program: on all, or on `tensors`."""
        holders = self.holders if tensors is None else tensors
        traced = {id(t): t for t in holders if type(t) in (TracedTensor, TracedParameter)}
        held = [(t, t._array) for t in traced.values()]
        before = [(f.tensor, f.tensor._counter) for f in self.facts.values() if f.counter is not INFERENCE]
        new = [grad for grad in self.grads.values() if grad is not None and id(grad) not in self.facts]
        before += [(grad, grad._counter) for grad in new if grad._counter is not INFERENCE]
        versions = [counter[0] for _, counter in before]
        for tensor, _ in held:
            lowered(tensor)
        modes.recorders.pop(self.thread, None)
        modes.drop(self)
        resume = suspended()
        try:
            return work()
        finally:
            resume()
            modes.hold(self)
            modes.recorders[self.thread] = self
            for tensor, array in held:
                if tensor._array is not array.value:
                    self.fail("a tensor was given other memory")
                    if type(tensor._array) is np.ndarray:
                        array = self.by_id.get(id(tensor._array)) or self.traced(tensor._array)
                raised(tensor, array)
            for (tensor, _), version in zip(before, versions, strict=True):
                moved = tensor._counter[0] - version
                if moved:
                    self.bumped[id(tensor)] = self.bumped.get(id(tensor), 0) + moved
            self.note_streams()

    # ---------------------------------------------------------------- arguments
    def plain(self, value: Any) -> Any:
        """Arguments with arrays for traced ones."""
        kind = type(value)
        if kind is TracedArray:
            return value.value
        if kind is tuple or kind is list:
            return kind([item.value if type(item) is TracedArray else item if type(item) in PLAIN else self.plain(item)
                         for item in value])  # fmt: skip
        if kind is TracedNumber:
            return exact(value)
        if kind is dict:
            return {key: self.plain(item) for key, item in value.items()}
        if kind is slice:
            return slice(self.plain(value.start), self.plain(value.stop), self.plain(value.step))
        return value

    def noted(self, value: Any) -> Any:
        """Arguments with slots for arrays."""
        kind = type(value)
        if kind is TracedArray or kind is TracedNumber:
            return value.slot
        if kind is tuple or kind is list:
            return kind([item.slot if type(item) is TracedArray else item if type(item) in PLAIN else self.noted(item)
                         for item in value])  # fmt: skip
        if kind is np.ndarray:
            return self.constant(value)
        if kind is dict:
            return {key: self.noted(item) for key, item in value.items()}
        if isinstance(value, Tensor):
            self.fail(f"a tensor of class {kind.__name__} among the arguments of a kernel")
        return value

    # ---------------------------------------------------------------- steps
    def step(self, kind: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
        """A new step, before it is run: what is constant now is what it is given."""
        self.check_streams()
        step = Step(kind, function, self.noted(args), {k: self.noted(v) for k, v in kwargs.items()})
        step.line = user_line()
        known = len(self.streams)
        for value in (*args, *kwargs.values()):
            if type(value) is TracedArray or type(value) in PLAIN:
                continue
            if isinstance(value, Generator):
                self.streams.setdefault(value._engine, None)
            elif isinstance(value, Engine):
                self.streams.setdefault(value, None)
        if len(self.streams) > known:
            self.note_streams()
        return step

    def finish(self, step: Step, made: Any, several: bool) -> Any:
        """Note what a step made; the same as traced arrays."""
        if self.ended:
            return made
        step.random = self.note_streams()
        step.several = several
        self.program.steps.append(step)
        outs = []
        for value in made if several else (made,):
            if value is None:
                step.outs.append(None)
                outs.append(None)
                continue
            if type(value) is not np.ndarray:
                if not isinstance(value, (np.ndarray, np.generic)):
                    self.fail(f"{step.name} gave a {type(value).__name__}")
                    step.outs.append(None)
                    outs.append(value)
                    continue
                value = np.asarray(value)
            known = self.by_id.get(id(value))
            if known is None:
                known = self.traced(value)
            step.outs.append(known.slot)
            outs.append(known)
        return outs if several else outs[0]

    def write(self, step: Step, written: tuple[Any, ...]) -> None:
        """Note whose memory a step changes."""
        slots = []
        for target in written:
            if type(target) is TracedArray:
                slots.append(target.slot)
                self.keep(target.value)
            else:
                self.fail(f"{step.name} wrote to an array that nobody knows")
        step.writes = tuple(slots)

    def keep(self, array: Any) -> None:
        """Note memory as it is before something is written to it."""
        owner = memory_of(array)
        if id(owner) not in self.kept:
            self.kept[id(owner)] = owner, owner.copy("K")

    def keep_grad(self, variable: Any) -> None:
        """Note the gradient of a leaf as it is before another one is added to it."""
        grad = variable._grad
        if grad is not None:
            self.keep(grad._array.value if type(grad._array) is TracedArray else grad._array)
        if id(variable) not in self.facts and id(variable) not in self.arrived:
            counter = None if grad is None else grad._counter
            version = 0 if counter is None or counter is INFERENCE else counter[0]
            self.arrived[id(variable)] = variable, grad, (counter, version)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], written: tuple[Any, ...] = ()) -> Any:
        """A call of a function of arrays."""
        if self.probe is not None:
            self.probe.append("a call")
            return quiet().run(function, *self.plain(args), **self.plain(kwargs))
        step = self.step(CALL, function, args, kwargs)
        self.write(step, written)
        made = self.run(quiet().run, function, *self.plain(args), **self.plain(kwargs))
        if written and made is None:
            self.finish(step, (), True)
            return None
        return self.finish(step, made, type(made) in (tuple, list))

    def method(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, written: tuple[Any, ...] = ()
    ) -> Any:
        """A call of a method of the first argument."""
        if self.probe is not None:
            self.probe.append(name)
            first, *rest = self.plain(args)
            return quiet().run(getattr(first, name), *rest, **self.plain(kwargs or {}))
        step = self.step(METHOD, name, args, kwargs or {})
        self.write(step, written)
        first, *rest = self.plain(args)
        made = self.run(quiet().run, getattr(first, name), *rest, **self.plain(kwargs or {}))
        if written:
            self.finish(step, (), True)
            return made
        return self.finish(step, made, type(made) in (tuple, list))

    def made(self, make: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function that creates arrays makes: a new one at each run."""
        if self.busy:
            return quiet().run(make, *args, **kwargs)
        return self.call(make, args, kwargs)

    def run(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a step: what it makes on the way is nobody's business."""
        self.busy = True
        try:
            return function(*args, **kwargs)
        finally:
            self.busy = False

    def leaf(self, tensor: Any) -> Leaf:
        """A tensor as an argument of effects."""
        known = self.leaves.get(id(tensor))
        if known is None:
            known = self.leaves[id(tensor)] = Leaf(tensor)
            if id(tensor) in self.places:
                index = len(self.program.slots)
                known.slot = Slot(index, NUMBER, index)
                self.program.slots.append(known.slot)
                self.values.append(known)
                self.program.numbers.append((known.slot, f"Leaf({self.places[id(tensor)]})"))
        return known

    def ask_for_grad(self, tensor: Any) -> None:
        """Somebody looks at the gradient of a tensor."""
        if id(tensor) in self.facts and id(tensor) not in self.forgotten:
            self.asked.add(id(tensor))

    def optimizer_step(self, optimizer: Any, step: Any) -> Any:
        """A step of an optimizer: it reads its rates and writes parameters and state by itself, at each run."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.ask_for_grad(parameter)
            if any([id(p) not in self.facts for p in group["params"]]):
                self.fail("an optimizer has parameters that the function does not reach")
            if any([type(value) is TracedNumber for value in group.values()]):
                self.fail("a rate of an optimizer was set to a number that changes")
        self.effect(updated_by, (optimizer,))
        return self.aside(lambda: step(optimizer))

    def scheduler_step(self, step: Any, scheduler: Any, args: tuple[Any, ...]) -> None:
        """A step of a scheduler of rates, which changes nothing but numbers, at each run."""
        args = tuple([a.item() if isinstance(a, Tensor) and a.numel() == 1 else a for a in args])
        if not all([isinstance(a, (int, float, type(None))) for a in args]):
            self.fail("a scheduler was given something that is not a number")
        self.effect(stepped_by, (step, scheduler, *args))
        self.aside(lambda: step(scheduler, *[exact(a) for a in args]))

    def looks(self, function: Any, args: Any, kwargs: Any) -> bool:
        """Whether a function that checks its arguments looks at more than shapes and dtypes."""
        self.probe = []
        try:
            function(*args, **kwargs)
            return bool(self.probe)
        except Exception:
            return True
        finally:
            self.probe = None

    def effect(self, function: Any, args: tuple[Any, ...]) -> Step:
        """Note something that changes tensors that were there before; whoever calls this does it, too."""
        step = self.step(EFFECT, function, args, {})
        self.program.steps.append(step)
        return step

    # ---------------------------------------------------------------- random numbers
    def note_streams(self) -> bool:
        """Note how far the sources of random numbers have come; True if one has gone on."""
        moved = False
        for engine, before in self.streams.items():
            now = place_in(engine)
            if now != before:
                self.streams[engine] = now
                moved = moved or before is not None
        return moved

    def check_streams(self) -> None:
        """Fail if random numbers were drawn outside of a step."""
        if self.note_streams():
            self.fail("random numbers were drawn where the recorder does not see it")


def place_in(engine: Any) -> Any:
    """How far an engine has come."""
    return (
        engine._position,
        engine._end,
        id(engine._block),
        engine.next_float_normal_sample,
        engine.next_double_normal_sample,
    )


def bring_back(tensor: Any, counter: Any, version: int) -> None:
    """Give a tensor the version it had."""
    tensor._counter = counter
    if counter is not INFERENCE and counter[0] != version:
        counter[0] = version


def raised(tensor: Any, array: TracedArray) -> None:
    """Make a plain tensor a traced one."""
    tensor.__class__ = TracedParameter if type(tensor) is Parameter else TracedTensor
    tensor._array = array


def lowered(tensor: Any) -> None:
    """Make a traced tensor plain."""
    if type(tensor) is TracedTensor or type(tensor) is TracedParameter:
        array = tensor._array
        tensor.__class__ = Parameter if type(tensor) is TracedParameter else Tensor
        tensor._array = array.value if type(array) is TracedArray else array
