"""Sizes that change from call to call: results are those of a program for that size alone, to the bit, and native code
is compiled for all of them together."""

import gc
import random
import warnings
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback._runtime.building import loaded
from pullback.compat import compiling
from pullback.compiler.function import Capture
from pullback.compiler.sizes import MOST_NOTED, MOST_SIZES, Sizes
from pullback.kernels.compiled import room
from pullback.nn import functional as F
from tests.compiler.support import same, seen
from tests.compiler.test_every_module import MODULES, called, resized

NATIVE = room("runtime.calls") is not None


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def at_once(monkeypatch):
    """Each size is recorded when it comes for the first time."""
    monkeypatch.setattr(Sizes, "come_again", lambda self, arguments: True)


def functions_loaded():
    """How many loops and regions of compiled programs this process has."""
    tables, regions = (loaded(f"pullback.compiler.native.{name}") for name in ("tables", "regions"))
    return len(tables.defined) + len(regions.known)


def entries(function):
    return function._compiled.entries


# ------------------------------------------------------------------ results


@pytest.mark.parametrize("text", MODULES)
def test_a_module_gives_for_any_size_what_its_program_for_that_size_gives(at_once, text):
    """To the bit: outputs, gradients, buffers and random numbers."""
    choose = random.Random(text)
    sizes = [choose.randrange(2, 40) for _ in range(3)]
    found = []
    for dynamic in (False, True):
        torch.manual_seed(5)
        module = eval(f"nn.{text}", {"nn": nn})
        function = torch.compile(module, dynamic=dynamic, recompile_limit=1000)
        steps = []
        for size in [n for n in sizes for _ in range(3)]:
            steps += called(function, module, resized(MODULES[text](), size))
            steps.append(torch.get_rng_state().numpy().copy())
        found.append(steps)
    same(*found)


