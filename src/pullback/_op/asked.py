"""Functions that torch writes in Python fail where they first use an argument, in Python's words or in those of the
function they call. asked.txt says what they do with their arguments, in order: one line for each function, expressions
of its parameters, in which `torch.name(...)` is the call of a function that reads its arguments as parser.py does.

Like everything about wrong types it is looked at once a call has failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from pullback._op.parser import refusal
from pullback.autograd.tracebacks import is_ours


class Called:
    """Stands for torch in the expressions: its functions do nothing but read their arguments."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def read(*args: Any, **kwargs: Any) -> None:
            error = refusal(name, False, args, kwargs)
            if error is not None:
                raise error

        return read


CALLED = Called()


@cache
def table() -> dict[str, tuple[CodeType, ...]]:
    """The expressions by the names of the functions below torch."""
    rows = Path(__file__).with_name("asked.txt").read_text(encoding="utf-8").splitlines()
    pairs = [row.partition(": ")[::2] for row in rows]
    return {
        name: tuple([compile(step, "<pullback asked.txt>", "eval") for step in steps.split("; ")])
        for name, steps in pairs
    }


def in_python(path: str) -> bool:
    """Whether torch writes a function in Python and it is known what it asks."""
    return path in table()


def refuse(path: str, given: dict[str, Any]) -> None:
    """Raise what torch's use of the arguments raises, if it raises anything. A value that was refused by this library,
    and not by NumPy, was refused in torch's order."""
    error = sys.exc_info()[1]
    if isinstance(error, ValueError) and is_ours(error):
        return
    for step in table()[path]:
        eval(step, {"torch": CALLED, **given})
