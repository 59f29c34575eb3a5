"""Steps of optimizers on the device: as many parameters as there are, wherever their gradients lie, as on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._modes import modes
from pullback.kernels import jit
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import launches

pytestmark = pytest.mark.skipif(not jit.available() or modes.active, reason="only a compiler traces steps")


def pair(name: str, sizes: list[tuple[int, ...]], **options: Any) -> list[tuple[list[Any], Any]]:
    """The same parameters and optimizer on the host and on the device."""
    torch.manual_seed(0)
    values = [torch.randn(*size) for size in sizes]
    made = []
    for place in ("cpu", "cuda"):
        params = [torch.nn.Parameter(value.clone().to(place)) for value in values]
        made.append((params, getattr(torch.optim, name)(params, **options)))
    return made


def step(pairs: Any, seed: int) -> None:
    """Gradients in new memory, and a step, on both sides."""
    torch.manual_seed(seed)
    grads = [torch.randn(p.shape) for p in pairs[0][0]]
    for params, optimizer in pairs:
        for p, grad in zip(params, grads, strict=True):
            p.grad = grad.to(p.device, copy=True)
        optimizer.step()


def compare(pairs: Any) -> None:
    """Parameters, states and counters are the same on both sides."""
    (host, first), (there, second) = pairs
    for a, b in zip(host, there, strict=True):
        np.testing.assert_allclose(b.detach().cpu().numpy(), a.detach().numpy(), 1e-5, 1e-6)
        assert list(first.state[a]) == list(second.state[b]) and a._version == b._version
        for one, other in zip(first.state[a].values(), second.state[b].values(), strict=True):
            np.testing.assert_allclose(other.detach().cpu().numpy(), one.detach().numpy(), 1e-5, 1e-6)


def test_more_parameters_than_a_table_has_rows_take_several_launches() -> None:
    pairs = pair("Adam", [(3,)] * 130 + [(2, 3)], lr=0.1)
    for seed in range(2):
        step(pairs, seed)
    before = launches.get("update", 0)
    step(pairs, 3)
    assert launches["update"] - before <= 2
    compare(pairs)


def test_a_step_copies_nothing_to_the_device_wherever_gradients_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pair("AdamW", [(3, 2), (4,), (5,)], lr=0.1)
    for seed in range(3):
        step(pairs, seed)
    copies: list[Any] = []
    kept: list[Any] = []
    for seed in range(3):
        for params, optimizer in pairs:
            kept.append([p.grad for p in params])  # so that the next ones lie elsewhere
            for p in params:
                p.grad = torch.full(p.shape, float(seed), device=p.device)
            with monkeypatch.context() as patch:
                for name in ("upload", "copy", "download"):
                    patch.setattr(required(), name, lambda *args: copies.append(args))
                optimizer.step()
    assert not copies
    compare(pairs)
