"""Warnings given once in a process, unless `set_warn_always` asked for each."""

from __future__ import annotations

import warnings

always = False
given: set[str] = set()


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Warn, the first time; `stacklevel` counts from here, as in `warnings.warn`."""
    if always or text not in given:
        given.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel)
