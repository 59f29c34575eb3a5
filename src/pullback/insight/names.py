"""What the program calls its tensors: the variables of a frame, and the parameters of modules among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import CO_OPTIMIZED
from typing import Any

from pullback import Tensor
from pullback.autograd.api import key_of
from pullback.autograd.view import wants_grad
from pullback.insight.locations import variables_of

LONGEST = 200
"""Lists and dicts with more items are not searched."""


class Names:
    """Finds the name of a tensor, leaf or node: among what was given, else among the variables of a frame."""

    def __init__(self, given: Any, frame: Any) -> None:
        self.by_target: dict[Any, str] = {}
        """(node, output_nr) or (leaf, 0) -> name; tensors outside of every graph stand for themselves."""
        for name, tensor in given.items() if isinstance(given, Mapping) else named(given):
            self.add(name, tensor)
        if frame is not None:
            for variables in (frame.f_locals, frame.f_globals):
                for name, value in variables_of(variables):
                    if not name.startswith("_"):
                        for inner, tensor in named(value):
                            self.add(joined(name, inner), tensor)
            forget(frame)

    def add(self, name: str, tensor: Tensor) -> None:
        """The first name of a tensor counts."""
        key = key_of(tensor) if wants_grad(tensor) else (tensor, 0)
        self.by_target.setdefault(key, name)
        self.by_target.setdefault((tensor, 0), name)

    def of(self, target: Any, nr: int = 0) -> str | None:
        """The name of a leaf, or of the tensor that is output `nr` of a node."""
        return self.by_target.get((target, nr))


def forget(frame: Any) -> None:
    """Drop the copy of a function's variables that reading them left in its frame (before Python 3.13)."""
    if frame.f_code.co_flags & CO_OPTIMIZED and type(frame.f_locals) is dict:
        frame.f_locals.clear()


def joined(name: str, inner: str) -> str:
    """params and [0] is params[0]; net and fc.weight is net.fc.weight."""
    return name + (inner if not inner or inner.startswith("[") else "." + inner)


def named(value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors in a value, each with the way to it."""
    if isinstance(value, Tensor):
        yield "", value
    elif hasattr(type(value), "named_parameters"):
        yield from value.named_parameters()
    elif isinstance(value, Mapping) and len(value) <= LONGEST:
        for key, item in value.items():
            if isinstance(item, Tensor):
                yield f"[{key!r}]", item
    elif isinstance(value, (list, tuple)) and len(value) <= LONGEST:
        for i, item in enumerate(value):
            if isinstance(item, Tensor):
                yield f"[{i}]", item
