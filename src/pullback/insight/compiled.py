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

    def sections(self) -> Iterator[Section]:
        """Programs first, newest on top."""
        made = sum([not program["why_not"] for program in self.programs])
        yield (
            f"{self.name}: {counted(made, 'program')}, {counted(len(self.programs) - made, 'signature')} as written",
            [],
        )
        for number, program in enumerate(self.programs):
            if program["why_not"]:
                yield f"signature {number} runs as it is written", [[program["why_not"]]]
                continue
            rows: list[list[Any]] = [["steps", program["steps"]], ["steps of the backward", program["backward_steps"]]]
            rows += [["runs", program["runs"]], ["values that are guarded", len(program["guards"])]]
            rows += [["run by Python", f"{name}: {why}"] for name, why in program["run_by_python"].items()]
            for nr, text in enumerate(program["kernels"]):
                rows += [[f"native function {nr}", line] for line in text.splitlines()]
            yield f"program {number} for {', '.join(program['arguments']) or 'no tensors'}", rows
        if self.recompilations:
            yield "compiled again, because of", [[reason] for reason in self.recompilations]

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"name": self.name, "programs": self.programs, "recompilations": self.recompilations}


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
