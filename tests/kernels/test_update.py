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
    ("ASGD", {"t0": 4}), ("SGD", {"lr": 1}), ("Adam", {"betas": (0, 0.9), "lr": 2}),
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
    assert passes[True] >= (33 if options.get("betas") is None else 0)  # all but the first step, which makes state
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


@pytest.mark.parametrize(("name", "options"), RULES)
def test_a_rule_is_traced_once_and_not_at_every_step(name, options, monkeypatch):
    kind = getattr(torch.optim, name)
    calls = []
    plain = kind.update

    def counted(self, parameter, *rest):
        calls.append(type(parameter))
        return plain(self, parameter, *rest)

    monkeypatch.setattr(kind, "update", counted)
    train(name, options, torch.float32)
    assert calls.count(fused.Rehearsed) <= 3  # SGD without its state, RAdam while it is young, ASGD before t0


def test_options_that_change_between_steps_are_followed(monkeypatch):
    def run():
        torch.manual_seed(0)
        param = torch.randn(9).requires_grad_()
        optimizer = torch.optim.Adam([param], lr=0.1)
        (group,) = optimizer.param_groups
        changes = [
            {"lr": 0.05}, {"weight_decay": 0.1}, {"maximize": True}, {"betas": [0.3, 0.9]}, {"betas": (0.95, 0.9)},
            {"lr": torch.tensor(0.2)}, {"decoupled_weight_decay": True}, {"weight_decay": 0}, {"eps": 1}, {"lr": 0.0},
        ]  # fmt: skip
        for change in changes:
            group.update(change)
            param.grad = torch.cos(param.detach())
            optimizer.step()
        return param, optimizer.state[param]

    actual, state = run()
    monkeypatch.setattr(fused.Step, "update", lambda *arguments: False)
    expected, wanted = run()
    assert torch.equal(actual, expected)
    assert all(torch.equal(state[key], value) for key, value in wanted.items())


def test_a_rule_that_cannot_be_computed_says_so_before_it_writes():
    param = torch.ones(4).requires_grad_()
    optimizer = torch.optim.RAdam([param])
    param.grad = torch.ones(4)
    for _ in range(8):
        optimizer.step()
    optimizer.param_groups[0]["betas"] = (0.9, 1.0)
    before = param.detach().clone()
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert torch.equal(param, before) and optimizer.state[param]["step"].item() == 8


def test_an_optimizer_shows_the_pass_over_memory_that_it_became(capsys):
    parameter = torch.ones(3, 5).requires_grad_()
    optimizer = torch.optim.Adadelta([parameter])
    parameter.grad = torch.ones(3, 5)
    optimizer.step()
    torch.show(optimizer)
    shown = capsys.readouterr().out
    assert "Adadelta is one pass over memory for float32 with step, square_avg, acc_delta:\n" in shown
    assert "    x0 <- v" in shown and "sqrt(" in shown


def test_an_optimizer_says_why_it_runs_as_it_is_written(capsys):
    parameter = torch.ones(3).requires_grad_()
    optimizer = torch.optim.Rprop([parameter])
    parameter.grad = torch.ones(3)
    optimizer.step()
    torch.show(optimizer)
    why = "`sign` is none of the arithmetic on elements that is traced"
    assert f"Rprop runs as it is written for float32 with step, prev, step_size: {why}\n" in capsys.readouterr().out


def test_an_optimizer_that_took_no_step_says_so(capsys):
    class Fresh(torch.optim.SGD):
        def update(self, *arguments):
            return super().update(*arguments)

    torch.show(Fresh([torch.ones(3).requires_grad_()], lr=0.1))
    assert capsys.readouterr().out == "Fresh was not traced yet: it is when it first updates a parameter\n"
