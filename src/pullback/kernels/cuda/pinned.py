"""Pinned memory: memory of the host that the device copies from and to by itself, at the speed of the bus.

The driver takes long to give such memory, so that it is kept for the next array of its size: for the time when the
device has done the copies that nobody has waited for.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from pullback._device import current_cuda
from pullback.kernels.cuda.array import reach
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.driver import is_pinned as is_pinned

free: dict[int, list[Any]] = {}
"""Memory that waits, by its size."""
busy: list[tuple[Any, list[tuple[int, int]]]] = []
"""Memory that nobody has any more and the device still copies from or to, with the marks after these copies."""
lock = threading.RLock()  # an array may die, and give its memory back, while it is held


class Lent:
    """Memory of the driver's while an array uses it."""

    pinned = True

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.marks: list[tuple[int, int]] = []
        place = {"data": (memory.ctypes.data, False), "shape": (memory.nbytes,), "typestr": "|u1", "version": 3}
        self.__array_interface__ = place

    def used_by(self, index: int, stream: int) -> None:
        """A copy that nobody waits for was given to a stream: put a mark after it."""
        there = required()
        self.marks = pending(self.marks)
        event = there.new_event(index, False, False)
        there.record(index, event, stream)
        self.marks.append((index, event))

    def __del__(self) -> None:
        with lock:
            if self.marks:
                busy.append((self.memory, self.marks))
            else:
                free.setdefault(self.memory.nbytes, []).append(self.memory)


def pending(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The marks that the device has not reached; the others are given back."""
    there, left = required(), []
    for index, event in marks:
        if there.has_happened(index, event):
            there.free_event(event)
        else:
            left.append((index, event))
    return left


def collect() -> None:
    """Let memory be used again whose copies are done."""
    with lock:
        busy[:], waiting = [], busy[:]
        for memory, marks in waiting:
            left = pending(marks)
            if left:
                busy.append((memory, left))
            else:
                free.setdefault(memory.nbytes, []).append(memory)


def pinned(nbytes: int) -> Any:
    """Pinned bytes."""
    size = 1 << max(nbytes - 1, 511).bit_length()
    with lock:
        if busy:
            collect()
        memory = free[size].pop() if free.get(size) else None
    if memory is None:
        memory = required().pinned(current_cuda.index, size)
    return np.asarray(Lent(memory))[:nbytes]


def pinned_copy(array: Any) -> Any:
    """A copy in pinned memory, with the same strides."""
    low, nbytes = reach(array.shape, array.strides, array.itemsize)
    out = np.ndarray(array.shape, array.dtype, pinned(nbytes), -low, array.strides)
    out[...] = array
    return out


def give_back() -> None:
    """Give what waits back to the driver."""
    with lock:
        collect()
        free.clear()
