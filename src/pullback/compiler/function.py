"""A compiled function: programs with their guards, and what calls them.

call -> a program whose guards hold?  -> its arrays -> run -> tensors
     -> no: the function itself, recorded, and one more program; or the reason why there is none
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from pullback._building import loaded
from pullback._dtype import defaults
from pullback._modes import in_transform, is_grad_enabled, is_inference_mode_enabled, modes
from pullback._pytree import tree_flatten, tree_unflatten
from pullback._quiet import SILENT, errors
from pullback._tensor import INFERENCE, Parameter, Tensor, bump_version, counter_of, fresh
from pullback._warnings import warn
from pullback.autograd.view import make_view
from pullback.compiler import kind as kind
from pullback.compiler.arguments import Arguments, Refused, difference, entry_function
from pullback.compiler.arrays import TracedParameter, TracedTensor
from pullback.compiler.capture import Recorder
from pullback.compiler.checking import checked
from pullback.compiler.guards import SCALARS, Survey, Unguarded, first_broken, guard_of
from pullback.compiler.history import attach, finish_history, recorded_history, slot_of
from pullback.compiler.lowering import lower_graph
from pullback.compiler.program import EFFECT
from pullback.compiler.replay import runner, without_dead
from pullback.compiler.watch import Watch
from pullback.kernels.compiled import room
from pullback.ops import autocast

CHECKED, CHECKED_EVERY = 4, 500
"""With `check=True`: the first calls, and every so many later, run the function beside the program."""
PLAIN = (Tensor, Parameter, TracedTensor, TracedParameter)
WARM = 2
"""The call of a program at which it becomes native code: before, nobody knows whether it is called again."""
LIMIT = 8
"""Programs for one function: torch's recompile_limit."""
lock = threading.RLock()


class Unsupported(RuntimeError):
    """What `fullgraph=True` raises where a function cannot be compiled as a whole: torch._dynamo.exc.Unsupported."""


class InvalidBackend(RuntimeError):
    """The name of no backend: torch._dynamo.exc.InvalidBackend."""


def mode_key() -> Any:
    """The modes that programs depend on."""
    state = autocast.state.get()
    cast = (state.enabled, state.dtypes["cpu"]) if "cpu" in state.enabled else None
    return is_grad_enabled(), is_inference_mode_enabled(), defaults.numpy, cast


class Entry:
    """One program with its guards; or, without one, the reason why such calls run as they are."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.modes = mode_key()
        self.why: str | None = None
        self.guard: Callable[[], bool] = lambda: True
        self.enter: Any = None
        self.notes: list[Any] = []
        self.program: Any = None
        self.history: Any = None
        self.run: Any = None
        self.source = ""
        self.results: Any = None
        self.calls = 0
        self.steps: list[Any] = []
        self.signature: Any = None

    def called(self, arrays: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the program."""
        before = errors.get()
        try:
            errors.set(SILENT)
            made = self.run(*arrays)
        finally:
            errors.set(before)
        return self.results(made, args, kwargs)

    def kernels(self) -> list[str]:
        """What native functions do, of the program and of its backward."""
        steps = [*self.steps, *(self.history.steps if self.history is not None else [])]
        return [step.native for step in steps if step.name == "region"]

    def run_by_python(self) -> dict[str, str]:
        """The steps that native code does not do, and why."""
        return {step.name: step.native for step in self.steps if step.kind != EFFECT and step.name != "region"}

    def upgrade(self) -> None:
        """Put native code in place of the steps it can do, in the program and its backward."""
        if room("runtime.calls") is None:
            return
        with_native_code = loaded("pullback.compiler.native.regions").with_native_code  # without llvmlite it cannot be
        given, wanted = self.signature
        self.steps = with_native_code(self.program, self.steps, wanted)
        self.run, self.source = runner(self.program, self.steps, given, wanted)
        history = self.history
        if history is not None and history.run is not None:
            given, wanted = history.signature
            history.steps = with_native_code(self.program, history.steps, wanted)
            history.run, history.source = runner(self.program, history.steps, given, wanted)


