"""What became of a compiled function: its programs, what guards them, its kernels, and why it ran as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.insight.report import Report, Section, counted


class CompiledReport(Report):
    """The answer of `pullback.explain(compiled)`."""

    def __init__(self, compiled: Any) -> None:
        self.name = getattr(compiled.function, "__qualname__", type(compiled.function).__qualname__)
        self.programs = [described(entry) for entry in compiled.entries]
        self.recompilations = list(compiled.changes)
        self.sizes = sorted(compiled.sizes.changing)
        """Sizes that change: programs that differ in them share their native code."""
        division = compiled.division
        self.file = "" if division is None else division.function.__code__.co_filename
        self.breaks = {} if division is None else dict(sorted(division.breaks.items()))
        """Lines that end parts, and why."""
        self.parts = [] if not self.breaks else [(part.lines, CompiledReport(part.compiled)) for part in division.parts]
        self.called = [] if not self.breaks else [CompiledReport(made) for _, made in division.callees.values()]
        """What is compiled by itself, since lines that end parts call it."""

    def sections(self) -> Iterator[Section]:
        """Programs first, newest on top."""
        made = sum([not program["why_not"] for program in self.programs])
        yield (
            f"{self.name}: {counted(made, 'program')}, {counted(len(self.programs) - made, 'signature')} as written",
            [],
        )
        if self.sizes:
            yield "sizes that change, of programs with the same native code", [[size] for size in self.sizes]
        how = "in parts" if self.breaks else "as it is written"
        for number, program in enumerate(self.programs):
            if program["why_not"]:
                yield f"signature {number} runs {how}", [[program["why_not"]]]
                continue
            rows: list[list[Any]] = [["steps", program["steps"]], ["steps of the backward", program["backward_steps"]]]
            rows += [["runs", program["runs"]], ["values that are guarded", len(program["guards"])]]
            rows += [["run by Python", f"{name}: {why}"] for name, why in program["run_by_python"].items()]
            for nr, text in enumerate(program["kernels"]):
                rows += [[f"native function {nr}", line] for line in text.splitlines()]
            yield f"program {number} for {', '.join(program['arguments']) or 'no tensors'}", rows
        if self.breaks:
            rows = [[f"{self.file}:{line}", why] for line, why in self.breaks.items()]
            yield f"{counted(len(self.parts), 'part')}, ended by", rows
        for (first, last), part in self.parts:
            yield f"part of lines {first} to {last}", [[part.summary()]]
        for one in self.called:
            yield f"called between parts: {one.name}", [[one.summary()]]
        if self.recompilations:
            yield "compiled again, because of", [[reason] for reason in self.recompilations]

    def summary(self) -> str:
        """What became of a part, in one line."""
        made = [program for program in self.programs if not program["why_not"]]
        if self.breaks:
            lines = ", ".join([str(line) for line in self.breaks])
            return f"{counted(len(self.parts), 'part')}, ended by lines {lines}"
        if not made:
            return f"as written: {self.programs[0]['why_not']}" if self.programs else "not called yet"
        runs = sum([program["runs"] for program in made])
        return f"{counted(len(made), 'program')} of {made[0]['steps']} steps, run {runs} times"

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        parts = [{"lines": list(lines), **part.json()} for lines, part in self.parts]
        return {
            "name": self.name,
            "programs": self.programs,
            "recompilations": self.recompilations,
            "sizes": self.sizes,
            "breaks": [{"line": line, "why": why} for line, why in self.breaks.items()],
            "parts": parts,
            "called": [one.json() for one in self.called],
        }


def described(entry: Any) -> dict[str, Any]:
    """One program as plain data."""
    forward = [] if entry.why else entry.steps
    return {
        "arguments": [f"{name} {list(tensor.shape)}" for tensor, name, _ in entry.arguments.tensors],
        "why_not": entry.why or "",
        "steps": len(forward),
        "backward_steps": 0 if entry.why or entry.history is None else len(entry.history.steps),
        "runs": entry.calls,
        "guards": [note.name for note in entry.notes],
        "kernels": entry.kernels(),
        "run_by_python": entry.run_by_python(),
    }
