"""A compiled function: programs with their guards, and what calls them.

call -> a program whose guards hold?  -> its arrays -> run -> tensors
     -> no: the function itself, recorded, and one more program; or the reason why there is none
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from pullback._dtype import defaults
from pullback._modes import in_transform, is_grad_enabled, is_inference_mode_enabled, modes
from pullback._pytree import tree_flatten, tree_unflatten
from pullback._runtime.building import loaded
from pullback._runtime.quiet import SILENT, errors
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.compiler import kind as kind
from pullback.compiler.arguments import Arguments, Refused, difference, entry_function
from pullback.compiler.branches import Missed, in_order, irreversible, keeper
from pullback.compiler.capture import Recorder
from pullback.compiler.checking import checked
from pullback.compiler.guards import Survey, Unguarded, first_broken, guard_of, same
from pullback.compiler.history import finish_history, recorded_history, windows_of
from pullback.compiler.lowering import lower_graph
from pullback.compiler.numbers import asks_for_class, exact, unseen_by
from pullback.compiler.program import BRANCH, EFFECT
from pullback.compiler.reads import MOST_BRANCHES
from pullback.compiler.replay import runner, without_dead
from pullback.compiler.results import Results
from pullback.compiler.watch import Watch
from pullback.kernels.compiled import room
from pullback.ops import autocast

CHECKED, CHECKED_EVERY = 4, 500
"""With `check=True`: the first calls, and every so many later, run the function beside the program."""
WARM = 2
"""The call of a program at which it becomes native code: before, nobody knows whether it is called again."""
LIMIT = 8
"""Programs for one function: torch's recompile_limit."""
TRIES = 3
"""Recordings of a function that looks at values and could not be recorded: it may take another path next time."""
lock = threading.RLock()


class Unsupported(RuntimeError):
    """What `fullgraph=True` raises where a function cannot be compiled as a whole: torch._dynamo.exc.Unsupported."""


