"""What `explore` finds out, and that looking changes nothing."""

import doctest
import gc
import random
import re
from functools import partial
from itertools import pairwise
from weakref import ref
from xml.etree import ElementTree

import numpy as np
import pytest

import pullback as torch
from pullback.insight.explorer.grouped import boxes_of
from pullback.insight.explorer.layout import GAP, arrange, text_width
from pullback.utils.checkpoint import checkpoint
from tests.explorer import geometry, programs

ALL = [*programs.SEEDS, programs.gpt]


explored = partial(torch.explore, path=None)


def entry(graph, name):
    return next(e for e in graph.entries if name in (e.name, e.label))


def leaves_of(loss):
    stack, seen = [loss.grad_fn], {}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            seen[id(node.variable)] = node.variable
        elif node not in seen:
            seen[node] = None
            stack += [parent for parent, _ in node.next_functions if parent is not None]
    return [leaf for leaf in seen.values() if leaf is not None]


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
def test_the_gradients_shown_are_those_backward_computes(program):
    loss = program()
    leaves = leaves_of(loss)
    shown = sorted(float(e.norm) for e in explored(loss).graph.entries if e.kind == "leaf")
    assert all(leaf.grad is None for leaf in leaves)
    hooks = program is programs.custom_function  # its hook doubles the gradient, and is not run for the page
    loss.backward()
    real = sorted(float(np.linalg.norm(leaf.grad.numpy())) / (2 if hooks else 1) for leaf in leaves)
    assert shown == pytest.approx(real, rel=1e-3)


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
def test_entries_stand_in_the_order_the_engine_runs_them(program):
    loss = program()
    graph = explored(loss, backward=False).graph
    ran, stack, seen = [], [loss.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            node.register_prehook(partial(lambda name, grads: ran.append(name), type(node).__name__))
            stack += [parent for parent, _ in node.next_functions]
    loss.backward()
    assert [e.name for e in graph.entries] == ran


def test_looking_runs_no_hooks_and_leaves_the_graph_whole():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    called = []
    x.register_hook(called.append)
    y.register_hook(called.append)
    x.register_post_accumulate_grad_hook(called.append)
    y.retain_grad()
    loss = (y * y).sum()
    graph = explored(loss).graph
    assert called == [] and x.grad is None and y.grad is None
    assert len(entry(graph, "y").hooks) == 2 and len(entry(graph, "x").hooks) == 2
    loss.backward()
    assert len(called) == 3 and x.grad.tolist() == [8.0, 8.0, 8.0]


def test_gradients_that_were_there_stay_as_they_are():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    before, version = x.grad, x.grad._version
    explored((x * 5).sum())
    assert x.grad is before and x.grad._version == version and before.tolist() == [2.0] * 3


def test_a_segment_that_would_write_gradients_is_not_run():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)
    loss = checkpoint(lambda v: (v * w).sin(), x, use_reentrant=True).sum()
    graph = explored(loss).graph
    assert w.grad is None and x.grad is None
    assert "use_reentrant" in entry(graph, "CheckpointFunctionBackward").error


def test_recomputed_segments_are_explored():
    x = torch.ones(3, requires_grad=True)
    loss = checkpoint(lambda v: (v * 2).sin(), x, use_reentrant=False).sum()
    graph = explored(loss).graph
    assert not any(e.error for e in graph.entries)
    loss.backward()
    assert entry(graph, "x").norm == pytest.approx(float(x.grad.norm()), rel=1e-3)


def test_what_was_explored_keeps_no_tensor_alive():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    found = torch.explore(y.sum(), path=None)
    node = ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None and found.graph.keeping.tensors


def test_variables_and_parameters_give_their_names():
    net = torch.nn.Linear(3, 2)
    x = torch.ones(3)
    hidden = net(x)
    graph = explored(hidden.sum()).graph
    assert {e.label for e in graph.entries if e.kind == "leaf"} == {"net.weight", "net.bias"}
    assert entry(graph, "hidden").title.startswith("hidden = ")


def test_names_can_be_given():
    x = [torch.ones(2, requires_grad=True)]
    graph = explored((x[0] * 2).sum(), names={"input": x[0]}, title="my loss").graph
    assert entry(graph, "input").kind == "leaf" and graph.title == "my loss"


