"""Warnings of ops: given on the line of the program that calls them, some once in a process."""

from __future__ import annotations

import os
import sys
import warnings

always = False
"""What `set_warn_always` says: each warning, not only the first."""
given: set[str] = set()

_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep
INNER = ("<pullback", f"{_HERE}_", *(f"{_HERE}{folder}{os.sep}" for folder in ("autograd", "batching", "func", "ops")))
"""How the files begin that have no lines of their own in torch, whose warnings name the Python line next to them."""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn on the line that called the library."""
    frame, level = sys._getframe(1), 3
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def warn_once(text: str, kind: str = "") -> None:
    """Warn, the first time that this text, or one of its kind, is given."""
    if always or (kind or text) not in given:
        given.add(kind or text)
        warn(text)