class Untraced(Exception):
    """A function of which no graph can be made for a backend."""


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
        self.path: tuple[Any, ...] = ()
        """What the branches of the program gave, and where they are in the user's program."""
        self.lines: list[str] = []
        self.keep: Any = None
        """Notes what the program changes before its last branch."""
        self.ready: Any = None
        """What a backend that is a function has made: it runs in place of the program."""
        self.lost = 0
        """Calls that took a path for which there is no program."""

    def called(self, arrays: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the program."""
        before = errors.get()
        try:
            errors.set(SILENT)
            undo = None if self.keep is None else self.keep(arrays)
            made = self.run(*arrays)
            if type(made) is Missed:
                if undo is not None:
                    undo()
                return made
        finally:
            errors.set(before)
        return self.results(made, args, kwargs)

    def leads_to(self, missed: Missed | None) -> bool:
        """Whether a call may take its path: a program that has just run came as far as `missed` tells."""
        if missed is None:
            return self.why is None or not self.path
        return self.path[: len(missed.path)] == missed.path

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
        self.guard = loaded("pullback.compiler.native.checks").native_guard(self.notes, self.guard)
        given, wanted = self.signature
        self.steps = with_native_code(self.program, self.steps, wanted)
        self.run, self.source = runner(self.program, self.steps, given, wanted)
        history = self.history
        if history is not None and history.run is not None:
            given, wanted = history.signature
            history.steps = with_native_code(self.program, history.steps, wanted)
            history.run, history.source = runner(self.program, history.steps, given, wanted)
            history.native = True


class Compiled:
    """What `compile` makes of a function."""

    forced = False
    """Whether all compiled functions run as they are: torch.compiler.set_stance."""
    config: Any = None
    """torch._dynamo.config"""
    stance = "default"
    """What is done where no program fits: torch.compiler.set_stance."""

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        runs: bool = True,
        limit: int | None = None,
        check: bool = False,
        exact: bool = False,
        native: bool = True,
        dynamic: bool | None = None,
        backend: Callable[..., Any] | None = None,
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
        self.dynamic, self.backend = dynamic if backend is None else False, backend
        self.varying: set[str] = set()
        """Arguments that are numbers and have changed: programs take them as they take arrays."""
        self.specialised: set[str] = set()
        """Those of them that the function looks at."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.forced or (self.config is not None and self.config.disable):
            return self.function(*args, **kwargs)
        if in_transform.get():
            return self.function(*args, **kwargs)
        if modes.active and (modes.recorders or set(modes.holders) - {"PULLBACK_REFERENCE"} - casting()):
            return self.function(*args, **kwargs)
        key = mode_key()
        missed: Missed | None = None
        for entry in self.entries:
            if entry.modes == key and (not entry.path or entry.leads_to(missed)) and entry.guard():
                arrays = entry.enter(args, kwargs)
                if arrays is None:
                    continue
                if entry.why is not None or not self.runs:
                    return self.function(*args, **kwargs)
                entry.calls += 1
                if entry.ready is not None:
                    return entry.ready(*args, **kwargs)
                if entry.calls == WARM and self.native and not self.exact:
                    with lock:
                        entry.upgrade()
                if self.check and (entry.calls <= CHECKED or entry.calls % CHECKED_EVERY == 0):
                    made = checked(self.function, entry, arrays, args, kwargs)
                else:
                    made = entry.called(arrays, args, kwargs)
                if type(made) is not Missed:
                    return made
                entry.calls -= 1
                missed = made
                missed.entry, missed.path = entry, (*entry.path[: missed.number], missed.value)
        return self.compile(args, kwargs, missed)

    def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], missed: Missed | None) -> Any:
        """Run the function itself, recorded."""
        if self.stance == "fail_on_recompile":
            code = getattr(self.function, "__code__", None) or type(self.function).__call__.__code__
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: "
                f"{code.co_filename!r}, function name: {code.co_name!r}, line number: {code.co_firstlineno}"
            )
        if self.stance == "eager_on_recompile":
            return self.function(*args, **kwargs)
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
            if missed is not None:
                entry = missed.entry
                entry.lost += 1
                if entry.lost > LIMIT and entry.lost > entry.calls:
                    entry.why, entry.path = f"it takes another path at each call: {missed.told()}", ()
            return self.function(*args, **kwargs)
        if sys.getprofile() is not None:  # whoever profiles sees the function itself
            return self.function(*args, **kwargs)
        with lock:
            if missed is not None:
                self.changes.append(missed.told())
            elif self.entries:
                newest = self.entries[0]
                changed = (
                    "a mode" if newest.modes != mode_key() else difference(newest.arguments, args, kwargs, newest.notes)
                )
                self.changes.append(changed)
            self.note_numbers(args, kwargs)
            return Capture(self, args, kwargs).run()

    def note_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Which numbers among the arguments change from call to call: with `dynamic=True` all of them."""
        if self.dynamic is False:
            return
        given = [(f"args[{i}]", value) for i, value in enumerate(args)]
        given += [(f"kwargs[{key!r}]", value) for key, value in kwargs.items()]
        for where, value in given:
            if type(value) is float:
                before = [entry.arguments.floats.get(where, value) for entry in self.entries]
                if self.dynamic or any([not same(value, other, False) for other in before]):
                    self.varying.add(where)
        self.varying -= self.specialised

    def add(self, entry: Entry) -> None:
        """Take in a program. One that has none and looks at values does not stand in the way of other paths."""
        others = list(self.entries)
        if entry.why is not None and entry.path:
            tried = [e for e in others if e.why is not None and e.path]
            if len(entry.path) > MOST_BRANCHES or (len(tried) >= TRIES - 1 and all([e.why for e in others])):
                entry.path = ()  # from here on it runs as it is
            self.entries = [*others, entry] if entry.path else [entry, *others]
        else:
            self.entries = [entry, *others]

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
        self.varying.clear()
        self.specialised.clear()
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
        self.recorder = Recorder(compiled.fullgraph)
        self.watch = Watch()
        self.roots = [(compiled.function, name_of(compiled.function))]
        self.roots += [(value, f"args[{i}]") for i, value in enumerate(args)] + [(v, k) for k, v in kwargs.items()]

    def run(self) -> Any:
        """Run the function; its result is that of the eager one, whatever becomes of the recording."""
        recorder = self.recorder
        try:
            arguments = Arguments(self.args, self.kwargs, frozenset(self.compiled.varying))
        except Refused as error:
            return self.as_it_is(str(error))
        recorder.places = {id(tensor): where for tensor, _, where in arguments.tensors}
        foreign = [name for tensor, name, _ in arguments.tensors if not recorder.lift(tensor, name)]
        before = Survey(Watch(), recorder.found, strict=False)
        try:
            if foreign:
                return self.as_it_is(f"{foreign[0]} is a tensor that cannot be recorded")
            before.before(self.roots)
            recorder.exact_only = any([asks_for_class(code) for code in before.watch.ran])
            args, kwargs = self.with_numbers(arguments)
            self.watch.unasked = recorder.read_unseen
            recorder.begin()
            try:
                with self.watch:
                    result = self.compiled.function(*args, **kwargs)
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
            if recorder.live and (unseen := unseen_by(self.watch.ran)):
                recorder.read_unseen(unseen, ever=True)
            leaves, spec = tree_flatten(result)
            recorder.check_tensors()
            history = None
            results = Results(recorder, arguments, leaves, spec, windows_of(recorder, leaves))
            if recorder.why is None:
                history = results.history = recorded_history(recorder, leaves)
            entry = self.entry(arguments, results, history)
        finally:
            recorder.end()
        if recorder.live:
            result = tree_unflatten([exact(leaf) for leaf in leaves[: spec.num_leaves]], spec)
        if recorder.numbers_read:
            self.compiled.specialised |= self.compiled.varying
        lower_graph(recorder, [leaf for leaf in leaves if isinstance(leaf, Tensor)])
        if self.compiled.backend is not None and entry.why is None:
            try:
                entry.ready = self.compiled.backend(self.compiled.function, self.args, self.kwargs)
            except Untraced as error:
                entry.why = str(error)
        if entry.why is not None and self.compiled.fullgraph:
            raise Unsupported(entry.why)
        self.compiled.add(entry)
        if entry.ready is not None and not any([s.writes or s.random or s.kind == EFFECT for s in entry.steps]):
            return entry.ready(*self.args, **self.kwargs)
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
        self.compiled.add(entry)
        return result

    def with_numbers(self, arguments: Arguments) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with numbers that tell what is computed of them for those that change."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for where, value in arguments.floats.items():
            if where in arguments.varying:
                number = self.recorder.number(value, True)
                self.recorder.program.numbers.append((number.slot, where))
                if self.recorder.exact_only:
                    self.recorder.number_read(number, "type()")
                    continue
                for i in range(len(args)):
                    if where == f"args[{i}]":
                        args[i] = number
                for key in kwargs:
                    if where == f"kwargs[{key!r}]":
                        kwargs[key] = number
        return args, kwargs

    def as_it_is(self, why: str) -> Any:
        """Run the function as it is."""
        if self.compiled.fullgraph:
            raise Unsupported(why)
        return self.compiled.function(*self.args, **self.kwargs)

    def entry(self, arguments: Arguments, results: Results, history: Any) -> Entry:
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
        if recorder.why is None:
            results.plan()
        forward = program.steps if history is None else program.steps[: history.forward]
        forward = in_order(program, forward)
        if history is not None and any([step.kind == BRANCH for step in program.steps[history.forward :]]):
            recorder.fail("the backward of a result depends on a value that is read")
        if why := irreversible(forward):
            recorder.fail(why)
        entry.path = tuple([step.expected for step in forward if step.kind == BRANCH])
        entry.lines = [step.line for step in forward if step.kind == BRANCH]
        entry.enter, _ = entry_function(arguments, program, recorder.facts)
        if recorder.why is None:
            entry.history = history
            if history is not None:
                finish_history(history, program)
            wanted = results.slots + ([] if history is None else history.saved)
            entry.guard = guard_of(entry.notes)
            given = [external.slot for external in program.externals] + [slot for slot, _ in program.numbers]
            entry.keep = keeper(program, forward, recorder.streams)
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