def test_a_node_knows_its_line_and_formula():
    x = torch.ones(3, requires_grad=True)
    y = x * x
    graph = explored(y.sum()).graph
    found = entry(graph, "y")
    line = graph.lines[found.line]
    assert line.file == __file__ and line.text == "y = x * x"
    assert graph.formulas["MulBackward0"][:2] == [["self", "grad * conj(other)"], ["other", "grad * conj(self)"]]


def test_the_backward_of_a_custom_function_is_its_formula():
    graph = explored(programs.custom_function()).graph
    ((name, source),) = graph.formulas["SquareBackward"]
    assert name == "Square.backward" and "return 2 * x * grad" in source


def test_saved_tensors_are_shared_and_carry_versions():
    x = torch.ones(1000, requires_grad=True)
    y = x * x
    graph = explored((y * y).sum()).graph
    first, second = (e.saved for e in graph.entries if e.name == "MulBackward0")
    assert [row["name"] for row in first] == ["other", "self"] or [row["name"] for row in first] == ["self", "other"]
    assert len({row["tensor"] for row in first + second}) == 2
    assert graph.bytes == 4000, "x is a leaf, which lives anyway"
    assert all(row["version"] == 0 and "now" not in row for row in first)


def test_a_stale_tensor_is_shown_and_the_failing_step_named():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    y.add_(1)
    graph = explored(loss).graph
    broken = entry(graph, "MulBackward0")
    assert "modified by an inplace operation" in broken.error
    assert all(row["now"] == 1 for row in broken.saved)
    assert entry(graph, "x").gradient is None


def test_a_freed_graph_can_still_be_looked_at():
    x = torch.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    graph = explored(loss).graph
    assert entry(graph, "MulBackward0").saved[0]["freed"]
    assert "backward through the graph a second time" in entry(graph, "MulBackward0").error


def test_packed_values_stay_packed():
    unpacked = []
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: "parcel", unpacked.append):
        loss = (x * x).sum()
    graph = explored(loss, backward=False).graph
    assert unpacked == [] and entry(graph, "MulBackward0").saved[0]["packed"]


def test_a_gradient_may_be_given_and_several_tensors_explored():
    x = torch.ones(2, requires_grad=True)
    graph = explored([x * 2, x * 3], gradient=[torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])]).graph
    assert entry(graph, "x").gradient[0]["values"] == [[2.0, 3.0]]
    assert [size for _, _, size, _ in entry(graph, "x").arrived] == [3.0, 2.0]


def test_two_outputs_of_one_node_start_each_with_their_own_gradient():
    x = torch.tensor([3.0, 1.0], requires_grad=True)
    first, second = x.unbind()
    graph = explored([second, first], gradient=[torch.tensor(5.0), torch.tensor(7.0)]).graph
    assert entry(graph, "x").gradient[0]["values"] == [[7.0, 5.0]]


def test_a_gradient_that_does_not_fit_is_refused():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        explored(x * 2, gradient=torch.ones(3))


def test_the_example_in_the_documentation_runs():
    (test,) = doctest.DocTestFinder(recurse=False).find(torch.explore, "explore", globs={})
    assert test.examples and doctest.DocTestRunner().run(test).failed == 0


def test_numbers_that_are_not_finite_are_counted():
    x = torch.tensor([[0.0, 1.0], [4.0, 9.0]], requires_grad=True)
    graph = explored(x.sqrt().sum()).graph
    shown = entry(graph, "x").gradient[0]
    assert shown["bad"] == 1 and shown["values"][0][0] == "inf" and shown["range"][:2] == [0.1667, 0.5]


@pytest.mark.parametrize("dtype", ["complex64", "float64", "float16", "bfloat16"])
def test_every_dtype_can_be_explored(dtype):
    x = torch.ones(3, 30, dtype=getattr(torch, dtype), requires_grad=True)
    graph = explored((x * x).abs().sum()).graph
    shown = entry(graph, "x").gradient[0]
    assert shown["dtype"] == dtype and shown["map"][:2] == [24, 3] and not any(e.error for e in graph.entries)


def test_a_tensor_without_a_graph_is_refused():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.explore(torch.ones(2), path=None)


