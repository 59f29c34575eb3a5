"""`TCPStore`: a table in the process of one rank, which the others ask over TCP.

The bytes on the wire are those of torch's store, so ranks started by torch's `torchrun`, whose agent holds the store,
find each other too. One thread serves all clients; who waits for a key is answered when it is set.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pullback.distributed.errors import DistNetworkError, DistStoreError, QueueEmptyError
from pullback.distributed.stores import TIMEOUT, Store, Table, as_bytes

(VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, GETNUMKEYS, DELETE_KEY, APPEND, MULTI_GET, MULTI_SET) = range(12)
(CANCEL_WAIT, PING, QUEUE_PUSH, QUEUE_POP, QUEUE_LEN, LIST_KEYS) = range(12, 18)
MAGIC = 0x3C85F7CE
STOP_WAITING, WAIT_CANCELED = b"\0", b"\1"
READY, NOT_READY = b"\0", b"\1"
BYTE, WORD, LONG, SIGNED = struct.Struct("<B"), struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<q")
LARGEST = 1 << 33
"""No key or value is longer: a length beyond it comes from something that does not speak this protocol."""


def packed(data: bytes | str) -> bytes:
    """Bytes with their length before them."""
    data = data.encode() if isinstance(data, str) else data
    return LONG.pack(len(data)) + data


class Unfinished(Exception):
    """The rest of a request has not come yet."""


class Request:
    """Reads what has arrived from a client."""

    def __init__(self, data: bytearray) -> None:
        self.data, self.start = data, 0

    def take(self, form: struct.Struct) -> int:
        """A number."""
        return int(form.unpack(self.bytes(form.size))[0])

    def bytes(self, size: int) -> bytes:
        """So many bytes."""
        if size > LARGEST:
            raise ValueError("not a request")
        if self.start + size > len(self.data):
            raise Unfinished
        self.start += size
        return bytes(self.data[self.start - size : self.start])

    def text(self) -> bytes:
        """Bytes with their length before them."""
        return self.bytes(self.take(LONG))

    def key(self) -> str:
        """A key."""
        return self.text().decode()

    def several(self) -> list[str]:
        """Several keys."""
        return [self.key() for _ in range(self.take(LONG))]


class Server:
    """Holds the table and answers clients, in a thread of its own."""

    def __init__(self, port: int, listening: int | None = None) -> None:
        if listening is not None:
            self.socket = socket.socket(fileno=listening)
        else:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            try:
                self.socket = socket.create_server(
                    ("", port), family=family, backlog=1024, dualstack_ipv6=family is socket.AF_INET6
                )
            except OSError as error:
                raise DistNetworkError(
                    "The server socket has failed to listen on any local network address. "
                    f"port: {port}, useIpv6: false, code: {-(error.errno or 0)}, name: {error.strerror}"
                ) from None
        self.port: int = self.socket.getsockname()[1]
        self.table = Table()
        self.inbox: dict[socket.socket, bytearray] = {}
        self.outbox: dict[socket.socket, bytearray] = defaultdict(bytearray)
        self.waiting: dict[socket.socket, tuple[set[str], Callable[[], None]]] = {}
        self.wake, self.woken = socket.socketpair()
        self.select = selectors.DefaultSelector()
        self.thread = threading.Thread(target=self.serve, name="pullback store", daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Answer until closed."""
        self.socket.setblocking(False)
        self.select.register(self.socket, selectors.EVENT_READ)
        self.select.register(self.woken, selectors.EVENT_READ)
        while True:
            for key, events in self.select.select():
                if key.fileobj is self.woken:
                    return self.end()
                if key.fileobj is self.socket:
                    client, _ = self.socket.accept()
                    client.setblocking(False)
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.inbox[client] = bytearray()
                    self.select.register(client, selectors.EVENT_READ)
                    continue
                client = key.fileobj  # type: ignore[assignment]
                try:
                    if events & selectors.EVENT_WRITE:
                        self.flush(client)
                    if events & selectors.EVENT_READ:
                        self.read(client)
                except (OSError, ValueError):
                    self.drop(client)

    def end(self) -> None:
        """Close everything."""
        for client in list(self.inbox):
            self.drop(client)
        self.select.close()
        self.socket.close()
        self.woken.close()

    def drop(self, client: socket.socket) -> None:
        """A client is gone."""
        if self.inbox.pop(client, None) is not None:
            self.waiting.pop(client, None)
            self.outbox.pop(client, None)
            self.select.unregister(client)
            client.close()

    def read(self, client: socket.socket) -> None:
        """What a client says, and the answers."""
        data = client.recv(1 << 20)
        if not data:
            return self.drop(client)
        inbox = self.inbox[client]
        inbox += data
        while inbox and client in self.inbox and (client not in self.waiting or inbox[0] == CANCEL_WAIT):
            request = Request(inbox)
            try:
                self.answer(client, request)
            except Unfinished:
                break
            del inbox[: request.start]

    def say(self, client: socket.socket, data: bytes) -> None:
        """Send an answer, as much as goes at once."""
        self.outbox[client] += data
        self.flush(client)

    def flush(self, client: socket.socket) -> None:
        """Send what is left."""
        rest = self.outbox[client]
        if rest:
            with contextlib.suppress(BlockingIOError):  # the rest goes as soon as there is room
                del rest[: client.send(rest)]
        self.select.modify(client, selectors.EVENT_READ | (selectors.EVENT_WRITE if rest else 0))

    def put(self, key: str, value: bytes) -> None:
        """A key has a value: who waits for it goes on."""
        self.table.values[key] = value
        self.arrived(key)

    def arrived(self, key: str) -> None:
        """Let those go on who waited for a key and for nothing else."""
        for client, (missing, go_on) in list(self.waiting.items()):
            missing.discard(key)
            if not missing:
                del self.waiting[client]
                go_on()

    def answer(self, client: socket.socket, request: Request) -> None:
        """One request. All of it is read before anything changes, as its rest may not have come."""
        values, kind = self.table.values, request.take(BYTE)
        if kind == VALIDATE:
            if request.take(WORD) != MAGIC:
                raise ValueError("not a client of a store")
        elif kind == PING:
            self.say(client, request.bytes(WORD.size))
        elif kind == SET:
            self.put(request.key(), request.text())
        elif kind == COMPARE_SET:
            key, expected, desired = request.key(), request.text(), request.text()
            held = self.table.compare_set(key, expected, desired)
            if key in values:
                self.arrived(key)
            self.say(client, packed(held))
        elif kind == GET:
            self.say(client, packed(values[request.key()]))
        elif kind == ADD:
            key, amount = request.key(), request.take(SIGNED)
            self.say(client, SIGNED.pack(self.table.add(key, amount)))
            self.arrived(key)
        elif kind == CHECK:
            self.say(client, READY if all(key in values for key in request.several()) else NOT_READY)
        elif kind == WAIT:
            missing = {key for key in request.several() if key not in values}
            if missing:
                self.waiting[client] = missing, lambda: self.say(client, STOP_WAITING)
            else:
                self.say(client, STOP_WAITING)
        elif kind == CANCEL_WAIT:
            self.waiting.pop(client, None)
            self.say(client, WAIT_CANCELED)
        elif kind == GETNUMKEYS:
            self.say(client, SIGNED.pack(len(values)))
        elif kind == DELETE_KEY:
            self.say(client, SIGNED.pack(int(values.pop(request.key(), None) is not None)))
        elif kind == APPEND:
            key, more = request.key(), request.text()
            self.put(key, values.get(key, b"") + more)
        elif kind == MULTI_GET:
            self.say(client, b"".join([packed(values[key]) for key in request.several()]))
        elif kind == MULTI_SET:
            for key, value in [(request.key(), request.text()) for _ in range(request.take(LONG))]:
                self.put(key, value)
        elif kind == QUEUE_PUSH:
            key, value = request.key(), request.text()
            self.table.queues[key].append(value)
            self.arrived(key)
        elif kind == QUEUE_POP:
            queue = self.table.queues[request.key()]
            self.say(client, SIGNED.pack(len(queue)) + (packed(queue.popleft()) if queue else b""))
        elif kind == QUEUE_LEN:
            self.say(client, SIGNED.pack(len(self.table.queues[request.key()])))
        elif kind == LIST_KEYS:
            self.say(client, LONG.pack(len(values)) + b"".join([packed(key) for key in values]))
        else:
            raise ValueError(f"unknown request {kind}")


