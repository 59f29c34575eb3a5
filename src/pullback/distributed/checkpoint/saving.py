"""`save` and `async_save`: every rank writes its parts, and what several hold is written by one."""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pullback import Size, Tensor
from pullback.distributed.checkpoint.filesystem import FileSystemWriter
from pullback.distributed.checkpoint.items import flattened, part_of
from pullback.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.ranks import Ranks
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.world import group_or_default


def state_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """A state dict, with the states of objects that have one."""
    return {key: one.state_dict() if is_stateful(one) else one for key, one in state_dict.items()}


def is_stateful(value: Any) -> bool:
    """Whether something has a state to save and to load."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def storage_for(kind: Any, storage: Any, checkpoint_id: Any) -> Any:
    """The writer or reader that was given, or one of files."""
    if storage is not None:
        if not isinstance(storage, kind):
            raise NotImplementedError(f"storage of type {type(storage).__name__}: use {kind.__name__}")
        if checkpoint_id is not None:
            storage.path = type(storage.path)(checkpoint_id)
        return storage
    if checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    return kind(checkpoint_id)


class Saving:
    """One save: what each rank will write."""

    def __init__(self, state_dict: Any, writer: FileSystemWriter, ranks: Ranks, copied: bool) -> None:
        self.writer, self.ranks = writer, ranks
        self.parts: dict[Any, Any] = {}
        plans = ranks.gathered("plan", lambda: self.planned(state_of(state_dict)))
        first = ranks.gathered("plan", lambda: (writer.prepare(), writer.save_id) if ranks.rank == 0 else None)[0]
        self.number, self.save_id = first
        self.metadata = self.merged(plans)
        self.items = [(index, self.value(index, copied)) for index in self.chosen(plans)[ranks.rank]]

    def planned(self, state: Any) -> list[Any]:
        """What this rank has: names, parts and bytes."""
        plan = []
        for name, (path, value) in flattened(state).items():
            if isinstance(value, Tensor):
                chunk, part = part_of(name, value)
                properties = TensorProperties(value.dtype, value.layout, value.requires_grad)
                self.parts[name, chunk.offsets] = part
                size = part.numel() * part.element_size()
                plan.append((name, path, Size(value.shape), properties, chunk, size))
            else:
                self.parts[name, None] = value
                plan.append((name, path, None, None, None, 1))
        return plan

    def merged(self, plans: list[Any]) -> Metadata:
        """All names and parts of all ranks."""
        metadata = Metadata({}, {})
        for plan in plans:
            for name, path, shape, properties, chunk, _ in plan:
                metadata.planner_data[name] = path
                if shape is None:
                    metadata.state_dict_metadata.setdefault(name, BytesStorageMetadata())
                    continue
                entry = metadata.state_dict_metadata.setdefault(name, TensorStorageMetadata(properties, shape, []))
                if not isinstance(entry, TensorStorageMetadata) or tuple(entry.size) != tuple(shape):
                    raise ValueError(
                        f"{name} is not the same on all ranks: {entry} and a tensor of shape {tuple(shape)}"
                    )
                if chunk not in entry.chunks and (chunk.sizes.numel() or not shape.numel()):
                    entry.chunks.append(chunk)
        return metadata

    def chosen(self, plans: list[Any]) -> list[list[MetadataIndex]]:
        """Who writes what: of those who have it, the one with the least to do."""
        owners: dict[Any, list[int]] = {}
        weight: dict[Any, int] = {}
        for rank, plan in enumerate(plans):
            for name, _, shape, _, chunk, size in plan:
                if shape is None or chunk.sizes.numel() or not shape.numel():
                    key = name, None if chunk is None else chunk.offsets
                    owners.setdefault(key, []).append(rank)
                    weight[key] = size
        load = [0] * len(plans)
        chosen: list[list[MetadataIndex]] = [[] for _ in plans]
        for key, ranks in owners.items():
            rank = min(ranks, key=lambda one: (load[one], one))
            load[rank] += weight[key]
            name, offsets = key
            entry = self.metadata.state_dict_metadata[name]
            number = None
            if offsets is not None:
                number = next(i for i, chunk in enumerate(entry.chunks) if chunk.offsets == offsets)
            chosen[rank].append(MetadataIndex(name, offsets, number))
        return chosen

    def value(self, index: MetadataIndex, copied: bool) -> Any:
        """What is written under a name."""
        value = self.parts[index.fqn, index.offset]
        if isinstance(value, Tensor) and not isinstance(value, DTensor):
            whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
            return value.clone() if copied or not whole else value  # a view is not written with all it looks into
        return pickle.loads(pickle.dumps(value)) if copied and not isinstance(value, Tensor) else value

    def write(self) -> list[Any]:
        """Write what is this rank's."""
        return self.writer.write(self.ranks.rank, self.number, self.items)

    def complete(self, results: list[list[Any]]) -> Metadata:
        """The last step, on one rank."""
        return self.writer.finish(self.metadata, results)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state dict, whose DTensors lie in parts on all ranks. Complete or not at all: `.metadata` comes last."""
    check_planner(planner)
    ranks = Ranks(process_group, no_dist)
    saving = Saving(state_dict, storage_for(FileSystemWriter, storage_writer, checkpoint_id), ranks, False)
    results = ranks.gathered("write", saving.write)
    found = ranks.gathered("finish", lambda: saving.complete(results) if ranks.rank == 0 else None)
    return found[0]  # type: ignore[no-any-return]


def check_planner(planner: Any) -> None:
    """There is one way to plan."""
    if planner is not None and type(planner).__name__ not in ("DefaultSavePlanner", "DefaultLoadPlanner"):
        raise NotImplementedError("planners of one's own: put what is to be saved into the state dict instead")


threads = ThreadPoolExecutor(1, "pullback checkpoint")


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata]:
    """Copy a state dict, and save the copy while the program goes on."""
    check_planner(planner)
    if async_stager is not None:
        raise NotImplementedError("stagers of one's own: tensors are copied in host memory")
    ranks = Ranks(process_group, no_dist)
    saving = Saving(state_dict, storage_for(FileSystemWriter, storage_writer, checkpoint_id), ranks, True)
    if not ranks.together or ranks.size == 1:
        return threads.submit(lambda: saving.complete([saving.write()]))
    return threads.submit(in_background, saving, group_or_default(process_group)._store, ranks)


def in_background(saving: Saving, store: Any, ranks: Ranks) -> Metadata:
    """Write, and tell the others through the store: collectives belong to the program meanwhile."""
    key = f"checkpoint {saving.save_id}"
    try:
        said = (saving.write(), None)
    except Exception as error:
        said = ([], f"rank {ranks.rank}: {type(error).__name__}: {error}")
    store.set(f"{key} {ranks.rank}", pickle.dumps(said))
    if ranks.rank == 0:
        all_said = [pickle.loads(waited(store, f"{key} {rank}")) for rank in range(ranks.size)]
        failed = [why for _, why in all_said if why]
        metadata: Any = None
        if not failed:
            metadata = saving.complete([result for result, _ in all_said])
        store.set(f"{key} done", pickle.dumps((metadata, failed)))
    metadata, failed = pickle.loads(waited(store, f"{key} done"))
    seen = store.add(f"{key} seen", 1)
    while ranks.rank == 0 and seen < ranks.size:  # who holds the store must not leave before all have read it
        time.sleep(0.01)
        seen = store.add(f"{key} seen", 0)
    if failed:
        raise RuntimeError(f"the checkpoint {saving.writer.path} was not saved: {'; '.join(failed)}")
    return metadata  # type: ignore[no-any-return]


def waited(store: Any, key: str) -> Any:
    """What another rank sets; the store stays free for others meanwhile."""
    while not store.check([key]):
        time.sleep(0.01)
    return store.get(key)
