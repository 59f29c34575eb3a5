"""Small things layers share: one number standing for several, and prefixes of state dicts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of n of what is one, and a tuple of what is several."""
    return lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n


_single = ntuple(1)
_pair = ntuple(2)
_triple = ntuple(3)
_quadruple = ntuple(4)


def _reverse_repeat_tuple(values: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The values in reverse, each n times: the padding of a convolution as F.pad wants it."""
    return tuple([value for value in reversed(tuple(values)) for _ in range(n)])


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix away from the keys that have it."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if key and (key.startswith(prefix) or key == prefix.replace(".", ""))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)


def update_from(owner: Any, pairs: Iterable[Any], kind: str) -> None:
    """Write pairs of a key and a value into a dict of modules or parameters."""
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(f"{kind} update sequence element #{i} has length {len(pair)}; 2 is required")  # type: ignore[arg-type]
        owner[pair[0]] = pair[1]  # type: ignore[index]


def place(held: Any, index: int) -> str:
    """The name of what a list holds at an index, which may count from the end."""
    index = operator.index(index)
    if not -len(held) <= index < len(held):
        raise IndexError(f"index {index} is out of range")
    return str(index + len(held) if index < 0 else index)
