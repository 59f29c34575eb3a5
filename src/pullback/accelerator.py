"""The accelerator of this machine, whichever it is: here a CUDA device, if there is one."""

from __future__ import annotations

from typing import Any

from pullback import cuda
from pullback._device import _device, device

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def needed() -> None:
    """Raise where there is none."""
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def is_available() -> bool:
    """True if there is one."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """Its kind, without a number; None if there is none."""
    return _device("cuda", None) if cuda.is_available() else None


def current_device_index() -> int:
    """The number of the current one."""
    needed()
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Let another one be the current one."""
    needed()
    cuda.set_device(device)


def current_stream(device: Any = None, /) -> cuda.Stream:
    """The stream that work goes to."""
    needed()
    return cuda.current_stream(device)


def set_stream(stream: cuda.Stream) -> None:
    """Let work go to a stream, on its device."""
    needed()
    cuda.set_device(stream.device_index)
    cuda.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until all work is done."""
    needed()
    cuda.synchronize(device)


class device_index(cuda.device):
    """Within the block, another one is the current one; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        super().__init__(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The dtypes it computes with."""
    needed()
    return {"supported_dtypes": {dtype.dtype for dtype in cuda._ON_CUDA.values()}}


get_memory_info = cuda.mem_get_info
empty_cache = cuda.empty_cache
memory_stats, memory_allocated, memory_reserved = cuda.memory_stats, cuda.memory_allocated, cuda.memory_reserved
max_memory_allocated, max_memory_reserved = cuda.max_memory_allocated, cuda.max_memory_reserved
reset_peak_memory_stats = cuda.reset_peak_memory_stats
reset_accumulated_memory_stats = cuda.reset_accumulated_memory_stats
current_device_idx, set_device_idx = current_device_index, set_device_index
