"""Stores: a few keys and values that all processes see, by which they find each other.

`Store` says what every store can do in terms of a table under a lock: `HashStore` keeps it in this process, `FileStore`
in a file, `TCPStore` in the process of one rank (see tcp_store.py). `PrefixStore` puts a name before every key.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from pullback.distributed.errors import DistStoreError, QueueEmptyError

TIMEOUT = timedelta(seconds=300)


def as_bytes(value: Any, store: Any, name: str, *given: Any) -> bytes:
    """A value as bytes; anything but text and bytes is refused."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    shown = ", ".join(map(repr, (store, *given)))
    raise TypeError(
        f"{name}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. (self: torch._C._distributed_c10d.Store, arg0: str, arg1: str) -> None\n\nInvoked with: {shown}"
    )


class Store:
    """Keys and values for a few processes."""

    def __init__(self) -> None:
        self._timeout = TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Let `get` and `wait` wait as long as this."""
        self._timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Put a value."""
        data = as_bytes(value, self, "set", key, value)
        if not isinstance(key, str):
            as_bytes(None, self, "set", key, value)
        self._set(key, data)

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one."""
        self.wait([key])
        return self._get(key)

    def add(self, key: str, amount: int) -> int:
        """Count: the sum of all that was added to a key."""
        return self._add(key, int(amount))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Put a value if the one that is there is as expected; the value that is there then."""
        expected = as_bytes(expected_value, self, "compare_set", key, expected_value, desired_value)
        return self._compare_set(key, expected, as_bytes(desired_value, self, "compare_set", key, desired_value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self._wait(list(keys), self._timeout if timeout is None else timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._check(list(keys))

    def delete_key(self, key: str) -> bool:
        """Take a key away; whether it was there."""
        return self._delete(key)

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self.list_keys())

    def append(self, key: str, value: Any) -> None:
        """Put something behind what is there."""
        self._append(key, as_bytes(value, self, "append", key, value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Put several values."""
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether append and the calls for several keys are done at once."""
        return False

    def queue_push(self, key: str, value: Any) -> None:
        """Put something at the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take what is first in a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """How long a queue is."""
        raise NotImplementedError("queue support is not implemented.")

    def list_keys(self) -> list[str]:
        """All keys."""
        raise NotImplementedError

    def clone(self) -> Store:
        """A store that sees the same, for another thread."""
        return self

    def _set(self, key: str, value: bytes) -> None:
        raise NotImplementedError

    def _get(self, key: str) -> bytes:
        raise NotImplementedError

    def _add(self, key: str, amount: int) -> int:
        raise NotImplementedError

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        raise NotImplementedError

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        raise NotImplementedError

    def _check(self, keys: list[str]) -> bool:
        raise NotImplementedError

    def _delete(self, key: str) -> bool:
        raise NotImplementedError

    def _append(self, key: str, value: bytes) -> None:
        raise NotImplementedError


class Table:
    """What a store holds, and what can be done with it. Who uses it holds a lock."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: defaultdict[str, deque[bytes]] = defaultdict(deque)

    def add(self, key: str, amount: int) -> int:
        """A count and what was added."""
        try:
            total = int(self.values.get(key, b"0")) + amount
        except ValueError:
            raise ValueError("stoll") from None
        self.values[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """What is there after a value was put, if it was as expected; a key that is absent is as b"" expects."""
        held = self.values.get(key)
        if held is None and expected:
            return expected
        if held is None or held == expected:
            self.values[key] = desired
        return self.values[key]


class HashStore(Store):
    """A store in this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._table, self._changed = Table(), threading.Condition()

    def _then(self, change: Callable[[Table], Any]) -> Any:
        with self._changed:
            answer = change(self._table)
            self._changed.notify_all()
        return answer

    def _until(self, done: Callable[[Table], bool], timeout: timedelta) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: done(self._table), timeout.total_seconds()):
                raise DistStoreError("Wait timeout")

    def has_extended_api(self) -> bool:
        """They are done at once here."""
        return True

    def list_keys(self) -> list[str]:
        """All keys."""
        return self._then(lambda table: list(table.values))  # type: ignore[no-any-return]

    def queue_push(self, key: str, value: Any) -> None:
        """Put something at the end of a queue."""
        data = as_bytes(value, self, "queue_push", key, value)
        self._then(lambda table: table.queues[key].append(data))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take what is first in a queue; wait for it if there is nothing."""
        with self._changed:
            if not block and not self._table.queues[key]:
                raise QueueEmptyError("queue is empty")
            self._until(lambda table: bool(table.queues[key]), self._timeout)
            return self._table.queues[key].popleft()

    def queue_len(self, key: str) -> int:
        """How long a queue is."""
        return self._then(lambda table: len(table.queues[key]))  # type: ignore[no-any-return]

    def _set(self, key: str, value: bytes) -> None:
        self._then(lambda table: table.values.update({key: value}))

    def _get(self, key: str) -> bytes:
        return self._then(lambda table: table.values[key])  # type: ignore[no-any-return]

    def _add(self, key: str, amount: int) -> int:
        return self._then(lambda table: table.add(key, amount))  # type: ignore[no-any-return]

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self._then(lambda table: table.compare_set(key, expected, desired))  # type: ignore[no-any-return]

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        self._until(lambda table: all(key in table.values for key in keys), timeout)

    def _check(self, keys: list[str]) -> bool:
        return self._then(lambda table: all(key in table.values for key in keys))  # type: ignore[no-any-return]

    def _delete(self, key: str) -> bool:
        return self._then(lambda table: table.values.pop(key, None) is not None)  # type: ignore[no-any-return]

    def _append(self, key: str, value: bytes) -> None:
        self._then(lambda table: table.values.update({key: table.values.get(key, b"") + value}))


LENGTHS = struct.Struct("<Iq")
GONE = -1
"""In the place of a length: the key was deleted."""


class FileStore(Store):
    """A store in a file that all processes can open: what is put is written at its end, under a lock."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path, self.world_size = file_name, world_size
        self._table, self._read, self._mine = Table(), 0, threading.RLock()
        self._locked(lambda table: table.add("efcount/", 1))

    def _locked(self, change: Callable[[Table], Any]) -> Any:
        """Do something with the table as it is now; what it changes is written before others may look."""
        with self._mine, open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                self._catch_up(file)
                before = dict(self._table.values)
                answer = change(self._table)
                after = self._table.values
                changed = [(key, value) for key, value in after.items() if before.get(key) != value]
                rows = [(key, len(value), value) for key, value in changed]
                rows += [(key, GONE, b"") for key in before if key not in after]
                file.write(b"".join(LENGTHS.pack(len(k := key.encode()), size) + k + v for key, size, v in rows))
                file.flush()
                self._read = file.tell() if rows else self._read
                return answer
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _catch_up(self, file: Any) -> None:
        """Read what others have written since; a file that is shorter was started anew."""
        if os.fstat(file.fileno()).st_size < self._read:
            self._table, self._read = Table(), 0
        file.seek(self._read)
        data, start = file.read(), 0
        while start < len(data):
            name, size = LENGTHS.unpack_from(data, start)
            start += LENGTHS.size
            key = data[start : start + name].decode()
            start += name
            if size == GONE:
                self._table.values.pop(key, None)
            else:
                self._table.values[key] = data[start : start + size]
                start += size
        self._read += len(data)

    def list_keys(self) -> list[str]:
        """All keys."""
        return self._locked(lambda table: list(table.values))  # type: ignore[no-any-return]

    def clone(self) -> Store:
        """Another store on the same file."""
        return FileStore(self.path, self.world_size)

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one."""
        try:
            self.wait([key])
        except RuntimeError:
            waited = round(self._timeout.total_seconds() * 1000)
            raise RuntimeError(f"Timeout waiting for key: {key} after {waited} ms") from None
        return self._get(key)

    def _set(self, key: str, value: bytes) -> None:
        self._locked(lambda table: table.values.update({key: value}))

    def _get(self, key: str) -> bytes:
        return self._locked(lambda table: table.values[key])  # type: ignore[no-any-return]

    def _add(self, key: str, amount: int) -> int:
        return self._locked(lambda table: table.add(key, amount))  # type: ignore[no-any-return]

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self._locked(lambda table: table.compare_set(key, expected, desired))  # type: ignore[no-any-return]

    def _wait(self, keys: list[str], timeout: timedelta) -> None:
        end, pause = time.monotonic() + timeout.total_seconds(), 0.001
        while not self._check(keys):
            if time.monotonic() > end:
                raise RuntimeError("Wait timeout")
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _check(self, keys: list[str]) -> bool:
        return self._locked(lambda table: all(key in table.values for key in keys))  # type: ignore[no-any-return]

    def _delete(self, key: str) -> bool:
        return self._locked(lambda table: table.values.pop(key, None) is not None)  # type: ignore[no-any-return]

    def _append(self, key: str, value: bytes) -> None:
        self._locked(lambda table: table.values.update({key: table.values.get(key, b"") + value}))


class PrefixStore(Store):
    """Another store, with a name before every key."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store

    def _key(self, key: str) -> str:
        if not isinstance(key, str):
            as_bytes(None, self, "set", key)
        return f"{self.prefix}/{key}"

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Let `get` and `wait` wait as long as this."""
        self.underlying_store.set_timeout(timeout)

    def clone(self) -> Store:
        """The same prefix before another store that sees the same."""
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def set(self, key: str, value: Any) -> None:
        """Put a value."""
        self.underlying_store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one."""
        return self.underlying_store.get(self._key(key))

    def has_extended_api(self) -> bool:
        """As the store behind it."""
        return self.underlying_store.has_extended_api()

    def list_keys(self) -> list[str]:
        """All keys below this prefix."""
        start = self._key("")
        return [key.removeprefix(start) for key in self.underlying_store.list_keys() if key.startswith(start)]

    def num_keys(self) -> int:
        """How many keys there are, in the whole store."""
        return self.underlying_store.num_keys()

    def queue_push(self, key: str, value: Any) -> None:
        """Put something at the end of a queue."""
        self.underlying_store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take what is first in a queue."""
        return self.underlying_store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        """How long a queue is."""
        return self.underlying_store.queue_len(self._key(key))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self.underlying_store.wait([self._key(key) for key in keys], timeout)

    def _add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._key(key), amount)

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self.underlying_store.compare_set(self._key(key), expected, desired)

    def _check(self, keys: list[str]) -> bool:
        return self.underlying_store.check([self._key(key) for key in keys])

    def _delete(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._key(key))

    def _append(self, key: str, value: bytes) -> None:
        self.underlying_store.append(self._key(key), value)
