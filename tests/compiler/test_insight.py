"""What became of a compiled function can be asked, shown and checked."""

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback.compiler import checking
from pullback.compiler.native import parts
from pullback.kernels import compiled as compiler
from pullback.nn import functional as F


def trained(**options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return torch.compile(step, **options), model


def test_explain_tells_of_programs_kernels_and_reasons():
    step, _ = trained()
    for n in (3, 3, 3, 5):
        step(torch.randn(n, 4), torch.randn(n, 1))
    report = torch.explain(step)
    text = str(report)
    assert "step: 2 programs" in text and "the shape of args[0] is (5, 4)" in text
    assert report.json()["programs"][0]["steps"] > 20
    broken = torch.compile(lambda x: x * float(x.sum()))
    broken(torch.ones(2))
    assert "a value was read by float()" in str(torch.explain(broken))


def test_show_prints_the_program(capsys):
    step, _ = trained()
    torch.show(step)
    step(torch.ones(3, 4), torch.ones(3, 1))
    torch.show(step)
    text = capsys.readouterr().out
    assert "# not called yet" in text and "addmm(" in text and "mse_loss by self(" in text and "arrived_at(" in text


@pytest.mark.parametrize("exact", [False, True])
def test_check_runs_both_and_finds_nothing(exact):
    found = []
    for check in (False, True):
        step, model = trained(check=check, options={"exact": exact})
        torch.manual_seed(1)
        losses = [step(torch.randn(3, 4), torch.randn(3, 1)).item() for _ in range(9)]
        found.append([losses, *[p.detach().numpy().copy() for p in model.parameters()]])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_check_finds_a_wrong_program(monkeypatch):
    plain = lambda x: x * 2
    step = torch.compile(plain, check=True)
    x = torch.ones(3)
    step(x)
    entry = step._compiled.entries[0]
    monkeypatch.setattr(entry, "run", lambda *arrays: (np.full(3, 5, np.float32),))
    with pytest.raises(RuntimeError, match="result 0 differs"):
        step(x)
    assert checking.RELATIVE < 1


def test_large_chains_are_one_pass():
    def chain(x, y):
        return (torch.sin(x) * 2 + x.exp() * y - x * x).tanh().sum(), (x * y + 1).sigmoid()

    compiled = torch.compile(chain)
    for n in (5000, 70001):
        for k in range(4):
            x, y = torch.randn(n) + k, torch.randn(n)
            for one, other in zip(compiled(x, y), chain(x, y), strict=True):
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-5, atol=1e-5)
    x = torch.randn(9000, requires_grad=True)
    mean = torch.compile(lambda x: (x.sigmoid() * x + x.tanh()).mean())
    for _ in range(4):
        x.grad = None
        mean(x).backward()
        found = x.grad.clone()
        x.grad = None
        (x.sigmoid() * x + x.tanh()).mean().backward()
        np.testing.assert_allclose(found.numpy(), x.grad.numpy(), rtol=1e-5, atol=1e-9)


def test_a_write_in_between_is_not_overtaken():
    def steps(x, y):
        a = x * 2 + 1
        x.add_(y)
        return a * x

    compiled = torch.compile(steps)
    for _ in range(4):
        x = torch.randn(6000)
        one, other = x.clone(), x.clone()
        y = torch.randn(6000)
        np.testing.assert_allclose(compiled(one, y).numpy(), steps(other, y).numpy(), rtol=1e-6)
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.skipif(compiler.room("runtime.calls") is None, reason="nothing is compiled here")
def test_functions_that_loops_know_by_name_do_not_load_scipy(monkeypatch):
    monkeypatch.setattr(parts, "scipy_special", None)
    gelu = torch.compile(lambda x: F.gelu(x).erf() * 3)
    x = torch.tensor([-3.0, -0.5, 0.0, 0.7, float("inf"), float("nan")])
    for _ in range(3):
        np.testing.assert_allclose(gelu(x).numpy(), (F.gelu(x).erf() * 3).numpy(), rtol=1e-6, atol=1e-9)
    (entry,) = gelu._compiled.entries
    assert [step.name for step in entry.steps] == ["region"] and "erf(" in entry.kernels()[0]
