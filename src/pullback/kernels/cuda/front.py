"""The front of the allocator: lists of free blocks that native code takes from and gives back to, without Python.

A block that native code has seen has a record, eight words that it reads and writes (kernels/jit/cuda/launching.py
names them). While an array uses the block its memory is a capsule around the record; when the capsule dies, the record
hangs in the list of its size, for the next request of that size. What no list has is asked of the pool, which lets the
lists run dry before it joins blocks and asks the driver for more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType
from typing import Any

import numpy as np

from pullback._arrays.layout import Size, memory_format
from pullback._device import device
from pullback._dtype import dtype
from pullback._runtime.builtins import builtin, lasting
from pullback.kernels.compiled import room
from pullback.kernels.cuda import memory
from pullback.kernels.cuda.device import aside, required
from pullback.kernels.cuda.memory import Block, Pool, rounded
from pullback.kernels.precision import forgetting

CLASSES = (np.ndarray, float, Size, list, int, bool, NoneType, tuple, str, dtype, memory_format)
SLOTS = ("address", "base", "device", "dtype", "memory", "shape", "strides")


class Front:
    """The lists of one device."""

    def __init__(self, index: int) -> None:
        kernels = self.kernels = room("cuda.launching")
        self.words = np.zeros(kernels.TYPES + len(CLASSES), np.int64)
        self.heads, self.spare = np.zeros(kernels.SLOTS, np.int64), np.zeros(kernels.SLOTS, np.int64)
        self.counts = np.zeros((9, 4), np.int64)
        self.blocks: dict[int, Block] = {}
        """The blocks of records, by where those lie."""
        self.former: list[Any] = []
        """Records of devices before: arrays that outlive their device look there when they die."""
        self.forgotten: list[Callable[[], None]] = []
        """Called when the device is another: whoever keeps handles of its driver clears them."""
        self.pool: Any = None

    def attach(self, pool: Pool, place: device, kind: type[Any], otherwise: Callable[..., Any]) -> None:
        """Serve a pool, and forget the one before: its blocks never come back."""
        kernels, words = self.kernels, self.words
        if self.pool is not None and self.pool is not pool:  # what still comes back to it is no longer counted here
            self.pool.count_in(np.zeros_like(self.counts))
        self.pool, self.held = pool, (place, kind, self.missed)
        self.heads[:] = 0
        self.former += [block.record for block in self.blocks.values()]
        self.blocks.clear()
        addresses = entries(kind)
        words[kernels.GENERATION] += 1
        for word, value in (
            (kernels.SIDE, aside.ctypes.data), (kernels.CLASS, id(kind)), (kernels.PLACE, id(place)),
            (kernels.LAUNCH, required().launching()), (kernels.FREE, addresses["free"]),
            (kernels.MISSED, id(self.held[2])), (kernels.HEADS, self.heads.ctypes.data),
            (kernels.COUNTS, self.counts.ctypes.data), (kernels.SPARE, self.spare.ctypes.data),
        ):  # fmt: skip
            words[word] = value
        words[kernels.TYPES :] = [id(one) for one in CLASSES]
        pool.count_in(self.counts)
        self.make = builtin(addresses["make"], "make", (words, otherwise))
        self.drain = builtin(addresses["drain"], "drain", (words,))
        self.forget()

    def forget(self) -> None:
        """What was remembered is no longer right."""
        for clear in self.forgotten:
            clear()

    def computing(self, otherwise: Callable[..., Any], recipes: dict[Any, Any], *more: Any) -> Callable[..., Any]:
        """A builtin that computes what it finds a recipe for, and hands on everything else."""
        recent = np.zeros(self.kernels.RECENT * self.kernels.ENTRY, np.int64)
        held: list[Any] = [None] * (2 * self.kernels.RECENT)

        def forget() -> None:
            recent[:] = 0
            held[:] = [None] * len(held)

        self.forgotten += [forget, *[known.clear for known in (recipes, *more)]]
        return builtin(entries(self.held[1])["compute"], "compute", (otherwise, recipes, self.words, recent, held))

    def missed(self, nbytes: int) -> int:
        """Where the record of a block lies for which the lists had none."""
        kernels = self.kernels
        block = self.pool.reserve(nbytes, 0)
        if block.record is None:
            block.record = np.zeros(8, np.int64)
            self.blocks[block.record.ctypes.data] = block
        record = block.record
        record[kernels.ADDRESS], record[kernels.KEY] = block.address, rounded(nbytes)
        record[kernels.SIZE], record[kernels.LARGE] = block.size, not block.small
        record[kernels.FACTS], record[kernels.BORN] = self.words.ctypes.data, self.words[kernels.GENERATION]
        return int(record.ctypes.data)

    def drained(self) -> Iterator[Block]:
        """Every block of the lists, which are empty then."""
        self.drain()
        for place in self.spare[np.flatnonzero(self.spare)].tolist():
            while place:
                block = self.blocks.pop(place)
                place, block.record = int(block.record[self.kernels.NEXT]), None
                yield block


class Python:
    """What stands for the lists where there is no compiler."""

    def __init__(self, pool: Pool, make: Callable[..., Any]) -> None:
        self.pool, self.make = pool, make

    def drained(self) -> tuple[Block, ...]:
        """None."""
        return ()


fronts: dict[int, Front] = {}


def front_of(pool: Pool, place: device, kind: type[Any], otherwise: Callable[..., Any]) -> Front | None:
    """The front of a pool; None without the compiler, and where nothing is to be kept."""
    if not memory.CACHING or room("cuda.launching") is None:
        return None
    front = fronts.get(pool.index)
    if front is None:
        front = fronts[pool.index] = lasting(Front(pool.index))  # arrays may die after this module's names have
        forgetting.append(front.forget)
    front.attach(pool, place, kind, lambda *args: otherwise(place, *args))
    return front


@cache
def entries(kind: type[Any]) -> dict[str, int]:
    """The native functions for a class of arrays."""
    return room("cuda.calling").load(places_of(kind))  # type: ignore[no-any-return]


def places_of(kind: type[Any]) -> dict[str, int]:
    """Where objects of a class keep what their slots hold: each is given something of its own, and looked for."""
    one, marks = object.__new__(kind), {name: object() for name in SLOTS}
    for name, mark in marks.items():
        setattr(one, name, mark)
    memory = (ctypes.c_void_p * (kind.__basicsize__ // 8)).from_address(id(one))
    return {name: 8 * memory[:].index(id(mark)) for name, mark in marks.items()}
