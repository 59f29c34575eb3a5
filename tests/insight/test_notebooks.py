"""In a notebook, lines are named by their cells, and no tensor by the results a notebook keeps."""

import linecache
import re
import sys
from types import SimpleNamespace

import pytest

import pullback as torch


class Notebook:
    """What a kernel does with cells: each in a file of its own, results in `_`, `_8` and `Out`."""

    def __init__(self, monkeypatch):
        self.cells = {}
        name = lambda file: ("Cell", f"In[{self.cells[file]}]") if file in self.cells else None
        shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=name))
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        self.out = {}
        self.names = {"__name__": "__main__", "torch": torch, "In": [], "Out": self.out, "_oh": self.out}

    def run(self, number, source, result=None):
        file = f"/tmp/ipykernel_77/{number * 1234}.py"
        self.cells[file] = number
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self.names)
        if result is not None:
            value = eval(result, self.names)
            self.out[number] = self.names["_"] = self.names[f"_{number}"] = value


@pytest.fixture
def notebook(monkeypatch):
    made = Notebook(monkeypatch)
    yield made
    for file in made.cells:
        linecache.cache.pop(file, None)


def test_a_place_is_a_cell_and_its_line(notebook):
    notebook.run(3, "x = torch.ones(3, requires_grad=True)\ny = x.exp()\nloss = (y * y).sum()\n")
    notebook.run(8, "told = str(torch.explain(loss))\nreport = torch.memory_report(loss)")
    assert "at         In[3], line 3: loss = (y * y).sum()" in notebook.names["told"]
    assert "In[3], line 2: y = x.exp()" in notebook.names["told"] and "ipykernel" not in notebook.names["told"]
    assert notebook.names["report"].by_line[0][0] == "In[3], line 2: y = x.exp()"
    place = torch.explain(notebook.names["y"]).place
    assert str(place) == "In[3], line 2: y = x.exp()" and place.file.endswith(".py")
    assert "made by ExpBackward0 at In[3], line 2<" in notebook.names["y"]._repr_html_()
    graph = torch.explore(notebook.names["loss"], path=None)
    assert [line[4] for line in graph.json()["lines"]] == ["In[3], line 3", "In[3], line 2"]
    assert "In[3], line 2" in graph.svg("line") and "ipykernel" not in graph.html()


def test_errors_name_cells(notebook):
    notebook.run(4, "a = torch.ones(2, 3, requires_grad=True) * 2\nb = torch.ones(4, 5)\n")
    with pytest.raises(RuntimeError, match=r"made at In\[4\], line 1"):
        notebook.run(5, "a @ b\n")


def test_a_namespace_defined_twice_names_the_cells_that_did(notebook):
    notebook.run(2, "from pullback.library import Library\nfirst = Library('twice_in_cells', 'DEF')\n")
    with pytest.raises(RuntimeError, match=r"registered at In\[2\], line 2; latest .* registered at In\[3\], line 1$"):
        notebook.run(3, "Library('twice_in_cells', 'DEF')\n")


def test_anomaly_mode_names_cells_as_notebooks_do(notebook):
    notebook.run(4, "def f(x):\n    return x.sqrt()\n")
    with pytest.warns(UserWarning) as caught:
        notebook.run(5, "with torch.autograd.detect_anomaly():\n    y = f(torch.full((2,), 0.0, requires_grad=True))\n")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan values"):
            notebook.names["y"].backward(torch.zeros(2))
    said = next(str(w.message) for w in caught if "Error detected" in str(w.message))
    assert "  Cell In[5], line 2, in <module>\n    y = f(torch.full(" in said
    assert "  Cell In[4], line 2, in f\n    return x.sqrt()\n" in said
    assert "ipykernel" not in said


def test_the_profiler_names_cells(notebook):
    notebook.run(7, "with torch.profiler.profile(with_stack=True) as seen:\n    torch.ones(2).exp()\n")
    stacks = [event.stack for event in notebook.names["seen"].events() if event.name == "aten::exp"]
    assert stacks[0][0] == "In[7](2): <module>"
    notebook.names["log"] = log = []
    notebook.run(8, "with torch.autograd.profiler.log_ops(log):\n    torch.ones(2).exp()\n")
    assert log[-1][1][-1] == "  Cell In[8], line 2, in <module>\n    torch.ones(2).exp()\n"


def test_steps_stop_at_a_line_of_a_cell(notebook):
    notebook.run(6, "x = torch.ones(3, requires_grad=True)\nloss = x.exp().sum()\nother = loss * 2\n")
    found = [step.name for step in torch.autograd.steps(notebook.names["other"], break_on="In[[]6], line 2")]
    assert found == ["SumBackward0", "ExpBackward0"]


def test_results_a_notebook_keeps_name_no_tensor(notebook):
    notebook.run(8, "x = torch.ones(2, requires_grad=True)", result="x * 2")
    notebook.run(9, "told = torch.explain((_8 * x).sum())\ngraph = torch.explore(_8.sum(), path=None).graph")
    told, graph = notebook.names["told"], notebook.names["graph"]
    for text in (str(told).replace("(_8 * x)", ""), *(e.title for e in graph.entries), graph.title):
        assert not re.search(r"Out\[|\b_8?\b", text)
    assert [leaf.name for leaf in told.leaves] == ["x"]
    notebook.run(10, "frozen = torch.ones(2)", result="frozen + 1")
    with pytest.raises(RuntimeError) as raised:
        notebook.run(11, "(frozen * 2).sum().backward()")
    assert "`frozen`" in str(raised.value) and "`_" not in str(raised.value) and "`Out" not in str(raised.value)


def test_a_users_own_dict_called_out_is_searched_outside_of_notebooks():
    Out = {"w": torch.ones(2, requires_grad=True)}
    assert torch.explain((Out["w"] * 2).sum()).leaves[0].name == "Out['w']"


def test_older_notebooks_say_their_numbers_in_the_name_of_the_file():
    scope = {"torch": torch}
    exec(compile("y = torch.ones(2, requires_grad=True).exp()", "<ipython-input-12-0f3a>", "exec"), scope)
    assert str(torch.explain(scope["y"]).place).startswith("In[12], line 1")


def test_tensors_are_monospaced_and_heat_maps_have_a_scale():
    x = torch.tensor([[1.0, -4.0], [2.0, 0.5]])
    shown = x._repr_html_()
    assert re.search(r'<pre style="font-family:[^"]*monospace"', shown)
    assert "linear-gradient" in shown and "<small>-4</small><small>0</small><small>4</small>" in shown
    shown = torch.tensor([[3 + 4j, 1j], [0j, 1 + 0j]])._repr_html_()
    assert "<small>0</small><small>5</small>" in shown


def test_numbers_in_reports_are_right_aligned():
    x = torch.ones(512, requires_grad=True)
    shown = torch.memory_report(x.exp().sum())._repr_html_()
    assert "<td style='text-align:right'>2.0 KiB</td><td style='text-align:right'>100%</td>" in shown
    assert "<td style='text-align:left'>exp</td>" in shown


def test_a_real_ipython_names_its_cells(run_python):
    pytest.importorskip("IPython")
    program = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import pullback as torch; x = torch.ones(2, requires_grad=True)", store_history=True)
shell.run_cell("y = 0\\nx * 2", store_history=True)
shell.run_cell("told = torch.explain((_2 * x).sum())", store_history=True)
told = shell.user_ns["told"]
print(shell.user_ns["_2"].grad_fn is not None, [leaf.name for leaf in told.leaves], told)
"""
    said = run_python(program)
    assert "In[2], line 2: x * 2" in said and "['x']" in said and "_2," not in said
