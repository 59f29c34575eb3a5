"""One program of a compiled function, with its guards and with what makes tensors of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._dtype import defaults
from pullback._modes import is_grad_enabled, is_inference_mode_enabled
from pullback._runtime.building import loaded, uncollected
from pullback._runtime.quiet import SILENT, errors
from pullback.compiler.arguments import Arguments
from pullback.compiler.branches import Missed
from pullback.compiler.guards import guard_of
from pullback.compiler.program import EFFECT
from pullback.compiler.replay import runner
from pullback.kernels.compiled import room
from pullback.ops import autocast


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
        """The code; None before the program is called again."""
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
        self.sized = False
        """Whether sizes of its arguments change: its native code is given all sizes."""
        self.odd = False
        """Whether it writes to memory that is not aligned or read-only, which native code does not."""
        self.family: Any = None
        """Programs that differ from it in sizes alone have the same."""
        self.key: tuple[Any, ...] = ()
        """The sizes of positional arguments."""
        self.used = 0
        """When it ran last, where there are many programs."""
        self.suspect: Any = None
        """What the function changed that is not a tensor: the next call tells on which line."""

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

    @uncollected()
    def settle(self, native: bool) -> None:
        """Write the code of a program that is called again, and of its guard: with native code in place of the steps it
        can do, if wanted and there is a compiler."""
        native = native and not self.odd and room("runtime.calls") is not None
        guard = (loaded("pullback.compiler.native.checks").native_guard if native else guard_of)(self.notes)
        history, steps = self.history, self.steps
        if native:
            with_native_code = loaded("pullback.compiler.native.regions").with_native_code
            steps = with_native_code(self.program, steps, self.signature[1], self.sized)
            if history is not None and history.run is not None and not history.native:
                behind = with_native_code(self.program, history.steps, history.signature[1], self.sized)
                run, source = runner(self.program, behind, *history.signature)
                history.steps, history.run, history.source, history.native = behind, run, source, True
        run, source = runner(self.program, steps, *self.signature)
        # An interrupt comes at calls: all of it is kept, or nothing.
        self.guard, self.steps, self.source, self.run = guard, steps, source, run


def casting() -> set[Any]:
    """The holder of this thread's autocast, which programs know."""
    holder = autocast.state.get().holder
    return set() if holder is None else {holder}
