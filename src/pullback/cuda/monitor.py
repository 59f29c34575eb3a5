"""What NVIDIA's management library knows of a device (`nvidia-smi` asks the same), and what the runtime is asked for.

torch asks the package nvidia-ml-py; here the library that comes with the driver is asked itself.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from pullback.cuda.devices import carried, driver, index_of
from pullback.kernels.cuda.errors import AcceleratorError

NAME = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
SM_CLOCK, NO_ROOM = 1, 7


@cache
def library() -> Any:
    """The library, ready to be asked; raises torch's error where there is none."""
    try:
        found = ctypes.CDLL(NAME)
    except OSError as error:
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?") from error
    if found.nvmlInit_v2():
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?")
    return found


def asked(name: str, device: Any, *args: Any) -> int:
    """Call a function about a device; its status where there is not enough room for the answer."""
    index = index_of(device)
    known = driver().devices[index].uuid.hex()
    uuid = "GPU-" + "-".join([known[:8], known[8:12], known[12:16], known[16:20], known[20:]])
    nvml, handle = library(), ctypes.c_void_p()
    status = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) or getattr(nvml, name)(handle, *args)
    if status not in (0, NO_ROOM):
        text = nvml.nvmlErrorString
        text.restype = ctypes.c_char_p
        raise RuntimeError(f"{name}: {text(status).decode()}")
    return int(status)


def number(name: str, device: Any, *before: Any) -> int:
    """One number about a device."""
    value = ctypes.c_uint()
    asked(name, device, *before, ctypes.byref(value))
    return value.value


def rates(device: Any) -> Any:
    """How much of the last moments the device computed, and how much its memory was used, in percent."""
    both = (ctypes.c_uint * 2)()
    asked("nvmlDeviceGetUtilizationRates", device, both)
    return both


def utilization(device: Any = None) -> int:
    """How much of the time of the last moments kernels ran, in percent."""
    return int(rates(device)[0])


def memory_usage(device: Any = None) -> int:
    """How much of the time of the last moments memory was read or written, in percent."""
    return int(rates(device)[1])


def temperature(device: Any = None) -> int:
    """The temperature of a device in degrees Celsius."""
    return number("nvmlDeviceGetTemperature", device, 0)


def power_draw(device: Any = None) -> int:
    """The power a device takes, in milliwatts."""
    return number("nvmlDeviceGetPowerUsage", device)


def clock_rate(device: Any = None) -> int:
    """The clock of a device's multiprocessors in MHz."""
    return number("nvmlDeviceGetClockInfo", device, SM_CLOCK)


def device_memory_used(device: Any = None) -> int:
    """The bytes of a device's memory that all processes together use."""
    sizes = (ctypes.c_ulonglong * 3)()
    asked("nvmlDeviceGetMemoryInfo", device, sizes)
    return int(sizes[2])


class Running(ctypes.Structure):
    """A process that computes on a device."""

    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2))


def list_gpu_processes(device: Any = None) -> str:
    """The processes that compute on a device, and how much of its memory they use, as lines of text."""
    index, room = index_of(device), 64
    while True:
        count, found = ctypes.c_uint(room), (Running * room)()
        if not asked("nvmlDeviceGetComputeRunningProcesses_v3", index, ctypes.byref(count), found):
            break
        room = count.value + 16
    lines = [f"GPU:{index}"] + ([] if count.value else ["no processes are running"])
    for one in found[: count.value]:
        lines.append(f"process {one.pid:>10d} uses {one.used / 2**20:>12.3f} MB GPU memory")
    return "\n".join(lines)


# ------------------------------------------------------------------ waiting

MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Say what becomes of calls that wait for the device to read it: "default", "warn" or "error" (0, 1 or 2)."""
    driver()
    mode = MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode is None:
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    if mode not in MODES.values():
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    carried().watch.mode = mode


def get_sync_debug_mode() -> int:
    """What becomes of calls that wait for the device to read it, as a number."""
    driver()
    return int(carried().watch.mode)


# ------------------------------------------------------------------ the runtime


class Status(int):
    """A number that a function of the runtime answers."""


class cudaStatus:
    """What such numbers mean."""

    SUCCESS, ERROR_NOT_READY = 0, 34


class Runtime:
    """The few functions of the CUDA runtime that programs ask for by `cudart()`, done by the driver."""

    cudaError = type("cudaError", (), {"success": Status(0)})

    def cudaProfilerStart(self) -> Status:
        """Let a profiler begin."""
        return Status(self.on_driver("cuProfilerStart"))

    def cudaProfilerStop(self) -> Status:
        """Let a profiler end."""
        return Status(self.on_driver("cuProfilerStop"))

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        """How many bytes of a device are free, and how many it has."""
        return driver().memory_info(index_of(device))  # type: ignore[no-any-return]

    def cudaGetErrorString(self, status: int) -> str:
        """What a number means."""
        return "no error" if not status else f"CUDA error {int(status)}"

    def on_driver(self, name: str) -> int:
        """Call a function of the driver that takes nothing; an emulated device has nothing to say."""
        there = driver()
        found = getattr(getattr(there, "library", None), name, None)
        return 0 if found is None else int(found())


runtime = Runtime()


def cudart() -> Runtime:
    """The functions of the CUDA runtime that programs ask for."""
    driver()
    return runtime


def check_error(res: int) -> None:
    """Raise if a function of the runtime answered that something went wrong."""
    if res != cudaStatus.SUCCESS:
        raise AcceleratorError(f"{runtime.cudaGetErrorString(res)} ({int(res)})", int(res), "the CUDA runtime")