class TCPStore(Store):
    """A store that one process holds and the others ask."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout, self.host, self._server = timeout, host_name, None
        if is_master:
            self._server = Server(port, master_listen_fd)
            port = self._server.port
        self.port, self.libuvBackend = port, use_libuv
        self._lock = threading.RLock()
        self._socket = connected(host_name, port, timeout)
        self._waited: list[str] = []
        try:
            self._say(BYTE.pack(VALIDATE) + WORD.pack(MAGIC) + BYTE.pack(PING) + WORD.pack(os.getpid()))
            self._hear(WORD.size)
            if wait_for_workers and world_size is not None and world_size > 0:
                self._wait_for_workers(world_size)
        except BaseException:
            self.close()
            raise

    def _wait_for_workers(self, count: int) -> None:
        """The one who holds the store waits until all have come."""
        come = self.add("init/", 1)
        if self._server is None:
            return
        end = time.monotonic() + self._timeout.total_seconds()
        while come < count:
            if time.monotonic() > end:
                waited = self._timeout.seconds
                raise DistStoreError(
                    f"Timed out after {waited} seconds waiting for clients. {come}/{count} clients joined."
                )
            time.sleep(0.002)
            come = self.add("init/", 0)

    def close(self) -> None:
        """Go; the table goes with the process that holds it."""
        self._socket.close()
        if self._server is not None:
            self._server.wake.close()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self.close()

    def __repr__(self) -> str:
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self.port})"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={server})"

    def _say(self, *parts: bytes) -> None:
        try:
            self._socket.sendall(b"".join(parts))
        except OSError as error:
            raise DistNetworkError(error.strerror or str(error)) from None

    def _hear(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except TimeoutError:
                raise
            except OSError as error:
                raise DistNetworkError(error.strerror or str(error)) from None
            if not more:
                raise DistNetworkError(
                    "Failed to recv, got 0 bytes. Connection was likely closed. "
                    "Did the remote server shutdown or crash?"
                )
            data += more
        return bytes(data)

    def _number(self) -> int:
        return int(SIGNED.unpack(self._hear(SIGNED.size))[0])

    def _text(self) -> bytes:
        return self._hear(LONG.unpack(self._hear(LONG.size))[0])

    def _ask(self, kind: int, *parts: bytes, then: Callable[[], Any] | None = None) -> Any:
        with self._lock:
            self._say(BYTE.pack(kind), *parts)
            return None if then is None else then()

    @staticmethod
    def _key(key: str) -> bytes:
        return packed("/" + key)

    def _keys(self, keys: list[str]) -> bytes:
        return LONG.pack(len(keys)) + b"".join([self._key(key) for key in keys])

    def clone(self) -> Store:
        """Another connection to the same table."""
        return TCPStore(self.host, self.port, None, False, self._timeout, wait_for_workers=False)

    def has_extended_api(self) -> bool:
        """They are done at once here."""
        return True

    def num_keys(self) -> int:
        """How many keys there are."""
        return self._ask(GETNUMKEYS, then=self._number)  # type: ignore[no-any-return]

    def list_keys(self) -> list[str]:
        """All keys."""
        names = self._ask(LIST_KEYS, then=lambda: [self._text().decode() for _ in range(self._number())])
        return [name.removeprefix("/") for name in names]

    def multi_get(self, keys: Any) -> list[bytes]:
        """The values of several keys."""
        self.wait(keys)
        return self._ask(MULTI_GET, self._keys(list(keys)), then=lambda: [self._text() for _ in keys])  # type: ignore[no-any-return]

    def multi_set(self, keys: Any, values: Any) -> None:
        """Put several values."""
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        pairs = [self._key(k) + packed(as_bytes(v, self, "multi_set", keys, values)) for k, v in zip(keys, values)]
        self._ask(MULTI_SET, LONG.pack(len(pairs)), *pairs)

    def queue_push(self, key: str, value: Any) -> None:
        """Put something at the end of a queue."""
        self._ask(QUEUE_PUSH, self._key(key), packed(as_bytes(value, self, "queue_push", key, value)))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take what is first in a queue; wait for it if there is nothing."""
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            found = self._ask(QUEUE_POP, self._key(key), then=lambda: self._text() if self._number() else None)
            if found is not None:
                return found  # type: ignore[no-any-return]
            if not block:
                raise QueueEmptyError("queue is empty")
            if time.monotonic() > end:
                raise DistStoreError("Wait timeout")
            time.sleep(0.002)

    def queue_len(self, key: str) -> int:
        """How long a queue is."""
        return self._ask(QUEUE_LEN, self._key(key), then=self._number)  # type: ignore[no-any-return]

    def _set(self, key: str, value: bytes) -> None:
        self._ask(SET, self._key(key), packed(value))

    def _get(self, key: str) -> bytes:
        return self._ask(GET, self._key(key), then=self._text)  # type: ignore[no-any-return]

    def _add(self, key: str, amount: int) -> int:
        return self._ask(ADD, self._key(key), SIGNED.pack(amount), then=self._number)  # type: ignore[no-any-return]

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self._ask(COMPARE_SET, self._key(key), packed(expected), packed(desired), then=self._text)  # type: ignore[no-any-return]

    def _check(self, keys: list[str]) -> bool:
        return self._ask(CHECK, self._keys(keys), then=lambda: self._hear(1) == READY)  # type: ignore[no-any-return]

    def _delete(self, key: str) -> bool:
        return self._ask(DELETE_KEY, self._key(key), then=self._number) > 0  # type: ignore[no-any-return]

    def _append(self, key: str, value: bytes) -> None:
        self._ask(APPEND, self._key(key), packed(value))

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        with self._lock:
            self._say(BYTE.pack(WAIT), self._keys(keys))
            self._socket.settimeout(max(timeout.total_seconds(), 1e-6))
            try:
                self._hear(1)
                return
            except TimeoutError:
                pass  # it was not there in time
            finally:
                self._socket.settimeout(None)
            self._say(BYTE.pack(CANCEL_WAIT))
            if self._hear(1) == STOP_WAITING:  # it came meanwhile
                self._hear(1)
                return
        waited = round(timeout.total_seconds() * 1000)
        raise DistStoreError(f"wait timeout after {waited}ms, keys: {', '.join(['/' + key for key in keys])}")


def connected(host: str, port: int, timeout: timedelta) -> socket.socket:
    """A connection, as soon as somebody listens."""
    end, pause = time.monotonic() + timeout.total_seconds(), 0.005
    while True:
        try:
            left = max(end - time.monotonic(), 0.001)
            made = socket.create_connection((host, port), timeout=left)
        except OSError:
            if time.monotonic() + pause > end:
                waited = round(timeout.total_seconds() * 1000)
                raise DistNetworkError(
                    f"The client socket has timed out after {waited}ms while trying to connect to ({host}, {port})."
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.2)
        else:
            made.settimeout(None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
