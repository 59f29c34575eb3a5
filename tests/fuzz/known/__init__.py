"""The differences a random program may show. Each is a line of docs/differences.md."""

from __future__ import annotations

from tests.fuzz.compare import Difference
from tests.fuzz.known.errors import ERRORS
from tests.fuzz.known.memory import MEMORY
from tests.fuzz.known.numbers import NOT_FINITE, ROUNDING
from tests.fuzz.known.reason import Case, Known, answered_elsewhere, refused_elsewhere, smallest
from tests.fuzz.known.transforms import INSIDE_TRANSFORMS, TORCH_HAS_TWO_ANSWERS
from tests.fuzz.program import Program

ELSEWHERE = [
    Known(
        "numbers that torch's other kernels make, those of single elements or of memory that lies otherwise",
        "value",
        given=(smallest, answered_elsewhere),
    ),
    Known("what torch refuses of memory that lies otherwise", "raised", given=(smallest, refused_elsewhere)),
]
"""What takes a process of its own to find out is asked last."""
KNOWN = [*TORCH_HAS_TWO_ANSWERS, *INSIDE_TRANSFORMS, *ERRORS, *MEMORY, *ROUNDING, *NOT_FINITE, *ELSEWHERE]


def reason(program: Program, found: Difference, smallest: bool = False) -> str | None:
    """Why a difference is accepted, or None; `smallest` says that nothing can be left out of the program."""
    case = Case(program, found, smallest)
    return next((known.why for known in KNOWN if known.holds(case)), None)
