"""Types for values inside a traced program."""

from __future__ import annotations

from typing import Any

from pullback.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """The value; while tracing its node gets a type."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type "
            f"is {type}. This could happen if you tried to annotate a function parameter value (in which case you "
            "should use the type slot on the function signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