def trained(way, sizes):
    """Losses and parameters of steps with dropout, statistics of batches and Adam."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.BatchNorm1d(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    function = way(step)
    out = []
    for n in sizes:
        out.append(seen(function(torch.randn(n, 6), torch.randint(3, (n,)))))
        out.append(torch.get_rng_state().numpy().copy())
    return [*out, [seen(p) for p in (*model.parameters(), *model.buffers())]], function


def test_a_training_step_with_batches_of_random_sizes(at_once):
    choose = random.Random(3)
    sizes = [choose.randrange(2, 50) for _ in range(30)] * 3
    alone, _ = trained(lambda f: torch.compile(f, dynamic=False, recompile_limit=1000), sizes)
    eager, _ = trained(lambda f: f, sizes)
    for compile in (torch.compile, torch.compile(dynamic=True)):
        found, function = trained(compile, sizes)
        same(found, alone)
        same(found, eager, rounding=True)
        assert len(entries(function)) == len(set(sizes)) and not any([e.why for e in entries(function)])


def attention(x, w):
    """What depends on sizes: views, masks, arange, a mean, a number computed of a size, and a branch."""
    batch, length, width = x.shape
    q, k, v = (x @ w).split(width, dim=2)
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    scores = (q @ k.transpose(1, 2)) / width**0.5
    scores = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    out = scores @ v + torch.arange(length).view(1, length, 1) * 0.01
    out = out.reshape(batch * length, width) * (1.0 / length)
    if length > 8:
        out = out + 1
    return out.sum() / x.shape[1], out.mean(), out.view(batch, -1)[:, : length // 2], x.numel()


def test_two_sizes_that_change_and_python_that_looks_at_them(at_once):
    w = torch.randn(4, 12, requires_grad=True)
    choose = random.Random(7)
    calls = [(choose.randrange(1, 5), choose.randrange(1, 20)) for _ in range(25)] * 3
    fixed = torch.compile(attention, dynamic=False, recompile_limit=1000)
    compiled = torch.compile(attention)
    for batch, length in calls:
        x = torch.randn(batch, length, 4)
        results = []
        for function in (attention, fixed, compiled):
            w.grad = None
            out = function(x, w)
            (out[0] + out[2].sum()).backward()
            results.append([seen(out), seen(w.grad)])
        same(results[2], results[1])
        same(results[1], results[0], rounding=True)
    assert torch.explain(compiled).sizes == ["args[0].shape[0]", "args[0].shape[1]"]


# ------------------------------------------------------------------ what is compiled


@pytest.mark.skipif(not NATIVE, reason="kernels are not compiled here")
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_size_that_was_never_seen_compiles_nothing(dynamic):
    compiled = torch.compile(lambda x, w: ((x @ w).relu().softmax(-1) * 3 + x.shape[0]).mean(), dynamic=dynamic)
    w = torch.randn(7, 9)
    for n in (12, 16) if dynamic is None else (12,):
        for _ in range(3):
            compiled(torch.randn(n, 7), w)
    before = functions_loaded()
    for n in (5, 23, 31, 50, 90):
        for _ in range(3):
            compiled(torch.randn(n, 7), w)
    assert functions_loaded() == before
    assert all([entry.kernels() for entry in entries(compiled)])


@pytest.mark.skipif(not NATIVE, reason="kernels are not compiled here")
def test_a_training_step_compiles_nothing_for_other_sizes():
    trained(torch.compile, [11, 11, 11, 14, 14, 14])
    before = functions_loaded()
    trained(lambda step: torch.compile(step, dynamic=True), [n for n in (17, 29, 44) for _ in range(3)])
    assert functions_loaded() == before


@pytest.mark.parametrize("shape", [(3, 5), (40, 70), (5, 4000), (300, 100)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loops_that_are_given_sizes_compute_what_those_do_that_have_them(shape, dtype):
    """Every pattern: rows, columns, all of it, few and many elements, steps and elements over and over."""

    def work(x, row, column):
        y = (x * row - column / 3).tanh()
        turned = y.t().contiguous() * 0.5 + x.t()
        parts = [
            y.sum(0),
            y.sum(1),
            y.mean(),
            y.amax(0),
            y.amin(1),
            turned.sum(0),
            (turned * turned).sum(),
            y[:, ::2] * 2,
        ]
        return [*parts, x.expand(2, *x.shape).sum((0, 2)), y.std(1), y @ turned, torch.gt(x, row)]

    rows, columns = shape
    given = (
        torch.randn(rows, columns, dtype=dtype),
        torch.randn(columns, dtype=dtype),
        torch.randn(rows, 1, dtype=dtype),
    )
    found = []
    for dynamic in (False, True):
        function = torch.compile(work, dynamic=dynamic)
        for _ in range(4):
            out = function(*given)
        found.append(seen(out))
    same(*found)


# ------------------------------------------------------------------ how many programs


def test_many_sizes_are_one_program_to_the_limit_and_the_longest_unused_goes(at_once):
    function = torch.compile(lambda x: (x * 2).tanh() + 1)
    for n in range(2, MOST_SIZES + 12):
        x = torch.randn(n)
        np.testing.assert_allclose(function(x).numpy(), ((x * 2).tanh() + 1).numpy(), rtol=1e-5)
        function(torch.randn(2))
    kept = {entry.key[0][0] for entry in entries(function)}
    assert len(entries(function)) == MOST_SIZES == len(kept)
    assert 2 in kept and MOST_SIZES + 11 in kept and 3 not in kept


def test_a_size_that_comes_once_runs_as_it_is_and_is_recorded_when_it_comes_again(monkeypatch):
    recorded = []
    plain = Capture.run
    monkeypatch.setattr(Capture, "run", lambda self: recorded.append(self.args[0].shape[0]) or plain(self))
    weight = torch.randn(3, requires_grad=True)
    found = []
    for way in (lambda f: f, torch.compile, torch.compile(dynamic=True)):
        recorded.clear()
        torch.manual_seed(0)
        function = way(lambda x, scale=1: F.dropout((x * weight).tanh(), 0.5).sum() * scale)
        results = []
        for n in (5, 6, 7, 8, 7, 9, 6, 7, 5, 8):
            weight.grad = None
            function(torch.randn(n, 3)).backward()
            results.append(weight.grad.numpy().copy())
        found.append((results, list(recorded)))
    same(found[1][0], found[0][0], rounding=True)
    same(found[2][0], found[0][0], rounding=True)
    assert [recorded for _, recorded in found] == [[], [5, 6, 7, 8], [5, 7, 6, 8]]


def test_sizes_that_came_once_are_remembered_up_to_a_number():
    function = torch.compile(lambda x: x * 2 + 1, dynamic=True)
    for n in range(2, MOST_NOTED + 30):
        assert function(torch.ones(n)).sum() == 3 * n
    assert len(entries(function)) == 1 and len(function._compiled.sizes.noted) == MOST_NOTED
    function(torch.ones(3))  # which came too long ago
    assert len(entries(function)) == 1
    function(torch.ones(MOST_NOTED))
    assert len(entries(function)) == 2
    function._compiled.reset()
    assert not function._compiled.sizes.noted


def test_what_changes_beside_a_size_counts_as_a_program():
    class Scale:
        factor = 1.0

    scale = Scale()
    function = torch.compile(lambda x: (x * scale.factor).tanh().exp())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in range(2, 30):
            scale.factor = float(n)
            x = torch.randn(n)
            np.testing.assert_allclose(function(x).numpy(), (x * n).tanh().exp().numpy(), rtol=1e-4)
    assert len(entries(function)) == 8 and len(said) == 1


def test_dynamic_false_and_settings_are_heeded(at_once, monkeypatch):
    def programs(**options):
        function = torch.compile(lambda x: x * 2 + 1, recompile_limit=3, **options)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for n in range(2, 9):
                function(torch.randn(n))
        return len(entries(function)), len(said), [entry.sized for entry in entries(function)]

    assert programs(dynamic=False) == (3, 1, [False] * 3)
    assert programs() == (7, 0, [True] * 6 + [False])
    assert programs(dynamic=True) == (7, 0, [True] * 7)
    monkeypatch.setattr(compiling.config, "assume_static_by_default", False)
    assert programs() == (7, 0, [True] * 7)
    monkeypatch.setattr(compiling.config, "assume_static_by_default", True)
    monkeypatch.setattr(compiling.config, "automatic_dynamic_shapes", False)
    assert programs() == (3, 1, [False] * 3)
    assert programs(dynamic=True) == (7, 0, [True] * 7)
    monkeypatch.setattr(compiling.config, "dynamic_shapes", False)
    assert programs(dynamic=True) == (3, 1, [False] * 3)


def test_marks_of_dimensions():
    def function(x):
        return x * 2 + 1

    compiled = torch.compile(function)
    x = torch.randn(4, 5)
    compiling.mark_dynamic(x, 0)
    compiled(x)
    assert torch.explain(compiled).sizes == ["args[0].shape[0]"] and entries(compiled)[0].sized
    compiled = torch.compile(function)
    x = torch.randn(4, 5)
    compiling.maybe_mark_dynamic(x, (0, -1))
    compiled(x)
    assert torch.explain(compiled).sizes == ["args[0].shape[0]", "args[0].shape[1]"]
    compiled = torch.compile(function, dynamic=True)
    x = torch.randn(4, 5)
    compiling.mark_static(x, 1)
    compiled(x)
    assert torch.explain(compiled).sizes == ["args[0].shape[0]"]
    compiled = torch.compile(function, dynamic=True)
    compiling.mark_static(x)
    compiled(x)
    assert torch.explain(compiled).sizes == []
    with pytest.raises(AssertionError, match="Expected index to be int, list, or tuple, got <class 'str'>"):
        compiling.mark_dynamic(x, "first")
    with pytest.raises(TypeError, match=r"mark_static expects a tensor/nn.Module class but received <class 'int'>"):
        compiling.mark_static(3)


def test_a_size_that_is_known_to_change_is_no_recompilation():
    function = torch.compile(lambda x: x * 2 + 1)
    for n in (3, 4):
        function(torch.randn(n))
    with compiling.set_stance("fail_on_recompile"):
        assert function(torch.ones(9)).tolist() == [3.0] * 9
        with pytest.raises(RuntimeError, match="Detected recompile"):
            function(torch.ones(9, 2))
    assert torch.explain(function).recompilations == ["the shape of args[0] is (4,)"]


def test_a_function_that_cannot_be_recorded_does_not_try_each_size(monkeypatch):
    recorded = []
    plain = Capture.run
    monkeypatch.setattr(Capture, "run", lambda self: recorded.append(1) or plain(self))
    kept = []
    function = torch.compile(lambda x: kept.append(x.shape) or x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(2, 40):
            assert function(torch.ones(n)).tolist() == [2.0] * n
    assert len(kept) == 38 and len(recorded) < 30


def test_paths_and_sizes_together():
    def function(x):
        return x * 2 if x.sum() > 0 else x - 1

    compiled = torch.compile(function)
    choose = random.Random(1)
    for _ in range(150):
        x = torch.full((choose.randrange(2, 14),), choose.choice([-1.0, 1.0]))
        assert torch.equal(compiled(x), function(x))
    assert len(entries(compiled)) == 24


def test_the_tensors_of_a_recorded_call_are_let_go():
    function = torch.compile(lambda x, y: (x @ y).tanh())
    for n in (3, 4, 5):
        x, y = torch.randn(n, 6), torch.randn(6, n)
        for _ in range(3):
            out = function(x, y)
        gone = [weakref.ref(t) for t in (x, y, out)]
        del x, y, out
        gc.collect()
        assert [ref() for ref in gone] == [None, None, None]
    assert torch.explain(function).json()["programs"][0]["arguments"] == ["args[0] [5, 6]", "args[1] [6, 5]"]


@pytest.mark.skipif(not NATIVE, reason="kernels are not compiled here")
def test_what_native_code_cannot_do_is_remembered_without_its_arrays():
    function = torch.compile(lambda x: (x.sort().values * 2).cumsum(0).logcumsumexp(0), dynamic=True)
    for n in (7013, 7014):
        for _ in range(4):
            function(torch.randn(n))
    gc.collect()
    assert entries(function)[0].run_by_python()
    assert not [a for a in gc.get_objects() if issubclass(type(a), np.ndarray) and a.shape in ((7013,), (7014,))]


def test_explain_says_which_sizes_change(at_once):
    function = torch.compile(lambda x: (x * 2).sum(), dynamic=True)
    for n in (3, 4, 5):
        function(torch.randn(n, 2))
    report = torch.explain(function)
    assert report.json()["sizes"] == ["args[0].shape[0]", "args[0].shape[1]"]
    assert "3 programs" in str(report) and "sizes that change" in str(report)
