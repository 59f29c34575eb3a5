"""Pinned memory: memory of the host that the device copies from and to by itself, at the speed of the bus.

The driver takes long to give such memory, so that it is kept for the next array of its size.
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
lock = threading.Lock()


class Lent:
    """Memory of the driver's while an array uses it."""

    pinned = True

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        place = {"data": (memory.ctypes.data, False), "shape": (memory.nbytes,), "typestr": "|u1", "version": 3}
        self.__array_interface__ = place

    def __del__(self) -> None:
        with lock:
            free.setdefault(self.memory.nbytes, []).append(self.memory)


def pinned(nbytes: int) -> Any:
    """Pinned bytes."""
    size = 1 << max(nbytes - 1, 511).bit_length()
    with lock:
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
        free.clear()
