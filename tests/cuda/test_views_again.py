"""Views that came before are made by native code: they look at the right memory, keep it, and count writes to it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._modes import modes
from pullback.kernels import jit
from pullback.kernels.cuda.device import required

from .test_launching import launches

pytestmark = pytest.mark.skipif(not jit.available() or modes.active, reason="native code needs the compiler")

VIEWS: dict[str, Any] = {
    "t": lambda x: x.t(), "view": lambda x: x.view(8, 4), "row": lambda x: x[2], "part": lambda x: x[1:3, 4:],
    "reshape": lambda x: x.reshape(2, 2, 8), "unsqueeze": lambda x: x.unsqueeze(1), "whole": lambda x: x.view(4, 8),
    "expand": lambda x: x.unsqueeze(0).expand(3, 4, 8), "flatten": lambda x: x.flatten(),
    "detach": lambda x: x.detach(), "diagonal": lambda x: x.diagonal(), "narrow": lambda x: x.narrow(1, 4, 4),
    "permute": lambda x: x.permute(1, 0), "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 4),
    "split": lambda x: x.split(4, 1)[1], "chunk": lambda x: x.chunk(2)[1], "unbind": lambda x: x.unbind(0)[3],
    "unfold": lambda x: x.unfold(1, 4, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_is_the_same_each_time_and_writes_through_it_are_seen(name: str) -> None:
    look = VIEWS[name]
    for seed in range(5):
        torch.manual_seed(seed)
        x = torch.randn(4, 8)
        there = x.cuda()
        mine, wanted = look(there), look(x)
        assert mine.shape == wanted.shape and mine.stride() == wanted.stride()
        assert (
            mine.storage_offset() == wanted.storage_offset() and mine.untyped_storage().data_ptr() == there.data_ptr()
        )
        np.testing.assert_array_equal(mine.cpu().numpy(), wanted.numpy())
        if name not in ("expand", "unfold"):  # in which elements have several places
            mine += 1
            wanted += 1
            assert there._version == x._version and mine._version == wanted._version
        np.testing.assert_array_equal(there.cpu().numpy(), x.numpy())


@pytest.mark.parametrize("name", list(VIEWS))
def test_gradients_go_through_views_each_time(name: str) -> None:
    look = VIEWS[name]
    for seed in range(6):
        torch.manual_seed(seed)
        x = torch.randn(4, 8, requires_grad=True)
        there = x.detach().cuda().requires_grad_()
        if name == "detach":
            assert not look(there).requires_grad
            continue
        (look(x) * x.sum()).square().sum().backward()
        (look(there) * there.sum()).square().sum().backward()
        np.testing.assert_allclose(there.grad.cpu().numpy(), x.grad.numpy(), 1e-4, 1e-4)  # type: ignore[union-attr]


def test_a_view_of_a_view_keeps_the_memory_of_the_first() -> None:
    for value in range(5):
        x = torch.full((4, 8), float(value), device="cuda")
        seen = x.t().view(8, 2, 2)[:, 1]
        del x
        gc.collect()
        others = [torch.full((4, 8), -1.0, device="cuda") for _ in range(8)]
        assert seen.tolist() == [[float(value)] * 2] * 8 and others


def test_windows_of_arguments_that_share_memory_are_told_apart() -> None:
    whole = torch.arange(64.0, device="cuda").view(2, 4, 8)
    for _ in range(5):
        first, second = whole[0], whole[1]
        assert torch.broadcast_tensors(first, second)[1].tolist() == second.tolist()
        assert first.expand_as(second).data_ptr() == first.data_ptr()


def test_a_view_that_came_before_takes_no_python_of_the_device(run_python: Any) -> None:
    """In a process of its own: where a class overrides functions, each call asks it first."""
    found = run_python("""
import os
if os.environ.get("PULLBACK_CUDA") != "1":  # a process of its own knows nothing of simulated.py
    os.environ["PULLBACK_CUDA"] = "emulate"
import pullback as torch
from tests.cuda.test_launching import python_calls
x = torch.randn(4, 8, device="cuda")
for _ in range(5):
    x.t(), x.transpose(0, 1), x.unsqueeze(0)
print(python_calls(lambda: x.t()), python_calls(lambda: x.transpose(0, 1)), python_calls(lambda: x.unsqueeze(0)))
""")
    assert max(map(int, found.split())) <= 8


@pytest.mark.parametrize("cast", [
    lambda x: x.to(torch.float64), lambda x: x.to(torch.bfloat16), lambda x: x.half(), lambda x: x.t().contiguous(),
    lambda x: x.to(torch.int64),
])  # fmt: skip
def test_a_copy_that_came_before_is_launched_by_native_code(cast: Any) -> None:
    if required().emulated:
        pytest.skip("its kernels are computed by Python")
    for seed in range(6):
        before, x = launches(), torch.randn(4, 8) * (seed + 1)
        there = x.cuda()
        np.testing.assert_array_equal(cast(there).float().cpu().numpy(), cast(x).float().numpy())
        cast(there)
    assert launches() > before + 1


def test_ranges_that_come_again_are_new_arrays_of_the_same_numbers() -> None:
    for _ in range(7):
        for given in ((5,), (2, 9), (0, 4, 2), (0.0, 1.0, 0.25), (5.0,), (3, 0, -1), (0,)):
            made, wanted = torch.arange(*given, device="cuda"), torch.arange(*given)
            assert made.dtype is wanted.dtype and made.tolist() == wanted.tolist()
            made += 1  # which the next one does not see
        assert torch.arange(5, dtype=torch.float16, device="cuda").tolist() == [0, 1, 2, 3, 4]
        assert torch.arange(4, device="cuda:0").device == torch.device("cuda:0")
    if torch.cuda.device_count() > 1:
        for _ in range(5):
            made = torch.arange(5, device="cuda:1")
            assert made.device == torch.device("cuda:1") and made.tolist() == [0, 1, 2, 3, 4]


def test_several_views_are_several_even_if_there_is_only_one() -> None:
    for _ in range(6):
        x = torch.randn(1, 8, device="cuda", requires_grad=True)
        for parts in (x.split(4), x.unbind(0), x.chunk(1, 1), x.tensor_split(1, 1), x.split([8], 1)):
            assert len(parts) == 1 and parts[0].data_ptr() == x.data_ptr()
        assert [part.shape for part in x.split(3, 1)] == [(1, 3), (1, 3), (1, 2)]
        x.split(8, 1)[0].sum().backward()
        assert x.grad.tolist() == [[1.0] * 8]  # type: ignore[union-attr]


def test_one_of_many_joined_arrays_may_want_a_gradient() -> None:
    for _ in range(6):
        parts = [torch.ones(2, device="cuda", requires_grad=k in (3, 55)) for k in range(60)]
        (torch.cat(parts) * torch.arange(120.0, device="cuda")).sum().backward()
        assert [part.grad.tolist() for part in parts if part.requires_grad] == [[6, 7], [110, 111]]  # type: ignore[union-attr]
