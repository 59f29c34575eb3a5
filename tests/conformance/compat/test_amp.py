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
            result = type(error).__name__, str(error)
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


def test_autocast_on_the_cpu_says_what_to_do_instead():
    with pytest.raises(NotImplementedError, match="bfloat16"):
        pullback.autocast("cpu")


def test_queries_about_cuda_are_answered_truthfully():
    assert pullback.cuda.is_available() is False and pullback.cuda.device_count() == 0
    assert pullback.cuda.memory_allocated() == 0
