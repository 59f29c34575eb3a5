"""Programs on the device: PTX becomes the driver's binary once, is kept on disk, loaded once, and launched.

On the emulated device a kernel is computed by the function that describes it, on the host's view of the same memory.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._runtime.building import made
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, reach
from pullback.kernels.cuda.device import required, stream_on

BLOCK = 256
loaded: dict[tuple[int, str], Any] = {}
"""Functions of the driver by device and name."""
launches: dict[str, int] = {}
"""How many kernels ran, by family."""


def function(index: int, name: str, text: Callable[[], str]) -> Any:
    """A kernel, ready to be launched; `text` writes its LLVM IR if it is not known."""
    found = loaded.get((index, name))
    if found is None:
        found = made(lambda: loaded.setdefault((index, name), program(index, name, text())))
    return found


def program(index: int, name: str, text: str) -> Any:
    """The same, made now."""
    driver = required()
    facts = driver.devices[index].attributes
    capability = (facts["major"], facts["minor"])
    kept: Any = room("compiler.cache")
    key = hashlib.sha256(repr(("cuda", text, capability, driver.version())).encode()).hexdigest()
    binary = kept.read(key)
    if binary is None:
        ptx = room("cuda.ptx").compiled(text, capability)
        binary = driver.link(index, ptx.encode())
        kept.write(key, binary)
    return driver.function(driver.load(index, binary), name)


def launch(index: int, kernel: Any, grid: tuple[int, int, int], types: str, *values: Any, shared: int = 0) -> None:
    """Run a kernel in blocks of 256 threads on the current stream of a device, with `shared` bytes beside its own.

    `types` has a letter for each argument, as the module struct knows them: Q for an address, q for an integer, d for a
    float64; all of them take 8 bytes.
    """
    required().launch(index, kernel, grid, BLOCK, stream_on(index), struct.pack(types, *values), shared)


def counted(family: str) -> None:
    """Note that a kernel of a family is about to run."""
    launches[family] = launches.get(family, 0) + 1
    if required().emulated:
        required().failing("launch")


def window(array: DeviceArray) -> Any:
    """Memory of the emulated device as an array of the host."""
    low, nbytes = reach(array.shape, array.strides, array.itemsize)
    if not nbytes:
        return np.empty(array.shape, array.dtype)
    memory = required().window(array.address + low, nbytes)
    return np.ndarray(array.shape, array.dtype, memory, -low, array.strides)
