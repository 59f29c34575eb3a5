"""The way from a NumPy algorithm to its compiled counterpart, where there is one."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from pullback.kernels import jit


@cache
def room(name: str) -> Any:
    """The module `pullback.kernels.jit.<name>`, or None where kernels are not compiled.

    Its functions answer None for arrays they do not take; nothing has been written then.
    """
    return import_module(f"pullback.kernels.jit.{name}") if jit.available() else None