class Compiled:
    """What `compile` makes of a function."""

    forced = False
    """Whether all compiled functions run as they are: torch.compiler.set_stance."""
    config: Any = None
    """torch._dynamo.config"""

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        runs: bool = True,
        limit: int | None = None,
        check: bool = False,
        exact: bool = False,
        native: bool = True,
    ) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.runs = runs
        """Whether programs are run; else the function is recorded, to see that it can be, and runs as it is."""
        self.limit, self.check, self.exact, self.native = limit, check, exact, native
        self.entries: list[Entry] = []
        self.storm = False
        self.changes: list[str] = []
        """Why it was compiled again, each time."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.forced or (self.config is not None and self.config.disable):
            return self.function(*args, **kwargs)
        if in_transform.get():
            return self.function(*args, **kwargs)
        if modes.active and (modes.recorders or set(modes.holders) - {"PULLBACK_REFERENCE"} - casting()):
            return self.function(*args, **kwargs)
        key = mode_key()
        for entry in self.entries:
            if entry.modes == key and entry.guard():
                arrays = entry.enter(args, kwargs)
                if arrays is None:
                    continue
                if entry.why is not None or not self.runs:
                    return self.function(*args, **kwargs)
                entry.calls += 1
                if entry.calls == WARM and self.native and not self.exact:
                    entry.upgrade()
                if self.check and (entry.calls <= CHECKED or entry.calls % CHECKED_EVERY == 0):
                    return checked(self.function, entry, arrays, args, kwargs)
                return entry.called(arrays, args, kwargs)
        return self.compile(args, kwargs)

    def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function itself, recorded."""
        limit = self.limit
        if limit is None:
            limit = LIMIT if self.config is None else self.config.recompile_limit
        if len(self.entries) >= limit:
            if not self.storm:
                self.storm = True
                last = self.changes[-1] if self.changes else "unknown"
                warn(
                    f"torch.compile: {name_of(self.function)} was compiled {limit} times and runs as it is where no "
                    f"program fits; what changed last: {last}"
                )
            return self.function(*args, **kwargs)
        if sys.getprofile() is not None:  # whoever profiles sees the function itself
            return self.function(*args, **kwargs)
        with lock:
            if self.entries:
                newest = self.entries[0]
                changed = (
                    "a mode" if newest.modes != mode_key() else difference(newest.arguments, args, kwargs, newest.notes)
                )
                self.changes.append(changed)
            return Capture(self, args, kwargs).run()

    def shown(self) -> str:
        """The programs as text."""
        parts = []
        for nr, entry in enumerate(self.entries):
            if entry.why is not None:
                parts.append(f"# signature {nr} runs as it is written: {entry.why}")
                continue
            parts.append(f"# program {nr}, {len(entry.program.steps)} steps\n{entry.program.shown()}")
            parts += [f"# native function\n{text}" for text in entry.kernels()]
        return "\n".join(parts) or "# not called yet"

    def reset(self) -> None:
        """Forget all programs."""
        self.entries.clear()
        self.changes.clear()
        self.storm = False


def casting() -> set[Any]:
    """The holder of this thread's autocast, which programs know."""
    holder = autocast.state.get().holder
    return set() if holder is None else {holder}


def name_of(function: Any) -> str:
    """What a function is called."""
    return getattr(function, "__qualname__", None) or type(function).__qualname__


