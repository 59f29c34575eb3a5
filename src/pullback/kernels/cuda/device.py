"""Which devices there are, and which one and which stream are current."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from pullback._device import _device, accelerators, current_cuda, device
from pullback._runtime.messages import ONLY_CPU
from pullback.kernels.cuda import driver as real
from pullback.kernels.cuda.emulated import Emulated
from pullback.kernels.cuda.errors import AcceleratorError

found: list[Any] = []
"""The driver, once it was looked for; None stands for none."""


def driver() -> Any:
    """The driver, the emulated one if the environment asks for it, or None."""
    if not found:
        wanted, _, count = os.environ.get("PULLBACK_CUDA", "").partition(":")
        if wanted not in ("", "0", "1", "emulate"):
            raise ValueError(f"PULLBACK_CUDA is {wanted!r}; it may be 'emulate', 'emulate:2', or '0' for no device")
        found.append(None if wanted == "0" else Emulated(int(count or 1)) if wanted == "emulate" else real.find())
        accelerators[:] = [] if found[0] is None else ["cuda"]
    return found[0]


def required() -> Any:
    """The driver; raises what a build of torch without CUDA raises if there is none."""
    there = driver()
    if there is None:
        raise AssertionError("Torch not compiled with CUDA enabled" + ONLY_CPU)
    return there


def count() -> int:
    """How many devices there are."""
    there = driver()
    return 0 if there is None else len(there.devices)


def placed(index: int | None = None) -> device:
    """A device by its number: the current one if there is none. Raises for one that is not there."""
    number = current_cuda.index if index is None else index
    if number >= len(required().devices):
        raise AcceleratorError(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?", 101
        )
    return _device("cuda", number)


class Streams(threading.local):
    """The current stream of every device, for each thread."""

    def __init__(self) -> None:
        self.current: dict[int, int] = {}

    def use(self, index: int, handle: int) -> int:
        """Let work on a device go to a stream; the one it went to before."""
        before = self.current.get(index, 0)
        self.current[index] = handle
        aside[0] += (handle != 0) - (before != 0)
        return before


streams = Streams()
aside: Any = np.zeros(1, np.int64)
"""How many times a stream is current that is not the default one: native code, which knows only that, looks here."""


def stream_on(index: int) -> int:
    """The handle of the current stream of a device; 0 is the default one."""
    return streams.current.get(index, 0)
