"""Python looks at values: what comes before and after is one program for each path, and numbers are computed anew."""

import math

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback.nn import functional as F
from pullback.optim import lr_scheduler
from tests.compiler.fuzz_reads import compare
from tests.compiler.support import compared, exactly


def paths(compiled):
    """What the branches of the programs gave."""
    return [entry.path for entry in compiled._compiled.entries]


def reasons(compiled):
    """Why there is no program, where there is none."""
    return [entry.why for entry in compiled._compiled.entries if entry.why]


def training(tail):
    """A training step that ends in `tail(loss, model, optimizer)`."""

    def build():
        model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.3), nn.BatchNorm1d(6), nn.Linear(6, 1))
        optimizer = optim.Adam(model.parameters(), lr=0.05, eps=1e-3)  # where only rounding is left of gradients

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return tail(loss, model, optimizer)

        return step, [*model.parameters(), *model.buffers()]

    return build


def updated(loss, model, optimizer):
    number = loss.item()
    optimizer.step()
    return number


def arithmetic(loss, model, optimizer):
    total = 0.0
    for k in range(3):
        total += loss.item() * k
    optimizer.step()
    return {"loss": round(total / 3, 4), "root": total**0.5, "both": (-total, abs(total), 2 // (total + 1))}


def clipped(loss, model, optimizer):
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    if norm > 3.5:
        for p in model.parameters():
            p.grad.mul_(3.5 / norm)
    optimizer.step()
    return loss.item(), norm.item()


def skipped(loss, model, optimizer):
    if not torch.isfinite(loss) or loss.item() > 1.2:
        return None
    optimizer.step()
    return loss


BATCHES = [lambda step, k=k: step(torch.randn(5, 4) * (1 + k % 3), torch.randn(5, 1)) for k in range(9)]


@pytest.mark.parametrize("tail", [updated, arithmetic, clipped, skipped])
def test_a_step_that_looks_at_its_loss_is_a_program(tail):
    compiled = compared(training(tail), BATCHES)
    assert len(set(paths(compiled))) == (2 if tail in (clipped, skipped) else 1)


def test_what_was_done_before_another_path_is_taken_is_undone():
    def build():
        total, weight = torch.zeros(3), torch.ones(3, requires_grad=True)

        def step(x):
            total.add_(x)
            noise = torch.rand(3)
            (weight * x).sum().backward()
            if total.sum() > 4:
                total.zero_()
                return x * noise
            return x + noise

        return step, [total, weight]

    compiled = compared(build, [lambda step, k=k: step(torch.ones(3) * (1 + k % 2)) for k in range(12)])
    assert {(True,), (False,)} == set(paths(compiled))


def test_a_loop_until_something_is_small():
    def halved(x):
        count = 0
        while x.norm() > 1:
            x, count = x / 2, count + 1
        return x, count

    compiled = exactly(halved)
    for k in range(12):
        x = torch.ones(2) * (1 + k % 4) * 2
        (one, n), (other, m) = compiled(x), halved(x)
        assert torch.equal(one, other) and n == m
    assert sorted(map(len, paths(compiled))) == [3, 4, 5] and reasons(compiled) == []


def test_integers_and_lists_of_them_choose_a_program():
    def cut(x, lengths):
        return x[: int(lengths.max())], [row[:n] for row, n in zip(x, lengths.tolist(), strict=True)]

    compiled = exactly(cut)
    x = torch.arange(12.0).reshape(3, 4)
    for lengths in ([1, 2, 3], [1, 2, 3], [2, 2, 1], [1, 2, 3], [2, 2, 1]):
        (one, rows), (other, expected) = compiled(x, torch.tensor(lengths)), cut(x, torch.tensor(lengths))
        assert torch.equal(one, other) and all(map(torch.equal, rows, expected))
    assert len(paths(compiled)) == 2 and reasons(compiled) == []


def test_a_number_that_was_read_is_an_operand():
    def scaled(x):
        return (x * x.max().item() + 1.0) / (1 + x.abs().sum().item())

    compiled = compared(lambda: (scaled, []), [lambda f, k=k: f(torch.randn(4) * k) for k in range(5)])
    assert paths(compiled) == [()]


def test_gradients_go_on_through_what_was_scaled_by_a_number():
    x = torch.randn(4, requires_grad=True)
    scaled = lambda x: (x * x.detach().max().item()).tanh()
    compiled = exactly(scaled)
    for k in range(4):
        with torch.no_grad():
            x.add_(0.1 * k)
        (one,) = torch.autograd.grad(compiled(x).sum(), x)
        (other,) = torch.autograd.grad(scaled(x).sum(), x)
        assert torch.equal(one, other)
    assert reasons(compiled) == []


LOOKS = {
    "float": lambda x: float(x.sum()),
    "int of a number": lambda x: int(x.sum().item()),
    "text": lambda x: f"{x.sum().item():.3f}",
    "percent": lambda x: "%.3f" % x.sum().item(),  # noqa: UP031
    "math": lambda x: math.exp(x.sum().item()),
    "numpy": lambda x: np.float32(x.sum().item()) + np.ones(2, np.float32)[0],
    "an array beside it": lambda x: (np.ones(2) * x.sum().item()).tolist(),
    "all elements": lambda x: x.tolist(),
    "a key": lambda x: {x.sum().item(): 1}.keys() == {1.5: 1}.keys(),
    "a large index": lambda x: x.sum().item().as_integer_ratio()[0],
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_number_that_python_looks_into_is_right(name):
    function = LOOKS[name]
    compiled = torch.compile(function)
    for k in range(4):
        x = torch.tensor([0.25 * k, 1.5])
        assert compiled(x) == function(x), name
    assert reasons(compiled)


def test_a_path_that_cannot_be_recorded_leaves_the_others_alone(capsys):
    def noisy(x):
        y = x * 2
        if x.sum() > 2:
            print("large")
        return y + 1

    compiled = exactly(noisy)
    for k in (3, 0, 0, 3, 0, 0):
        assert torch.equal(compiled(torch.full((2,), float(k))), torch.full((2,), 2.0 * k + 1))
    assert capsys.readouterr().out == "large\n" * 2
    assert [entry.calls for entry in compiled._compiled.entries if entry.why is None] == [3]


def test_a_function_that_always_does_what_cannot_be_repeated_is_not_recorded_forever(capsys):
    def noisy(x):
        if x.sum() > 0:
            print("here")
        return x

    compiled = exactly(noisy)
    for _ in range(9):
        compiled(torch.ones(2))
    assert capsys.readouterr().out == "here\n" * 9
    assert len(compiled._compiled.entries) == 3


def test_a_function_that_takes_another_path_each_time_gives_up():
    f = torch.compile(lambda x: x * int(x.sum()), recompile_limit=3)
    with pytest.warns(UserWarning, match="what was read at .*test_values_read.py:.* is 2"):
        for k in range(30):
            assert f(torch.full((1,), float(k))).item() == k * k
    assert any("another path at each call" in why for why in reasons(f))


# ------------------------------------------------------------------ numbers among the arguments


def test_a_number_that_changes_is_an_input():
    def build():
        weight = torch.ones(3, requires_grad=True)

        def step(x, rate, *, decay):
            weight.grad = None
            ((weight * x - rate) ** 2).sum().backward()
            with torch.no_grad():
                weight.sub_(rate * weight.grad + (1 - decay) * weight)
            return weight.sum() * rate, rate / 2, decay

        return step, [weight]

    calls = [lambda f, k=k: f(torch.randn(3), 0.1 / (k + 1), decay=1 - 0.01 * k) for k in range(8)]
    compiled = compared(build, calls)
    assert len(paths(compiled)) == 2  # for the first number without a gradient, and for any number with one


def test_a_comparison_with_a_number_chooses_a_program():
    f = lambda x, t: x * t if t > 0.5 else x - t
    compiled = exactly(f)
    for t in (0.1, 0.2, 0.9, 0.3, 0.8, 0.0, 1.0):
        assert torch.equal(compiled(torch.ones(2), t), f(torch.ones(2), t))
    assert sorted(map(len, paths(compiled))) == [0, 1, 1]


def test_a_number_the_function_looks_into_is_part_of_the_program():
    f = lambda x, t: x * math.sin(t)
    compiled = exactly(f)
    for t in (0.1, 0.2, 0.3, 0.2, 0.3, 0.1):
        assert torch.equal(compiled(torch.ones(2), t), f(torch.ones(2), t))


def test_dynamic_is_heeded_for_numbers():
    for dynamic, count in ((None, 2), (True, 1), (False, 4)):
        f = torch.compile(lambda x, t: x * t, dynamic=dynamic)
        for t in (0.1, 0.2, 0.3, 0.4):
            assert f(torch.ones(1), t).item() == np.float32(t)
        assert len(f._compiled.entries) == count


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.complex64])
def test_a_number_beside_every_dtype(dtype):
    f = lambda x, t: (x * t, t + x, x / t, x**t, torch.where(x > t, x, t) if not dtype.is_complex else x)
    compiled = exactly(f)
    x = torch.tensor([1, 2, 3], dtype=dtype)
    for t in (0.5, 1.7, 2.3, 1e-3):
        for one, other in zip(compiled(x, t), f(x, t), strict=True):
            assert one.dtype is other.dtype and torch.equal(one, other)
    assert reasons(compiled) == []


def test_powers_are_those_of_eager():
    f = lambda x, t: (
        x**t,
        (abs(t) + 1) ** x,
        x.pow(t),
        F.leaky_relu(x - 1, t),
        x.clamp(max=t),
        t - x,
        t / x,
    )
    for dtype in (torch.float32, torch.float64):
        compiled = exactly(f)
        x = torch.rand(7, dtype=dtype, requires_grad=True)
        for t in (1.7, 2.0, 3.0, 0.5, -1.0, 0.0, 1.0, -0.5, 2.5):
            for one, other in zip(compiled(x, t), f(x, t), strict=True):
                assert torch.equal(one, other), t
                (a,), (b,) = (torch.autograd.grad(y.sum(), x, retain_graph=True) for y in (one, other))
                assert torch.equal(a, b), t
        assert reasons(compiled) == []


def test_numbers_that_the_library_looks_into():
    def draw(x, scale):
        normal = torch.distributions.Normal(0.0, scale)
        attended = F.scaled_dot_product_attention(x, x, x, scale=scale)
        return normal.log_prob(x), F.layer_norm(x, (4,), eps=scale), F.normalize(x, eps=scale), attended

    compiled = exactly(draw)
    x = torch.randn(2, 3, 4)
    for scale in (0.5, 0.7, 0.9, 0.5, 1.1):
        for one, other in zip(compiled(x, scale), draw(x, scale), strict=True):
            assert torch.equal(one, other)


def test_code_that_asks_for_the_class_of_a_number_gets_a_float():
    def kind(x, t):
        number = x.sum().item()
        return type(number) is float, type(t) is float, x * t

    compiled = exactly(kind)
    for t in (0.1, 0.2, 0.3):
        assert compiled(torch.ones(2), t)[:2] == (True, True)


SCHEDULERS = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4),
    "in sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [3]
    ),
    "chained": lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 2), lr_scheduler.ConstantLR(o)]),
}


