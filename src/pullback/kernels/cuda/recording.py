"""What a call launches, written down while Python does it: a call of the same kind can then be done by native code.

While a call is recorded, everything takes the way through Python, so that the driver sees every launch and the pool
every request for memory. Words that are told to kernels and lie in an operand, in the result, or in memory that the
call took for itself, are said relative to those; others are numbers. A call that did anything else than launching
kernels (copies, reading numbers), or told a kernel an address in memory that is not its own, is not recorded.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.kernels.cuda.array import DeviceArray, empty, reach
from pullback.kernels.cuda.device import aside, required, step_aside, stream_on
from pullback.kernels.cuda.memory import pool_of

SPOILING = ("upload", "download", "download_later", "copy", "fill", "synchronize", "begin_capture")
MOST_LAUNCHES, MOST_TEMPORARIES, MOST_RESULTS, MOST_BYTES = 16, 16, 8, 4 << 20
ARGUMENT, RESULT, TEMPORARY = 1, 16, 32
"""What a word is relative to: nothing at 0, then operands, the result, and temporary memory."""
lock = threading.Lock()


class Recording:
    """One call."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, Any, int, int, bytes, int]] = []
        """Kernels, grids, threads, shared memory, what they are told, and how much memory had been taken before."""
        self.taken: list[tuple[int, int]] = []
        """Memory that was taken: addresses and bytes."""
        self.spoiled = False
        self.held: list[DeviceArray] = []
        """Lasting arrays that kernels were told of, which must live as long as what is written down."""
        self.thread = threading.get_ident()

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function and write down what it does."""
        driver, pool = required(), pool_of(0)
        launch, allocate = driver.launch, pool.allocate

        def launching(
            index: int, kernel: Any, grid: Any, threads: int, stream: int, told: bytes, shared: int = 0
        ) -> None:
            if threading.get_ident() == self.thread:
                self.launches.append((kernel, grid, threads, shared, told, len(self.taken)))
            launch(index, kernel, grid, threads, stream, told, shared)

        def allocating(nbytes: int) -> Any:
            block = allocate(nbytes)
            if threading.get_ident() == self.thread:
                self.taken.append((block.address, nbytes))
            return block

        def spoiling(name: str) -> Any:
            inner = getattr(driver, name)

            def run(*args: Any) -> Any:
                self.spoiled = True
                return inner(*args)

            return run

        changed = {"launch": launching, **{name: spoiling(name) for name in SPOILING}}
        vars(driver).update(changed)
        pool.allocate = allocating  # type: ignore[method-assign]
        step_aside(1)
        try:
            return function(*args)
        finally:
            step_aside(-1)
            del pool.allocate
            for name in changed:
                delattr(driver, name)

    # ---------------------------------------------------------------- recipes
    def place_of(self, out: Any, arrays: list[DeviceArray]) -> int | None:
        """Which of the memory that was taken a result fills; None if it is none."""
        if type(out) is not DeviceArray or not out.size or any([a is out for a in arrays]):
            return None
        own = [k for k, (address, _) in enumerate(self.taken) if address == out.address]
        low, nbytes = reach(out.shape, out.strides, out.itemsize)
        return own[-1] if own and not low and self.taken[own[-1]][1] >= nbytes else None

    def did_nothing(self) -> bool:
        """True for a call that neither launched nor copied anything, and took no memory."""
        return not (self.spoiled or self.launches or self.taken)

    def words(self, arrays: list[DeviceArray], outs: list[Any]) -> list[int] | None:
        """What native code has to know; None if it cannot do the call."""
        if self.spoiled or not 0 < len(self.launches) <= MOST_LAUNCHES or not 0 < len(outs) <= MOST_RESULTS:
            return None
        results: list[Any] = [self.place_of(out, arrays) for out in outs]
        if None in results or len(set(results)) != len(results):
            return None
        temporary = [k for k in range(len(self.taken)) if k not in results]
        if len(temporary) > MOST_TEMPORARIES or sum([self.taken[k][1] for k in temporary]) > MOST_BYTES:
            return None
        spans = []
        for nr, a in enumerate(arrays):
            low, nbytes = reach(a.shape, a.strides, a.itemsize)
            spans.append((a.address + low, a.address + low + nbytes, ARGUMENT + nr, a.address))
        places = {k: TEMPORARY + nr for nr, k in enumerate(temporary)} | {
            k: RESULT + nr for nr, k in enumerate(results)
        }
        segments = [block.segment for block in pool_of(0).segments.values()]
        code = [len(self.launches), len(temporary), *[self.taken[k][1] for k in (*temporary, *results)]]
        for kernel, grid, threads, shared, told, before in self.launches:
            if len(told) % 8 or len(told) > 8 * MOST_WORDS:
                return None
            made = [required().handle(kernel), *grid, threads, shared, len(told) // 8]
            for word in struct.unpack(f"<{len(told) // 8}q", told):
                known = relative(word, spans, self.taken[:before], places)
                if known is None:
                    if any([start <= word < start + size for start, size in segments]):
                        table = lasting.get((required(), word))
                        if table is None:
                            return None
                        self.held.append(table)
                    known = (0, word)
                made += known
            code += made
        return code


MOST_WORDS = 64
lasting: dict[Any, DeviceArray] = {}
"""Tables that nobody changes, by driver and address: kernels that are launched again may be told of them."""


def lasts(table: DeviceArray) -> DeviceArray:
    """Note that nobody will change an array; no more than so many are kept."""
    if len(lasting) >= MOST_TABLES:
        lasting.clear()
    lasting[required(), table.address] = table
    return table


MOST_TABLES = 256


def relative(word: int, spans: Any, taken: Any, places: Any) -> tuple[int, int] | None:
    """What an address is relative to, and how far it is from there."""
    for start, end, place, base in spans:
        if start <= word < end:
            return place, word - base
    for k in reversed(range(len(taken))):
        address, nbytes = taken[k]
        if address <= word < address + max(nbytes, 1):
            return places[k], word - address
    return None


def apart(args: tuple[Any, ...]) -> list[Any]:
    """Arguments of which no array shares memory with one before it, where need be copies.

    Else what a kernel is told of could lie in either: `x.dot(x)` would be written down as a function of one array.
    """
    spans: list[tuple[int, int]] = []
    return [[alone(a, spans) for a in value] if type(value) is list else alone(value, spans) for value in args]


def alone(a: Any, spans: list[tuple[int, int]]) -> Any:
    """An argument, or a copy of it if it meets memory of those before, whose spans it joins."""
    if type(a) is DeviceArray and a.size:
        low, nbytes = reach(a.shape, a.strides, a.itemsize)
        start = a.address + low
        if any([start < end and before < start + nbytes for before, end in spans]):
            copy = empty((nbytes,), np.uint8)
            required().copy(0, copy.address, start, nbytes, stream_on(0))
            a = DeviceArray(a.shape, a.dtype, a.strides, copy, copy.address - low, a.device)
        spans.append((start, start + nbytes))
    return a


def recorded(function: Callable[..., Any], *args: Any) -> tuple[Any, Recording | None]:
    """What a function makes, and the recording of it where one can be made."""
    if required().emulated or aside[0] or not lock.acquire(blocking=False):
        return function(*args), None
    try:
        current.append(Recording())
        return current[0].run(function, *args), current[0]
    finally:
        current.clear()
        lock.release()


current: list[Recording] = []
"""The call that is recorded."""


def spoil() -> None:
    """What is done now differs from call to call."""
    for recording in current:
        recording.spoiled = True


def as_words(code: list[int]) -> Any:
    """Words as native code reads them."""
    return np.array([word if word < 1 << 63 else word - (1 << 64) for word in code], np.int64)
