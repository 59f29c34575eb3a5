"""Measuring: an event for every op, function, backward step and named block, while a recorder is installed.

Nothing of this costs anything while no profiler is on: ops look at `modes.active` anyway, and public functions get
their measuring code only for the time of a profile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from pullback._device import current_cuda
from pullback._modes import modes
from pullback._op.declare import Function, Op, functions, spaces
from pullback._op.patch import PROFILER, Action, Patch, unpatched
from pullback._runtime.building import loaded, made
from pullback._tensor import Tensor
from pullback.autograd.node import Node, parts
from pullback.autograd.profiler.events import (
    BACKWARD_FUNCTION,
    FUNCTION,
    USER_SCOPE,
    EventList,
    FunctionEvent,
    caller_stack,
)
from pullback.autograd.profiler.flops import flops_of
from pullback.ops import load_all


class ThreadState(threading.local):
    """The open events of a thread, outermost first, and the thread's number."""

    def __init__(self) -> None:
        self.open: list[FunctionEvent] = []
        self.number = 0


class Recorder:
    """Collects events. Installed as `modes.profiler`."""

    def __init__(
        self,
        record_shapes: bool = False,
        with_stack: bool = False,
        profile_memory: bool = False,
        with_flops: bool = False,
        with_device: bool = False,
    ) -> None:
        self.with_flops = with_flops
        self.marks = Marks() if with_device else None
        self.record_shapes, self.with_stack, self.profile_memory = record_shapes, with_stack, profile_memory
        self.events: list[FunctionEvent] = []
        self.started = perf_counter_ns()
        self.thread = ThreadState()
        self.threads = 0
        self.outer: Any = None
        self.patch = Patch(PROFILER, lambda: [(known.call, self.measuring(known)) for known in public_functions()])

    # ---------------------------------------------------------------- on and off

    def install(self) -> None:
        """From here on everything is measured."""
        load_all()  # a function declared while the profile runs would not be measured
        made(self.begin_profile)

    def begin_profile(self) -> None:
        """Be told of every op, function and backward step."""
        self.outer = modes.profiler
        modes.hold(self)
        modes.profiler = self
        self.patch.hold(self)

    def remove(self) -> None:
        """Stop measuring."""
        made(self.end_profile)

    def end_profile(self) -> None:
        """Be told no more."""
        self.patch.drop(self)
        inner = modes.profiler
        if inner is self:
            modes.profiler = self.outer
        while inner is not None and inner is not self:  # one that began later goes on without this one
            if inner.outer is self:
                inner.outer = self.outer
            inner = inner.outer
        modes.drop(self)

    # ---------------------------------------------------------------- events

    def begin(self, name: str, scope: int, sequence_nr: int = -1) -> FunctionEvent:
        """Open an event."""
        state = self.thread
        if not state.number:
            self.threads += 1
            state.number = self.threads
        event = FunctionEvent(len(self.events), name, state.number, scope)
        event.sequence_nr = sequence_nr
        if state.open:
            event.cpu_parent = state.open[-1]
            event.cpu_parent.cpu_children.append(event)
        if self.with_stack and scope != BACKWARD_FUNCTION:
            event.stack = caller_stack(2)
        self.events.append(event)
        state.open.append(event)
        event.time_range.start = (perf_counter_ns() - self.started) / 1e3
        if self.marks is not None:
            self.marks.put(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        """Close an event."""
        if self.marks is not None:
            self.marks.put(event)
        event.time_range.end = (perf_counter_ns() - self.started) / 1e3
        stack = self.thread.open
        while stack and stack.pop() is not event:
            pass  # an inner event that was never closed ends with its parent

    def measured(
        self, name: str, scope: int, action: Callable[[], Any], inputs: Any = (), sequence_nr: int = -1
    ) -> Any:
        """Run an action as one event; a function that only calls the op of its name is one event with it."""
        around = self.thread.open
        if scope == FUNCTION and around and around[-1].name == name and not around[-1].cpu_children:
            return action()
        event = self.begin(name, scope, sequence_nr)
        if self.record_shapes:
            event.input_shapes = shapes_of(inputs)
        if self.with_flops and scope == FUNCTION:
            event.flops = flops_of(name, list(inputs))
        try:
            result = action()
        finally:
            self.end(event)
        if scope == FUNCTION:
            note_result(event, result)
        return result

    def measuring(self, declared: Function) -> Action:
        """What a function does while this profile runs: the same, as an event."""

        def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            inputs = in_order(declared.call, args, kwargs)
            return self.measured(f"aten::{declared.name}", FUNCTION, lambda: original(*args, **kwargs), inputs)

        return run

    # ---------------------------------------------------------------- called by the op machine and the engine

    def call(self, op: Op, bound: dict[str, Any], out: Any, action: Callable[..., Any]) -> Any:
        """An op."""
        return self.measured(f"aten::{op.name}", FUNCTION, lambda: action(op, bound, out), bound.values())

    def call_inplace(self, op: Op, self_: Tensor, args: tuple[Any, ...], action: Callable[..., Any]) -> Any:
        """The in-place twin of an op."""
        return self.measured(f"aten::{op.name}_", FUNCTION, lambda: action(op, self_, args), (self_, *args))

    def run_node(self, node: Node, action: Callable[[], Any], grad: Any = None) -> Any:
        """A backward step: the engine's work around it, and the node itself."""
        number = node.sequence_nr if node.sequence_nr < 1 << 62 else -1
        return self.measured(
            f"autograd::engine::evaluate_function: {node.name()}",
            BACKWARD_FUNCTION,
            lambda: self.measured(node.name(), BACKWARD_FUNCTION, action, sequence_nr=number),
            sequence_nr=number,
        )


def note_result(event: FunctionEvent, result: Any) -> None:
    """The bytes a call allocated for its results, and the node it made."""
    for item in result if isinstance(result, tuple) else (result,):
        if isinstance(item, Tensor):
            if item._array.base is None and not any(child.own_memory for child in event.cpu_children):
                if item.device.type == "cuda":
                    event.own_device_memory += item._array.nbytes
                else:
                    event.own_memory += item._array.nbytes
            node = parts(item._edge)[0]
            if isinstance(node, Node) and node.sequence_nr < 1 << 62:
                event.sequence_nr = node.sequence_nr


def shapes_of(inputs: Any) -> list[Any]:
    """The shapes of tensors among the arguments, [] for everything else."""
    out: list[Any] = []
    for value in inputs:
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, Tensor) for v in value):
            out.append([list(v._array.shape) for v in value])
        else:
            out.append(list(value._array.shape) if isinstance(value, Tensor) else [])
    return out


