"""Generated functions: programs that differ in sizes alone have the same text, which is compiled once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MOST = 512
"""Texts that are remembered."""


@lru_cache(MOST)
def code_of(source: str, filename: str) -> Any:
    """The code of a text."""
    return compile(source, filename, "exec")


def function_of(source: str, space: dict[str, Any], name: str, filename: str) -> Any:
    """The function of this name that a text defines."""
    code = code_of(source, filename)
    exec(code, space)
    return space[name]
