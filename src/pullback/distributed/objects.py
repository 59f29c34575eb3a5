"""Collectives of Python objects: pickled, sent as bytes. Who can send to a rank can run code there, as in torch."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback.distributed import collectives, messages
from pullback.distributed.world import get_rank, get_world_size, group_or_default, not_in


def packed(value: Any) -> Tensor:
    """An object as bytes."""
    return torch.from_numpy(np.frombuffer(pickle.dumps(value), np.uint8).copy())


def unpacked(data: Tensor, size: int) -> Any:
    """The object of these bytes."""
    return pickle.loads(data.numpy()[:size].tobytes())


def sizes_of(data: Tensor, group: Any) -> list[int]:
    """The lengths of what all ranks have."""
    out = torch.zeros(get_world_size(group), dtype=torch.int64)
    collectives.all_gather_into_tensor(out, torch.tensor([data.numel()]), group=group)
    return out.tolist()  # type: ignore[no-any-return]


def padded(data: Tensor, size: int) -> Tensor:
    """Bytes with room behind them, so that all are equally long."""
    out = torch.zeros(size, dtype=torch.uint8)
    out[: data.numel()] = data
    return out


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all ranks, everywhere."""
    if not_in(group, "all_gather_object"):
        return
    data = packed(obj)
    sizes = sizes_of(data, group)
    outs = [torch.zeros(max(sizes), dtype=torch.uint8) for _ in sizes]
    collectives.all_gather(outs, padded(data, max(sizes)), group=group)
    for rank, (out, size) in enumerate(zip(outs, sizes)):
        object_list[rank] = unpacked(out, size)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all ranks, at one."""
    if not_in(group, "gather_object"):
        return
    pg = group_or_default(group)
    if dst is None and group_dst is None:
        dst = 0
    root = collectives.group_rank(pg, dst, group_dst)
    if pg.rank() == root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if pg.rank() != root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data = packed(obj)
    sizes = sizes_of(data, group)
    outs = [torch.zeros(max(sizes), dtype=torch.uint8) for _ in sizes] if pg.rank() == root else None
    collectives.gather(padded(data, max(sizes)), outs, group=group, group_dst=root)
    if outs is not None and object_gather_list is not None:
        for rank, (out, size) in enumerate(zip(outs, sizes)):
            object_gather_list[rank] = unpacked(out, size)


def joined(objects: list[Any]) -> tuple[Tensor, Tensor]:
    """Several objects: their lengths and their bytes."""
    parts = [packed(one) for one in objects]
    return torch.tensor([part.numel() for part in parts]), torch.cat(parts)


def take(object_list: list[Any], sizes: Tensor, data: Tensor) -> None:
    """Put the objects of these bytes into a list."""
    start = 0
    for index, size in enumerate(sizes.tolist()):
        object_list[index] = unpacked(data[start : start + size], size)
        start += size


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """The objects of one rank, everywhere."""
    if not_in(group, "broadcast_object_list"):
        return
    pg = group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = collectives.group_rank(pg, src, group_src)
    sizes, data = torch.zeros(len(object_list), dtype=torch.int64), None
    if pg.rank() == root:
        sizes, data = joined(object_list)
    collectives.broadcast(sizes, group=group, group_src=root)
    if data is None:
        data = torch.zeros(int(sizes.sum()), dtype=torch.uint8)
    collectives.broadcast(data, group=group, group_src=root)
    if pg.rank() != root:
        take(object_list, sizes, data)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """To every rank the object one has for it."""
    if not_in(group, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    pg = group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = collectives.group_rank(pg, src, group_src)
    sizes, rows = torch.zeros(pg.size(), dtype=torch.int64), None
    if pg.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        parts = [packed(one) for one in scatter_object_input_list]
        sizes = torch.tensor([part.numel() for part in parts])
        rows = [padded(part, int(sizes.max())) for part in parts]
    collectives.broadcast(sizes, group=group, group_src=root)
    out = torch.zeros(int(sizes.max()), dtype=torch.uint8)
    collectives.scatter(out, rows, group=group, group_src=root)
    scatter_object_output_list[0] = unpacked(out, int(sizes[pg.rank()]))


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to a rank."""
    if get_rank() == dst:
        raise ValueError(messages.SELF.format("destination"))
    sizes, data = joined(object_list)
    messages.send(sizes, dst, group, group_dst=group_dst)
    messages.send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects; the rank they came from."""
    sizes = torch.zeros(len(object_list), dtype=torch.int64)
    rank = messages.recv(sizes, src, group, group_src=group_src)
    if rank < 0:
        return rank
    data = torch.zeros(int(sizes.sum()), dtype=torch.uint8)
    messages.recv(data, rank, group)
    take(object_list, sizes, data)
    return rank