def test_an_unknown_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"writes \.html, \.svg and \.dot files, not 'graph\.png'"):
        torch.explore(torch.ones(2, requires_grad=True) * 2, tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_one_file_that_names_no_other(tmp_path):
    path = tmp_path / "graph.html"
    assert torch.explore(programs.gpt(), path).path == path
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?:src|href)=[\"']?(?!data:)", text) == []
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("group", [None, "module", "line"])
def test_a_picture_is_well_formed_and_has_a_box_for_everything(tmp_path, group):
    path = tmp_path / "graph.svg"
    graph = torch.explore(programs.gpt(), path, group=group).graph
    root = ElementTree.parse(path).getroot()
    boxes = root.findall(".//{*}rect")
    assert len(boxes) == len(graph.entries) if group is None else 0 < len(boxes) < len(graph.entries) / 3
    assert root.find("{*}title").text == graph.title


def test_modules_in_a_picture_make_no_cycles():
    text = torch.explore(programs.gpt(), path=None).svg("module")
    assert "stroke-dasharray" not in text
    assert "model.transformer.h.1.attn" in text


def test_lines_in_a_picture_show_the_loop():
    x = torch.ones(3, requires_grad=True)
    h = x
    for _ in range(4):
        h = h.sin()
        h = h * 2
    text = torch.explore(h.sum(), path=None).svg("line")
    assert text.count("<rect") == 3 and text.count("stroke-dasharray") == 1


def test_dot_has_every_node_and_edge_and_a_cluster_for_each_module(tmp_path):
    path = tmp_path / "graph.dot"
    graph = torch.explore(programs.gpt(), path).graph
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"^ +n\d+ \[", text, re.M)) == len(graph.entries)
    assert text.count(" -> ") == len(graph.edges)
    assert text.count("{") == text.count("}") and 'subgraph "cluster_model.transformer.h.0.attn"' in text


def test_boxes_of_a_row_do_not_touch_and_edges_lead_down():
    graph = explored(programs.gpt(), backward=False).graph
    edges = list(dict.fromkeys(graph.edges))
    widths = [100.0 + 10 * (i % 7) for i in range(len(graph.entries))]
    layout = arrange(widths, edges)
    assert all(layout.row[b] > layout.row[a] for a, b in edges)
    for row in range(max(layout.row) + 1):
        rank = sorted((i for i in range(len(layout.x)) if layout.row[i] == row), key=lambda i: layout.x[i])
        for a, b in pairwise(rank):
            gap = layout.x[b] - layout.x[a] - (layout.widths[a] + layout.widths[b]) / 2
            assert gap >= GAP - 1e-6


def random_graph(seed):
    """A graph of 60 boxes with long edges, many of which meet, and some that lead back up."""
    draw = random.Random(seed)
    edges = {(i, i + 1) for i in range(59)} | {(draw.randrange(59), draw.choice([40, 59])) for _ in range(12)}
    edges |= {tuple(sorted(draw.sample(range(60), 2))) for _ in range(20)} | {(draw.randrange(30, 60), 3)}
    return [draw.uniform(60, 300) for _ in range(60)], sorted((a, b) for a, b in edges if a != b)


@pytest.mark.parametrize("seed", range(12))
def test_no_edge_goes_through_a_box(seed):
    widths, edges = random_graph(seed)
    layout = arrange(widths, edges)
    routes = [layout.route(a, b, 0.0, layout.size[0]) for a, b in edges]
    assert geometry.crossings(routes, layout.x, layout.row, widths) == []
    through = [(layout.x[30], 84.0 * layout.row[30] - 10), (layout.x[30], 84.0 * layout.row[30] + 50)]
    assert {box for _, box in geometry.crossings([(through, True)], layout.x, layout.row, widths)} == {30}


def test_edges_for_which_there_are_too_many_bends_go_around_everything():
    count = 3000
    edges = sorted([(i, i + 1) for i in range(count - 1)] + [(i, count - 1 - i) for i in range(20)])
    layout = arrange([90.0] * count, edges)
    routes = [layout.route(a, b, 0.0, layout.size[0]) for a, b in edges]
    assert 0 < sum(around for _, around in routes) < 20
    assert geometry.crossings(routes, layout.x, layout.row, layout.widths[:count]) == []


