"""A compiled function: programs with their guards, and what calls them.

call -> a program whose guards hold?  -> its arrays -> run -> tensors
     -> no: the function itself, recorded, and one more program; or the reason why there is none
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from pullback._modes import in_transform, modes
from pullback._pytree import tree_flatten
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.compiler import kind as kind
from pullback.compiler.arguments import Arguments, Refused, difference, entry_function, written_by
from pullback.compiler.branches import Missed, in_order, irreversible, keeper
from pullback.compiler.capture import Recorder
from pullback.compiler.checking import checked
from pullback.compiler.division import Division, located, target_of
from pullback.compiler.entry import Entry, casting, mode_key
from pullback.compiler.guards import Survey, Unguarded, first_broken, same, told
from pullback.compiler.history import finish_history, recorded_history, windows_of
from pullback.compiler.lowering import lower_graph
from pullback.compiler.numbers import asks_for_class, unseen_by
from pullback.compiler.program import BRANCH, EFFECT
from pullback.compiler.reads import MOST_BRANCHES
from pullback.compiler.replay import without_dead
from pullback.compiler.results import Results, kept_containers, with_exact
from pullback.compiler.sizes import FEW, Family, Sizes, forget_arguments, key_of, ticks, without_oldest
from pullback.compiler.watch import Trail, Watch

CHECKED, CHECKED_EVERY = 4, 500
"""With `check=True`: the first calls, and every so many later, run the function beside the program."""
LIMIT = 8
"""Programs for one function: torch's recompile_limit."""
TRIES = 3
"""Recordings of a function that looks at values and could not be recorded: it may take another path next time."""
LEAST_STEPS = 4
"""Steps of a part that is worth a program: to find out whether one fits takes about as long as so many ops."""
lock = threading.RLock()


class Unsupported(RuntimeError):
    """What `fullgraph=True` raises where a function cannot be compiled as a whole: torch._dynamo.exc.Unsupported."""


class Untraced(Exception):
    """A function of which no graph can be made for a backend."""


