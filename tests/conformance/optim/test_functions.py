"""Steps as functions, `torch.optim.adam.adam` and the others, on torch and on pullback."""

import inspect
from importlib import import_module

import numpy as np
import pytest
import torch as peer

import pullback

BETAS = dict(beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.1, eps=1e-8)
STEPS = {
    "adam": (("mean", "square", "most", "step"), BETAS | dict(amsgrad=True, maximize=False)),
    "adamw": (("mean", "square", "most", "step"), BETAS | dict(amsgrad=False, maximize=True)),
    "sgd": (
        ("buffer",),
        dict(weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=False),
    ),
    "adagrad": (("sum", "step"), dict(lr=0.1, weight_decay=0.1, lr_decay=0.1, eps=1e-8, maximize=False)),
    "adadelta": (("square", "delta", "step"), dict(lr=0.5, rho=0.9, eps=1e-6, weight_decay=0.1, maximize=False)),
    "adamax": (("mean", "largest", "step"), BETAS),
    "nadam": (("mean", "square", "product", "step"), BETAS | dict(momentum_decay=0.1, decoupled_weight_decay=True)),
    "radam": (("mean", "square", "step"), BETAS),
    "rmsprop": (
        ("square", "mean", "buffer", "step"),
        dict(lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.1, momentum=0.5, centered=True),
    ),
    "rprop": (("before", "size", "step"), dict(step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2)),
    "asgd": (("average", "mu", "eta", "step"), dict(lambd=0.1, lr=0.1, t0=2.0, alpha=0.75, weight_decay=0.1)),
}
FIRST = {"product": [1.0], "mu": [1.0], "eta": [0.1], "step": [0.0], "size": [0.1] * 3}


def function(torch, name):
    home = f"torch.optim.{name}" if torch is peer else "pullback.optim._functional"
    return getattr(import_module(home), name)


def run(torch, name, **others):
    """The parameters and the state after three steps."""
    kept, options = STEPS[name]
    start = np.array([1.0, -2.0, 3.0], dtype=np.float32)
    params = [torch.tensor(start), torch.tensor(start[:1])]
    states = {key: [] for key in kept}
    for key in kept:
        for parameter in params:
            first = FIRST.get(key)
            if name == "sgd":
                states[key].append(None)
            elif key in ("step", "product", "mu", "eta"):
                states[key].append(torch.tensor(first[0]))
            else:
                states[key].append(torch.full_like(parameter, first[0] if first else 0.0))
    for number in range(3):
        grads = [p * 0.5 + number - 1 for p in params]
        function(torch, name)(params, grads, *states.values(), **options, **others)
    return [t.tolist() for row in (params, *states.values()) for t in row]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_with_a_state_of_ones_own_is_torchs(name):
    found = zip(run(pullback, name), run(peer, name, foreach=False), strict=True)
    for own, theirs in found:
        np.testing.assert_allclose(own, theirs, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", STEPS)
def test_parameters_are_torchs(name):
    def shown(torch):
        found = inspect.signature(function(torch, name)).parameters.values()
        return [(one.name, one.kind, one.default) for one in found]

    assert shown(pullback) == shown(peer)


@pytest.mark.parametrize("name", [name for name in STEPS if "step" in STEPS[name][0] and name != "asgd"])
def test_counters_of_steps_must_be_tensors(name):
    kept, options = STEPS[name]
    for torch in (peer, pullback):
        rows = [[torch.ones(1)] if key != "step" else [1] for key in kept]
        with pytest.raises(RuntimeError, match="argument must contain a list of singleton tensors"):
            function(torch, name)([torch.ones(1)], [torch.ones(1)], *rows, **options)


def test_a_scaler_divides_gradients_and_skips_steps():
    said = []
    for torch in (peer, pullback):
        for inf in (0.0, 1.0):
            params, grads = [torch.ones(2)], [torch.full((2,), 8.0)]
            rows = [[torch.zeros(2)], [torch.zeros(2)], [], [torch.tensor(0.0)]]
            scale, found = torch.tensor(4.0), torch.tensor(inf)
            options = BETAS | dict(amsgrad=False, maximize=False, fused=True, grad_scale=scale, found_inf=found)
            function(torch, "adam")(params, grads, *rows, **options)
            said.append([t.tolist() for row in (params, rows[0], rows[3]) for t in row])
    for theirs, own in zip(said[:2], said[2:], strict=True):
        for a, b in zip(theirs, own, strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-5)


def test_sparse_adam_has_counted_its_steps_before():
    said = []
    for torch, home in (
        (peer, import_module("torch.optim._functional")),
        (pullback, import_module("pullback.optim._functional")),
    ):
        parameter, mean, square = torch.ones(3), torch.zeros(3), torch.zeros(3)
        grad = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,), check_invariants=True)
        home.sparse_adam(
            [parameter], [grad], [mean], [square], [1], eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, maximize=False
        )
        said.append((parameter.tolist(), mean.tolist(), square.tolist()))
    np.testing.assert_allclose(said[0], said[1], rtol=2e-5)
