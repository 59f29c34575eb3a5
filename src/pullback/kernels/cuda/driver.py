"""NVIDIA's driver (`libcuda.so.1`, `nvcuda.dll`) through ctypes: nothing else of CUDA has to be installed.

Every function of the driver answers a number; what is not 0 becomes an error with the driver's own text and, where
there is something to be done about it, what to do.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.kernels.cuda.errors import AcceleratorError, hint

OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, NOT_READY, UNKNOWN = 2, 3, 100, 600, 999
NEWEST_NEEDED = 12000
"""The version of CUDA whose PTX the kernels are written in, 8.0: older drivers cannot read it."""
OLDEST = (7, 0)
"""The oldest compute capability the kernels are made for."""
ATTRIBUTES = {
    "max_threads_per_block": 1,
    "shared_memory_per_block": 8,
    "warp_size": 10,
    "regs_per_multiprocessor": 82,
    "clock_rate": 13,
    "multi_processor_count": 16,
    "is_integrated": 18,
    "major": 75,
    "minor": 76,
    "max_threads_per_multi_processor": 39,
    "memory_clock_rate": 36,
    "memory_bus_width": 37,
    "L2_cache_size": 38,
    "shared_memory_per_multiprocessor": 81,
    "shared_memory_per_block_optin": 97,
    "is_multi_gpu_board": 84,
    "pci_bus_id": 33,
    "pci_device_id": 34,
    "pci_domain_id": 50,
}
"""Attributes of a device by torch's names, and their numbers in the driver."""


@dataclass
class Properties:
    """What is known of a device."""

    name: str
    total_memory: int
    uuid: bytes
    attributes: dict[str, int]


