"""Which names torch promises to keep: `torch.fx._compatibility`. Programs decorate their own passes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that notes whether a name is promised to stay."""

    def mark(fn: Any) -> Any:
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        return fn

    return mark
