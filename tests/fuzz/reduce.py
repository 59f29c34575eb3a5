"""Making a program that shows a difference as small as it can be."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.library import Library
from tests.fuzz.compare import Difference, compare
from tests.fuzz.program import Program

TRIES = 200


def reduced(program: Program, difference: Difference, peer: Library) -> tuple[Program, Difference]:
    """The smallest program found that still differs in the same aspect."""
    tries = 0
    progress = True
    while progress and tries < TRIES:
        progress = False
        for smaller in steps(program):
            tries += 1
            found = compare(smaller, peer) if smaller.lines else None
            if found is not None and found.aspect == difference.aspect:
                program, difference, progress = smaller, found, True
                break
    return program, difference


def steps(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    for at in reversed(range(len(program.lines))):
        yield program.without_line(at)
    for name, leaf in program.leaves:
        for simpler in leaf.simpler():
            yield program.with_leaf(name, simpler)
