"""Gradients that arrive at leaves of the device: taken over where nobody else has them, else copied, added in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._modes import modes
from pullback.kernels import jit
from pullback.kernels.cuda.array import answers
from pullback.kernels.cuda.device import required

pytestmark = pytest.mark.skipif(not jit.available() or modes.active, reason="native code needs the compiler")


def test_gradients_are_added_in_place_by_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    host = torch.nn.Linear(4, 3)
    there = torch.nn.Linear(4, 3).cuda()
    there.load_state_dict(host.state_dict())
    x = torch.randn(5, 4)
    far, grads = x.cuda(), []
    for turn in range(6):
        with monkeypatch.context() as patch:
            if turn > 4:
                patch.setattr(answers, "ufunc", lambda *args: pytest.fail("a sum by way of NumPy's protocol"))
            there(far).square().sum().backward()
        host(x).square().sum().backward()
        grads.append(there.weight.grad)
        assert there.weight.grad._version == host.weight.grad._version  # type: ignore[union-attr]
    assert all(grad is grads[0] for grad in grads)
    for mine, wanted in zip(there.parameters(), host.parameters(), strict=True):
        np.testing.assert_allclose(mine.grad.cpu().numpy(), wanted.grad.numpy(), 1e-4, 1e-5)  # type: ignore[union-attr]


def test_a_gradient_that_two_leaves_get_is_two() -> None:
    for _ in range(5):
        x, y = [torch.ones(3, 4, device="cuda", requires_grad=True) for _ in range(2)]
        (x + y).backward(torch.full((3, 4), 2.0, device="cuda"))
        assert x.grad.data_ptr() != y.grad.data_ptr()  # type: ignore[union-attr]
        x.grad += 1  # type: ignore[operator]
        assert y.grad.tolist() == [[2.0] * 4] * 3  # type: ignore[union-attr]


def test_a_gradient_that_the_caller_gave_is_not_taken_over() -> None:
    for _ in range(5):
        x, given = torch.ones(3, 4, device="cuda", requires_grad=True), torch.ones(3, 4, device="cuda")
        (x + 0.0).backward(given)
        x.grad *= 5  # type: ignore[operator]
        assert given.tolist() == [[1.0] * 4] * 3


def test_gradients_of_another_layout_are_laid_out_as_their_leaf() -> None:
    for _ in range(5):
        x = torch.randn(4, 3, device="cuda", requires_grad=True)
        (x.t() * torch.arange(12.0, device="cuda").view(3, 4)).sum().backward()
        assert x.grad.stride() == (3, 1)  # type: ignore[union-attr]
        assert x.grad.tolist() == torch.arange(12.0).view(3, 4).t().tolist()  # type: ignore[union-attr]


def test_a_gradient_of_a_type_that_does_not_fit_is_cast_and_summed() -> None:
    for _ in range(5):
        weight = torch.randn(4, device="cuda", requires_grad=True)
        x = torch.ones(3, 4, device="cuda", dtype=torch.float64)
        (x * weight).sum().backward()
        assert weight.grad.dtype is torch.float32 and weight.grad.tolist() == [3.0] * 4  # type: ignore[union-attr]


def test_gradients_that_have_to_be_cast_or_moved_are_copied_by_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4, 6, device="cuda", requires_grad=True)
    weight = torch.randn(6, device="cuda", requires_grad=True)
    for turn in range(7):
        with monkeypatch.context() as patch:
            if turn == 6 and not required().emulated:
                patch.setattr(answers, "write", lambda *args: pytest.fail("a copy by Python"))
            (x.double().view(2, 2, 6).transpose(0, 1) * weight).sum().backward()
        assert x.grad.dtype is weight.grad.dtype is torch.float32 and x.grad.stride() == (6, 1)  # type: ignore[union-attr]
        np.testing.assert_allclose(x.grad.tolist(), [weight.tolist()] * 4, 1e-6)  # type: ignore[union-attr]
        x.grad = weight.grad = None


def test_which_gradients_of_one_node_are_wanted_differs_from_call_to_call() -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(4, 6), torch.randn(6), torch.randn(6)
    for turn in range(24):
        wanted = [bool((turn // 3 + 1) >> place & 1) for place in range(3)]
        pairs = []
        for place in ("cpu", "cuda"):
            given = [
                v.clone().to(place).requires_grad_(want) for v, want in zip((x * (turn + 1), w, b), wanted, strict=True)
            ]
            made = torch.nn.functional.layer_norm(given[0], (6,), given[1], given[2])
            if any(wanted):
                (made * made.detach().exp()).sum().backward()
            pairs.append([v.grad for v in given])
        for host, there in zip(*pairs, strict=True):
            assert (host is None) is (there is None)
            if host is not None:
                np.testing.assert_allclose(there.cpu().numpy(), host.numpy(), 1e-4, 1e-5)


@pytest.mark.parametrize("join", [torch.cat, torch.stack, torch.hstack])
def test_lists_of_arrays_are_told_apart_by_how_many_there_are(join: Any) -> None:
    for turn in range(12):
        torch.manual_seed(turn)
        parts = [torch.randn(2, 3, requires_grad=True) for _ in range(turn % 3 + 1)]
        there = [part.detach().cuda().requires_grad_() for part in parts]
        mine, wanted = join(there), join(parts)
        np.testing.assert_array_equal(mine.detach().cpu().numpy(), wanted.detach().numpy())
        (mine * mine.detach()).sum().backward()
        for part, own in zip(parts, there, strict=True):
            np.testing.assert_array_equal(own.grad.cpu().numpy(), part.detach().numpy())  # type: ignore[union-attr]


def test_joining_more_arrays_than_native_code_takes_is_right() -> None:
    parts = [torch.full((2,), float(k), device="cuda") for k in range(40)]
    for _ in range(6):
        assert torch.cat(parts).tolist() == [float(k) for k in range(40) for _ in range(2)]
        assert torch.stack(parts[:20], 1)[1].tolist() == [float(k) for k in range(20)]
