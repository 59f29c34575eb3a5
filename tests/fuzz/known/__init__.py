"""The differences a random program may show. Each is a line of docs/differences.md."""

from __future__ import annotations

from dataclasses import replace

import pullback
from tests.conformance.library import TORCH, Library
from tests.fuzz.compare import Difference, first_difference
from tests.fuzz.known.errors import ERRORS
from tests.fuzz.known.memory import MEMORY
from tests.fuzz.known.numbers import NOT_FINITE, ROUNDING
from tests.fuzz.known.reason import Case, Known, answered_elsewhere, refused_elsewhere, smallest
from tests.fuzz.known.transforms import INSIDE_TRANSFORMS, TORCH_HAS_TWO_ANSWERS
from tests.fuzz.program import MODES, Program, observe, observe_otherwise


def counted_of_known(case: Case) -> bool:
    """Without its transform the program differs earlier, in numbers, for a reason of this list."""
    program = replace(case.program, mode="eager")
    found = first_difference(program, observe(program, TORCH), observe(program, Library(pullback)))
    return found is not None and found.aspect == "value" and reason(program, found) is not None


def refused_beside_known(case: Case) -> bool:
    """What torch refuses it computes by another way, and differs there for a reason of this list."""
    actual = observe(case.program, Library(pullback))
    for seen in observe_otherwise(case.program):
        found = first_difference(case.program, seen, actual)
        if found is not None and found.aspect == "value" and reason(case.program, found) is not None:
            return True
    return False


FOLLOWING = [
    Known(
        "how many elements there are, where numbers decide that which differ for another reason",
        "shape",
        modes=tuple(MODES),
        given=(counted_of_known,),
    ),
    Known(
        "what torch refuses, and by another way computes otherwise for another reason",
        "accepted",
        modes=tuple(MODES),
        given=(refused_beside_known,),
    ),
]
"""What follows from another difference."""
ELSEWHERE = [
    Known(
        "numbers that torch's other kernels make, those of single elements or of memory that lies otherwise",
        "value",
        given=(smallest, answered_elsewhere),
    ),
    Known("what torch refuses of memory that lies otherwise", "raised", given=(smallest, refused_elsewhere)),
]
"""What takes a process of its own to find out is asked last."""
KNOWN = [*TORCH_HAS_TWO_ANSWERS, *INSIDE_TRANSFORMS, *ERRORS, *MEMORY, *ROUNDING, *NOT_FINITE, *FOLLOWING, *ELSEWHERE]


def reason(program: Program, found: Difference, smallest: bool = False) -> str | None:
    """Why a difference is accepted, or None; `smallest` says that nothing can be left out of the program."""
    case = Case(program, found, smallest)
    return next((known.why for known in KNOWN if known.holds(case)), None)