@pytest.mark.parametrize("name", [*SCHEDULERS, "plateau"])
def test_a_scheduler_steps_inside_of_the_program(name):
    found = []

    def tail(loss, model, optimizer):
        optimizer.step()
        if name == "plateau":
            found[-1].step(loss.detach())
        else:
            found[-1].step()
        return loss.item()

    def build():
        step, tensors = training(tail)()
        optimizer = step.__closure__[[*step.__code__.co_freevars].index("optimizer")].cell_contents
        make = SCHEDULERS.get(name, lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0))
        found.append(make(optimizer))
        return step, tensors

    compiled = compared(build, BATCHES)
    assert len(paths(compiled)) == 1
    rates = [scheduler.optimizer.param_groups[0]["lr"] for scheduler in found]
    np.testing.assert_allclose(rates, rates[0])
    assert rates[0] != 0.05


def test_a_rate_that_is_asked_for_is_the_one_of_now():
    weight = torch.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        scheduler.step()
        return scheduler.get_last_lr()[0], optimizer.param_groups[0]["lr"]

    compiled = exactly(step)
    assert [compiled(torch.ones(2)) for _ in range(4)] == [(0.5**k, 0.5**k) for k in range(1, 5)]


def test_gradients_arrive_at_leaves_that_are_arguments():
    @exactly
    def square(x):
        (x * x).sum().backward()

    for k in range(4):
        x = torch.full((2,), float(k), requires_grad=True)
        square(x)
        assert x.grad.tolist() == [2.0 * k, 2.0 * k]
        square(x)
        assert x.grad.tolist() == [4.0 * k, 4.0 * k]


def test_random_functions_that_look_at_values():
    assert sum([compare(seed) for seed in range(12)]) > 20
