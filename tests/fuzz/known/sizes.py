"""Sizes that no memory holds, of which torch counts the elements in integers that wrap around."""

from __future__ import annotations

import re
from dataclasses import replace

import pullback
from tests.conformance.library import TORCH, Library
from tests.fuzz.compare import first_difference
from tests.fuzz.known.reason import Case, replayed
from tests.fuzz.program import observe

SAID = re.compile(
    r"overflow|allocate|too large|negative|should be greater than zero|at least one|sliding blocks"
    r"|[Ss]torage|[Ss]izes? |(width|height|depth) unexpected"
)
"""What is said of sizes."""
SMALLER = (7, 300)


def only_of_large_sizes(case: Case) -> bool:
    """An error is about a size, and with smaller numbers in its place the two libraries agree.

    What only the peer refuses has no elements in torch, or fewer than none.
    """
    if not SAID.search(case.found.text) or (case.found.aspect == "raised" and not hollow(case)):
        return False
    for number in SMALLER:
        lines = tuple(re.sub(r"\d{10,}", str(number), line) for line in case.program.lines)
        smaller = replace(case.program, lines=lines)
        if first_difference(smaller, observe(smaller, TORCH), observe(smaller, Library(pullback))) is not None:
            return False
    return True


def hollow(case: Case) -> bool:
    """Torch makes a tensor of no elements, or of fewer."""
    return any(size <= 0 for _, given in replayed(case.ending()) for tensor in given.values() for size in tensor.shape)
