"""From one rank to another: `send`, `recv`, and those that come back at once."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.distributed.collectives import check_tensor, group_rank
from pullback.distributed.work import Work
from pullback.distributed.world import get_global_rank, get_rank, group_or_default, not_in

SELF = "Invalid {0} rank: {0} rank should not be the same as the rank of the current process."


def check_other(rank: int, own: int, kind: str) -> None:
    """Refuse a message to oneself."""
    if rank == own:
        raise ValueError(SELF.format(kind))


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Any:
    """Send a tensor, without waiting for it to arrive."""
    pg = group_or_default(group) if not not_in(group, "isend") else None
    if pg is None:
        return None
    check_tensor(tensor, "tensor")
    rank = group_rank(pg, dst, group_dst)
    check_other(rank, pg.rank(), "destination")
    return pg.send(tensor, rank, tag, later=True)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Any:
    """Receive a tensor, without waiting for it; from anybody if no rank is given."""
    check_tensor(tensor, "tensor")
    if not_in(group, "irecv"):
        return None
    pg = group_or_default(group)
    return pg.recv(tensor, source(pg, src, group_src), tag, later=True)


def source(pg: Any, src: int | None, group_src: int | None) -> int:
    """Whose message is wanted, as a rank of the group; -1 for anybody's."""
    if src is None and group_src is None:
        return -1
    rank = group_rank(pg, src, group_src)
    check_other(rank, pg.rank(), "source")
    return rank


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor."""
    if not_in(group, "send"):
        return
    pg = group_or_default(group)
    rank = group_rank(pg, dst, group_dst)
    check_other(rank, pg.rank(), "destination")
    check_tensor(tensor, "tensor")
    pg.send(tensor, rank, tag)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor; the rank it came from."""
    check_tensor(tensor, "tensor")
    if not_in(group, "recv"):
        return -1
    pg = group_or_default(group)
    work = pg.recv(tensor, source(pg, src, group_src), tag)
    return get_global_rank(pg, work.source_rank())


class P2POp:
    """One of the messages for `batch_isend_irecv`."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = group_or_default(group)
        self.group_peer = group_rank(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        own, name = get_rank(), self.op.__name__
        src, dst = (own, self.peer) if self.op is isend else (self.peer, own)
        ranks = f"pg={self.group.group_name}, group_src={src}, group_dst={dst}"
        return f"P2POp({name} {ranks},  {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Several messages at once."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    first = p2p_op_list[0].group
    if any(one.group != first for one in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for one in p2p_op_list:
        peer = {"group_dst" if one.op is isend else "group_src": one.group_peer}
        work = one.op(one.tensor, group=one.group, tag=one.tag, **peer)
        if work:
            works.append(work)
    return works
