"""Messages from one rank to another: `send` and `recv`, matched by tag, in the order they were sent."""

from __future__ import annotations

import select
import struct
import threading
import time
from collections import defaultdict, deque
from typing import Any

from pullback.distributed.errors import DistBackendError
from pullback.distributed.transport.lanes import Lanes, bytes_of, listening, transfer

HEADER = struct.Struct("<qQ")
PAUSE = 0.0005


class Mail:
    """The messages of a group. What came with a tag nobody has asked for yet is kept."""

    def __init__(self, store: Any, rank: int, size: int, names: list[str]) -> None:
        self.lanes = Lanes(store, rank, "mail", names)
        self.rank, self.size, self.names = rank, size, names
        self.kept: defaultdict[tuple[int, int], deque[bytearray]] = defaultdict(deque)
        self.sending = [threading.Lock() for _ in range(size)]
        self.receiving = [threading.Lock() for _ in range(size)]

    def send(self, array: Any, rank: int, tag: int, end: float) -> None:
        """Send an array that lies in one piece."""
        with self.sending[rank]:
            transfer(self.lanes, [(rank, HEADER.pack(tag, array.nbytes))], [], end)
            transfer(self.lanes, [(rank, bytes_of(array))], [], end)

    def receive(self, array: Any, rank: int, tag: int, end: float) -> None:
        """Receive into an array that lies in one piece."""
        with self.receiving[rank]:
            while not self.kept[rank, tag]:
                if self.next_from(rank, tag, array, end):
                    return
            self.unpack(array, self.kept[rank, tag].popleft(), rank)

    def unpack(self, array: Any, data: bytearray, rank: int) -> None:
        """Put what was kept where it is wanted."""
        if len(data) != array.nbytes:
            self.refuse(rank, len(data), array.nbytes)
        bytes_of(array)[:] = data

    def refuse(self, rank: int, sent: int, wanted: int) -> None:
        """A message of another length than is wanted."""
        raise DistBackendError(f"{self.names[rank]} sent {sent} bytes where {wanted} are to be received")

    def next_from(self, rank: int, tag: int, array: Any, end: float) -> bool:
        """Read the next message from a rank: into the array if it is the one that is wanted, and whether it was."""
        header = bytearray(HEADER.size)
        transfer(self.lanes, [], [(rank, header)], end)
        came, size = HEADER.unpack(header)
        wanted = came == tag and array is not None and size == array.nbytes
        data = bytes_of(array) if wanted else bytearray(size)
        transfer(self.lanes, [], [(rank, data)], end)
        if not wanted:
            self.kept[rank, came].append(data)  # type: ignore[arg-type]
        return wanted

    def receive_any(self, array: Any, tag: int, end: float) -> int:
        """Receive from whoever sends first; who it was."""
        while True:
            for rank in range(self.size):
                if rank == self.rank or not self.receiving[rank].acquire(blocking=False):
                    continue
                try:
                    if not self.kept[rank, tag] and self.has_more(rank, end):
                        self.next_from(rank, tag, None, end)
                    if self.kept[rank, tag]:
                        self.unpack(array, self.kept[rank, tag].popleft(), rank)
                        return rank
                finally:
                    self.receiving[rank].release()
            if time.monotonic() > end:
                raise TimeoutError("any rank")
            time.sleep(PAUSE)

    def has_more(self, rank: int, end: float) -> bool:
        """Whether a message from a rank is on its way."""
        name = f"{self.lanes.secret()}:{rank}:{self.rank}"
        if rank not in self.lanes.into and name not in listening().arrived:
            return False
        return bool(select.select([self.lanes.source(rank, end)], [], [], 0)[0])

    def close(self) -> None:
        """Close all."""
        self.lanes.close()
