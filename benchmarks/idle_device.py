"""A driver that does nothing, at once: what is left of a step on the device is the time of the host.

    python -m benchmarks.idle_device            # rows of small tensors of benchmarks/cuda.py; on any machine
    python -m benchmarks.idle_device GPT MLP    # those whose names begin so

The functions of `libcuda.so.1` that the library calls, made by llvmlite: memory is a counter, streams and events are
done, kernels are counted and not run, and every number that is read back is 0. All that calls the driver is the code
that a GPU has: `driver.Driver` by ctypes, launches by native code.
"""

import ctypes
import sys
from collections.abc import Callable
from time import thread_time
from typing import Any

import llvmlite.binding as llvm

import pullback
from benchmarks import cuda
from pullback._device import accelerators
from pullback.kernels.cuda import device, launch
from pullback.kernels.cuda.driver import ATTRIBUTES, find

NUMBERS = {
    "max_threads_per_block": 1024, "shared_memory_per_block": 49152, "warp_size": 32, "regs_per_multiprocessor": 65536,
    "clock_rate": 1980000, "multi_processor_count": 132, "major": 9, "minor": 0,
    "max_threads_per_multi_processor": 2048, "memory_clock_rate": 3201000, "memory_bus_width": 6144,
    "L2_cache_size": 62914560, "shared_memory_per_multiprocessor": 233472, "shared_memory_per_block_optin": 232448,
}  # fmt: skip
"""What the driver says of an H200."""
HANDLE = "  store i64 1, ptr %0\n"
READ = "  call void @llvm.memset.p0.i64(ptr %0, i8 0, i64 %2, i1 false)\n"
TAKEN = """  %rounded = add i64 %1, 65535
  %bytes = and i64 %rounded, -65536
  %at = load i64, ptr @next
  %end = add i64 %at, %bytes
  store i64 %end, ptr @next
  store i64 %at, ptr %0
"""
PINNED = "  %at = call ptr @malloc(i64 %1)\n  store ptr %at, ptr %0\n"
NUMBER = """  %place = getelementptr i32, ptr @numbers, i32 %1
  %number = load i32, ptr %place
  store i32 %number, ptr %0
"""
LAUNCHED = "  %before = load i64, ptr @launches\n  %now = add i64 %before, 1\n  store i64 %now, ptr @launches\n"
FUNCTIONS: dict[str, tuple[str, str]] = {
    "cuInit": ("i32", ""),
    "cuDeviceGetCount": ("ptr", "  store i32 1, ptr %0\n"),
    "cuDriverGetVersion": ("ptr", "  store i32 12080, ptr %0\n"),
    "cuDeviceGet": ("ptr, i32", "  store i32 0, ptr %0\n"),
    "cuDeviceGetName": ("ptr, i32, i32", "  store i32 1701602409, ptr %0\n"),  # idle
    "cuDeviceTotalMem_v2": ("ptr, i32", "  store i64 150000000000, ptr %0\n"),
    "cuDeviceGetUuid_v2": ("ptr, i32", ""),
    "cuDeviceGetAttribute": ("ptr, i32, i32", NUMBER),
    "cuMemGetInfo_v2": ("ptr, ptr", "  store i64 140000000000, ptr %0\n  store i64 150000000000, ptr %1\n"),
    "cuMemAlloc_v2": ("ptr, i64", TAKEN),
    "cuMemHostAlloc": ("ptr, i64, i32", PINNED),
    "cuMemFreeHost": ("ptr", "  call void @free(ptr %0)\n"),
    "cuMemcpyDtoHAsync_v2": ("ptr, i64, i64, ptr", READ),
    "cuLaunchKernel": ("ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr", LAUNCHED),
    "cuGraphLaunch": ("ptr, ptr", LAUNCHED),
    "cuStreamEndCapture": ("ptr, ptr", "  store i64 1, ptr %1\n"),
    **dict.fromkeys(("cuDevicePrimaryCtxRetain",), ("ptr, i32", HANDLE)),
    **dict.fromkeys(("cuStreamCreateWithPriority", "cuEventCreate"), ("ptr, i32, i32", HANDLE)),
    "cuGraphInstantiateWithFlags": ("ptr, ptr, i64", HANDLE),
    **dict.fromkeys(
        (
            "cuCtxSetCurrent", "cuCtxSynchronize", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2",
            "cuMemsetD8Async", "cuStreamSynchronize", "cuStreamQuery", "cuStreamWaitEvent", "cuEventDestroy_v2",
            "cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuEventElapsedTime", "cuFuncSetAttribute",
            "cuStreamBeginCapture_v2", "cuGraphDestroy", "cuGraphExecDestroy", "cuCtxGetStreamPriorityRange",
        ),
        ("ptr", ""),
    ),
}  # fmt: skip
"""The parameters of each function and what it does before it says that all is well."""