class InvalidBackend(RuntimeError):
    """The name of no backend: torch._dynamo.exc.InvalidBackend."""


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
        self.sizes = Sizes(self.dynamic, self.config)
        self.index: dict[Any, list[Entry]] | None = None
        """Programs by the sizes of arguments, where there are many."""
        self.varying: set[str] = set()
        """Arguments that are numbers and have changed: programs take them as they take arrays."""
        self.specialised: set[str] = set()
        """Those of them that the function looks at."""
        self.division: Division | None = None
        """The function in parts, where it cannot be recorded as a whole."""
        self.owner: Division | None = None
        """What this is a part of."""
        self.child = False
        """Whether this is a part, or is called between parts."""
        self.repeated = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.forced or (self.config is not None and self.config.disable):
            return self.function(*args, **kwargs)
        if in_transform.get():
            return self.function(*args, **kwargs)
        if modes.active and (modes.recorders or set(modes.holders) - {"PULLBACK_REFERENCE"} - casting()):
            return self.function(*args, **kwargs)
        key = mode_key()
        missed: Missed | None = None
        for entry in self.entries if self.index is None else self.index.get(key_of(args), ()):
            if entry.modes == key and (not entry.path or entry.leads_to(missed)):
                arrays = entry.enter(args, kwargs)  # another size is what is found first
                if arrays is None or not entry.guard():
                    continue
                if entry.why is not None or not self.runs:
                    return self.in_parts(entry, args, kwargs)
                entry.calls += 1
                entry.used = next(ticks)
                if entry.ready is not None:
                    return entry.ready(*args, **kwargs)
                if entry.run is None:
                    with lock:
                        if entry.run is None:
                            entry.settle(self.native and not self.exact)
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
        with lock:
            kin, known, again = self.related(args, kwargs, missed)
        if self.stance == "fail_on_recompile" and not known:
            code = getattr(self.function, "__code__", None) or type(self.function).__call__.__code__
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: "
                f"{code.co_filename!r}, function name: {code.co_name!r}, line number: {code.co_firstlineno}"
            )
        if self.stance == "eager_on_recompile" or not again:
            return self.function(*args, **kwargs)
        limit = self.limit
        if limit is None:
            limit = LIMIT if self.config is None else self.config.recompile_limit
        if kin is None and len({id(entry.family) for entry in self.entries}) >= limit:
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
            return self.in_parts(None, args, kwargs)
        if sys.getprofile() is not None:  # whoever profiles sees the function itself
            return self.function(*args, **kwargs)
        with lock:
            if missed is not None:
                self.changes.append(missed.told())
            elif self.entries and not known:
                newest = self.entries[0]
                changed = (
                    "a mode" if newest.modes != mode_key() else difference(newest.arguments, args, kwargs, newest.notes)
                )
                self.changes.append(changed)
            self.note_numbers(args, kwargs)
            return Capture(self, args, kwargs, Family() if kin is None else kin.family).run()

    def related(self, args: tuple[Any, ...], kwargs: dict[str, Any], missed: Missed | None) -> tuple[Any, bool, bool]:
        """A program that differs from what a call wants in sizes alone, whether they are known to change, and whether
        the call is worth a program: of sizes that change, those that come again are."""
        try:
            arguments = Arguments(args, kwargs, frozenset(self.varying))
        except Refused:
            return None, False, True
        fresh = self.sizes.note(arguments, self.entries)
        kin = self.sizes.kin(arguments, self.entries, mode_key(), () if missed is None else missed.path)
        known = kin is not None and not fresh
        return kin, known, not known or missed is not None or self.sizes.come_again(arguments)

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

    def in_parts(self, entry: Entry | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function where no program does: in parts, if it is divided, else as it is."""
        if entry is not None and entry.suspect is not None:
            note, entry.suspect = entry.suspect.again(), None
            result, trail = located(self.function, args, kwargs, note)
            if trail:
                self.divide(entry, [(trail, f"{note.name} changes")])
            elif note.holds() and entry in self.entries and self.repeated < TRIES:  # it was set up by the first call
                self.repeated += 1
                self.keep([other for other in self.entries if other is not entry])
            return result
        division = self.division
        if division is not None and division.breaks:
            function, first = target_of(self.function)
            if function is division.function:
                return division.driver(*first, *args, **kwargs)
        return self.function(*args, **kwargs)

    def divide(self, entry: Entry, trails: list[tuple[Trail, str]]) -> None:
        """Divide the function where it did what cannot be recorded."""
        function, _ = target_of(self.function)
        if self.fullgraph or self.backend is not None or not self.runs or function is None:
            return
        with lock:
            if self.owner is None and self.division is None:
                self.division = Division(function, self.made_child)
            divided = (self.owner or self.division).add(function.__code__, trails)  # type: ignore[union-attr]
            if divided:
                entry.suspect = None
            elif self.child and entry.suspect is None and all([e.why and not e.suspect for e in self.entries]):
                if len(self.entries) >= TRIES - 1 and not (self.division and self.division.breaks):
                    self.forced = True

    def made_child(self, function: Any, owner: Division | None) -> Compiled:
        """A part of the function, or something that is called between parts."""
        made = Compiled(
            function, False, True, self.limit, self.check, self.exact, self.native, self.dynamic, self.backend
        )
        made.owner, made.child = owner, True
        return made

    @property
    def hopeless(self) -> bool:
        """Whether a part runs as it is from here on."""
        return "forced" in vars(self)

    def add(self, entry: Entry) -> None:
        """Take in a program. One that has none and looks at values does not stand in the way of other paths."""
        others = list(self.entries)
        if entry.why is not None and entry.path:
            tried = [e for e in others if e.why is not None and e.path]
            if len(entry.path) > MOST_BRANCHES or (len(tried) >= TRIES - 1 and all([e.why for e in others])):
                entry.path = ()  # from here on it runs as it is
            self.keep([*others, entry] if entry.path else [entry, *others])
        else:
            self.keep(without_oldest([entry, *others], entry))

    def keep(self, entries: list[Entry]) -> None:
        """Make these the programs."""
        index: dict[Any, list[Entry]] = {}
        for entry in entries:
            index.setdefault(entry.key, []).append(entry)
        self.entries, self.index = entries, index if len(entries) > FEW else None

    def shown(self) -> str:
        """The programs as text."""
        parts = []
        for nr, entry in enumerate(self.entries):
            if entry.why is not None:
                parts.append(f"# signature {nr} runs as it is written: {entry.why}")
                continue
            parts.append(f"# program {nr}, {len(entry.program.steps)} steps\n{entry.program.shown()}")
            parts += [f"# native function\n{text}" for text in entry.kernels()]
        for part in [] if self.division is None else self.division.parts:
            parts.append(f"# part of lines {part.lines[0]} to {part.lines[1]}\n{part.compiled.shown()}")
        return "\n".join(parts) or "# not called yet"

    def reset(self) -> None:
        """Forget all programs."""
        self.keep([])
        self.sizes.clear()
        self.changes.clear()
        self.varying.clear()
        self.specialised.clear()
        self.storm, self.division, self.repeated = False, None, 0
        vars(self).pop("forced", None)


def name_of(function: Any) -> str:
    """What a function is called."""
    return getattr(function, "__qualname__", None) or type(function).__qualname__


class Capture:
    """One recorded run of a function, and what becomes of it."""

    def __init__(
        self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], family: Family | None = None
    ) -> None:
        self.compiled, self.args, self.kwargs = compiled, args, kwargs
        self.family, self.key = family or Family(), key_of(args)
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
                if first_broken(before.notes) is not None or not recorder.undo():
                    raise
                return self.run_again(arguments, error)
            recorder.check_streams()
            if self.watch.why and recorder.why is None:
                recorder.why = self.watch.why
            if (changed := first_broken(before.notes)) is not None:
                recorder.fail(f"the function changes something that is not a tensor: {told(changed)}")
            if recorder.live and (unseen := unseen_by(self.watch.ran)):
                recorder.read_unseen(unseen, ever=True)
            if kept_containers(result, before.seen):
                recorder.fail("the function returns a list or dict that was there before")
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
            result = with_exact(result)
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
        if entry.why is not None:
            entry.suspect = changed
            self.compiled.divide(entry, recorder.trails + self.watch.trails)
        if entry.ready is not None and not any([s.writes or s.random or s.kind == EFFECT for s in entry.steps]):
            return entry.ready(*self.args, **self.kwargs)
        first = vars(entry).pop("first", None)
        if entry.why is None and not self.compiled.check:
            forget_arguments(entry, recorder.leaves)
        return result if entry.why is not None or not self.compiled.runs else first

    def run_again(self, arguments: Arguments, error: Exception) -> Any:
        """After an error, whose cause may be the recording: the function as it is, which raises it if it is its own."""
        result = self.compiled.function(*self.args, **self.kwargs)
        why = f"it cannot be recorded: {type(error).__name__}: {error}"
        if self.compiled.fullgraph:
            raise Unsupported(why) from error
        entry = self.new_entry(arguments)
        entry.why = why
        entry.enter, _ = entry_function(arguments, self.recorder.program, self.recorder.facts, self.recorder.asked)
        self.compiled.add(entry)
        trail: Trail = []
        place = error.__traceback__
        while place is not None:
            trail.append((place.tb_frame.f_code, place.tb_lineno))
            place = place.tb_next
        self.compiled.divide(entry, [(trail, why)])
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

    def new_entry(self, arguments: Arguments) -> Entry:
        """An entry for a call of these sizes."""
        entry = Entry(arguments)
        entry.family, entry.key, entry.used = self.family, self.key, next(ticks)
        entry.sized = self.compiled.sizes.concern(arguments)
        return entry

    def as_it_is(self, why: str) -> Any:
        """Run the function as it is."""
        if self.compiled.fullgraph:
            raise Unsupported(why)
        return self.compiled.function(*self.args, **self.kwargs)

    def entry(self, arguments: Arguments, results: Results, history: Any) -> Entry:
        """The program, its guards, and what makes tensors of its arrays; or why there is none."""
        recorder = self.recorder
        entry = self.new_entry(arguments)
        program = entry.program = recorder.program
        after = Survey(self.watch, lambda tensor, name: None)
        try:
            after.after(self.roots)
            for tensor, name in after.tensors.values():
                if id(tensor) not in recorder.facts:
                    recorder.fail(f"{name} is a tensor that cannot be recorded")
        except Unguarded as error:
            recorder.fail(str(error))
            recorder.trails += self.watch.iterated
        entry.notes = after.notes
        if recorder.why is None:
            results.plan()
        forward = program.steps if history is None else program.steps[: history.forward]
        forward = in_order(program, forward)
        if history is not None and any([step.kind == BRANCH for step in program.steps[history.forward :]]):
            recorder.fail("the backward of a result depends on a value that is read")
        why, line = irreversible(forward)
        if why:
            recorder.fail(why)
            file, _, number = line.rpartition(":")
            recorder.trails.append(([(file, int(number or 0))], why))
        if self.compiled.child and recorder.why is None and len(program.steps) < LEAST_STEPS:
            recorder.why = "it is too short to gain by a program"
            self.compiled.forced = True
        entry.path = tuple([step.expected for step in forward if step.kind == BRANCH])
        entry.lines = [step.line for step in forward if step.kind == BRANCH]
        entry.enter, _ = entry_function(arguments, program, recorder.facts, recorder.asked)
        if recorder.why is None:
            written = written_by(program)
            facts = [recorder.facts[id(e.tensor)] for e in program.externals if e.slot.memory in written]
            entry.odd = not all([known.array.flags.behaved for known in facts])
            entry.history = history
            if history is not None:
                finish_history(history, program)
            wanted = results.slots + ([] if history is None else history.saved)
            entry.guard = lambda: first_broken(entry.notes) is None  # until it is called again
            given = [external.slot for external in program.externals] + [slot for slot, _ in program.numbers]
            entry.keep = keeper(program, forward, recorder.streams)
            entry.steps = without_dead(forward, wanted)
            entry.signature = given, wanted
            entry.results = results.function()
            # What was computed already are the results of this call.
            recorder.lower()
            results.counted = False
            entry.first = results.function()(tuple([recorder.values[s.index] for s in wanted]), self.args, self.kwargs)  # type: ignore[attr-defined]
        entry.why = recorder.why
        return entry
