"""The caching allocator: memory of the device is kept for the next array, cut and joined again as torch's does it.

A request is rounded up to 512 bytes. Small ones (to 1 MB) share segments of 2 MB, larger ones have segments of 20 MB or
of their own size. What an array gives back joins its free neighbours and waits for the next request on the same stream;
`empty_cache` gives whole segments back to the driver, as does a request that finds the memory full. So the statistics
mean what torch's mean.

PYTORCH_NO_CUDA_MEMORY_CACHING asks the driver for every array, as it does in torch: so that a checker of memory knows
where each of them ends.
"""

from __future__ import annotations

import os
import sys
import threading
from array import array
from bisect import bisect_left, insort
from collections import OrderedDict
from typing import Any

from pullback.kernels.cuda.device import home_on, required
from pullback.kernels.cuda.errors import OutOfMemoryError

CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ
ROUND = 512
SMALL, SMALL_SEGMENT = 1 << 20, 2 << 20
LARGE_SEGMENT, LARGE_REQUEST, LARGE_ROUND = 20 << 20, 10 << 20, 2 << 20
WAITING = 6
"""One part in 64 of a device's memory may wait for requests of its own size while the driver is asked for more."""
KINDS = ("all", "small_pool", "large_pool")
COUNTED = ("allocation", "allocated_bytes", "requested_bytes")
"""What is counted for every block that comes and goes."""
MEASURED = ("segment", "inactive_split", "reserved_bytes", "inactive_split_bytes")
SAME = {"active": "allocation", "active_bytes": "allocated_bytes"}
"""What torch counts apart because memory may still be in use on another stream; here it is the same."""


class Block:
    """A piece of a segment: used by an array, or free."""

    __slots__ = ("address", "after", "before", "free", "record", "requested", "segment", "size", "small", "stream")

    def __init__(self, address: int, size: int, small: bool, stream: Any, segment: tuple[int, int]) -> None:
        self.address, self.size, self.small, self.stream, self.segment = address, size, small, stream, segment
        self.before: Block | None = None
        self.after: Block | None = None
        self.free, self.requested = True, 0
        self.record: Any = None
        """What native code knows of it: see front.py."""


PARTS = ("current", "peak", "allocated", "freed")


class Statistic:
    """A number over time: now, at most, and all that came and went. Native code counts in the same four words."""

    __slots__ = ("words",)

    def __init__(self, words: Any) -> None:
        self.words = memoryview(words).cast("B").cast("q")
        for place in range(len(PARTS)):
            self.words[place] = 0

    @property
    def current(self) -> int:
        """The number now."""
        return self.words[0]

    def add(self, amount: int) -> None:
        """Count more, or less."""
        words = self.words
        words[0] += amount
        if amount > 0:
            if words[0] > words[1]:
                words[1] = words[0]
            words[2] += amount
        else:
            words[3] -= amount


class Lent:
    """Memory that another stream than its own uses, and the mark in that stream after which it is free."""

    __slots__ = ("event", "memory", "stream")

    def __init__(self, memory: Any, stream: int) -> None:
        self.memory, self.stream, self.event = memory, stream, 0


_alone = Lent(object(), 0)
UNSHARED = sys.getrefcount(_alone.memory)
"""How many references are counted where a `Lent` is the only one that has one."""


