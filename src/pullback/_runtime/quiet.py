"""NumPy's error state, which is left as the user has it.

NumPy warns of divisions by zero, of overflows and of NaN; torch's arithmetic is silent about them. So whatever the
library computes with NumPy is computed with its warnings off, and only that:

    quiet().run(np.divide, a, b)      # a call that runs no Python but NumPy's: the least it can cost

    before = errors.get()             # anything longer; set inside of the `try`, or an interrupt might leave it so
    try:
        errors.set(SILENT)
        ...
    finally:
        errors.set(before)

    heard(hook, grad)                 # a function of the user's, called in the middle of a backward pass

NumPy keeps the state in a context variable, so each thread and each task has its own. Compiled kernels never warn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from pullback._modes import current_task

F = TypeVar("F", bound=Callable[..., Any])

_context = Context()
_context.run(np.seterr, all="ignore")
((errors, SILENT),) = _context.items()
_inside: ContextVar[bool] = ContextVar("inside a quiet context", default=False)
_context.run(_inside.set, True)

quiet = _context.copy
"""A context in which NumPy does not warn. It knows nothing else of the caller's: no other context variable."""


waiting: list[Callable[[], None]] = []
"""What is to be set in the caller's own context as soon as one is there: `if waiting: catch_up()`."""


def set_everywhere(install: Callable[[], None]) -> None:
    """Set something else that NumPy keeps in a context variable: in quiet contexts, and in the caller's own."""
    _context.run(install)
    if _inside.get():
        waiting.append(install)
    else:
        install()


def catch_up() -> None:
    """Set in the caller's context what was waiting for that."""
    while waiting and not _inside.get():
        waiting.pop()()


def heard(function: Callable[..., Any], /, *args: Any) -> Any:
    """Call a function of the user's: in a backward pass too NumPy warns of what it does as the user wants it to."""
    if errors.get() is not SILENT or current_task.get() is None:
        return function(*args)
    try:
        errors.set(current_task.get().loudness)
        return function(*args)
    finally:
        errors.set(SILENT)


def quietly(function: F) -> F:
    """The function, in which NumPy does not warn."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = errors.get()
        try:
            errors.set(SILENT)
            return function(*args, **kwargs)
        finally:
            errors.set(before)

    return run  # type: ignore[return-value]