class Capture:
    """One recorded run of a function, and what becomes of it."""

    def __init__(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.compiled, self.args, self.kwargs = compiled, args, kwargs
        self.recorder = Recorder()
        self.watch = Watch()
        self.roots = [(compiled.function, name_of(compiled.function))]
        self.roots += [(value, f"args[{i}]") for i, value in enumerate(args)] + [(v, k) for k, v in kwargs.items()]

    def run(self) -> Any:
        """Run the function; its result is that of the eager one, whatever becomes of the recording."""
        recorder = self.recorder
        if sys.getprofile() is not None:
            return self.as_it_is("a profiler runs, in the place of what watches a recording")
        try:
            arguments = Arguments(self.args, self.kwargs)
        except Refused as error:
            return self.as_it_is(str(error))
        foreign = [name for tensor, name, _ in arguments.tensors if not recorder.lift(tensor, name)]
        before = Survey(Watch(), recorder.found, strict=False)
        try:
            if foreign:
                recorder.fail(f"{foreign[0]} is a tensor that cannot be recorded")
            before.before(self.roots)
            recorder.begin()
            try:
                with self.watch:
                    result = self.compiled.function(*self.args, **self.kwargs)
            except Exception as error:
                recorder.end()
                if first_broken(before.notes) or not recorder.undo():
                    raise
                return self.run_again(arguments, error)
            recorder.check_streams()
            if self.watch.why:
                recorder.fail(self.watch.why)
            if changed := first_broken(before.notes):
                recorder.fail(f"the function changes something that is not a tensor: {changed}")
            leaves, spec = tree_flatten(result)
            recorder.check_tensors()
            history = None
            if recorder.why is None:
                history = recorded_history(recorder, leaves)
            entry = self.entry(arguments, leaves, spec, history)
        finally:
            recorder.end()
        lower_graph(recorder, [leaf for leaf in leaves if isinstance(leaf, Tensor)])
        if entry.why is not None and self.compiled.fullgraph:
            raise Unsupported(entry.why)
        self.compiled.entries.insert(0, entry)
        return result if entry.why is not None or not self.compiled.runs else entry.first  # type: ignore[attr-defined]

    def run_again(self, arguments: Arguments, error: Exception) -> Any:
        """After an error, whose cause may be the recording: the function as it is, which raises it if it is its own."""
        result = self.compiled.function(*self.args, **self.kwargs)
        why = f"it cannot be recorded: {type(error).__name__}: {error}"
        if self.compiled.fullgraph:
            raise Unsupported(why) from error
        entry = Entry(arguments)
        entry.why = why
        entry.enter, _ = entry_function(arguments, self.recorder.program, self.recorder.facts)
        self.compiled.entries.insert(0, entry)
        return result

    def as_it_is(self, why: str) -> Any:
        """Run the function as it is."""
        if self.compiled.fullgraph:
            raise Unsupported(why)
        return self.compiled.function(*self.args, **self.kwargs)

    def entry(self, arguments: Arguments, leaves: list[Any], spec: Any, history: Any) -> Entry:
        """The program, its guards, and what makes tensors of its arrays; or why there is none."""
        recorder = self.recorder
        entry = Entry(arguments)
        program = entry.program = recorder.program
        after = Survey(self.watch, lambda tensor, name: None)
        try:
            after.after(self.roots)
            for tensor, name in after.tensors.values():
                if id(tensor) not in recorder.facts:
                    recorder.fail(f"{name} is a tensor that cannot be recorded")
        except Unguarded as error:
            recorder.fail(str(error))
        entry.notes = after.notes
        results = Results(recorder, arguments, leaves, spec, history)
        if recorder.why is None:
            results.plan()
        entry.enter, _ = entry_function(arguments, program, recorder.facts)
        if recorder.why is None:
            entry.history = history
            forward = program.steps if history is None else program.steps[: history.forward]
            if history is not None:
                finish_history(history, program)
            wanted = results.slots + ([] if history is None else history.saved)
            entry.guard = guard_of(entry.notes)
            given = [external.slot for external in program.externals]
            entry.steps = without_dead(forward, wanted)
            entry.run, entry.source = runner(program, entry.steps, given, wanted)
            entry.signature = given, wanted
            entry.results = results.function()
            # What was computed already are the results of this call.
            recorder.lower()
            results.counted = False
            entry.first = results.function()(tuple([recorder.values[s.index] for s in wanted]), self.args, self.kwargs)  # type: ignore[attr-defined]
        entry.why = recorder.why
        return entry


class Results:
    """From the arrays of a program to what the function returns, and to the tensors it wrote to."""

    def __init__(self, recorder: Recorder, arguments: Arguments, leaves: list[Any], spec: Any, history: Any) -> None:
        self.recorder, self.leaves, self.spec, self.history = recorder, leaves, spec, history
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
            if base is not None and (leaf._requires_grad or leaf._view is None or is_inference_mode_enabled()):
                recorder.fail("the function returns a view of a tensor that was there before")
            wants = self.history is not None and i in self.history.outs
            copied = ".copy('K')" if slot.memory in constants else ""
            self.lines.append(f"r{i} = fresh(made[{len(self.slots)}]{copied})")
            self.slots.append(slot)
            if base is not None:
                self.lines.append(f"make_view(r{i}, {self.expression(base)})")
            elif slot.memory in memories:
                if wants or memories[slot.memory].startswith("!"):
                    recorder.fail("two results share memory and want gradients")
                self.lines.append(f"r{i}._counter = counter_of({memories[slot.memory].strip('!')})")
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
        if history is not None:
            wanted = ", ".join([self.expression(tensor) for tensor in history.wanted])
            exec(f"def sources(args, kwargs): return ({wanted},)", self.space)
            history.sources = self.space["sources"]
            outs = ", ".join([f"r{i}" for i in history.outs])
            memories = {slot.memory for slot in history.saved}
            watched = [self.expression(e.tensor) for e in recorder.program.externals if e.slot.memory in memories]
            watched += [self.named[id(t)] for t in self.leaves if isinstance(t, Tensor) and id(t) not in recorder.facts
                        and slot_of(recorder, t).memory in memories]  # fmt: skip
            lines.append(f"attach(history, [{outs}], made[{len(self.slots)}:], [{', '.join(watched)}], args, kwargs)")
        space |= self.space
        returned = ", ".join([f"r{i}" for i in range(len(self.leaves))])
        if len(self.leaves) == 1 and self.spec.is_leaf():
            lines.append("return r0")
        else:
            lines.append(f"return unflatten([{returned}], spec)")
        exec(compile("\n    ".join(["def results(made, args, kwargs):", *lines]), "<pullback results>", "exec"), space)
        return space["results"]


def count_writes(tensor: Any, number: int) -> None:
    """Count writes to a tensor."""
    for _ in range(number):
        bump_version(tensor)
