"""`load`: every rank reads what its tensors need, whoever wrote it and in whatever parts."""

from __future__ import annotations

import os
from typing import Any

from pullback import Tensor, no_grad
from pullback.distributed.checkpoint.filesystem import FileSystemReader, check_tensor
from pullback.distributed.checkpoint.items import flattened, overlap, part_of, put
from pullback.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from pullback.distributed.checkpoint.ranks import Ranks
from pullback.distributed.checkpoint.saving import check_planner, is_stateful, state_of, storage_for


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load into a state dict: tensors in place, on as many ranks as there are now; the rest is put there.

    A checkpoint that is not complete is refused, before anything is changed.
    """
    check_planner(planner)
    ranks = Ranks(process_group, no_dist)
    reader = storage_for(FileSystemReader, storage_reader, checkpoint_id)
    strict = not getattr(planner, "allow_partial_load", False)
    state = state_of(state_dict)
    metadata = ranks.gathered("plan", lambda: reader.read_metadata() if ranks.rank == 0 else None)[0]
    wanted = flattened(state)
    ranks.gathered("plan", lambda: check(wanted, metadata, strict))
    found: list[Any] = []
    ranks.gathered("read", lambda: read_all(wanted, metadata, reader, found))
    with no_grad():
        for path, target, value in found:
            if target is None:
                put(state, path, value)
            else:
                target.copy_(value)
    for key, one in state_dict.items():
        if is_stateful(one):
            one.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]


def check(wanted: Any, metadata: Metadata, strict: bool) -> None:
    """Everything that is wanted must be there, in its size."""
    for name, (_, value) in wanted.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(entry, TensorStorageMetadata) and isinstance(value, Tensor):
            if tuple(entry.size) != tuple(value.shape):
                raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.shape} for {name}")


def read_all(wanted: Any, metadata: Metadata, reader: FileSystemReader, found: list[Any]) -> None:
    """What this rank needs: `(path, part of a tensor, elements)`, or `(path, None, value)`."""
    for name, (path, value) in wanted.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            continue
        if not isinstance(entry, TensorStorageMetadata):
            found.append((path, None, reader.read(metadata, MetadataIndex(name), False)))
            continue
        if not isinstance(value, Tensor):
            found.append((path, None, whole_of(name, entry, metadata, reader)))
            continue
        own, part = part_of(name, value)
        for chunk in entry.chunks:
            places = overlap(own, chunk)
            if places is None:
                continue
            index = MetadataIndex(name, chunk.offsets)
            saved = check_tensor(reader.path, index, reader.read(metadata, index, True), chunk.sizes)
            found.append((path, part[places[0]], saved[places[1]]))


def whole_of(name: str, entry: Any, metadata: Metadata, reader: FileSystemReader) -> Tensor:
    """A tensor that nobody has made room for."""
    saved = [reader.read(metadata, MetadataIndex(name, chunk.offsets), True) for chunk in entry.chunks]
    whole: Tensor = saved[0].new_empty(tuple(entry.size))
    for chunk, one in zip(entry.chunks, saved):
        whole[tuple([slice(a, a + n) for a, n in zip(chunk.offsets, chunk.sizes)])] = one
    return whole


def read_everything(path: Any) -> dict[str, Any]:
    """A whole checkpoint as a state dict, in one process."""
    reader = FileSystemReader(path)
    metadata = reader.read_metadata()
    state: dict[str, Any] = {}
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata):
            value: Any = whole_of(name, entry, metadata, reader)
        else:
            value = reader.read(metadata, MetadataIndex(name), False)
        place(state, (metadata.planner_data or {}).get(name, (name,)), value)
    return listed(state)  # type: ignore[no-any-return]


def place(state: Any, path: Any, value: Any) -> None:
    """Put something where a path leads to, making dicts on the way."""
    for key in path[:-1]:
        state = state.setdefault(key, {})
    state[path[-1]] = value


def listed(state: Any) -> Any:
    """Lists in the place of dicts with the keys 0, 1, 2, ..."""
    if not isinstance(state, dict):
        return state
    values = {key: listed(value) for key, value in state.items()}
    numbers = [key for key in values if isinstance(key, int)]
    return [values[key] for key in sorted(numbers)] if numbers and len(numbers) == len(values) else values