def test_edges_lead_down_in_whatever_order_boxes_are_given():
    draw = random.Random(0)
    for _ in range(20):
        place = draw.sample(range(30), 30)
        edges = sorted({tuple(place[i] for i in sorted(draw.sample(range(30), 2))) for _ in range(50)})
        row = arrange([80.0] * 30, edges).row
        assert all(row[a] < row[b] for a, b in edges)
    row = arrange([80.0] * 4, [(0, 1), (1, 2), (2, 1), (2, 3)]).row
    assert row == [0, 1, 2, 3], "a loop leads back at one edge only"


def test_a_long_chain_is_straight_whatever_hangs_on_it():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    h = x
    for i in range(40):
        h = (h * w).sin() + torch.full((3,), float(i), requires_grad=True) * x
    boxes, edges = boxes_of(explored(h.sum(), backward=False).graph, None)
    layout = arrange([text_width(box.title, box.more) for box in boxes], edges)
    spine = [layout.x[i] for i, box in enumerate(boxes) if box.entries[0].name in ("SinBackward0", "AddBackward0")]
    assert len(spine) == 80 and max(spine) - min(spine) < 1


def test_notebooks_show_tensors_graphs_modules_and_profiles():
    x = torch.randn(4, 5, requires_grad=True)
    y = x.exp()
    assert "<img" in y._repr_html_() and "ExpBackward0" in y._repr_html_() and "<svg" in y.grad_fn._repr_html_()
    assert "<iframe srcdoc=" in torch.explore(y, path=None)._repr_html_()
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    assert "9 parameters" in net._repr_html_() and "(1): <b>ReLU</b>" in net._repr_html_()
    with torch.autograd.profiler.profile() as profile:
        y.sum().backward()
    assert "aten::sum" in profile.key_averages()._repr_html_()


def test_text_in_notebooks_is_escaped():
    class Odd(torch.nn.Module):
        def extra_repr(self):
            return "<script>"

    assert "<script>" not in Odd()._repr_html_()


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.__name__)
def test_the_explorer_explain_and_memory_report_count_the_same_bytes(program):
    loss = program()
    report, graph = torch.memory_report(loss), explored(loss).graph
    assert graph.bytes == report.kept == torch.explain(loss).json()["kept_bytes"]
    assert graph.bytes > 0 or program in (programs.custom_function, programs.writes_through_views), "no leaf is counted"
    counted = {}
    for e in graph.entries:
        counted[e.name] = counted.get(e.name, 0) + e.bytes
    for item in report.items:
        counted[item.node] -= 0 if item.leaf else item.bytes
    assert not any(counted.values())


def test_every_call_of_a_module_is_a_group_and_those_of_a_loop_have_one_around_them():
    graph = explored(programs.reader(3), backward=False).graph
    keys = {call.key: (call.which, graph.calls[call.parent].key if call.parent >= 0 else "") for call in graph.calls}
    assert keys["net"] == ("", "")
    assert keys["net.cell#1-3"] == ("3 calls", "net")
    assert [keys[f"net.cell#{n}"] for n in (1, 2, 3)] == [(f"call {n} of 3", "net.cell#1-3") for n in (1, 2, 3)]
    assert keys["net.head.2"] == ("", "net.head") and len(keys) == len(graph.calls)
    oldest = [e for e in graph.entries if e.kind != "leaf" and e.module.startswith("net.cell")][-1]
    assert graph.calls[oldest.call].key == "net.cell#1"
    shared = entry(graph, "net.cell.weight_hh")
    assert graph.calls[shared.call].key == "net.cell#1-3" and shared.module == "net.cell (LSTMCell)"


def test_calls_inside_several_calls_have_keys_of_their_own():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(self.inner(x))

    net = Twice()
    x = torch.ones(1, 2)
    loss = (net(x) + net(2 * x)).sum()
    keys = [call.key for call in explored(loss, backward=False).graph.calls]
    assert len(set(keys)) == len(keys) == 9
    assert {"net#1-2", "net#1", "net#2", "net.inner#1-2", "net.inner#3-4", "net.inner#4"} <= set(keys)
