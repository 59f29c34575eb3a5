"""Ranks on one machine share memory: `Shared` copies through it what the lanes would carry.

Every rank has a line with a counter, and a slot with room for two chunks. In step s a rank writes a chunk into half
s mod 2 of its slot, sets its counter to s, waits until the others' counters say s, and reads theirs. Who writes step s
has seen all counters at s-1, so everybody has done with step s-2, whose half is overwritten. One writer per line, no
lock. Who waits looks a few times and then sleeps in the kernel (a futex), where the death of the other is noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import select
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.distributed.errors import DistBackendError
from pullback.distributed.transport.engine import HEADER, Array, Engine, fold, from_all

LINE = 64
CHUNK = 1 << 20
"""Bytes of a chunk: each costs its ranks a wait of some ten microseconds, and larger ones leave the caches."""
LOOKS = 200
"""How often a rank looks at a counter before it sleeps: some 20 microseconds."""
NAP = 0.05
"""Seconds after which a sleeper looks whether the other still lives."""
FUTEX = {"x86_64": 202}
"""The number of the system call, on processors where a counter is never seen before what was written before it."""
FUTEX_WAIT, FUTEX_WAKE, EVERYBODY = 0, 1, 1 << 30


class Timespec(ctypes.Structure):
    """Seconds and nanoseconds."""

    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


NAP_SPEC = Timespec(0, int(NAP * 1e9))
SYSCALL: Any = None
if platform.system() == "Linux" and platform.machine() in FUTEX:
    SYSCALL = ctypes.CDLL(None, use_errno=True).syscall
    SYSCALL.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p] + 2 * [
        ctypes.c_long
    ]
    NUMBER = FUTEX[platform.machine()]


def machine() -> str:
    """What two ranks have in common if they can share memory; a word of its own where they cannot."""
    if SYSCALL is None or os.environ.get("PULLBACK_TRANSPORT") == "sockets":
        return os.urandom(8).hex()
    try:
        space = os.stat("/proc/self/ns/pid")  # in which they know each other's numbers
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}:{space.st_dev}:{space.st_ino}"
    except OSError:
        return os.urandom(8).hex()


def in_chunks(lengths: list[int], longest: int) -> list[list[tuple[int, int, int, int]]]:
    """Lists of so many elements, one behind the other, in chunks: (list, from, to, where in the chunk) of each part."""
    chunks: list[list[tuple[int, int, int, int]]] = [[]]
    used = 0
    for index, length in enumerate(lengths):
        low = 0
        while low < length:
            if used == longest:
                chunks.append([])
                used = 0
            high = min(length, low + longest - used)
            chunks[-1].append((index, low, high, used))
            used += high - low
            low = high
    return chunks


class Shared(Engine):
    """Collectives through shared memory, for ranks on one machine."""

    knows_who = True

    def __init__(self, store: Any, rank: int, size: int, names: list[str], timeout: float) -> None:
        super().__init__(store, rank, size, names, timeout)
        self.step = 0
        self.alive: dict[int, Any] = {}

    def join(self, processes: list[int]) -> None:
        """Map the memory. The first rank makes it, without a name: whoever is killed leaves nothing behind."""
        total = self.size * (LINE + 2 * CHUNK)
        if self.rank == 0:
            number = os.memfd_create("pullback")
            os.ftruncate(number, total)
            self.store.set("shared/path", f"/proc/{os.getpid()}/fd/{number}")
        else:
            number = os.open(self.store.get("shared/path").decode(), os.O_RDWR)
        try:
            self.memory = mmap.mmap(number, total)
            self.store.set(f"shared/mapped/{self.rank}", "1")
            from_all(self.store, "shared/mapped", self.names)
        finally:
            os.close(number)
        everything = np.frombuffer(self.memory, np.uint8)
        lines = everything[: self.size * LINE].view(np.int64).reshape(self.size, -1)
        self.counters = memoryview(lines[:, 0])
        self.calls = [lines[:, 1:4], lines[:, 4:7]]
        self.address = everything.ctypes.data
        slots = everything[self.size * LINE :].reshape(self.size, 2, CHUNK)
        self.slots = [[slots[rank, half] for rank in range(self.size)] for half in range(2)]
        for rank in self.others():
            with contextlib.suppress(OSError):  # gone already: the first wait says so
                self.alive[rank] = os.pidfd_open(processes[rank])

    def close(self) -> None:
        """Let go of the memory."""
        super().close()
        for number in self.alive.values():
            os.close(number)
        self.alive = {}

    # ------------------------------------------------------------------ steps

    def begin(self) -> list[Array]:
        """The halves of the slots for the next step, free to be written."""
        self.step += 1
        for rank in range(self.size):
            if self.counters[rank] < self.step - 1:
                self.wait(rank, self.step - 1)
        self.calls[self.step & 1][self.rank] = self.call  # nobody compares those of step s-2 any more
        return self.slots[self.step & 1]

    def publish(self) -> None:
        """This rank has written its part of the step."""
        self.counters[self.rank] = self.step
        SYSCALL(NUMBER, self.address + LINE * self.rank, FUTEX_WAKE, EVERYBODY, None, 0, 0)

    def all_there(self) -> None:
        """Wait until all ranks have written their part."""
        for rank in range(self.size):
            if self.counters[rank] < self.step:
                self.wait(rank, self.step)

    def wait(self, rank: int, step: int) -> None:
        """Wait until a rank has come to a step."""
        counters, address = self.counters, self.address + LINE * rank
        for _ in range(LOOKS):
            if counters[rank] >= step:
                return
        while (seen := counters[rank]) < step:
            SYSCALL(NUMBER, address, FUTEX_WAIT, seen & 0xFFFFFFFF, ctypes.addressof(NAP_SPEC), 0, 0)
            if counters[rank] >= step:
                return
            if time.monotonic() > self.end:
                late = [self.names[r] for r in self.others() if counters[r] < step]
                raise TimeoutError(", ".join(late))
            self.check_alive(step)

    def check_alive(self, step: int) -> None:
        """Raise if the process of a rank that has not come to a step has ended."""
        for rank in self.others():
            handle = self.alive.get(rank)
            gone = handle is None or bool(select.select([handle], [], [], 0)[0])
            if gone and self.counters[rank] < step:
                raise DistBackendError(f"Lost {self.names[rank]}: its process has ended")

    def announce(self, what: str, count: int, root: int = 0) -> None:
        """Say what this call is; `agreed` compares."""
        self.end = self.deadline()
        self.call = np.frombuffer(HEADER.pack(what.encode(), root << 40 | count), np.int64)

    def agreed(self) -> None:
        """Raise if a rank in this step is in another call."""
        column = self.calls[self.step & 1]
        if (column == self.call).all():
            return
        mine = HEADER.unpack(self.call.tobytes())
        for rank in self.others():
            name, count = HEADER.unpack(column[rank].tobytes())
            self.compare(rank, (mine[0].rstrip(b"\0").decode(), mine[1]), name, count)

    # ------------------------------------------------------------------ collectives

    def barrier(self) -> None:
        """Wait for all."""
        self.announce("barrier", 0)
        self.begin()
        self.publish()
        self.all_there()
        self.agreed()

    def chunks(self, what: str, count: int, root: int = 0, parts: int = 1) -> Any:
        """The steps that `count` bytes take, `parts` of them in a slot: (start, length, slots) of each."""
        self.announce(what, count, root)
        longest = CHUNK // parts & -LINE
        for start in range(0, max(count, 1), longest):
            length = min(longest, count - start)
            slots = self.begin()
            yield start, length, slots

    def wait_all(self) -> None:
        """This rank's part is written: wait for the others', and compare what they do."""
        self.publish()
        self.all_there()
        self.agreed()

    def all_reduce(self, array: Array, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, everywhere: each adds up all slots itself, or its share of long ones."""
        flat, rank, size = array.reshape(-1), self.rank, self.size
        data, dtype = flat.view(np.uint8), flat.dtype
        shared_out = size > 2 and data.nbytes > CHUNK // 4
        for start, length, slots in self.chunks("all_reduce", data.nbytes):
            piece = data[start : start + length]
            slots[rank][:length] = piece
            self.wait_all()
            out = piece.view(dtype)
            if not shared_out:
                if size == 2:
                    combine(slots[0][:length].view(dtype), slots[1][:length].view(dtype), out=out)
                else:
                    fold(combine, [slots[r][:length].view(dtype) for r in range(size)], out)
                continue
            bounds = [length * r // size // LINE * LINE for r in range(size)] + [length]
            low, high = bounds[rank], bounds[rank + 1]
            mine = slots[rank][low:high].view(dtype)
            fold(combine, [slots[r][low:high].view(dtype) for r in range(size)], mine)
            self.next_publish()
            for r in range(size):
                piece[bounds[r] : bounds[r + 1]] = slots[r][bounds[r] : bounds[r + 1]]

    def scaled_sum(self, arrays: list[Array], factor: Any) -> None:
        """The sum over ranks of arrays of one dtype times a factor: from where they are through the slots and back."""
        if self.size > 2:  # each rank adds up a share of it, which is best in one piece
            return super().scaled_sum(arrays, factor)
        dtype, flats = arrays[0].dtype, [array.reshape(-1) for array in arrays]
        total, longest, width = sum([flat.size for flat in flats]), CHUNK // dtype.itemsize, dtype.itemsize
        pieces = in_chunks([flat.size for flat in flats], longest)
        for number, (_, _, slots) in enumerate(self.chunks("all_reduce", total * width)):
            first, second = (slot.view(dtype) for slot in slots)
            mine = second if self.rank else first
            for index, low, high, at in pieces[number]:
                np.multiply(flats[index][low:high], factor, out=mine[at : at + high - low])
            self.wait_all()
            for index, low, high, at in pieces[number]:
                end = at + high - low
                np.add(first[at:end], second[at:end], out=flats[index][low:high])

    def next_publish(self) -> None:
        """One more step in the same half of the slots: what was combined there can be read."""
        for last in (False, True):
            self.step += 1
            self.calls[self.step & 1][self.rank] = self.call
            if last:
                self.publish()  # a step for nothing, so that the next one writes into the other half
            else:
                self.wait_all()

    def reduce(self, array: Array, root: int, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, at the root."""
        flat = array.reshape(-1)
        data = flat.view(np.uint8)
        for start, length, slots in self.chunks("reduce", data.nbytes, root):
            slots[self.rank][:length] = data[start : start + length]
            self.wait_all()
            if self.rank == root:
                parts = [slots[rank][:length].view(flat.dtype) for rank in range(self.size)]
                fold(combine, parts, data[start : start + length].view(flat.dtype))

    def broadcast(self, array: Array, root: int) -> None:
        """What the root has, everywhere."""
        data = array.reshape(-1).view(np.uint8)
        for start, length, slots in self.chunks("broadcast", data.nbytes, root):
            if self.rank == root:
                slots[root][:length] = data[start : start + length]
            self.wait_all()
            if self.rank != root:
                data[start : start + length] = slots[root][:length]

    def all_gather(self, outs: list[Array], array: Array) -> None:
        """What every rank has, everywhere."""
        data, targets = array.reshape(-1).view(np.uint8), [out.reshape(-1).view(np.uint8) for out in outs]
        for start, length, slots in self.chunks("all_gather", data.nbytes):
            slots[self.rank][:length] = data[start : start + length]
            self.wait_all()
            for rank, target in enumerate(targets):
                target[start : start + length] = slots[rank][:length]

    def gather(self, outs: list[Array] | None, array: Array, root: int) -> None:
        """What every rank has, at the root."""
        data = array.reshape(-1).view(np.uint8)
        for start, length, slots in self.chunks("gather", data.nbytes, root):
            slots[self.rank][:length] = data[start : start + length]
            self.wait_all()
            for rank, out in enumerate(outs or ()):
                out.reshape(-1).view(np.uint8)[start : start + length] = slots[rank][:length]

    def scatter(self, out: Array, arrays: list[Array] | None, root: int) -> None:
        """To every rank what the root has for it."""
        data = out.reshape(-1).view(np.uint8)
        sources = [array.reshape(-1).view(np.uint8) for array in arrays or ()]
        room = CHUNK // self.size & -LINE
        for start, length, slots in self.chunks("scatter", data.nbytes, root, self.size):
            for rank, source in enumerate(sources):
                slots[root][rank * room : rank * room + length] = source[start : start + length]
            self.wait_all()
            data[start : start + length] = slots[root][self.rank * room : self.rank * room + length]

    def reduce_scatter(self, out: Array, arrays: list[Array], combine: Callable[..., Any]) -> None:
        """Combine the arrays each rank has for every rank; each gets its own."""
        data = out.reshape(-1).view(np.uint8)
        sources = [array.reshape(-1).view(np.uint8) for array in arrays]
        room = CHUNK // self.size & -LINE
        for start, length, slots in self.chunks("reduce_scatter", data.nbytes, 0, self.size):
            for rank, source in enumerate(sources):
                slots[self.rank][rank * room : rank * room + length] = source[start : start + length]
            self.wait_all()
            mine = slice(self.rank * room, self.rank * room + length)
            parts = [slots[rank][mine].view(out.dtype) for rank in range(self.size)]
            fold(combine, parts, data[start : start + length].view(out.dtype))
