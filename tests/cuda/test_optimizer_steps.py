"""Steps of optimizers on the device: as many parameters as there are, wherever their gradients lie, as on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._modes import modes
from pullback.kernels import jit
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.front import fronts
from pullback.kernels.cuda.launch import launches
from pullback.optim.together import AFTER

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


def by_native_code() -> int:
    """How many calls native code has done."""
    return int(fronts[0].words[fronts[0].kernels.COUNT]) if 0 in fronts else 0


OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"lr": 0.1}, "AdamW": {"lr": 0.01, "amsgrad": True},
    "RMSprop": {"lr": 0.01, "centered": True}, "Adagrad": {"lr": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("name", list(OPTIONS))
def test_later_steps_are_done_in_one_call_and_as_on_the_host(name: str) -> None:
    pairs = pair(name, [(3, 2), (5,), (2, 2, 2), (1030,)], **OPTIONS[name])
    for seed in range(AFTER + 3):
        step(pairs, seed)
    before = by_native_code()
    step(pairs, 50)
    assert required().emulated or by_native_code() == before + 1
    for _, optimizer in pairs:
        optimizer.param_groups[0]["lr"] *= 0.5
    for seed in range(3):
        step(pairs, seed)
    compare(pairs)


def test_steps_of_groups_with_options_of_their_own_are_one_call() -> None:
    made = pair("AdamW", [(3, 2), (5,), (2, 2), (4,)])
    pairs = []
    for params, _ in made:
        groups = [{"params": params[:2], "lr": 0.1, "weight_decay": 0.5}, {"params": params[2:], "lr": 0.02}]
        pairs.append((params, torch.optim.AdamW(groups, betas=(0.8, 0.9))))
    for seed in range(AFTER + 3):
        step(pairs, seed)
    before = by_native_code()
    step(pairs, 50)
    assert required().emulated or by_native_code() == before + 1
    compare(pairs)


@pytest.mark.parametrize("what", ["shape", "layout", "none", "stream", "state"])
def test_a_step_that_is_not_as_those_before_is_done_right(what: str) -> None:
    pairs = pair("Adam", [(3, 2), (5,)], lr=0.1)
    for seed in range(AFTER + 2):
        step(pairs, seed)
    for params, optimizer in pairs:
        p = params[0]
        if what == "shape":
            p.data = p.data.reshape(2, 3).clone()
            for name in ("exp_avg", "exp_avg_sq"):
                optimizer.state[p][name] = optimizer.state[p][name].reshape(2, 3).clone()
        for one in params:
            one.grad = torch.arange(one.numel()).reshape(one.shape).float().to(one.device)
        if what == "layout":
            p.grad = torch.arange(6.0).reshape(2, 3).to(p.device).t()
        if what == "none":
            p.grad = None
        if what == "state" and p.is_cuda:
            optimizer.state[p]["exp_avg"] = optimizer.state[p]["exp_avg"].clone()
        if what == "stream" and p.is_cuda:
            with torch.cuda.stream(torch.cuda.Stream()):
                optimizer.step()
            torch.cuda.synchronize()
        else:
            optimizer.step()
    compare(pairs)
    for seed in range(3):
        step(pairs, seed)
    compare(pairs)


def test_parameters_on_host_and_device_are_stepped_by_one_optimizer() -> None:
    torch.manual_seed(0)
    values = [torch.randn(3), torch.randn(4)]
    params = [torch.nn.Parameter(values[0].clone()), torch.nn.Parameter(values[1].cuda())]
    optimizer = torch.optim.Adam([{"params": params[:1]}, {"params": params[1:]}], lr=0.1)
    host = [torch.nn.Parameter(value.clone()) for value in values]
    other = torch.optim.Adam(host, lr=0.1)
    for _ in range(AFTER + 3):
        for p, q in zip(params, host, strict=True):
            p.grad, q.grad = p.detach() * 2, q.detach() * 2
        optimizer.step()
        other.step()
    for p, q in zip(params, host, strict=True):
        np.testing.assert_allclose(p.detach().cpu().numpy(), q.detach().numpy(), 1e-5, 1e-6)
