"""What the allocator does with memory, and what is left after a device fails: on an emulated one that fails as told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pullback as torch
from pullback.kernels import jit
from pullback.kernels.cuda import device
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
