"""CUDA graphs: captured once, replayed with other contents of the same memory. The emulated device refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels.cuda import device


def runs_kernels() -> bool:
    return not device.required().emulated


def test_the_emulated_device_says_that_it_cannot_capture() -> None:
    if runs_kernels():
        pytest.skip("this device can")
    with (
        pytest.raises(NotImplementedError, match="cannot capture them in a CUDA graph"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        pass
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_misuse_is_refused_in_torchs_words() -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="replay without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match=r"capture_end\(\) called before capture_begin"):
        graph.capture_end()
    assert not torch.cuda.is_current_stream_capturing()


def test_a_graph_computes_with_what_its_memory_holds_when_it_is_replayed() -> None:
    if not runs_kernels():
        pytest.skip("the emulated device cannot capture")
    x = torch.ones(8, device="cuda")
    for _ in range(2):
        (x * 2 + 1).sum()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = (x * 2 + 1).sum()
        with pytest.raises(NotImplementedError, match="random numbers"):
            torch.rand(3, device="cuda")
    for number in (3.0, 5.0):
        x.fill_(number)
        graph.replay()
        assert y.item() == 8 * (2 * number + 1)
    torch.cuda.empty_cache()  # which leaves the memory of graphs alone
    graph.replay()
    assert y.item() == 88
    graph.reset()


def test_a_step_of_training_is_replayed() -> None:
    if not runs_kernels():
        pytest.skip("the emulated device cannot capture")
    losses: list[list[float]] = []
    for captured in (False, True):
        torch.manual_seed(0)
        w = torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(2, 3).cuda())
        optimizer = torch.optim.SGD([w], lr=0.1)
        x = torch.linspace(0, 1, 8).reshape(4, 2).cuda()

        def step(w: Any = w, optimizer: Any = optimizer, x: Any = x) -> Any:
            optimizer.zero_grad(set_to_none=True)
            loss = ((x @ w) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        found = []
        if not captured:
            found = [step().item() for _ in range(6)]
        else:
            found += [step().item() for _ in range(3)]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss = step()
            for _ in range(3):
                graph.replay()
                found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], 1e-5)


def test_graphed_callables_give_the_gradients_of_the_function() -> None:
    if not runs_kernels():
        pytest.skip("the emulated device cannot capture")
    x = torch.linspace(-1, 1, 6).cuda().requires_grad_()
    run = torch.cuda.make_graphed_callables(lambda t: (t * t).exp(), (x,))
    y = torch.linspace(0, 2, 6).cuda().requires_grad_()
    run(y).sum().backward()
    host = y.detach().cpu().numpy()
    np.testing.assert_allclose(y.grad.cpu().numpy(), 2 * host * np.exp(host**2), 1e-5)


@pytest.mark.parametrize("options", [
    {}, {"weight_decay": 0.1}, {"amsgrad": True, "maximize": True}, {"lr": "tensor"},
])  # fmt: skip
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_a_step_of_adam_is_captured_where_its_counter_is_on_the_device(name: str, options: dict[str, Any]) -> None:
    ends = []
    for captured in (False, True):
        p = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]).cuda())
        p.grad = torch.zeros(3, device="cuda")
        given = {"lr": 0.1, **options}
        if given["lr"] == "tensor":
            given["lr"] = torch.tensor(0.1, device="cuda") if captured else 0.1
        optimizer = getattr(torch.optim, name)([p], capturable=captured, **given)

        def step(p: Any = p, optimizer: Any = optimizer) -> None:
            p.grad.copy_(p.detach() * 2)
            optimizer.step()

        if not captured or not runs_kernels():
            for _ in range(6):
                step()
        else:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            torch.cuda.reset_fallbacks()
            with torch.cuda.graph(graph):
                step()
            assert torch.cuda.fallbacks() == {}
            for _ in range(3):
                graph.replay()
        if captured:
            assert optimizer.state[p]["step"].device == p.device and optimizer.state[p]["step"].item() == 6
        ends.append(p.detach().cpu().numpy())
    np.testing.assert_allclose(ends[1], ends[0], 3e-5)  # 1 - beta**step is computed in float32 there, as in torch


def test_a_step_of_an_optimizer_on_the_host_cannot_be_captured() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported devices"):
        torch.optim.Adam([p], capturable=True).step()
