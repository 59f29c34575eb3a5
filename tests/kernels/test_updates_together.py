"""After some steps an optimizer updates all its parameters by one call: what it does is what it did before."""

import copy
import gc
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback.kernels import compiled
from pullback.optim.together import AFTER

pytestmark = pytest.mark.skipif(compiled.room("pointwise.update") is None, reason="nothing is compiled here")

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, 0.1),
    "momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, 0.01),
    "AMSGrad": lambda p: optim.AdamW(p, 0.01, amsgrad=True, maximize=True),
    "RMSprop": lambda p: optim.RMSprop(p, 0.01, centered=True, momentum=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, 0.1, lr_decay=0.01),
    "NAdam": lambda p: optim.NAdam(p, 0.01),
    "RAdam": lambda p: optim.RAdam(p, 0.01),
    "Rprop": lambda p: optim.Rprop(p, 0.01),
}


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def train(made, make, steps, between=lambda step, made, optimizer: None):
    """The parameters and the state after some steps, versions included; the optimizer."""
    optimizer = make(made.parameters())
    generator = torch.Generator().manual_seed(2)
    for step in range(steps):
        optimizer.zero_grad()
        made(torch.randn(4, 5, generator=generator)).square().mean().backward()
        between(step, made, optimizer)
        optimizer.step()
    seen = [(p.detach().numpy().copy(), p._version) for p in made.parameters()]
    for p in made.parameters():
        for value in optimizer.state[p].values():
            seen.append((value.numpy().copy(), value._version) if isinstance(value, torch.Tensor) else (value, 0))
    return seen, optimizer


def one_by_one(monkeypatch):
    """Optimizers never update all parameters together."""
    monkeypatch.setattr("pullback.optim.together.Together.__call__", lambda self, rule: False)


def check(one, other):
    for (a, n), (b, m) in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert n == m


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_all_together_gives_the_bits_and_versions_of_one_by_one(name, monkeypatch):
    together, optimizer = train(model(), OPTIMIZERS[name], AFTER + 12)
    assert (optimizer._together.run is not None) == (name not in ("Rprop",))
    one_by_one(monkeypatch)
    check(together, train(model(), OPTIMIZERS[name], AFTER + 12)[0])


def changed_rate(step, made, optimizer):
    optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)


def lost_gradient(step, made, optimizer):
    if step == AFTER + 2:
        made[0].weight.grad = None


def strided_gradient(step, made, optimizer):
    if step == AFTER + 2:
        made[0].weight.grad = torch.ones(5, 7).t()


def other_memory(step, made, optimizer):
    if step == AFTER + 2:
        made[0].weight.data = made[0].weight.data.clone()


def other_state(step, made, optimizer):
    if step == AFTER + 2:
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def cloned_state(step, made, optimizer):
    if step == AFTER + 2:
        for state in optimizer.state.values():
            state.update({name: value.clone() for name, value in state.items()})


def lost_state(step, made, optimizer):
    if step == AFTER + 2:
        optimizer.state.pop(made[0].weight)


def counter_that_differs(step, made, optimizer):
    if step == AFTER + 2:
        optimizer.state[made[0].weight]["step"] += 3


def another_group(step, made, optimizer):
    if step == AFTER + 2:
        made.extra = nn.Parameter(torch.ones(3))
        optimizer.add_param_group({"params": [made.extra], "lr": 0.5})
    if step > AFTER + 2:
        made.extra.grad = torch.ones(3)


def other_options(step, made, optimizer):
    optimizer.param_groups[0]["maximize"] = step % 3 == 0


CHANGES = [changed_rate, lost_gradient, strided_gradient, other_memory, other_state, cloned_state, lost_state,
           counter_that_differs, another_group, other_options]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_between_steps_is_seen(change, monkeypatch):
    together, _ = train(model(), OPTIMIZERS["Adam"], AFTER + 8, change)
    one_by_one(monkeypatch)
    check(together, train(model(), OPTIMIZERS["Adam"], AFTER + 8, change)[0])


def test_groups_of_one_optimizer_have_their_own_numbers(monkeypatch):
    def make(params):
        first, *rest = params
        return optim.AdamW([{"params": [first], "lr": 0.1, "betas": (0.8, 0.95)}, {"params": rest}], 0.01)

    together, optimizer = train(model(), make, AFTER + 8)
    assert optimizer._together.run is not None
    one_by_one(monkeypatch)
    check(together, train(model(), make, AFTER + 8)[0])


def test_a_gradient_that_does_not_fit_changes_nothing_before_it_is_noticed():
    made = model()
    _, optimizer = train(made, OPTIMIZERS["Adam"], AFTER + 2)
    run = optimizer._together.run
    made[2].bias._grad = torch.ones(3, dtype=torch.float64)
    before = [p.detach().clone() for p in made.parameters()]
    assert run(optimizer.param_groups, optimizer.state) is False
    assert all(torch.equal(a, b) for a, b in zip(before, made.parameters(), strict=True))


def test_an_optimizer_keeps_no_parameter_alive():
    made = model()
    _, optimizer = train(made, OPTIMIZERS["Adam"], AFTER + 2)
    seen = weakref.ref(made[0].weight)
    gc.collect()
    gc.disable()
    try:
        del made, optimizer
        assert seen() is None
    finally:
        gc.enable()
