"""What carries collectives: `Engine` does all of them over lanes, and those for one machine or MPI do some quicker.

Engines take arrays that lie in one piece. Every call runs on all ranks of the group, one after the other.
Sums are made in the order of ranks, or along one ring, so that all ranks hold the same bits.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.distributed.errors import DistBackendError
from pullback.distributed.transport.lanes import Lanes, bytes_of, transfer

Array = np.ndarray[Any, Any]
HEADER = struct.Struct("<16sQ")
SIZE = (1 << 40) - 1
"""The bits of a header that say a length; those above say the root."""
SMALL = 1 << 15
"""Bytes up to which everybody sends everything to everybody: beyond, the ring sends less."""


class Engine:
    """Collectives over lanes. `timeout` is in seconds."""

    knows_who = False
    """Whether a timeout names the ranks that are missing, and not those that wait for them."""

    failures: tuple[type[Exception], ...] = ()
    """Errors of its own that mean that a rank was lost; `blame` says which."""

    def __init__(self, store: Any, rank: int, size: int, names: list[str], timeout: float) -> None:
        self.store, self.rank, self.size, self.names, self.timeout = store, rank, size, names, timeout
        self.lanes = Lanes(store, rank, "collective", names)

    def deadline(self) -> float:
        """When a call that begins now is late."""
        return time.monotonic() + self.timeout

    def blame(self, error: Exception) -> str:
        """What one of `failures` means."""
        return str(error)

    def others(self) -> list[int]:
        """All ranks but this one."""
        return [rank for rank in range(self.size) if rank != self.rank]

    def move(self, sends: list[tuple[int, Array]], receives: list[tuple[int, Array]], deadline: float) -> None:
        """Move arrays."""
        outgoing = [(rank, bytes_of(array)) for rank, array in sends]
        transfer(self.lanes, outgoing, [(rank, bytes_of(array)) for rank, array in receives], deadline)

    def agree(self, what: str, count: int, peers: list[int], deadline: float) -> None:
        """Tell peers what this rank is about to do, and compare: who calls something else is told so."""
        mine = HEADER.pack(what.encode()[:16], count)
        theirs = {rank: bytearray(HEADER.size) for rank in peers}
        transfer(self.lanes, [(rank, mine) for rank in peers], list(theirs.items()), deadline)
        for rank, data in theirs.items():
            self.compare(rank, (what[:16], count), *HEADER.unpack(data))

    def compare(self, rank: int, mine: tuple[str, int], name: bytes, count: int) -> None:
        """Raise if another rank is about to do something else."""
        theirs = name.rstrip(b"\0").decode(), count
        if theirs != mine:
            shown = [f"{what} with {size & SIZE} bytes" for what, size in (theirs, mine)]
            raise DistBackendError(
                f"Ranks disagree: {self.names[rank]} called {shown[0]}, {self.names[self.rank]} {shown[1]}"
            )

    def close(self) -> None:
        """Let go of everything."""
        self.lanes.close()

    def barrier(self) -> None:
        """Wait for all."""
        self.agree("barrier", 0, self.others(), self.deadline())

    def broadcast(self, array: Array, root: int) -> None:
        """What the root has, everywhere: down a tree."""
        end, place = self.deadline(), (self.rank - root) % self.size
        if place:
            source = ((place & (place - 1)) + root) % self.size
            self.receive_checked("broadcast", array, source, end)
        for child in children(place, self.size):
            self.send_checked("broadcast", array, (child + root) % self.size, end)

    def send_checked(self, what: str, array: Array, rank: int, end: float) -> None:
        """Send what it is, and it."""
        transfer(self.lanes, [(rank, HEADER.pack(what.encode(), array.nbytes))], [], end)
        self.move([(rank, array)], [], end)

    def receive_checked(self, what: str, array: Array, rank: int, end: float) -> None:
        """Receive what it is, and it."""
        header = bytearray(HEADER.size)
        transfer(self.lanes, [], [(rank, header)], end)
        self.compare(rank, (what, array.nbytes), *HEADER.unpack(header))
        self.move([], [(rank, array)], end)

    def all_reduce(self, array: Array, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, everywhere."""
        end, flat = self.deadline(), array.reshape(-1)
        self.agree("all_reduce", flat.nbytes, self.neighbours(), end)
        if flat.nbytes <= SMALL or flat.size < self.size:
            parts = [flat if rank == self.rank else np.empty_like(flat) for rank in range(self.size)]
            self.move([(rank, flat) for rank in self.others()], [(rank, parts[rank]) for rank in self.others()], end)
            fold(combine, parts, flat)
            return
        shares = np.array_split(flat, self.size)
        self.ring_reduce(shares, combine, end)
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for step in range(self.size - 1):
            here, there = shares[(self.rank - step) % self.size], shares[(self.rank - step - 1) % self.size]
            self.move([(right, here)], [(left, there)], end)

    def scaled_sum(self, arrays: list[Array], factor: Any) -> None:
        """The sum over ranks of arrays of one dtype times a factor, in place."""
        flat = np.concatenate([array.reshape(-1) for array in arrays])
        np.multiply(flat, factor, out=flat)
        self.all_reduce(flat, np.add)
        start = 0
        for array in arrays:
            array[...] = flat[start : start + array.size].reshape(array.shape)
            start += array.size

    def neighbours(self) -> list[int]:
        """The ranks beside this one on the ring."""
        return sorted({(self.rank + 1) % self.size, (self.rank - 1) % self.size} - {self.rank})

    def ring_reduce(self, shares: list[Array], combine: Callable[..., Any], end: float) -> None:
        """Send shares around, each rank combining what comes with its own: in the end share `rank` is complete here."""
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        room = np.empty_like(shares[0])
        for step in range(self.size - 1):
            here, there = shares[(self.rank - step - 1) % self.size], shares[(self.rank - step - 2) % self.size]
            self.move([(right, here)], [(left, room[: there.size])], end)
            combine(room[: there.size], there, out=there)

    def reduce(self, array: Array, root: int, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, at the root; the others keep theirs."""
        end = self.deadline()
        if self.rank != root:
            return self.send_checked("reduce", array, root, end)
        parts = [array if rank == root else np.empty_like(array) for rank in range(self.size)]
        for rank in self.others():
            self.receive_checked("reduce", parts[rank], rank, end)
        fold(combine, parts, array)

    def all_gather(self, outs: list[Array], array: Array) -> None:
        """What every rank has, everywhere."""
        end, others = self.deadline(), self.others()
        self.agree("all_gather", array.nbytes, others, end)
        self.move([(rank, array) for rank in others], [(rank, outs[rank]) for rank in others], end)
        outs[self.rank][...] = array

    def reduce_scatter(self, out: Array, arrays: list[Array], combine: Callable[..., Any]) -> None:
        """Combine the arrays each rank has for every rank; each gets its own."""
        end, others = self.deadline(), self.others()
        self.agree("reduce_scatter", out.nbytes, others, end)
        parts = [arrays[self.rank] if rank == self.rank else np.empty_like(out) for rank in range(self.size)]
        self.move([(rank, arrays[rank]) for rank in others], [(rank, parts[rank]) for rank in others], end)
        fold(combine, parts, out)

    def gather(self, outs: list[Array] | None, array: Array, root: int) -> None:
        """What every rank has, at the root."""
        end = self.deadline()
        if self.rank != root:
            return self.send_checked("gather", array, root, end)
        assert outs is not None
        for rank in self.others():
            self.receive_checked("gather", outs[rank], rank, end)
        outs[root][...] = array

    def scatter(self, out: Array, arrays: list[Array] | None, root: int) -> None:
        """To every rank what the root has for it."""
        end = self.deadline()
        if self.rank != root:
            return self.receive_checked("scatter", out, root, end)
        assert arrays is not None
        for rank in self.others():
            self.send_checked("scatter", arrays[rank], rank, end)
        out[...] = arrays[root]

    def all_to_all(self, outs: list[Array], arrays: list[Array]) -> None:
        """To every rank what this one has for it. Lengths may differ: both sides of a pair must know theirs."""
        end, others = self.deadline(), self.others()
        theirs = {rank: bytearray(HEADER.size) for rank in others}
        mine = [(rank, HEADER.pack(b"all_to_all", arrays[rank].nbytes)) for rank in others]
        transfer(self.lanes, mine, list(theirs.items()), end)
        for rank in others:
            self.compare(rank, ("all_to_all", outs[rank].nbytes), *HEADER.unpack(theirs[rank]))
        self.move([(rank, arrays[rank]) for rank in others], [(rank, outs[rank]) for rank in others], end)
        outs[self.rank][...] = arrays[self.rank]


def from_all(store: Any, key: str, names: list[str]) -> list[bytes]:
    """What every rank has left in a store under a key; who has not in time is named."""
    found = []
    for rank, name in enumerate(names):
        try:
            found.append(store.get(f"{key}/{rank}"))
        except RuntimeError as error:
            raise DistBackendError(f"{name} has not joined the group: {error}") from None
    return found


def children(place: int, size: int) -> list[int]:
    """Whom a place of a binomial tree sends to, the largest part of the tree first: place 0 is the root."""
    low = place & -place if place else size
    steps, step = [], 1
    while step < low and place + step < size:
        steps.append(place + step)
        step *= 2
    return steps[::-1]


def fold(combine: Callable[..., Any], parts: list[Array], out: Array) -> None:
    """Combine arrays in the order of ranks."""
    if len(parts) == 1:
        out[...] = parts[0]
        return
    total = combine(parts[0], parts[1])
    for part in parts[2:]:
        combine(total, part, out=total)
    out[...] = total