def public_functions() -> list[Function]:
    """Every public function written in terms of ops, those that share a name with another included."""
    found = {id(declared): declared for declared in functions.values()}
    for space in spaces.values():
        for call in space.values():
            declared = getattr(call, "op", None)
            if type(declared) is Function and declared.call is call:
                found[id(declared)] = declared
    return list(found.values())


def in_order(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a call in the order of the parameters, defaults included."""
    own = unpatched(function)
    names = own.__code__.co_varnames[: own.__code__.co_argcount]
    defaults = own.__defaults__ or ()
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) if defaults else {}
    given.update(zip(names, args, strict=False))
    given.update(kwargs)
    rest = [value for name, value in given.items() if name not in names]
    return [given[name] for name in names if name in given] + list(args[len(names) :]) + rest


class Marks:
    """Marks in the current stream of the current device, before and after every event."""

    def __init__(self) -> None:
        self.rooms = loaded("pullback.kernels.cuda.device")
        self.driver, self.index = self.rooms.required(), current_cuda.index
        self.made: dict[int, list[int]] = {}

    def put(self, event: FunctionEvent) -> None:
        """Another mark, for the beginning or the end of an event."""
        mark = self.driver.new_event(self.index, True, False)
        self.driver.record(self.index, mark, self.rooms.stream_on(self.index))
        self.made.setdefault(event.id, []).append(mark)

    def read(self, events: list[FunctionEvent]) -> None:
        """Wait for the device, and tell every event how long the way from its first mark to its last was."""
        self.driver.synchronize(self.index)
        for event in events:
            marks = self.made.pop(event.id, [])
            if len(marks) == 2:
                event.device_time_total = self.driver.elapsed(self.index, *marks) * 1e3
            for mark in marks:
                self.driver.free_event(mark)


def collected(recorder: Recorder) -> EventList:
    """The events in order of their beginning."""
    if recorder.marks is not None:
        recorder.marks.read(recorder.events)
    use_device = None if recorder.marks is None else "cuda"
    return EventList(recorder.events, recorder.profile_memory, recorder.with_flops, use_device)


__all__ = ["USER_SCOPE", "Recorder", "collected"]
