"""A function that does what cannot be recorded runs in parts: what it does is what it does as it is."""

import linecache

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback.compiler.source import source_of
from pullback.nn import functional as F
from tests.compiler import fuzz_parts
from tests.compiler.support import compared, exactly


def division(function):
    return function._compiled.division


def programs(function):
    """Lines of the parts of which programs ran."""
    return [p.lines for p in division(function).parts if sum([e.calls for e in p.compiled.entries])]


def first_line(function):
    return function.__wrapped__.__code__.co_firstlineno


def test_what_is_before_and_after_a_value_that_is_read_is_compiled():
    log = []

    def make():
        w = torch.randn(3, requires_grad=True)

        def f(x):
            y = (w * x).tanh().exp() - x
            log.append(float(y.detach().sum()))
            return (y * y).sigmoid().sum() + y.cos().mean()

        return f, w

    def grads(way):
        torch.manual_seed(0)
        f, w = make()
        g = way(f)
        out = []
        for _ in range(6):
            loss = g(torch.randn(3))
            loss.backward()
            out += [loss.item(), *w.grad.tolist(), w.grad._version]
        return out, g

    expected, _ = grads(lambda f: f)
    kept = list(log)
    found, g = grads(exactly)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(log[len(kept) :], kept, rtol=1e-6)
    start = first_line(g)
    assert division(g).breaks == {start + 2: "a value was read by float()"}
    assert programs(g) == [(start + 1, start + 1), (start + 3, start + 3)]


def test_a_training_step_that_prints(capsys):
    def make():
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = optim.Adam(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.detach().numpy())
            return loss.detach() * 2

        return step, list(model.parameters())

    f = compared(make, [lambda f: f(torch.randn(5, 4), torch.randn(5, 1))] * 6, program=False)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 18 and said[:6] == said[6:12]
    ((first, last),) = programs(f)
    assert last - first == 3 and f._compiled.division.parts[0].compiled.entries[0].calls >= 2
    text = str(torch.explain(f))
    assert "runs in parts" in text and "read by numpy()" in text and f"part of lines {first} to {last}" in text
    report = torch.explain(f).json()
    assert report["breaks"][0]["line"] == last + 1 and report["parts"][0]["programs"][0]["runs"] >= 2
    with pytest.raises(RuntimeError, match=rf"test_parts.py:{last + 1}"):
        torch.compile(f.__wrapped__, fullgraph=True)(torch.randn(5, 4), torch.randn(5, 1))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = nn.Linear(4, 4), 0

    def forward(self, x):
        y = self.inner(x).tanh() * x - 0.5
        self.calls += 1
        return y.exp().sigmoid() + x.cos() * 2


def test_modules_that_are_called_by_a_line_that_ends_a_part_are_compiled_by_themselves():
    made = []

    def make():
        counting = Counting()
        made.append(counting)
        model = nn.Sequential(nn.Linear(4, 4), counting, nn.Linear(4, 2))

        def f(x):
            out = model(x)
            return (out * out).tanh().sum() + out.exp().mean()

        return f, list(model.parameters())

    f = compared(make, [lambda f: f(torch.ones(2, 4))] * 8, program=False)
    assert [m.calls for m in made] == [8, 8, 8]
    (model,) = [m for _, m in division(f).callees.values()]
    counting = next(m for c, m in model.division.callees.values() if type(c) is Counting)
    assert [sum([e.calls for e in p.compiled.entries]) > 0 for p in counting.division.parts] == [True, True]


def test_loops_conditions_and_returns_run_as_they_are():
    log = []

    def f(x, n):
        total = 0.0
        for k in range(n):
            y = (x * 2).tanh().exp() - x.cos()
            if k == 3:
                continue
            total += float(y.sum())
            if total > 1e6:
                break
            x = (y * 0.5).sin() + x.sigmoid() * 2
            if x.shape[0] > 5:
                return x.tanh() * 3 + y.exp() - 1
        log.append(total)
        return x, [y]

    g = exactly(f)
    for n, wide in ((4, 3), (4, 3), (6, 3), (2, 7), (2, 7), (4, 3), (5, 3)):
        x = torch.linspace(-1, 1, wide)
        for one, other in zip(torch.utils._pytree.tree_leaves(g(x, n)), torch.utils._pytree.tree_leaves(f(x, n))):
            assert torch.equal(one, other)
    assert log[::2] == log[1::2] and programs(g)


def test_a_name_without_a_value_stays_one():
    def f(x, flag):
        if flag:
            late = x * 2
        print(end="")
        y = (x.tanh() + 1).exp() * 2
        return y + late

    g = exactly(f)
    for _ in range(4):
        assert torch.equal(g(torch.ones(2), True), f(torch.ones(2), True))
        with pytest.raises(UnboundLocalError):
            g(torch.ones(2), False)


def test_objects_stay_the_same_objects():
    shelf, log = [], []

    def f(x):
        mine = shelf
        y = (x * 2).tanh().exp() - 1
        log.append(float(y.sum()))
        mine.append((y + 1).cos() * 2 - y.sin())
        return mine

    g = torch.compile(f)
    for n in range(1, 6):
        assert g(torch.ones(2)) is shelf and len(shelf) == n == len(log)
    given = [torch.ones(1)]
    same = torch.compile(lambda x, rows: rows)
    assert all([same(torch.ones(1), given) is given for _ in range(3)])


def test_what_the_first_call_sets_up_does_not_end_parts():
    class Lazy:
        scale = None

    lazy = Lazy()

    def f(x):
        if lazy.scale is None:
            lazy.scale = 3.0
        return (x * lazy.scale).tanh() + x.exp()

    g = exactly(f)
    for _ in range(5):
        assert torch.equal(g(torch.ones(2)), f(torch.ones(2)))
    assert sum([e.calls for e in g._compiled.entries if e.why is None]) >= 1


def test_an_edited_file_is_not_taken_for_the_source(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("def f(x):\n    y = x * 2\n    return y.tanh()\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    assert source_of(space["f"].__code__) is not None
    path.write_text("def f(x):\n    y = x * 3\n    return y.tanh()\n")

    linecache.checkcache(str(path))
    assert source_of(space["f"].__code__) is None


def test_gradients_at_an_error_are_those_of_one_run():
    w = torch.ones(2, requires_grad=True)

    def f(x):
        (w * x).sum().backward()
        raise KeyError("here")

    g = torch.compile(f)
    for n in range(1, 4):
        with pytest.raises(KeyError):
            g(torch.ones(2))
        assert w.grad.tolist() == [n, n] and w.grad._version == n - 1


@pytest.mark.parametrize("seed", [*range(12), 27, 56, 82, 120, 181, 203, 234, 263, 652])
def test_random_functions_in_parts(seed):
    fuzz_parts.compare(seed)
