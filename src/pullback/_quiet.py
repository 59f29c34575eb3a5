"""NumPy's floating point errors: the user's setting is theirs, and torch's arithmetic never warns.

NumPy warns about divisions by zero, overflows and NaNs, as `np.seterr` says; torch is silent about them. The setting is
a context variable, and to change it takes as long as a small addition, so the fast roads do not:

    with a quiet state ...... the reference path, in-place ops and whole backward passes (`quietly`)
    a quiet context ......... single calls of NumPy (`private().run`), in a third of that time
    without ................. the code generated for an op. Its globals hold `REFUSES` where Python keeps the warnings
                              it has given: a warning issued there is an error, whatever the user's filters are, and
                              every error sends a call to the reference path
    the user's own .......... hooks and the backward of a custom Function, which `as_the_user` calls
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import wraps
from typing import Any, TypeVar

import numpy as np

Called = TypeVar("Called", bound=Callable[..., Any])
REFUSES = "No warning is given from here: see _quiet.py"
"""As `__warningregistry__` of some globals: not a dictionary, so that a warning issued by their code is a TypeError."""

context, untouched = Context(), Context()
context.run(np.seterr, all="ignore")
untouched.run(np.seterr)
state = next(iter(context))
"""The context variable in which NumPy keeps the setting."""
QUIET = context[state]
DEFAULT = untouched[state]
get_state, set_state = state.get, state.set
private = context.copy
"""`private().run(function, *args)` calls what looks at no other context variable, such as a function of NumPy."""


def quietly(function: Called) -> Called:
    """A function that runs without NumPy's warnings."""

    # Not its module: formulas read the functions of ops with other globals, and this one needs its own.
    @wraps(function, assigned=("__name__", "__doc__"))
    def silent(*args: Any, **kwargs: Any) -> Any:
        before = get_state(DEFAULT)
        try:
            set_state(QUIET)
            return function(*args, **kwargs)
        finally:
            set_state(before)

    return silent  # type: ignore[return-value]


def as_the_user(theirs: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call what the user wrote with the user's setting; None for the one there is."""
    if theirs is None:
        return function(*args)
    before = get_state(DEFAULT)
    try:
        set_state(theirs)
        return function(*args)
    finally:
        set_state(before)
