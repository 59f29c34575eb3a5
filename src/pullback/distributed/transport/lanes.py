"""Lanes: one-way connections between ranks, made when they are first used.

A process listens at one port. Who wants to send connects and says who it is and which lane this is; the thread that
listens hands the connection to whoever receives on that lane. A lane whose sender has died is closed by the system:
that is how a receiver notices.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from pullback.distributed.errors import DistBackendError

HELLO = struct.Struct("<H")
PATIENCE = 2.0
"""Seconds in which a store has to say who was lost."""
LINGER = 1.5
"""Seconds that rank 0 gives the others to read there who was lost."""
LOOK = 0.5
"""Seconds between looks into the store of a rank that waits."""


class Listener:
    """The port of this process, and the lanes that have arrived at it."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("", 0), backlog=1024)
        self.port: int = self.socket.getsockname()[1]
        self.arrived: dict[str, socket.socket] = {}
        self.changed = threading.Condition()
        self.process = os.getpid()
        threading.Thread(target=self.listen, name="pullback lanes", daemon=True).start()

    def listen(self) -> None:
        """Take connections, each with the name of its lane."""
        while True:
            made, _ = self.socket.accept()
            try:
                made.settimeout(10)
                (size,) = HELLO.unpack(exactly(made, HELLO.size))
                name = exactly(made, size).decode()
            except (OSError, UnicodeDecodeError):
                made.close()  # not one of us
                continue
            tune(made)
            with self.changed:
                self.arrived[name] = made
                self.changed.notify_all()

    def take(self, name: str, deadline: float, who: str) -> socket.socket:
        """The lane of this name, once its sender has connected."""
        with self.changed:
            if not self.changed.wait_for(lambda: name in self.arrived, max(deadline - time.monotonic(), 0)):
                raise TimeoutError(who)
            return self.arrived.pop(name)


listener: Listener | None = None
starting = threading.Lock()


def listening() -> Listener:
    """The listener of this process; after a fork the child has its own."""
    global listener
    with starting:
        if listener is None or listener.process != os.getpid():
            listener = Listener()
        return listener


def exactly(source: socket.socket, size: int) -> bytes:
    """So many bytes."""
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionResetError("closed")
        data += more
    return data


