"""Which devices there are, and which one and which stream are current."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

import numpy as np

from pullback._device import _device, accelerators, current_cuda, device
from pullback._runtime.building import loaded
from pullback._runtime.builtins import lasting
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
        there = None if wanted == "0" else Emulated(int(count or 1)) if wanted == "emulate" else real.find()
        if isinstance(there, str):
            wrong.append(there)
            if there != NOBODY:
                warnings.warn(f"CUDA initialization: {there}", stacklevel=3)
        found.append(None if isinstance(there, str) else there)
        accelerators[:] = [] if found[0] is None else ["cuda"]
    return found[0]


def awake() -> None:
    """Let the driver begin meanwhile: that takes a tenth of a second, and no Python."""
    if not found and os.environ.get("PULLBACK_CUDA", "") in ("", "1"):
        threading.Thread(target=real.begin, daemon=True).start()


wrong: list[str] = []
"""What is wrong with the driver, where there is one that cannot be used."""
NOBODY = "No CUDA GPUs are available"


def required() -> Any:
    """The driver; raises what torch says of one that cannot be used, and what a build without CUDA says of none."""
    there = driver()
    if there is None and wrong:
        raise RuntimeError(wrong[0])
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
    """The current streams of devices, for each thread; a device on its default stream is not among them."""

    def __init__(self) -> None:
        self.current: dict[int, int] = {}
        """Handles by the numbers of devices. A change makes a new dict, so that whoever keeps this one may."""
        self.pools: dict[int, tuple[int, int]] = {}
        """Where memory is taken from pools of its own, for graphs or because somebody asked for it: their names."""

    def use(self, index: int, handle: int) -> int:
        """Let work on a device go to a stream; the one it went to before."""
        before = self.current.get(index, 0)
        if handle != before:
            others = {key: value for key, value in self.current.items() if key != index}
            self.use_all(others | {index: handle} if handle else others)
        return before

    def use_all(self, current: dict[int, int]) -> dict[int, int]:
        """Let work go to streams, on all devices; those it went to before."""
        before = self.current
        if current is not before:
            self.current = current
            loaded("pullback.kernels.cuda.calls.lanes")  # from now on nodes know the streams their ops ran on
            step_aside(len(current) - len(before))
        return before

    def take_from(self, index: int, pool: tuple[int, int] | None) -> tuple[int, int] | None:
        """Take memory of a device from a pool, or None for the common one; where it was taken from before."""
        before = self.pools.pop(index, None)
        if pool is not None:
            self.pools[index] = pool
        step_aside((pool is not None) - (before is not None))
        return before


streams = Streams()
aside: Any = lasting(np.zeros(1, np.int64))
"""How many times a stream is current that is not the default one, or memory is taken from a pool of its own: native
code, which knows only the default ones, looks here."""
counting = threading.Lock()


def step_aside(many: int) -> None:
    """Let native code leave so many more, or fewer, things to Python."""
    with counting:
        aside[0] += many


def stream_on(index: int) -> int:
    """The handle of the current stream of a device; 0 is the default one."""
    return streams.current.get(index, 0)


def home_on(index: int) -> Any:
    """What memory that is taken now is for: the current stream, in the pool it is taken from if that is not the
    common one."""
    stream, pool = stream_on(index), streams.pools.get(index)
    return stream if pool is None else (pool, stream)


def follow(index: int, first: int, then: int) -> None:
    """Let a stream wait for what was given to another."""
    if first == then:
        return
    there = required()
    event = there.new_event(index, False, False)
    try:
        there.record(index, event, first)
        there.stream_waits(index, then, event)
    finally:
        there.free_event(event)  # which the driver does once it is reached


STREAMS = 32
"""Streams of one priority that a device has, as in torch: whoever asks for more shares them."""
made: dict[Any, list[int]] = {}


def shared_stream(index: int, priority: int) -> tuple[int, int]:
    """The next stream of a device, and its priority, which is brought into the range that the device has."""
    there = required()
    least, greatest = there.priorities(index)
    priority = min(max(priority, greatest), least)
    with counting:
        known = made.setdefault((there, index, priority), [])
        if len(known) < STREAMS:
            known.append(there.new_stream(index, priority))
        else:
            known.append(known.pop(0))
        return known[-1], priority
