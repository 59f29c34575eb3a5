"""`show`: the source an op runs, as the machine generated it."""

from __future__ import annotations

import inspect
from typing import Any

from pullback._op.declare import Op


def source_of(function: Any) -> str:
    """The declaration of a public function and, for an op, its generated eager function and node."""
    declared = getattr(function, "op", None)
    if declared is None:
        raise TypeError(f"{function!r} is not an op or function of pullback")
    if not isinstance(declared, Op):
        return inspect.getsource(declared.body)
    if not declared.eager_source:
        declared.compile()  # type: ignore[attr-defined]
    parts = [inspect.getsource(declared.declared), declared.eager_source]
    if declared.node is not None:
        parts.append(declared.node_source)
    return "\n\n".join(parts)


def show(function: Any) -> None:
    """Print what a public function runs: its declaration, then the source generated from it."""
    print(source_of(function))
