"""Mixed precision on the CPU, on torch and on pullback."""

import warnings

import numpy as np
import pytest
import torch as peer

import pullback


def program(torch, gradient):
    """Losses scaled, gradients unscaled, steps taken or skipped."""
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    seen = []
    for factor in gradient:
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), p.detach().numpy().copy()))
    return seen, scaler.state_dict()


@pytest.mark.parametrize("gradient", [[1.0, 2.0, 3.0], [1.0, float("inf"), 1.0, 1.0, 1.0]])
def test_a_scaler_finds_the_factors_of_torch(gradient):
    (expected, state), (got, own_state) = program(peer, gradient), program(pullback, gradient)
    assert own_state == state
    for (scale, p), (own_scale, own_p) in zip(expected, got):
        assert own_scale == scale and np.allclose(own_p, p, equal_nan=True)


def outcome(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
            result = None
        except Exception as error:
            result = type(error).__name__, str(error).partition("\n  pullback computes")[0]
    return result, [str(w.message) for w in caught]


@pytest.mark.parametrize(
    "text",
    [
        "torch.amp.GradScaler('cuda')",
        "torch.amp.GradScaler('cpu').update()",
        "torch.amp.GradScaler('cpu', growth_factor=1.0)",
        "torch.amp.GradScaler('cpu', backoff_factor=1.0)",
        "torch.amp.GradScaler('cpu').load_state_dict({})",
        "torch.amp.autocast('cuda')",
        "torch.amp.autocast('cpu', dtype=torch.int32)",
        "torch.amp.autocast('cpu', enabled=False)",
        "torch.cuda.synchronize()",
        "torch.cuda.get_device_name()",
        "torch.cuda.manual_seed_all(0)",
    ],
)
def test_errors_and_warnings_are_torchs(text):
    assert outcome(lambda: eval(text, {"torch": pullback})) == outcome(lambda: eval(text, {"torch": peer}))


def test_queries_about_cuda_are_answered_truthfully():
    assert pullback.cuda.is_available() is False and pullback.cuda.device_count() == 0
    assert pullback.cuda.memory_allocated() == 0


def scaled(torch, scaler):
    """Two parameters, an optimizer each, and a scaled loss behind them."""
    p, q = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    optimizers = torch.optim.SGD([p], 0.1), torch.optim.SGD([q], 0.1)
    sum(scaler.scale([(p * 2).sum(), (q * 3).sum()])).backward()
    return optimizers


def attempts(torch):
    """What a scaler answers to calls in the right and in the wrong order."""
    seen = []

    def attempt(call):
        try:
            out = call()
            seen.append(out if isinstance(out, (float, int, type(None))) else sorted(out.items()))
        except Exception as error:
            seen.append((type(error).__name__, str(error)))

    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    unused = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1)
    attempt(lambda: scaler.step(unused))
    one, other = scaled(torch, scaler)
    for call in (scaler.unscale_, scaler.unscale_, scaler.step, scaler.step, scaler.unscale_):
        attempt(lambda call=call: call(one))
    attempt(lambda: scaler.step(other))
    attempt(lambda: scaler.step(unused))
    attempt(scaler.update)
    attempt(scaler.get_scale)
    attempt(scaler.update)
    attempt(lambda: scaler.step(one, closure=lambda: 0))
    attempt(lambda: scaler.scale(3))
    for name, value in (("growth_factor", 3.0), ("backoff_factor", 0.1), ("growth_interval", 9)):
        attempt(getattr(scaler, f"get_{name}"))
        attempt(lambda name=name, value=value: getattr(scaler, f"set_{name}")(value))
    attempt(scaler.state_dict)
    half = torch.ones(2, dtype=torch.float16, requires_grad=True)
    scaler.scale(half.float().sum()).backward()
    attempt(lambda: scaler.unscale_(torch.optim.SGD([half], 0.1)))
    return seen


def test_a_scaler_answers_as_torchs():
    assert attempts(pullback) == attempts(peer)
