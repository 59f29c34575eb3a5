"""Conditions that ask torch for a program with other lines: with copies of what is read while it is written, or with
all writes recorded."""

from __future__ import annotations

import re
from dataclasses import replace

import pullback
from tests.conformance.library import TORCH, Library
from tests.fuzz.compare import first_difference
from tests.fuzz.known.reason import WRITTEN, Case
from tests.fuzz.program import Program, observe, observe_otherwise

OPERANDS = re.compile(r"(?<![.\w])([a-z]\d*)\b(?!=)")


def of_copies(program: Program) -> Program:
    """A program in which lines that write to a tensor read copies of their operands."""

    def copied(line: str) -> str:
        found = WRITTEN.search(line)
        if found is None or found[2] or "(" not in line:
            return line
        call, bracket, given = line.partition(f"{found[1]}.")[2].partition("(")
        head = line[: len(line) - len(call + bracket + given)]
        return head + call + bracket + OPERANDS.sub(r"\1.clone()", given)

    return replace(program, lines=tuple(map(copied, program.lines)))


def right_of_copies(case: Case) -> bool:
    """Of copies of the operands torch comes to the peer's numbers."""
    program = of_copies(case.program)
    if program.lines == case.program.lines:
        return False
    return first_difference(program, observe(program, TORCH), observe(case.program, Library(pullback))) is None


def right_if_recorded(case: Case) -> bool:
    """Tangents move whether a write is recorded or not: torch comes to the peer's by another way where all are."""
    recorded = [line.replace("with torch.no_grad(): ", "") for line in case.program.lines]
    program = replace(case.program, lines=tuple(recorded))
    actual = observe(case.program, Library(pullback))
    return any(first_difference(program, seen, actual) is None for seen in observe_otherwise(program))
