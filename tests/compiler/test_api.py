"""`torch.compile`, `torch.compiler` and `torch._dynamo`: forms, arguments, errors."""

import copy
import gc
import sys
import time
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.compat import compiling
from pullback.compiler.function import Capture


def test_a_decorator_with_and_without_arguments():
    @torch.compile
    def plain(x):
        """What it says."""
        return x + 1

    @torch.compile(fullgraph=True, dynamic=False, mode="default")
    def other(x, *, scale=2.0):
        return x * scale

    assert plain.__name__ == "plain" and plain.__doc__ == "What it says."
    assert plain(torch.ones(2)).tolist() == [2.0, 2.0] == plain(torch.ones(2)).tolist()
    assert other(torch.ones(2)).tolist() == [2.0, 2.0] and other(torch.ones(2), scale=3.0).tolist() == [3.0, 3.0]


def test_a_method_and_a_lambda():
    class Model:
        def __init__(self, by):
            self.by = by

        @torch.compile
        def run(self, x):
            return x * self.by

    one, two = Model(2.0), Model(3.0)
    for _ in range(3):
        assert one.run(torch.ones(1)).item() == 2 and two.run(torch.ones(1)).item() == 3
    assert torch.compile(lambda x: x - 1)(torch.ones(1)).item() == 0


def test_a_module_keeps_its_parameters_and_names():
    model = nn.Linear(2, 3)
    compiled = torch.compile(model)
    assert type(compiled).__name__ == "OptimizedModule" and isinstance(compiled, nn.Module)
    assert compiled._orig_mod is model and compiled.weight is model.weight
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert [name for name, _ in compiled.named_parameters()] == ["_orig_mod.weight", "_orig_mod.bias"]
    compiled.eval()
    assert not model.training and not compiled.training
    compiled.extra = 3
    assert model.extra == 3
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        compiled.nothing
    assert torch.equal(copy.deepcopy(compiled)(torch.ones(1, 2)), model(torch.ones(1, 2)))


def test_a_module_compiled_in_place():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    expected = model(torch.ones(1, 2))
    model.compile()
    for _ in range(3):
        assert torch.equal(model(torch.ones(1, 2)), expected)
    assert model(torch.ones(1, 2)).grad_fn.name() == "CompiledFunctionBackward"


def test_errors_are_those_of_torch():
    for call, kind, text in [
        (lambda: torch.compile(3), AssertionError, "A callable function is expected, but <class 'int'> is provided."),
        (lambda: torch.compile(abs, backend="nope"), RuntimeError, "Invalid backend: 'nope', see"),
        (lambda: torch.compile(abs, mode="nope"), RuntimeError, "Unrecognized mode=nope, should be one of: default"),
        (lambda: torch.compile(abs, mode="default", options={}), RuntimeError, "Either mode or options can be"),
    ]:
        with pytest.raises(kind, match=text.replace("(", r"\(").replace(".", r"\.")):
            call()


def test_fullgraph_names_the_line_of_what_cannot_be_recorded():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(compiling.exc.Unsupported, match=r"truth\(\) at .*test_api.py:\d+"):
        torch.compile(branch, fullgraph=True)(torch.ones(2))
    with pytest.raises(compiling.exc.Unsupported, match=r"float\(\) at .*test_api.py:\d+"):
        torch.compile(lambda x: float(x.sum()), fullgraph=True)(torch.ones(2))
    assert torch.compile(lambda x: x.sum().item(), fullgraph=True)(torch.ones(2)) == 2.0


def test_double_backward_is_refused_in_torchs_words():
    x = torch.ones(2, requires_grad=True)
    f = torch.compile(lambda x: (x * x * x).sum())
    for _ in range(2):
        (grad,) = torch.autograd.grad(f(x), x, retain_graph=True)
        assert grad.tolist() == [3.0, 3.0]
        with pytest.raises(RuntimeError, match="does not currently support double backward"):
            torch.autograd.grad(f(x), x, torch.ones((), requires_grad=True), create_graph=True)