class Driver:
    """The driver of this machine. `None` from `find` means that there is none, or no device."""

    emulated = False

    def __init__(self, library: Any, handles: list[int]) -> None:
        self.library, self.handles = library, handles
        self.contexts: dict[int, Any] = {}
        self.entered = threading.local()
        self.lock = threading.Lock()
        self.devices = [self.properties(handle) for handle in handles]

    # ---------------------------------------------------------------- calls
    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver; raises for what it does not like."""
        status = getattr(self.library, name)(*args)
        if status:
            self.refuse(name, status)

    def refuse(self, name: str, status: int) -> None:
        """Raise the error that a number stands for."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(status, ctypes.byref(text))
        said = (text.value or b"unrecognized error code").decode()
        raise AcceleratorError(f"CUDA error: {said}{hint(status)}", status, name)

    def properties(self, handle: int) -> Properties:
        """What the driver says of a device."""
        name = ctypes.create_string_buffer(256)
        total, value = ctypes.c_size_t(), ctypes.c_int()
        uuid = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetName", name, 256, handle)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), handle)
        self.call("cuDeviceGetUuid_v2", ctypes.byref(uuid), handle)
        found = {}
        for key, number in ATTRIBUTES.items():
            self.call("cuDeviceGetAttribute", ctypes.byref(value), number, handle)
            found[key] = value.value
        return Properties(name.value.decode(), total.value, bytes(uuid), found)

    def version(self) -> int:
        """The version of CUDA the driver knows, as 1000 * major + 10 * minor."""
        value = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(value))
        return value.value

    def enter(self, index: int) -> None:
        """Make a device the one that this thread's calls are about."""
        if getattr(self.entered, "index", None) == index:
            return
        with self.lock:
            if index not in self.contexts:
                found = self.devices[index].attributes
                if (found["major"], found["minor"]) < OLDEST:
                    raise RuntimeError(
                        f"the GPU {self.devices[index].name} has compute capability {found['major']}.{found['minor']}; "
                        f"{OLDEST[0]}.{OLDEST[1]} or higher is needed: use device='cpu'"
                    )
                context = ctypes.c_void_p()
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.handles[index])
                self.contexts[index] = context
        self.call("cuCtxSetCurrent", self.contexts[index])
        self.entered.index = index

    # ---------------------------------------------------------------- memory
    def allocate(self, index: int, nbytes: int) -> int | None:
        """New memory of a device; None if there is not enough."""
        self.enter(index)
        address = ctypes.c_uint64()
        status = self.library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(nbytes))
        if status == OUT_OF_MEMORY:
            return None
        if status:
            self.refuse("cuMemAlloc_v2", status)
        return address.value

    def free(self, index: int, address: int) -> None:
        """Give memory back."""
        self.enter(index)
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes of a device."""
        self.enter(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def upload(self, index: int, address: int, host: Any, stream: int) -> None:
        """Copy the bytes of a contiguous array of the host to the device.

        The driver has taken them when it returns, unless the memory is pinned: then it reads them later.
        """
        self.enter(index)
        where = ctypes.c_void_p(host.ctypes.data)
        nbytes, queue = ctypes.c_size_t(host.nbytes), ctypes.c_void_p(stream)
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), where, nbytes, queue)

    def download(self, index: int, host: Any, address: int, stream: int) -> None:
        """Copy bytes of the device to a contiguous array of the host, once all work before has been done."""
        self.download_later(index, host, address, stream)
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def download_later(self, index: int, host: Any, address: int, stream: int) -> None:
        """The same for pinned memory, not waited for."""
        self.enter(index)
        where = ctypes.c_void_p(host.ctypes.data)
        nbytes, queue = ctypes.c_size_t(host.nbytes), ctypes.c_void_p(stream)
        self.call("cuMemcpyDtoHAsync_v2", where, ctypes.c_uint64(address), nbytes, queue)

    def copy(self, index: int, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes within the memory of devices."""
        self.enter(index)
        ends = ctypes.c_uint64(target), ctypes.c_uint64(source)
        self.call("cuMemcpyDtoDAsync_v2", *ends, ctypes.c_size_t(nbytes), ctypes.c_void_p(stream))

    def fill(self, index: int, address: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes of the device."""
        self.enter(index)
        count = ctypes.c_size_t(nbytes)
        self.call("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(byte), count, ctypes.c_void_p(stream))

    def pinned(self, index: int, nbytes: int) -> Any:
        """Memory of the host that the device copies from and to by itself, as an array of bytes."""
        self.enter(index)
        address = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(nbytes), 1)
        return np.asarray(Pinned(self, address.value, nbytes))

    def unpin(self, address: int) -> None:
        """Give such memory back."""
        self.enter(0)
        self.call("cuMemFreeHost", ctypes.c_void_p(address))

    # ---------------------------------------------------------------- streams and events
    def synchronize(self, index: int) -> None:
        """Wait until a device has done all its work."""
        self.enter(index)
        self.call("cuCtxSynchronize")

    def new_stream(self, index: int, priority: int) -> int:
        """A queue of work beside the others."""
        self.enter(index)
        stream = ctypes.c_void_p()
        self.call("cuStreamCreateWithPriority", ctypes.byref(stream), 1, priority)
        return stream.value or 0

    def priorities(self, index: int) -> tuple[int, int]:
        """The lowest priority of a stream and the highest, which is the lowest number."""
        self.enter(index)
        least, greatest = ctypes.c_int(), ctypes.c_int()
        self.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        return least.value, greatest.value

    def wait(self, index: int, stream: int) -> None:
        """Wait until a stream has done all its work."""
        self.enter(index)
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def is_done(self, index: int, stream: int) -> bool:
        """True if a stream has done all its work."""
        self.enter(index)
        return self.answer("cuStreamQuery", ctypes.c_void_p(stream))

    def answer(self, name: str, handle: Any) -> bool:
        """Whether something is done: the driver says so, or that it is not ready."""
        status = getattr(self.library, name)(handle)
        if status not in (0, NOT_READY):
            self.refuse(name, status)
        return bool(status == 0)

    def new_event(self, index: int, timing: bool, blocking: bool) -> int:
        """A mark that can be put into a stream."""
        self.enter(index)
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), (1 if blocking else 0) | (0 if timing else 2))
        return event.value or 0

    def free_event(self, event: int) -> None:
        """Give a mark back."""
        self.library.cuEventDestroy_v2(ctypes.c_void_p(event))

    def record(self, index: int, event: int, stream: int) -> None:
        """Put a mark into a stream."""
        self.enter(index)
        self.call("cuEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def wait_event(self, index: int, event: int) -> None:
        """Wait until a mark is reached."""
        self.enter(index)
        self.call("cuEventSynchronize", ctypes.c_void_p(event))

    def has_happened(self, index: int, event: int) -> bool:
        """True if a mark was reached."""
        self.enter(index)
        return self.answer("cuEventQuery", ctypes.c_void_p(event))

    def elapsed(self, index: int, start: int, end: int) -> float:
        """Milliseconds between two marks."""
        self.enter(index)
        value = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(value), ctypes.c_void_p(start), ctypes.c_void_p(end))
        return value.value

    def stream_waits(self, index: int, stream: int, event: int) -> None:
        """Let a stream wait for a mark."""
        self.enter(index)
        self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

    # ---------------------------------------------------------------- graphs
    def begin_capture(self, index: int, stream: int) -> None:
        """From here on work of a stream is written down instead of done."""
        self.enter(index)
        relaxed = 2  # memory may be asked for meanwhile
        self.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), relaxed)

    def end_capture(self, index: int, stream: int) -> Any:
        """What was written down, ready to be done."""
        self.enter(index)
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_uint64(0))
        self.library.cuGraphDestroy(graph)
        return ready

    def launch_graph(self, index: int, graph: Any, stream: int) -> None:
        """Do it."""
        self.enter(index)
        status = self.library.cuGraphLaunch(graph, ctypes.c_void_p(stream))
        if status:
            self.refuse("cuGraphLaunch", status)

    def free_graph(self, graph: Any) -> None:
        """Forget it."""
        self.library.cuGraphExecDestroy(graph)

    # ---------------------------------------------------------------- programs
    def load(self, index: int, image: bytes) -> Any:
        """A program: PTX, or the driver's own binary."""
        self.enter(index)
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def link(self, index: int, ptx: bytes) -> bytes:
        """The driver's own binary of PTX."""
        self.enter(index)
        state, binary, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        self.call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
        try:
            text = ptx if ptx.endswith(b"\0") else ptx + b"\0"
            self.call("cuLinkAddData_v2", state, 1, text, ctypes.c_size_t(len(text)), b"kernel", 0, None, None)
            self.call("cuLinkComplete", state, ctypes.byref(binary), ctypes.byref(size))
            return ctypes.string_at(binary.value, size.value)  # type: ignore[arg-type]
        finally:
            self.library.cuLinkDestroy(state)

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a program."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def handle(self, function: Any) -> int:
        """A kernel, for native code."""
        return function.value  # type: ignore[no-any-return]

    def launching(self) -> int:
        """The address of the function that launches kernels, for native code."""
        return ctypes.cast(self.library.cuLaunchKernel, ctypes.c_void_p).value or 0

    def launch(
        self, index: int, function: Any, grid: Any, threads: int, stream: int, arguments: bytes, shared: int = 0
    ) -> None:
        """Run a kernel on its arguments, packed as they lie in memory, with so many bytes of shared memory."""
        self.enter(index)
        if shared:  # more than 48 KB are given to those who ask
            self.call("cuFuncSetAttribute", function, 8, shared)
        size = ctypes.c_size_t(len(arguments))
        packed = ctypes.cast(ctypes.c_char_p(arguments), ctypes.c_void_p)
        # 1 stands for the pointer to the arguments, 2 for the pointer to their size, 0 for the end.
        extra = (ctypes.c_void_p * 5)(1, packed, 2, ctypes.addressof(size), 0)
        status = self.library.cuLaunchKernel(
            function, *grid, threads, 1, 1, shared, ctypes.c_void_p(stream), None, extra
        )
        if status:
            self.refuse("cuLaunchKernel", status)


class Pinned:
    """Memory of the host that the driver gave."""

    pinned = True

    def __init__(self, driver: Any, address: Any, nbytes: int) -> None:
        self.driver, self.address = driver, address
        place = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        self.__array_interface__ = place

    def __del__(self) -> None:
        self.driver.unpin(self.address)


def pinned_by(array: Any) -> Any:
    """What owns the memory of an array of the host, if the driver gave it; else None."""
    while array is not None and getattr(type(array), "pinned", False) is not True:
        array = getattr(array, "base", None)
    return array


def is_pinned(array: Any) -> bool:
    """True for an array of the host whose memory the driver gave."""
    return pinned_by(array) is not None


NAME = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def begin(open: Any = ctypes.CDLL) -> None:
    """Let the driver begin, if there is one; what is wrong with it, `find` will say."""
    try:
        open(NAME).cuInit(0)
    except OSError:
        return


def find(open: Any = ctypes.CDLL) -> Driver | str | None:
    """The driver, if this machine has one and it knows a device; what is wrong with it; None if there is none."""
    try:
        library = open(NAME)
    except OSError:
        return None
    count, version, handle, handles = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), []
    status = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    if status == NO_DEVICE or not (status or count.value):
        return "No CUDA GPUs are available"
    if status:
        return cannot_begin(library, status)
    if library.cuDriverGetVersion(ctypes.byref(version)) or version.value < NEWEST_NEEDED:
        return (
            f"The NVIDIA driver on your system is too old (found version {version.value}). Please update your GPU "
            "driver by downloading and installing a new version from the URL: "
            f"http://www.nvidia.com/Download/index.aspx (programs are written for version {NEWEST_NEEDED})"
        )
    for ordinal in range(count.value):
        library.cuDeviceGet(ctypes.byref(handle), ordinal)
        handles.append(handle.value)
    return Driver(library, handles)


def cannot_begin(library: Any, status: int) -> str:
    """What torch says of a driver that cannot be used, by the number of its error."""
    if status == NOT_INITIALIZED:
        return "CUDA driver initialization failed, you might not have a CUDA gpu."
    if status == UNKNOWN:
        return (
            "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable "
            "CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero."
        )
    text = ctypes.c_char_p()
    library.cuGetErrorString(status, ctypes.byref(text))
    said = (text.value or b"unrecognized error code").decode()
    return (
        "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() "
        f"that might have already set an error? Error {status}: {said}"
    )
