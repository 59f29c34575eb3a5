"""A device on the host: what driver.py does, without a GPU. `PULLBACK_CUDA=emulate` asks for it, `emulate:2` for two.

Memory of the device is memory of the host behind an address, streams do their work at once, kernels are computed by
NumPy (launch.py asks `emulated`). So everything but the launch itself runs, and is tested, on any machine. `faults`
makes calls fail as a device would.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.kernels.cuda.driver import Pinned, Properties
from pullback.kernels.cuda.errors import AcceleratorError

CAPACITY = 1 << 32
"""Bytes of memory of one such device."""


UNSPECIFIED = 719
ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 2, ctypes.POINTER(ctypes.c_void_p)
)
"""The type of `cuLaunchKernel`."""


class Emulated:
    """The interface of `driver.Driver`."""

    emulated = True

    def __init__(self, count: int = 1, capacity: int = CAPACITY) -> None:
        attributes = {
            "major": 9,
            "minor": 0,
            "multi_processor_count": 4,
            "warp_size": 32,
            "max_threads_per_multi_processor": 2048,
            "max_threads_per_block": 1024,
            "shared_memory_per_block": 49152,
            "shared_memory_per_block_optin": 232448,
            "shared_memory_per_multiprocessor": 233472,
            "regs_per_multiprocessor": 65536,
            "L2_cache_size": 1 << 20,
            "clock_rate": 1000000,
            "memory_clock_rate": 1000000,
            "memory_bus_width": 64,
            "is_integrated": 1,
            "is_multi_gpu_board": 0,
            "pci_bus_id": 0,
            "pci_device_id": 0,
            "pci_domain_id": 0,
        }
        self.devices = [Properties("emulated", capacity, bytes(15) + bytes([i]), attributes) for i in range(count)]
        self.blocks: list[dict[int, Any]] = [{} for _ in range(count)]
        self.events: dict[int, float] = {}
        self.kept: dict[int, Any] = {}
        self.handles = 1 << 16  # small numbers stand for default streams
        self.faults: dict[str, list[tuple[int, str]]] = {}
        """Errors that the next calls of a function end with, first come, first served."""
        self.kernels: list[Callable[[Any, Any], None]] = []
        """What native code can launch: functions of the words that a kernel is told, and of its grid."""
        self.entry: Any = ENTRY(self.enter)

    def failing(self, name: str) -> None:
        """End as the next fault of this name says."""
        if self.faults.get(name):
            status, text = self.faults[name].pop(0)
            raise AcceleratorError(f"CUDA error: {text}", status, name)

    def kernel(self, compute: Callable[[Any, Any], None]) -> int:
        """A handle that native code launches a function by."""
        self.kernels.append(compute)
        return len(self.kernels)

    def handle(self, function: Any) -> int:
        """The same for what `function` gave, on a device that runs kernels."""
        return self.kernel(lambda words, grid: self.launch(0, function, grid[:3], grid[3], 0, words.tobytes(), grid[6]))

    def launch(
        self, index: int, function: Any, grid: Any, threads: int, stream: int, arguments: bytes, shared: int = 0
    ) -> None:
        """Nothing is launched by Python: launch.py computes instead."""
        raise NotImplementedError("kernels of the emulated device are computed by NumPy")

    def launching(self) -> int:
        """The address of what stands for `cuLaunchKernel`."""
        return ctypes.cast(self.entry, ctypes.c_void_p).value or 0

    def enter(self, handle: int, *rest: Any) -> int:
        """Run a kernel. What fails is not raised here, where nobody could catch it: Python is asked, and fails anew."""
        if self.faults.get("launch"):
            return UNSPECIFIED
        extra = rest[-1]
        count = ctypes.cast(extra[3], ctypes.POINTER(ctypes.c_int64))[0] // 8
        try:
            words = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(extra[1]))
            self.kernels[handle - 1](words, rest[:7])
        except Exception:
            return UNSPECIFIED
        return 0

    def version(self) -> int:
        """The version of CUDA."""
        return 12080

    # ---------------------------------------------------------------- memory
    def allocate(self, index: int, nbytes: int) -> int | None:
        """New memory; None if there is not enough."""
        self.failing("allocate")
        used = sum([block.nbytes for block in self.blocks[index].values()])
        if used + nbytes > self.devices[index].total_memory:
            return None
        block = np.full(nbytes, 0xA5, np.uint8)  # so that nobody takes new memory for zeros
        address = int(block.ctypes.data)
        self.blocks[index][address] = block
        return address

    def free(self, index: int, address: int) -> None:
        """Give memory back."""
        del self.blocks[index][address]

    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes."""
        total = self.devices[index].total_memory
        return total - sum([block.nbytes for block in self.blocks[index].values()]), total

    def check(self, address: int, nbytes: int) -> None:
        """Raise unless the bytes lie in memory that was allocated."""
        for blocks in self.blocks:
            for start, block in blocks.items():
                if start <= address and address + nbytes <= start + block.nbytes:
                    return
        raise AcceleratorError("CUDA error: an illegal memory access was encountered", 700, "emulated")

    def window(self, address: int, nbytes: int) -> Any:
        """Memory of the device, as the host sees it."""
        self.check(address, nbytes)
        return np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(address))

    def upload(self, index: int, address: int, host: Any, stream: int) -> None:
        """From the host to the device."""
        self.failing("upload")
        self.check(address, host.nbytes)
        ctypes.memmove(address, host.ctypes.data, host.nbytes)

    def download(self, index: int, host: Any, address: int, stream: int) -> None:
        """From the device to the host."""
        self.failing("download")
        self.check(address, host.nbytes)
        ctypes.memmove(host.ctypes.data, address, host.nbytes)

    def download_later(self, index: int, host: Any, address: int, stream: int) -> None:
        """The same, at once."""
        self.download(index, host, address, stream)

    def copy(self, index: int, target: int, source: int, nbytes: int, stream: int) -> None:
        """Within the device."""
        self.check(source, nbytes)
        self.check(target, nbytes)
        ctypes.memmove(target, source, nbytes)

    def fill(self, index: int, address: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes."""
        self.check(address, nbytes)
        ctypes.memset(address, byte, nbytes)

    def pinned(self, index: int, nbytes: int) -> Any:
        """Memory of the host."""
        memory = np.empty(nbytes, np.uint8)
        self.kept[int(memory.ctypes.data)] = memory
        return np.asarray(Pinned(self, int(memory.ctypes.data), nbytes))

    def unpin(self, address: int) -> None:
        """Give it back."""
        del self.kept[address]

    # ---------------------------------------------------------------- graphs
    def begin_capture(self, index: int, stream: int) -> None:
        """Write launches, copies and fills down instead of doing them, on a device that has launches."""
        if self.emulated:
            raise NotImplementedError(
                "the emulated device computes its kernels at once, and cannot capture them in a CUDA graph; run the "
                "function itself"
            )
        self.graph: list[Any] = []
        for name in ("launch", "copy", "fill"):
            setattr(self, name, partial(self.noted, getattr(self, name)))

    def noted(self, call: Callable[..., None], *args: Any) -> None:
        """Write a call down."""
        self.graph.append(partial(call, *args))

    def end_capture(self, index: int, stream: int) -> Any:
        """What was written down."""
        for name in ("launch", "copy", "fill"):
            delattr(self, name)
        return self.graph

    def launch_graph(self, index: int, graph: Any, stream: int) -> None:
        """Do it."""
        for call in graph:
            call()

    def free_graph(self, graph: Any) -> None:
        """Forget it."""

    # ---------------------------------------------------------------- streams and events
    def synchronize(self, index: int) -> None:
        """Everything is done."""
        self.failing("synchronize")

    def new_stream(self, index: int, priority: int) -> int:
        """Another number."""
        self.handles += 1
        return self.handles

    def priorities(self, index: int) -> tuple[int, int]:
        """Two of them, which make no difference."""
        return 0, -1

    def wait(self, index: int, stream: int) -> None:
        """Everything is done."""

    def is_done(self, index: int, stream: int) -> bool:
        """Everything is done."""
        return True

    def new_event(self, index: int, timing: bool, blocking: bool) -> int:
        """A mark."""
        self.handles += 1
        return self.handles

    def free_event(self, event: int) -> None:
        """Forget a mark."""
        self.events.pop(event, None)

    def record(self, index: int, event: int, stream: int) -> None:
        """The time now."""
        self.events[event] = time.perf_counter()

    def wait_event(self, index: int, event: int) -> None:
        """Everything is done."""

    def has_happened(self, index: int, event: int) -> bool:
        """Everything is done."""
        return True

    def elapsed(self, index: int, start: int, end: int) -> float:
        """Milliseconds between two marks."""
        return (self.events[end] - self.events[start]) * 1e3

    def stream_waits(self, index: int, stream: int, event: int) -> None:
        """Everything is done."""
