"""A state dict as a list of things by name, and tensors as parts that lie somewhere in a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pullback import Size, Tensor
from pullback.distributed.checkpoint.metadata import ChunkStorageMetadata
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.tensor.moves import offsets_inside
from pullback.distributed.tensor.placement_types import Partial

Path = tuple[Any, ...]


def is_leaf(value: Any) -> bool:
    """Whether a list is one thing: it holds neither tensors nor dicts."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return all([not isinstance(one, Tensor) and is_leaf(one) for one in value])


def flattened(state: Any) -> dict[str, tuple[Path, Any]]:
    """Everything in a state dict, by its name: the keys that lead to it, joined by dots."""
    found: dict[str, tuple[Path, Any]] = {}

    def visit(path: Path, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, one in value.items():
                visit((*path, str(key)), one)
        elif isinstance(value, list) and not is_leaf(value):
            for place, one in enumerate(value):
                visit((*path, place), one)
        else:
            name = ".".join([str(one) for one in path])
            if name in found:
                raise ValueError(f"duplicated flatten key {name}")
            found[name] = (path, value)

    visit((), state)
    return found


def put(state: Any, path: Path, value: Any) -> None:
    """Put something where a path leads to."""
    for key in path[:-1]:
        state = state[own_key(state, key)]
    state[own_key(state, path[-1])] = value


def own_key(state: Any, key: Any) -> Any:
    """The key as the dict has it, which may be a number."""
    if isinstance(state, list) or key in state:
        return key
    return next((one for one in state if str(one) == key), key)


def mapped(state: Any, change: Callable[[Any], Any]) -> Any:
    """A state dict with each value changed."""
    if isinstance(state, Mapping):
        return {key: mapped(value, change) for key, value in state.items()}
    if isinstance(state, list):
        return [mapped(value, change) for value in state]
    if isinstance(state, tuple) and not hasattr(state, "_fields"):
        return tuple([mapped(value, change) for value in state])
    return change(state)


def part_of(name: str, tensor: Tensor) -> tuple[ChunkStorageMetadata, Tensor]:
    """Where in the whole this rank's part lies, and the part."""
    if not isinstance(tensor, DTensor):
        return ChunkStorageMetadata(Size([0] * tensor.ndim), Size(tensor.shape)), tensor.detach()
    if any(isinstance(one, Partial) for one in tensor.placements):
        raise ValueError(f"{name} is {tensor.placements}: redistribute it before it is saved or loaded")
    sizes, offsets = offsets_inside(tensor.shape, tensor.device_mesh, tensor.placements)
    return ChunkStorageMetadata(Size(offsets), Size(sizes)), tensor._local_tensor.detach()


def overlap(one: ChunkStorageMetadata, other: ChunkStorageMetadata) -> tuple[Any, Any] | None:
    """What two parts have in common: the indices of it in each; None if nothing."""
    mine, theirs = [], []
    for a, n, b, m in zip(one.offsets, one.sizes, other.offsets, other.sizes):
        start, end = max(a, b), min(a + n, b + m)
        if start >= end:
            return None
        mine.append(slice(start - a, end - a))
        theirs.append(slice(start - b, end - b))
    return tuple(mine), tuple(theirs)
