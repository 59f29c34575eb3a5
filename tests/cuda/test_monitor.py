"""What is asked about a device beside computing on it: NVIDIA's management library, waiting, the runtime."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import pullback as torch
from pullback.cuda import monitor
from pullback.kernels import jit
from pullback.kernels.cuda import device


class Library:
    """Stands for the library: it answers as the real one does, for one device."""

    def __init__(self, running: int) -> None:
        self.running = running
        self.nvmlErrorString: Any = lambda status: b"Not Supported"

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:
        parts = uuid.decode().split("-")
        assert parts[0] == "GPU" and [len(part) for part in parts[1:]] == [8, 4, 4, 4, 12]
        assert "".join(parts[1:]) == device.required().devices[0].uuid.hex()
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle: Any, both: Any) -> int:
        both[:] = [70, 20]
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int, value: Any) -> int:
        value._obj.value = 41 + sensor
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, value: Any) -> int:
        return 3

    def nvmlDeviceGetMemoryInfo(self, handle: Any, sizes: Any) -> int:
        sizes[:] = [100, 60, 40]
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, found: Any) -> int:
        given, count._obj.value = count._obj.value, self.running
        if given < self.running:
            return monitor.NO_ROOM
        for nr in range(self.running):
            found[nr].pid, found[nr].used = 1000 + nr, nr << 20
        return 0


def test_a_device_is_watched_by_the_library_of_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "library", lambda: Library(100))
    assert torch.cuda.utilization() == 70 and torch.cuda.memory_usage(0) == 20
    assert torch.cuda.temperature("cuda:0") == 41 and torch.cuda.device_memory_used() == 40
    with pytest.raises(RuntimeError, match="nvmlDeviceGetPowerUsage: Not Supported"):
        torch.cuda.power_draw()
    lines = torch.cuda.list_gpu_processes().splitlines()
    assert len(lines) == 101 and lines[3] == "process       1002 uses        2.000 MB GPU memory"
    monkeypatch.setattr(monitor, "library", lambda: Library(0))
    assert torch.cuda.list_gpu_processes(0) == "GPU:0\nno processes are running"


def test_without_the_library_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "NAME", "libnothing.so")
    monitor.library.cache_clear()
    with pytest.raises(RuntimeError, match="cuda driver can't be loaded, is cuda enabled"):
        torch.cuda.clock_rate()
    assert ctypes.sizeof(monitor.Running) == 24  # as the library's own header has it


@pytest.mark.skipif(not jit.available(), reason="without a compiler everything goes by way of the host, which waits")
def test_calls_that_wait_for_the_device_are_told_of_where_that_is_asked_for() -> None:
    x = torch.arange(3.0, device="cuda")
    waiting = (lambda: x.sum().item(), lambda: x.tolist(), lambda: x.cpu(), lambda: bool(x[1] > 0))
    try:
        torch.cuda.set_sync_debug_mode("warn")
        assert torch.cuda.get_sync_debug_mode() == 1
        for wait in waiting:
            with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
                wait()
        torch.cuda.set_sync_debug_mode(2)
        y = (x * 2).exp() @ x  # nobody waits for it
        for wait in waiting:
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                wait()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.get_sync_debug_mode() == 0 and y.item() > 0
    for mode, words in (("all", "expected one of `default`"), (7, "expected one of 0,1,2")):
        with pytest.raises(RuntimeError, match=f"invalid value of debug_mode, {words}"):
            torch.cuda.set_sync_debug_mode(mode)  # type: ignore[arg-type]


def test_the_runtime_answers_what_programs_ask_it_for() -> None:
    runtime = torch.cuda.cudart()
    for call in (runtime.cudaProfilerStart, runtime.cudaProfilerStop):
        torch.cuda.check_error(call())
    assert runtime.cudaError.success == 0
    assert runtime.cudaMemGetInfo(0)[1] == torch.cuda.mem_get_info()[1]
    with pytest.raises(torch.cuda.AcceleratorError, match="CUDA error 34"):
        torch.cuda.check_error(torch.cuda.cudaStatus.ERROR_NOT_READY)
