"""Optimizers in one pass over memory: the same numbers, to the bit, as the rule run op by op."""

import copy

import pytest

import pullback as torch
from pullback.kernels.compiled import room
from pullback.optim import fused

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")

RULES = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}), ("Adam", {}),
    ("Adam", {"maximize": True}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("Adamax", {}), ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {}), ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}), ("RMSprop", {}), ("RMSprop", {"centered": True, "momentum": 0.9}), ("ASGD", {}),
]  # fmt: skip


def train(name, options, dtype, shapes=((5, 7), (33,), (2, 3, 4))):
    torch.manual_seed(0)
    params = [torch.randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]
    optimizer = getattr(torch.optim, name)(params, **options)
    for step in range(12):
        for param in params:
            param.grad = torch.sin(param.detach() * (step + 1))
        optimizer.step()
    return params, optimizer


@pytest.fixture
def passes(monkeypatch):
    """How often a parameter was updated in one pass, and how often not."""
    counts = {True: 0, False: 0}
    plain = fused.Step.update

    def counted(step, parameter, grad, state):
        done = plain(step, parameter, grad, state)
        counts[done] += 1
        return done

    monkeypatch.setattr(fused.Step, "update", counted)
    return counts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "options"), RULES)
def test_one_pass_gives_the_bits_of_the_rule(name, options, dtype, passes, monkeypatch):
    params, optimizer = train(name, options, dtype)
    assert passes[True] >= 33  # all but the first step, which may have to make state
    monkeypatch.setattr(fused.Step, "update", lambda *arguments: False)
    expected, plain = train(name, options, dtype)
    for actual, wanted in zip(params, expected, strict=True):
        assert torch.equal(actual, wanted)
        for key, value in plain.state[wanted].items():
            assert torch.equal(optimizer.state[actual][key], value), key


@pytest.mark.parametrize("name", ["Rprop", "Adafactor"])
def test_a_rule_that_is_more_than_arithmetic_is_run_as_written(name, passes):
    train(name, {}, torch.float32)
    assert passes[True] == 0 and passes[False] == 36


def test_numbers_without_dimensions_and_strided_parameters_are_run_as_written(passes):
    number = torch.tensor(2.0).requires_grad_()
    strided = torch.randn(4, 6)[:, ::2].detach().requires_grad_()
    optimizer = torch.optim.Adam([number, strided])
    for param in (number, strided):
        param.grad = torch.ones_like(param)
    optimizer.step()
    assert passes[True] == 0 and number.item() == pytest.approx(1.999)


def test_an_update_counts_as_a_write():
    param = torch.ones(8).requires_grad_()
    loss = (param * param).sum()
    param.grad = torch.ones(8)
    before = param._version
    torch.optim.SGD([param], lr=0.1).step()
    assert param._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_parameters_that_joined_later_have_their_own_counters():
    first, second = torch.ones(4).requires_grad_(), torch.ones(4).requires_grad_()
    optimizer = torch.optim.Adam([first], lr=0.1)
    first.grad = torch.ones(4)
    optimizer.step()
    optimizer.add_param_group({"params": [second], "lr": 0.1})
    second.grad = torch.ones(4)
    optimizer.step()
    assert optimizer.state[first]["step"].item() == 2 and optimizer.state[second]["step"].item() == 1
    alone = copy.deepcopy(torch.ones(4)).requires_grad_()
    alone.grad = torch.ones(4)
    torch.optim.Adam([alone], lr=0.1).step()
    assert torch.equal(second, alone)