def tune(made: socket.socket) -> None:
    """Send at once, never block."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)


def own_address(store: Any) -> str:
    """The address under which others reach this process: the one by which it reaches them."""
    given = os.environ.get("PULLBACK_ADDRESS")
    if given:
        return given
    master = os.environ.get("MASTER_ADDR") or getattr(store, "host", None)
    if not master:
        return socket.gethostbyname(socket.gethostname())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((socket.gethostbyname(master), 9))
        return str(probe.getsockname()[0])


class Lanes:
    """The lanes of this rank to and from the others of a group, of one kind."""

    def __init__(self, store: Any, rank: int, kind: str, names: list[str]) -> None:
        self.store, self.rank, self.kind, self.names = store, rank, kind, names
        self.key, self.gone, self.watching = "", -1, False
        self.out: dict[int, socket.socket] = {}
        self.into: dict[int, socket.socket] = {}

    def join(self, address: str) -> None:
        """Say where this rank listens; the first rank says what the group is called, which nobody can guess."""
        self.store.set(f"lanes/{self.kind}/{self.rank}", f"{address} {listening().port}")
        if self.rank == 0:
            self.store.set(f"lanes/{self.kind}/key", os.urandom(16).hex())

    def secret(self) -> str:
        """The name of the group on the wire."""
        self.key = self.key or self.store.get(f"lanes/{self.kind}/key").decode()
        return self.key

    def to(self, rank: int, deadline: float) -> socket.socket:
        """The lane to another rank."""
        if rank not in self.out:
            left = max(deadline - time.monotonic(), 0.001)
            key = f"lanes/{self.kind}/{rank}"
            try:
                host, port = self.store.get(key).decode().split()
                made = socket.create_connection((host, int(port)), timeout=left)
            except (OSError, RuntimeError) as error:
                raise DistBackendError(f"No connection to {self.names[rank]}: {error}") from None
            hello = f"{self.secret()}:{self.rank}:{rank}".encode()
            made.sendall(HELLO.pack(len(hello)) + hello)
            tune(made)
            self.out[rank] = made
        return self.out[rank]

    def source(self, rank: int, deadline: float) -> socket.socket:
        """The lane from another rank."""
        if rank not in self.into:
            name = f"{self.secret()}:{rank}:{self.rank}"
            self.into[rank] = listening().take(name, deadline, self.names[rank])
        return self.into[rank]

    def lost(self, rank: int, error: Any) -> DistBackendError:
        """The error of a rank whose connection has broken: it names the one that was lost first.

        Who loses a rank says so in the store and gives up, and others lose him for that.
        """
        held = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"  # by rank 0, not by whoever started the ranks

        def tell() -> int:
            first = int(self.store.compare_set("lost", "", str(rank)))
            self.store.add("lost/seen", 1)
            end = time.monotonic() + LINGER
            while held and self.rank == 0 and time.monotonic() < end:  # the store ends with this rank
                if self.store.add("lost/seen", 0) >= len(self.names) - 1:
                    break
                time.sleep(0.02)
            return first

        told = answer(tell, PATIENCE)
        if told is not None:
            rank = told
        elif held and rank == 0:
            return DistBackendError("Lost rank 0: the store it holds does not answer")
        return DistBackendError(f"Lost {self.names[rank]}: {error}")

    def watch(self) -> None:
        """From now on look in the store whether somebody has lost a rank; in a thread, as a store may not answer."""
        if self.watching:
            return
        self.watching = True

        def look() -> None:
            try:
                store = self.store.clone()
                while self.watching and self.gone < 0:
                    if store.check(["lost"]):
                        self.gone = int(store.get("lost"))
                    time.sleep(LOOK)
            except (OSError, RuntimeError):
                return  # there is no store any more: the timeout ends the wait

        threading.Thread(target=look, name="pullback watch", daemon=True).start()

    def close(self) -> None:
        """Close all."""
        self.watching = False
        for lane in (*self.out.values(), *self.into.values()):
            lane.close()
        self.out, self.into = {}, {}


def answer(ask: Callable[[], Any], seconds: float) -> Any:
    """What a call returns; None if it fails, or takes longer."""
    found: list[Any] = []

    def run() -> None:
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            found.append(ask())

    asking = threading.Thread(target=run, name="pullback question", daemon=True)
    asking.start()
    asking.join(seconds)
    return found[0] if found else None


def bytes_of(array: Any) -> memoryview:
    """The memory of a contiguous array."""
    return memoryview(array.reshape(-1).view("u1")) if array.size else memoryview(b"")


def transfer(lanes: Lanes, sends: list[tuple[int, Any]], receives: list[tuple[int, Any]], deadline: float) -> None:
    """Move all these bytes at once, so that nobody waits for a neighbour who waits for him."""
    poll = select.poll()
    work: dict[int, tuple[bool, int, socket.socket, memoryview]] = {}
    for sending, jobs in ((True, sends), (False, receives)):
        for rank, data in jobs:
            if len(data):
                lane = lanes.to(rank, deadline) if sending else lanes.source(rank, deadline)
                work[lane.fileno()] = sending, rank, lane, memoryview(data)
                poll.register(lane, select.POLLOUT if sending else select.POLLIN)
    ready = list(work)
    while True:
        for number in ready:
            sending, rank, lane, rest = work[number]
            try:
                moved = lane.send(rest) if sending else lane.recv_into(rest)
                if not moved and not sending:
                    raise ConnectionResetError("the connection was closed")
            except BlockingIOError:
                continue
            except OSError as error:
                raise lanes.lost(rank, error) from None
            if moved == len(rest):
                del work[number]
                poll.unregister(number)
            else:
                work[number] = sending, rank, lane, rest[moved:]
        if not work:
            return
        left = deadline - time.monotonic()
        if left <= 0:
            late = sorted({rank for _, rank, _, _ in work.values()})
            raise TimeoutError(", ".join([lanes.names[rank] for rank in late]))
        ready = [number for number, _ in poll.poll(min(left, LOOK) * 1000)]
        if not ready:
            lanes.watch()
            if lanes.gone >= 0:
                raise lanes.lost(lanes.gone, "its connection was closed")
