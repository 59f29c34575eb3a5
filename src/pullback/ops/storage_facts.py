"""What storages of bytes and of elements have in common: where they are, whether they are shared, buffers to copy."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from pullback._device import CPU, as_device, check_device, device, place_of
from pullback._dtype import bool_, int8, uint8

Memory = np.ndarray[Any, Any]


def shared_memory(array: Memory) -> bool:
    """True if an array lies in memory that forked processes share."""
    base: Any = array
    while base is not None:
        if isinstance(base, mmap.mmap):
            return True
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return False


def buffered(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, dtype: Any = None) -> Memory:
    """The bytes of a buffer from an offset on, copied, as elements of a dtype in the order of this machine."""
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    width = dtype.itemsize
    if byte_order is None and dtype not in (uint8, int8):
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "native", "big", "little"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    content = np.frombuffer(buffer, np.uint8)
    if not 0 <= offset <= content.size:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({offset}) , but got {content.size}"
        )
    left = content.size - offset
    if count < 0:
        if left % width:
            raise ValueError(f"buffer size ({content.size}) must be a multiple of element size ({width})")
        count = left // width
    elif count * width > left:
        raise ValueError(f"buffer has only {left} elements after offset {offset}, but specified a size of {count}")
    out = content[offset : offset + count * width].copy()
    if dtype is bool_:
        out = (out != 0).view(np.uint8)
    part = width // 2 if dtype.is_complex else width
    if byte_order not in (None, "native", sys.byteorder) and part > 1:
        out = np.ascontiguousarray(out.reshape(-1, part)[:, ::-1]).reshape(-1)
    return out


class StorageFacts:
    """Answers to questions about memory that bytes and elements have in common."""

    __slots__ = ()
    is_hpu = is_sparse = False
    filename = None
    """The name of the file behind shared memory, where torch knows one."""
    device: device

    @property
    def is_cuda(self) -> bool:
        """True on a CUDA device."""
        return self.device.type == "cuda"

    def resizable(self) -> bool:
        """True: the memory is not borrowed."""
        return True

    def get_device(self) -> Any:
        """The number of the device; the CPU has none."""
        return self.device.index

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no device the memory could be pinned for."""
        return False

    def pin_memory(self, device: Any = None) -> Any:
        """Raise: pinned memory serves copies to another device, and there is none."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def cpu(self) -> Any:
        """Itself if it is on the host, else a copy there."""
        return self.to(device=CPU)

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Itself, or a copy on another device."""
        wanted = as_device(device)
        if wanted.type not in ("cpu", "cuda"):
            check_device(device)
            raise AssertionError(f"{wanted.type.upper()} device module is not loaded")
        return self.moved(place_of(wanted))

    def moved(self, place: device) -> Any:
        """The same on another device, or itself."""
        raise NotImplementedError

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The same on a CUDA device."""
        return self.to(device="cuda" if device is None else place_of(device))

    def hpu(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Raise: there is no such device here."""
        raise AssertionError("HPU device module is not loaded")