def text() -> str:
    """All of them in LLVM's language."""
    numbers = [0] * 128
    for name, number in ATTRIBUTES.items():
        numbers[number] = NUMBERS.get(name, 0)
    table = ", ".join([f"i32 {number}" for number in numbers])
    functions = [f"define i32 @{name}({given}) {{\n{body}  ret i32 0\n}}" for name, (given, body) in FUNCTIONS.items()]
    table = f"@numbers = constant [128 x i32] [{table}]"
    globals = ["@next = global i64 4294967296", "@launches = global i64 0", table]
    declared = ["ptr @malloc(i64)", "void @free(ptr)", "void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    return "\n".join([*globals, *[f"declare {one}" for one in declared], *functions])


class Library:
    """What stands for the loaded driver."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(text())
        module.verify()
        target = llvm.Target.from_default_triple().create_target_machine(opt=2)
        self.engine = llvm.create_mcjit_compiler(module, target)
        self.engine.finalize_object()
        kind = type("Function", (ctypes._CFuncPtr,), {"_flags_": ctypes._FUNCFLAG_CDECL, "_restype_": ctypes.c_int})
        for name in FUNCTIONS:
            setattr(self, name, kind(self.engine.get_function_address(name)))
        self.count = ctypes.c_int64.from_address(self.engine.get_global_value_address("launches"))


def use() -> Library:
    """Let a device that does nothing be the device of this process."""
    library = Library()
    there = find(lambda name: library)
    device.found[:], accelerators[:] = [there], ["cuda"]
    launch.program = lambda index, name, text: ctypes.c_void_p(1)
    return library


# ------------------------------------------------------------------ measuring

ROWS = (
    "x * y of 1,000", "torch.relu", "sum of 1,000", "x @ y", "x.add_", "chain", "small MLP step, SGD", "MLP", "GPT 4",
)  # fmt: skip
"""What is measured unless something else is asked for: steps that the host is slower with than the device."""
WARM, SERIES = 30, 7
"""Calls before a row is measured, and how often it is measured."""


def measured(run: Callable[[], Any], library: Library) -> tuple[float, int]:
    """Seconds of this thread for one call, the least of several series, and how many kernels it launches."""
    for _ in range(WARM):
        run()
    before, start = library.count.value, thread_time()
    run()
    many, launches = max(int(0.03 / max(thread_time() - start, 1e-5)), 1), library.count.value - before
    best = float("inf")
    for _ in range(SERIES):
        start = thread_time()
        for _ in range(many):
            run()
        best = min(best, (thread_time() - start) / many)
    return best, launches


def main(names: tuple[str, ...]) -> None:
    """Print the rows whose names begin so."""
    library = use()
    print(f"{'us of the host':>15} {'launches':>10}")
    for name, (_, _, build) in cuda.ROWS.items():
        if name.startswith(names):
            seconds, launches = measured(build(pullback), library)
            print(f"{seconds * 1e6:15.2f} {launches:10}  {name}", flush=True)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ROWS)
