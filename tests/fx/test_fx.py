"""torch.fx where torch itself is not needed, or does otherwise."""

import io
import subprocess
import sys
import threading

import pytest

import pullback as torch
from pullback import fx


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def test_importing_pullback_loads_neither_fx_nor_jit():
    code = "import sys, pullback; print([m for m in sys.modules if m.startswith(('pullback.fx', 'pullback.jit'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tracing_leaves_nothing_behind():
    before = dict(vars(torch.Tensor)), torch.nn.Module.__call__, torch.nn.Module.__getattr__, torch.add.__code__
    fx.symbolic_trace(lambda x: torch.add(x, 1, alpha=2))
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: torch.add(x, 1) if x else x)
    assert before == (dict(vars(torch.Tensor)), torch.nn.Module.__call__, torch.nn.Module.__getattr__, before[3])
    assert torch.add.__code__ is before[3] or torch.add.__code__.co_name == "add"
    assert torch.add(torch.ones(2), 1, alpha=2).tolist() == [3.0, 3.0]


def test_gradients_flow_through_traced_modules():
    model = net()
    traced = fx.symbolic_trace(model)
    traced(torch.ones(1, 3)).sum().backward()
    expected = net()
    expected(torch.ones(1, 3)).sum().backward()
    assert torch.equal(model[0].weight.grad, expected[0].weight.grad)


def test_generated_code_is_shown_when_it_raises(capsys):
    traced = fx.symbolic_trace(lambda x: x.nothing() + 1)
    with pytest.raises(AttributeError):
        traced(torch.ones(1))
    said = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5" in said and "~~~ <--- HERE" in said


def test_print_tabular_needs_no_other_package(capsys):
    fx.symbolic_trace(net()).graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"] and len(lines) == 7


def test_asserts_are_written_down_if_asked():
    class Asserting(fx.Tracer):
        trace_asserts = True

    def program(x):
        assert x.sum() > 0
        return x

    module = fx.GraphModule(torch.nn.Module(), Asserting().trace(program))
    assert module(torch.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError):
        module(-torch.ones(2))


def test_two_threads_trace_at_once():
    failed = []

    def work():
        try:
            for _ in range(5):
                assert "torch.cat" in fx.symbolic_trace(lambda x: torch.cat([x, x], dim=0)).code
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_module_is_written_to_a_folder_and_imported(tmp_path, monkeypatch):
    traced = fx.symbolic_trace(net())
    with pytest.warns(UserWarning, match="saved as pickled files"):
        traced.to_folder(tmp_path / "made_by_fx")
    monkeypatch.syspath_prepend(str(tmp_path))
    from made_by_fx import FxModule

    x = torch.ones(1, 3)
    assert torch.equal(FxModule()(x), traced(x))


def test_the_import_block_of_a_pickle_names_torch_as_torchs_own_do():
    _, (_, imports) = fx.symbolic_trace(net()).__reduce__()
    assert "import torch" in imports.splitlines() and "pullback" not in imports
    file = io.BytesIO()
    torch.save(fx.symbolic_trace(net()), file)
    file.seek(0)
    assert torch.load(file, weights_only=False)(torch.ones(1, 3)).shape == (1, 2)


@pytest.mark.parametrize(
    "action",
    [
        lambda: fx.symbolic_trace(net()).graph.python_code("self", record_func=True),
        lambda: fx.passes.shape_prop.ShapeProp(fx.symbolic_trace(net()), fake_mode=object()),
    ],
)
def test_what_is_missing_is_named(action):
    with pytest.raises(NotImplementedError, match="not available in pullback"):
        action()