def test_a_second_backward_says_what_eager_says():
    w = torch.ones(2, requires_grad=True)

    @torch.compile
    def step(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    for _ in range(3):
        loss = step(torch.ones(2))
        assert loss.requires_grad
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            loss.backward()
    out = torch.compile(lambda x: (w * x).exp())(torch.ones(2)).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


def test_a_write_before_backward_is_noticed():
    w = torch.ones(2, requires_grad=True)
    f = torch.compile(lambda x: (w * x).sum())
    for _ in range(3):
        x = torch.ones(2)
        out = f(x)
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()


def test_disable_and_graph_break_and_is_compiling():
    seen = []

    @torch.compile
    def asks(x):
        seen.append(compiling.is_compiling())
        return x

    asks(torch.ones(1))
    assert seen == [True] and not compiling.is_compiling()

    @compiling.disable
    def outside(x):
        return x * 2

    f = torch.compile(lambda x: outside(x) + 1)
    assert f(torch.ones(1)).item() == 3 == f(torch.ones(1)).item()
    assert "disabled" in f._compiled.entries[0].why
    assert torch.compile(outside, disable=True) is outside


def test_reset_stance_and_the_environment(monkeypatch):
    f = torch.compile(lambda x: x + 1)
    f(torch.ones(1))
    compiling.reset()
    assert f._compiled.entries == []
    with compiling.set_stance("force_eager"):
        f(torch.ones(1))
        assert f._compiled.entries == []
    f(torch.ones(1))
    assert len(f._compiled.entries) == 1
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    plain = lambda x: x
    assert torch.compile(plain) is plain


def test_stances_for_calls_that_no_program_is_for():
    f = torch.compile(lambda x: x * 2)
    with compiling.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="stance is 'fail_on_recompile'"):
        f(torch.ones(2))
    f(torch.ones(2))
    with compiling.set_stance("fail_on_recompile"):
        assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    with compiling.set_stance("eager_on_recompile"):
        assert f(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert compiling.run(f)(torch.ones(4)).sum().item() == 8.0
    assert len(f._compiled.entries) == 1
    with pytest.raises(NotImplementedError, match="cannot be saved"):
        f.save("f.pbc")


def test_numpy_inside_of_a_compiled_function():
    doubled = compiling.wrap_numpy(lambda a: {"a": np.sin(a) * 2})
    assert torch.equal(doubled(torch.ones(2))["a"], torch.sin(torch.ones(2)) * 2)


def test_a_storm_of_recompilations_warns_once():
    f = torch.compile(lambda x, k: x * k, recompile_limit=3, dynamic=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(8):
            assert f(torch.ones(1), float(k)).item() == k
    (text,) = [str(w.message) for w in caught if "was compiled 3 times" in str(w.message)]
    assert "args[1] is 2.0" in text


def test_transforms_inside_and_outside():
    def f(x):
        return (x**3).sum()

    x = torch.tensor([1.0, 2.0])
    for transform in (torch.func.grad, torch.func.jacrev, torch.func.hessian):
        expected = transform(f)(x)
        inside = torch.compile(transform(f))
        for _ in range(3):
            assert torch.equal(inside(x), expected)
        assert torch.equal(transform(torch.compile(f))(x), expected)
    batched = torch.compile(torch.vmap(torch.func.grad(f)))
    for _ in range(3):
        assert torch.equal(batched(torch.ones(3, 2)), torch.full((3, 2), 3.0))


def test_compiled_inside_compiled_and_threads():
    from concurrent.futures import ThreadPoolExecutor

    inner = torch.compile(lambda x: x * 2)
    outer = torch.compile(lambda x: inner(x) + 1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: outer(torch.full((3,), float(k))).tolist(), range(40)))
    assert found == [[2.0 * k + 1] * 3 for k in range(40)]


def test_a_result_without_history_that_wants_gradients_is_a_leaf():
    f = torch.compile(lambda x: (x * 2).requires_grad_())
    for _ in range(4):
        out = f(torch.ones(2))
        assert out.is_leaf and out.requires_grad
        out.sum().backward()
        assert out.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("exact", [False, True])
def test_gradients_that_two_leaves_share_are_two_arrays(exact):
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        a.grad = b.grad = None
        ((a + b) * x).sum().backward()

    compiled = torch.compile(step, options={"exact": exact})
    for _ in range(5):
        compiled(torch.ones(3))
        a.grad.add_(1)
        assert b.grad.tolist() == [1.0] * 3 and a.grad.tolist() == [2.0] * 3


def test_what_the_garbage_collector_calls_is_no_part_of_the_function():
    def clock(phase, info):
        time.perf_counter()

    @torch.compile(fullgraph=True)
    def f(x):
        for _ in range(5):
            cycles = [[] for _ in range(1000)]
            for cycle in cycles:
                cycle.append(cycle)
        return x * 2

    gc.callbacks.append(clock)
    try:
        assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    finally:
        gc.callbacks.remove(clock)
    assert gc.isenabled()
    assert f._compiled.entries[0].why is None


def test_a_profiler_goes_on_beside_a_compiled_function():
    seen = []
    f = torch.compile(lambda x: x * 2)
    sys.setprofile(profiler := lambda frame, event, arg: seen.append(event))
    try:
        f(torch.ones(2))
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert seen
    assert f._compiled.entries == []
    f(torch.ones(2))
    assert f._compiled.entries[0].why is None


def test_a_backend_that_is_a_function_is_given_a_graph():
    seen = []

    def backend(graph, inputs):
        seen.append(([node.op for node in graph.graph.nodes], [tuple(i.shape) for i in inputs]))
        counted = lambda *args: seen.append("run") or graph.forward(*args)
        return counted

    @torch.compile(backend=backend)
    def f(x, y, scale=2.0, *, flip=False):
        z = torch.relu(x) + y * scale
        return (z, -z if flip else z.sum())

    x, y = torch.randn(3), torch.randn(3)
    for flip in (False, False, True):
        for one, other in zip(f(x, y, flip=flip), f._compiled.function(x, y, flip=flip), strict=True):
            assert torch.equal(one, other)
    assert seen.count("run") == 3 and next(s for s in seen if s != "run")[1] == [(3,), (3,)]
    assert len([s for s in seen if s != "run"]) == 2

    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled = torch.compile(model, backend=backend)
    for _ in range(3):
        model.zero_grad()
        compiled(x).sum().backward()
        found = model[0].weight.grad.clone()
        model.zero_grad()
        model(x).sum().backward()
        assert torch.equal(found, model[0].weight.grad)
    assert seen[-4][0] == ["placeholder", "call_module", "call_module", "output"]

    branching = torch.compile(lambda x: x if x.sum() > 0 else -x, backend=backend)
    for k in (1, -1, 2, -2):
        assert torch.equal(branching(x.abs() * k), x.abs() * abs(k))
    with pytest.raises(compiling.exc.Unsupported):
        torch.compile(lambda x: x if x.sum() > 0 else -x, backend=backend, fullgraph=True)(x)


def test_backends_have_names():
    @compiling.register_backend
    def named_backend(graph, inputs):
        return graph.forward

    try:
        assert "named_backend" in compiling.list_backends()
        assert torch.compile(lambda x: x * 2, backend="named_backend")(torch.ones(1)).item() == 2
        with pytest.raises(AssertionError, match="duplicate name: named_backend"):
            compiling.register_backend(named_backend)
    finally:
        del compiling.backends["named_backend"]


def test_sizes_beyond_the_limit_are_not_recorded_and_those_before_stay(monkeypatch):
    recorded = []
    plain = Capture.run
    monkeypatch.setattr(Capture, "run", lambda self: recorded.append(1) or plain(self))
    f = torch.compile(lambda x: (x * 2).tanh() + 1, recompile_limit=3, dynamic=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            for n in range(1, 8):
                x = torch.randn(n)
                np.testing.assert_allclose(f(x).numpy(), ((x * 2).tanh() + 1).numpy(), rtol=1e-5, atol=1e-6)
    assert len(recorded) == 3 and [entry.calls for entry in f._compiled.entries] == [2, 2, 2]
    assert len([w for w in said if "was compiled 3 times" in str(w.message)]) == 1
