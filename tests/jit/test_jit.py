"""torch.jit without a compiler: what it says of itself, and what it refuses."""

import warnings

import pytest

import pullback as torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def doubled(x):
    return x * 2


def test_code_and_graph_say_that_python_runs():
    f = torch.jit.script(doubled)
    assert "pullback runs this Python code" in f.code and "return x * 2" in f.code
    assert str(f.graph) == "# no graph: pullback runs the Python code of doubled"
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        f.graph.nodes()
    m = torch.jit.script(torch.nn.Linear(2, 2))
    assert "def forward" in m.code and "Linear" in str(m.graph)


@pytest.mark.parametrize(
    "action",
    [
        lambda: torch.jit.CompilationUnit("def f(x): return x"),
        lambda: torch.jit.script(doubled).save("f.pt"),
        lambda: torch.jit.script(doubled).schema,
        lambda: torch.jit.last_executed_optimized_graph(),
        lambda: torch.jit.export_opnames(None),
        lambda: torch.jit.jit_module_from_flatbuffer("f"),
        lambda: torch.jit.save_jit_module_to_flatbuffer(None, "f"),
        lambda: torch.jit.RecursiveScriptClass(),
    ],
)
def test_what_needs_a_compiler_is_refused_by_name(action):
    with pytest.raises(NotImplementedError, match="no TorchScript compiler; "):
        action()


def test_methods_and_attributes_of_a_scripted_module_are_those_of_the_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2

        def forward(self, x):
            return x * self.scale

        @torch.jit.export
        def other(self, x):
            return x + self.scale

    m = Net()
    s = torch.jit.script(m)
    s.scale = 5
    s.new = 3
    assert m.scale == 5 and s.other(1) == 6 and s(torch.ones(1)).item() == 5 and not hasattr(m, "new")


def test_a_script_decorator_works_on_functions_and_methods():
    @torch.jit.script
    def f(x):
        return x + 1

    class Thing:
        @torch.jit.script
        def g(self):
            return self.value

        value = 7

    assert f(1) == 2 and Thing().g() == 7


def test_saved_modules_come_back(tmp_path):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    x = torch.ones(1, 2)
    for made in (torch.jit.script(m), torch.jit.trace(m, x)):
        made.save(tmp_path / "m.pt")
        again = torch.jit.load(tmp_path / "m.pt")
        assert type(again) is type(made) and torch.equal(again(x), m(x))
    torch.save(m, tmp_path / "plain.pt")
    with pytest.raises(RuntimeError, match=r"use torch\.load"):
        torch.jit.load(tmp_path / "plain.pt")


def test_script_warns_as_torch_does():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.script(doubled)
    assert [str(w.message) for w in caught] == [
        "`torch.jit.script` is deprecated. Please switch to `torch.compile` or `torch.export`."
    ]


def test_a_scripted_module_is_traced_by_fx_as_the_module_it_is():
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    traced = torch.fx.symbolic_trace(m)
    assert torch.equal(torch.jit.script(traced)(torch.ones(1, 2)), m(torch.ones(1, 2)))
