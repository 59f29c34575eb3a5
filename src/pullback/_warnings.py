"""Warnings given once in a process, unless `set_warn_always` asked for each."""

from __future__ import annotations

import warnings

always = False
given: set[str] = set()


def warn_once(text: str, stacklevel: int = 3, kind: str = "") -> None:
    """Warn, the first time that this text, or one of its kind, is given; `stacklevel` is as in `warnings.warn`."""
    if always or (kind or text) not in given:
        given.add(kind or text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel)
