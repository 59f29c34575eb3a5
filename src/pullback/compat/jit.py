"""The marks `torch.jit` puts on functions and classes. Without a script compiler they mean nothing, and do no harm."""

from __future__ import annotations

from typing import Any
from typing import Final as Final


def unchanged(function: Any) -> Any:
    """The function itself."""
    return function


export = interface = unchanged


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, or a decorator that gives it."""
    return drop if callable(drop) else unchanged


def unused(fn: Any) -> Any:
    """The function itself."""
    return fn


def is_scripting() -> bool:
    """False: Python runs the program."""
    return False


def is_tracing() -> bool:
    """False: Python runs the program."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value
