"""Gradients that arrive at leaves of the device: taken over where nobody else has them, else copied, added in place."""

from __future__ import annotations

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