class Pool:
    """The memory of one device."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.lock = threading.RLock()
        self.free: dict[tuple[bool, Any], list[tuple[int, int, Any]]] = {}
        """Free blocks of small and large segments by stream: (size, address, block) in order."""
        self.ready: dict[tuple[int, Any], list[Block]] = {}
        """Blocks given back a moment ago, by size and stream: most often the next request is for the same size."""
        self.segments: dict[int, Block] = {}
        """The first block of each segment, by its address."""
        self.limit: float | None = None
        self.front: Any = None
        """The lists native code takes blocks of the default stream from, where there is such code: see front.py."""
        self.statistics = {}
        self.count_in([array("q", bytes(32)) for _ in range(len(KINDS) * len(COUNTED + MEASURED))])
        self.retries = self.failures = 0
        self.private: dict[tuple[int, int], int] = {}
        """Pools of memory that is not given to others, by their names, and how many graphs and users they have: graphs
        write to theirs whenever they are replayed."""
        self.captured: dict[int, list[Any]] = {}
        """What the graphs read that are being captured, by their streams."""
        self.lent: list[Lent] = []

    def count_in(self, rows: Any) -> None:
        """Count in rows of four words: those of the blocks that are used come first."""
        names = [(name, kind) for name in COUNTED + MEASURED for kind in KINDS]
        for key, words in zip(names, rows, strict=False):
            self.statistics[key] = Statistic(words)

    def count(self, name: str, small: bool, amount: int) -> None:
        """Add to a statistic."""
        self.statistics[name, "all"].add(amount)
        self.statistics[name, KINDS[1] if small else KINDS[2]].add(amount)

    # ---------------------------------------------------------------- taking
    def allocate(self, nbytes: int) -> Block:
        """A block of at least so many bytes."""
        with self.lock:
            block = self.reserve(nbytes, home_on(self.index))
            block.requested = nbytes
            self.count("allocation", block.small, 1)
            self.count("allocated_bytes", block.small, block.size)
            self.count("requested_bytes", block.small, nbytes)
            return block

    def reserve(self, nbytes: int, stream: Any) -> Block:
        """The same, not counted yet."""
        size = rounded(nbytes) if CACHING else max(nbytes, 1)
        small = size <= SMALL
        with self.lock:
            waiting = self.ready.get((size, stream))
            if waiting:
                return waiting.pop()
            # What waits for requests of its own size is joined again only where nothing else is found, and much waits:
            # a program that does the same again and again finds all its sizes then.
            block = self.found(size, small, stream)
            if block is None and (self.lent or self.waiting() > required().devices[self.index].total_memory >> WAITING):
                self.settle()
                block = self.found(size, small, stream)
            if block is None:
                block = self.segment_for(size, small, stream, nbytes)
            self.take(block)
            rest = block.size - size
            if rest >= ROUND if small else rest > SMALL:
                self.split(block, size)
            block.free = False
            return block

    def waiting(self) -> int:
        """Bytes that wait for requests of their own size."""
        free = sum([size for blocks in self.free.values() for size, _, _ in blocks])
        reserved, used = self.statistics["reserved_bytes", "all"], self.statistics["allocated_bytes", "all"]
        return reserved.current - used.current - free

    def found(self, size: int, small: bool, stream: Any) -> Block | None:
        """The smallest free block that is large enough."""
        free = self.free.get((small, stream), [])
        at = bisect_left(free, size, key=lambda entry: entry[0])
        return free[at][2] if at < len(free) else None

    def segment_for(self, size: int, small: bool, stream: Any, nbytes: int) -> Block:
        """A block that is a new segment of the driver's memory, or of what waits where the driver has no more."""
        room = (
            size if not CACHING
            else SMALL_SEGMENT if small
            else LARGE_SEGMENT if size < LARGE_REQUEST
            else -(-size // LARGE_ROUND) * LARGE_ROUND
        )  # fmt: skip
        there = required()
        reserved = self.statistics["reserved_bytes", "all"]
        total = there.devices[self.index].total_memory
        address = None
        for attempt in range(2):
            if self.limit is None or reserved.current + room <= self.limit * total:
                address = there.allocate(self.index, room)
            if address is not None:
                break
            if attempt == 0:
                self.settle()
                block = self.found(size, small, stream)
                if block is not None:
                    return block
                self.retries += 1
                self.empty()
        if address is None:
            self.failures += 1
            raise OutOfMemoryError(self.full(nbytes))
        block = Block(address, room, small, stream, (address, room))
        self.segments[address] = block
        self.count("segment", small, 1)
        self.count("reserved_bytes", small, room)
        self.put(block)
        return block

    def full(self, nbytes: int) -> str:
        """What torch says when there is no memory left."""
        free, total = required().memory_info(self.index)
        used, reserved = (
            self.statistics["allocated_bytes", "all"].current,
            self.statistics["reserved_bytes", "all"].current,
        )
        allowed = "" if self.limit is None else f"{in_words(int(self.limit * total))} allowed; "
        return (
            f"CUDA out of memory. Tried to allocate {in_words(nbytes)}. GPU {self.index} has a total capacity of "
            f"{in_words(total)} of which {in_words(free)} is free. Including non-PyTorch memory, this process has "
            f"{in_words(total - free)} memory in use. {allowed}Of the allocated memory {in_words(used)} is allocated "
            f"by PyTorch, and {in_words(reserved - used)} is reserved by PyTorch but unallocated. If reserved but "
            "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
            "fragmentation.  See documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )

    # ---------------------------------------------------------------- blocks in order
    def put(self, block: Block) -> None:
        """Let a block be found."""
        insort(self.free.setdefault((block.small, block.stream), []), (block.size, block.address, block))
        if block.before is not None or block.after is not None:
            self.count("inactive_split", block.small, 1)
            self.count("inactive_split_bytes", block.small, block.size)

    def take(self, block: Block) -> None:
        """Let a block be found no more."""
        free = self.free[block.small, block.stream]
        del free[bisect_left(free, (block.size, block.address), key=lambda entry: entry[:2])]
        if block.before is not None or block.after is not None:
            self.count("inactive_split", block.small, -1)
            self.count("inactive_split_bytes", block.small, -block.size)

    def split(self, block: Block, size: int) -> None:
        """Cut what is too much off a block."""
        rest = Block(block.address + size, block.size - size, block.small, block.stream, block.segment)
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        block.size, block.after = size, rest
        self.put(rest)

    def release(self, block: Block) -> None:
        """Take a block back."""
        with self.lock:
            self.count("allocation", block.small, -1)
            self.count("allocated_bytes", block.small, -block.size)
            self.count("requested_bytes", block.small, -block.requested)
            block.requested = 0
            self.ready.setdefault((block.size, block.stream), []).append(block)
            if not CACHING:
                self.empty()

    def lend(self, memory: Any, stream: int) -> None:
        """Keep memory that another stream uses until that stream has done what it was given before nobody else did."""
        with self.lock:
            self.collect()
            self.lent.append(Lent(memory, stream))

    def collect(self) -> None:
        """Give back what was lent and is needed no more."""
        there, kept = required(), []
        for loan in self.lent:
            if not loan.event and sys.getrefcount(loan.memory) <= UNSHARED:
                loan.event = there.new_event(self.index, False, False)
                there.record(self.index, loan.event, loan.stream)
            if loan.event and there.has_happened(self.index, loan.event):
                there.free_event(loan.event)
            else:
                kept.append(loan)
        self.lent = kept

    def settle(self) -> None:
        """Let blocks that were given back join their neighbours, and be found by requests of other sizes."""
        if self.lent:
            self.collect()
        if self.front is not None:
            for block in self.front.drained():
                self.give_back(block)
        while self.ready:
            _, blocks = self.ready.popitem()
            for block in blocks:
                self.give_back(block)

    def give_back(self, block: Block) -> None:
        """One of them."""
        with self.lock:
            block.free = True
            for other in (block.before, block.after):
                if other is not None and other.free:
                    self.take(other)
            if block.after is not None and block.after.free:
                self.join(block, block.after)
            if block.before is not None and block.before.free:
                block = self.join(block.before, block)
            self.put(block)

    def join(self, first: Block, second: Block) -> Block:
        """Two neighbours become one."""
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first

    def empty(self) -> None:
        """Give segments nobody uses back to the driver."""
        there = required()
        with self.lock:
            self.settle()
            whole = [b for b in self.segments.values() if b.free and b.before is None and b.after is None]
            unused = [b for b in whole if type(b.stream) is int or b.stream[0] not in self.private]
            if unused:
                there.synchronize(self.index)
            for block in unused:
                self.take(block)
                there.free(self.index, block.address)
                del self.segments[block.address]
                self.count("segment", block.small, -1)
                self.count("reserved_bytes", block.small, -block.size)

    # ---------------------------------------------------------------- statistics
    def report(self) -> OrderedDict[str, int]:
        """All statistics under torch's names."""
        found = {}
        with self.lock:
            self.settle()
        named = {**self.statistics, **{(n, k): self.statistics[same, k] for n, same in SAME.items() for k in KINDS}}
        for (name, kind), stat in named.items():
            for part, value in zip(PARTS, stat.words, strict=True):
                found[f"{name}.{kind}.{part}"] = value
        found |= {"num_alloc_retries": self.retries, "num_ooms": self.failures, "max_split_size": -1}
        return OrderedDict(sorted(found.items()))

    def snapshot(self) -> list[dict[str, Any]]:
        """Every segment and its blocks, as torch's snapshots describe them."""
        with self.lock:
            self.settle()
            found = []
            for address, block in sorted(self.segments.items()):
                pool, stream = ((0, 0), block.stream) if type(block.stream) is int else block.stream
                segment = {"device": self.index, "address": address, "total_size": block.segment[1],
                           "stream": stream, "segment_type": "small" if block.small else "large",
                           "segment_pool_id": pool, "is_expandable": False, "frames": []}  # fmt: skip
                blocks, one = [], block
                while one is not None:
                    state = "inactive" if one.free else "active_allocated"
                    requested = 0 if one.free else one.requested or one.size
                    blocks.append({"address": one.address, "size": one.size, "requested_size": requested,
                                   "state": state, "frames": []})  # fmt: skip
                    one = one.after
                used = sum([b["size"] for b in blocks if b["state"] != "inactive"])
                asked = sum([b["requested_size"] for b in blocks])
                facts = {"allocated_size": used, "active_size": used, "requested_size": asked, "blocks": blocks}
                found.append(segment | facts)
            return found

    def share(self, pool: tuple[int, int]) -> None:
        """A graph, or somebody else, uses a pool."""
        with self.lock:
            self.private[pool] = self.private.get(pool, 0) + 1

    def unshare(self, pool: tuple[int, int]) -> None:
        """They use it no more: after the last of them, what is free of it is given back by `empty`."""
        with self.lock:
            self.private[pool] -= 1
            if not self.private[pool]:
                del self.private[pool]

    def reset(self, *parts: str) -> None:
        """Count peaks, or everything, anew."""
        for stat in self.statistics.values():
            for part in parts:
                stat.words[PARTS.index(part)] = stat.current if part == "peak" else 0


pools: dict[int, Pool] = {}
making = threading.Lock()


def pool_of(index: int) -> Pool:
    """The memory of a device."""
    pool = pools.get(index)
    if pool is None:
        with making:
            pool = pools.setdefault(index, Pool(index))
    return pool


class Memory:
    """Memory that an array owns: given back when nobody needs it any more."""

    __slots__ = ("address", "block", "pool")

    def __init__(self, index: int, nbytes: int) -> None:
        self.pool = pool_of(index)
        self.block = None
        self.block = self.pool.allocate(nbytes)
        self.address = self.block.address

    def __del__(self) -> None:
        if self.block is not None:
            self.pool.release(self.block)


def rounded(nbytes: int) -> int:
    """What a request takes."""
    return max(-(-nbytes // ROUND) * ROUND, ROUND)


def in_words(nbytes: int) -> str:
    """A number of bytes as torch's errors write it."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} bytes"
