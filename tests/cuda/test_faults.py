"""What the allocator does with memory, and what is left after a device fails: on an emulated one that fails as told."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import pullback as torch
from pullback._device import accelerators
from pullback.kernels import jit
from pullback.kernels.cuda import device, driver, pointwise
from pullback.kernels.cuda.emulated import Emulated
from pullback.kernels.cuda.memory import pool_of, pools

MEGA = 1 << 20


@pytest.fixture(autouse=True)
def small() -> Iterator[Emulated]:
    """A device of 64 MB."""
    before, held = device.found[:], dict(pools)
    emulated = Emulated(1, 64 * MEGA)
    device.found[:] = [emulated]
    pools.clear()
    yield emulated
    device.found[:] = before
    pointwise.known.clear()  # what was prepared for this device, which launches nothing
    pools.clear()
    pools.update(held)


def block(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8, device="cuda")


def test_small_requests_share_a_segment_and_large_ones_are_cut_from_one() -> None:
    x, y = block(1), block(513)
    assert torch.cuda.memory_reserved() == 2 * MEGA and torch.cuda.memory_allocated() == 512 + 1024
    assert y.data_ptr() == x.data_ptr() + 512
    z = block(5 * MEGA)
    assert torch.cuda.memory_reserved() == 22 * MEGA
    w = block(5 * MEGA)
    assert torch.cuda.memory_reserved() == 22 * MEGA and w.data_ptr() == z.data_ptr() + 5 * MEGA
    big = block(11 * MEGA)
    assert torch.cuda.memory_reserved() == 34 * MEGA
    del big


def test_freed_neighbours_become_one_block_again() -> None:
    parts = [block(4 * MEGA) for _ in range(5)]
    start = parts[0].data_ptr()
    assert torch.cuda.memory_reserved() == 20 * MEGA
    for i in (1, 3, 2, 0, 4):
        parts[i] = torch.empty(0)
    whole = block(9 * MEGA)
    assert whole.data_ptr() == start and torch.cuda.memory_reserved() == 20 * MEGA
    del whole
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == 0 and stats["inactive_split.all.current"] == 0
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0 and stats["allocated_bytes.all.peak"] == 20 * MEGA


def test_cached_memory_is_given_back_before_memory_is_said_to_be_full() -> None:
    x = block(30 * MEGA)
    del x
    y = block(50 * MEGA)
    assert torch.cuda.memory_stats()["num_alloc_retries"] == 1
    with pytest.raises(
        torch.cuda.OutOfMemoryError, match=r"allocate 40\.00 MiB\. GPU 0 has a total capacity of 64\.00 MiB"
    ):
        block(40 * MEGA)
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    del y
    assert block(40 * MEGA).numel() == 40 * MEGA


@pytest.mark.parametrize("call", ["allocate", "upload", "download", "launch"])
def test_after_a_call_of_the_driver_fails_the_rest_goes_on(call: str, small: Emulated) -> None:
    if call == "launch" and not jit.available():
        pytest.skip("without the compiler nothing is launched")
    x = torch.ones(4, device="cuda")
    small.faults[call] = [(719, "unspecified launch failure")]
    torch.cuda.empty_cache()
    with pytest.raises(torch.cuda.AcceleratorError, match="CUDA error: unspecified launch failure"):
        ((x * 2).cpu(), torch.ones(300000, device="cuda"), torch.arange(5, device="cuda"))
    assert (x * 2).tolist() == [2, 2, 2, 2] and not small.faults[call]


def test_a_read_outside_of_memory_is_an_error(small: Emulated) -> None:
    x = torch.ones(4, device="cuda")
    with pytest.raises(torch.cuda.AcceleratorError, match="illegal memory access"):
        small.window(x.data_ptr() + 4 * MEGA, 16)
    assert pool_of(0).statistics["allocation", "all"].current >= 1


# ------------------------------------------------------------------ nothing is lost, nothing half done


def test_a_write_that_fails_is_not_counted_and_leaves_what_was_there(small: Emulated) -> None:
    if not jit.available():
        pytest.skip("without the compiler nothing is launched")
    x, y = torch.ones(4, device="cuda"), torch.full((4,), 2.0, device="cuda")
    for write in (lambda: x.add_(y), lambda: x.mul_(3.0), lambda: x.copy_(y[0].expand(4)), lambda: x.exp_()):
        before = x._version
        small.faults["launch"] = [(719, "unspecified launch failure")] * 2
        with pytest.raises(torch.cuda.AcceleratorError):
            write()
        small.faults.clear()
        assert x.tolist() == [1, 1, 1, 1] and x._version == before


def test_a_step_that_finds_no_memory_leaves_nothing_behind(small: Emulated) -> None:
    w = torch.nn.Parameter(torch.ones(2 << 20, device="cuda"))
    held = torch.empty(40 * MEGA, dtype=torch.uint8, device="cuda")
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 8\.00 MiB"):
            ((w * 2).exp() * 3).sum().backward()
        assert torch.cuda.memory_allocated() == before and w.grad is None
    del held
    (w * 2).sum().backward()
    assert w.grad[0].item() == 2 and torch.cuda.memory_stats()["num_ooms"] == 3


def test_a_backward_that_fails_keeps_the_gradients_there_were(small: Emulated) -> None:
    if not jit.available():
        pytest.skip("without the compiler nothing is launched")
    x = torch.ones(4, device="cuda", requires_grad=True)
    (x * 3).sum().backward()
    y = (x * x).sum()
    small.faults["launch"] = [(719, "unspecified launch failure")] * 4
    with pytest.raises(torch.cuda.AcceleratorError, match="unspecified launch failure"):
        y.backward()
    small.faults.clear()
    assert x.grad.tolist() == [3, 3, 3, 3]


def test_a_failing_copy_leaves_pinned_memory_usable(small: Emulated) -> None:
    host = torch.arange(4.0).pin_memory()
    small.faults["upload"] = [(700, "an illegal memory access was encountered")]
    with pytest.raises(torch.cuda.AcceleratorError, match="illegal memory access"):
        host.to("cuda", non_blocking=True)
    assert host.to("cuda", non_blocking=True).tolist() == [0, 1, 2, 3]


# ------------------------------------------------------------------ the driver itself, with a library that is not one


class Library:
    """`libcuda.so.1` as far as it is asked, every function answering what it is told to; 0 by default."""

    def __init__(self, **answers: int) -> None:
        self.answers, self.calls = answers, []
        self.version, self.devices, self.capability = 12080, 1, (9, 0)

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> int:
            self.calls.append(name)
            status = self.answers.get(name, 0)
            if status:
                return status
            if name == "cuDriverGetVersion":
                args[0]._obj.value = self.version
            elif name == "cuDeviceGetCount":
                args[0]._obj.value = self.devices
            elif name == "cuDeviceGetAttribute":
                args[0]._obj.value = {75: self.capability[0], 76: self.capability[1]}.get(args[1], 1)
            elif name in ("cuMemAlloc_v2", "cuLinkCreate_v2", "cuStreamCreateWithPriority", "cuEventCreate"):
                args[-1 if name == "cuLinkCreate_v2" else 0]._obj.value = 4096
            elif name == "cuGetErrorString":
                args[1]._obj.value = TEXTS.get(args[0], "another error").encode()
            return 0

        return call


TEXTS = {46: "all CUDA-capable devices are busy or unavailable", 222: "the provided PTX was compiled with an "
         "unsupported toolchain.", 719: "unspecified launch failure", 803: "system has unsupported display driver / "
         "cuda driver combination", 999: "unknown error"}  # fmt: skip


def found(library: Library) -> Any:
    return driver.find(lambda name: library)


@pytest.mark.parametrize(("answers", "facts", "text"), [
    ({"cuInit": 100}, {}, "No CUDA GPUs are available"),
    ({}, {"devices": 0}, "No CUDA GPUs are available"),
    ({"cuInit": 3}, {}, "CUDA driver initialization failed, you might not have a CUDA gpu."),
    ({"cuInit": 999}, {}, "CUDA unknown error - this may be due to an incorrectly set up environment"),
    ({"cuInit": 803}, {}, "Error 803: system has unsupported display driver / cuda driver combination"),
    ({}, {"version": 11040}, "The NVIDIA driver on your system is too old (found version 11040). Please update your"),
])  # fmt: skip
def test_a_driver_that_cannot_be_used_says_why(answers: Any, facts: Any, text: str, small: Emulated) -> None:
    library = Library(**answers)
    vars(library).update(facts)
    assert text in found(library)
    device.found.clear()
    before, accelerators[:] = accelerators[:], []
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("PULLBACK_CUDA", raising=False)
            patch.setattr(driver, "find", lambda: find(lambda name: library))
            silent = text.startswith("No CUDA")
            with nullcontext() if silent else pytest.warns(UserWarning, match="^CUDA initialization: "):
                assert not torch.cuda.is_available()
            with pytest.raises(RuntimeError, match=re.escape(text)):
                torch.ones(2, device="cuda")
            assert torch.cuda.device_count() == 0
    finally:
        device.wrong.clear()
        device.found[:], accelerators[:] = [small], before


find = driver.find


def test_a_machine_without_a_driver_is_one_without_cuda() -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    assert driver.find(missing) is None
    driver.begin(missing)


def test_the_driver_begins_while_modules_are_imported(small: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(cuInit=999)
    driver.begin(lambda name: library)
    assert library.calls == ["cuInit"]  # what is wrong is said by who looks for it
    begun = threading.Event()
    monkeypatch.setattr(driver, "begin", begun.set)
    monkeypatch.setenv("PULLBACK_CUDA", "1")
    device.awake()
    assert not begun.is_set()  # there is a driver already
    device.found.clear()
    device.awake()
    assert begun.wait(10)
    begun.clear()
    monkeypatch.setenv("PULLBACK_CUDA", "0")
    device.awake()
    assert not begun.wait(0.1)
    device.found[:] = [small]


def test_a_gpu_that_is_too_old_is_refused_by_name() -> None:
    library = Library()
    library.capability = (6, 1)
    there = found(library)
    with pytest.raises(RuntimeError, match=r"has compute capability 6\.1; 7\.0 or higher is needed: use device='cpu'"):
        there.allocate(0, 512)
    assert "cuMemAlloc_v2" not in library.calls and not there.contexts


def test_errors_of_the_driver_say_what_to_do() -> None:
    for name, status, text, call in (
        ("cuLinkAddData_v2", 222, "The driver is older than the programs", lambda there: there.link(0, b"")),
        (
            "cuLaunchKernel",
            719,
            "can be used again after a restart",
            lambda d: d.launch(0, 1, (1, 1, 1), 9, 0, b""),
        ),
        ("cuCtxSynchronize", 999, "The driver lost the device; restart", lambda there: there.synchronize(0)),
        ("cuDevicePrimaryCtxRetain", 46, "Another program has the device", lambda there: there.allocate(0, 512)),
        ("cuMemAlloc_v2", 719, "unspecified launch failure", lambda there: there.allocate(0, 512)),
        ("cuStreamQuery", 719, "unspecified launch failure", lambda there: there.is_done(0, 0)),
    ):
        library = Library(**{name: status})
        there = found(library)
        with pytest.raises(torch.cuda.AcceleratorError, match=text) as raised:
            call(there)
        assert raised.value.error_code == status and str(raised.value).startswith(f"CUDA error: {TEXTS[status]}")
        if name == "cuLinkAddData_v2":
            assert library.calls[-2:] == ["cuGetErrorString", "cuLinkDestroy"]  # nothing of it is left


def test_a_full_device_is_no_error_of_the_driver() -> None:
    assert found(Library(cuMemAlloc_v2=2)).allocate(0, 512) is None


def test_without_caching_every_array_has_memory_of_its_own(run_python: Any) -> None:
    """Exactly as much as it needs, so that a checker of memory sees what reads or writes beyond it."""
    found = run_python("""
import os
os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
if os.environ.get("PULLBACK_CUDA") != "1":
    os.environ["PULLBACK_CUDA"] = "emulate"
import pullback as torch
x = torch.arange(3.0, device="cuda")
before = torch.cuda.memory_reserved()
assert before == torch.cuda.memory_allocated() == 12
made = [x * 2 for _ in range(5)]
print(torch.cuda.memory_reserved() - before, [y.tolist() for y in made] == [[0, 2, 4]] * 5)
del made
print(torch.cuda.memory_reserved() - before)
""")
    assert found.split() == ["60", "True", "0"]
