"""Graphs made, changed and checked by hand, on torch and on pullback."""

import copy
import io
import operator
import pickle

import pytest

from tests.conformance.both import attempt, same


def traced(t, *layers):
    t.manual_seed(0)
    nn = t.nn
    return t.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), *layers))


def by_hand(t):
    g = t.fx.Graph()
    x, y = g.placeholder("x", t.Tensor), g.placeholder("y", default_value=2)
    w = g.get_attr("inner.weight")
    a = g.call_function(t.add, (x, y), {"alpha": 3})
    b = g.call_method("mul", (a, w), type_expr=t.Tensor)
    c = g.call_module("inner", (b,))
    d = g.create_node("call_function", operator.getitem, (c, (slice(None, None, None), 0)), name="first item")
    g.output((d, {"list": [a, b]}))
    m = t.fx.GraphModule({"inner": inner(t), "inner.weight": inner(t).weight}, g)
    g.lint()
    return str(g), m.code, m(t.ones(1, 3)), m(t.ones(1, 3), 1), [n.format_node() for n in g.nodes], g.nodes.__len__()


def inner(t):
    t.manual_seed(1)
    return t.nn.Linear(3, 3)


def names(t):
    g = t.fx.Graph()
    for name in (
        "x",
        "x",
        "x_1",
        "x_7",
        "x_7",
        "sum",
        "lambda",
        "a.b",
        "1c",
        "camelCase",
        "torch",
        "inf",
        "len",
        "__abs__",
    ):
        g.placeholder(name)
    g.call_method("__getitem__", (g.placeholder("p"), 0))
    g.call_function(t.nn.functional.relu, (g.placeholder("self_"),))
    nodes = list(g.nodes)
    nodes[0]._rename("renamed")
    return [n.name for n in g.nodes], [n.target if isinstance(n.target, str) else "" for n in g.nodes]


def users_and_moves(t):
    g = traced(t).graph
    x, first, relu, last, out = g.nodes
    order = [
        relu < last,
        last < relu,
        sorted([last, x, relu]) == [x, relu, last],
        relu.next is last,
        relu.prev is first,
    ]
    with g.inserting_after(relu):
        extra = g.call_function(t.sigmoid, (relu,))
    changed = relu.replace_all_uses_with(extra, lambda user: user is not extra)
    with g.inserting_before(relu):
        g.call_function(operator.neg, (first,))
    with g.inserting_before():
        g.placeholder("before")
    with g.inserting_after():
        g.placeholder("after")
    g.erase_node(list(g.nodes)[-1])
    last.update_arg(0, relu)
    last.insert_arg(1, 5)
    last.update_kwarg("k", [relu, first])
    args = last.args, last.kwargs, last.all_input_nodes, list(relu.users)
    last.kwargs = {}
    last.args = (extra,)
    last.replace_input_with(extra, first)
    kinds = type(last.args).__name__, type(out.args).__name__, type(last.kwargs).__name__
    return str(g), order, str(changed), str(args), kinds, str(g.find_nodes(op="call_module")), str(g.output_node())


def refused_changes(t):
    g = traced(t).graph
    x, first, relu, *_ = g.nodes
    node = g.call_function(t.cat, ([x, first],), {"d": {"a": [1]}})

    def change(action):
        return attempt(action)

    other = t.fx.Graph()
    results = [
        change(lambda: g.erase_node(relu)),
        change(lambda: other.erase_node(node)),
        change(lambda: node.args[0].append(1)),
        change(lambda: node.args[0].__setitem__(0, 1)),
        change(lambda: node.kwargs.update(a=1)),
        change(lambda: node.kwargs["d"].pop("a")),
        change(lambda: g.create_node("nothing", "x")),
        change(lambda: g.create_node("call_function", "x")),
        change(lambda: g.create_node("call_method", 3)),
        change(lambda: g.create_node("call_method", "a", [1])),
        change(lambda: other.inserting_before(x)),
        change(lambda: other.inserting_after(x)),
        change(lambda: g.find_nodes(op="call_function")),
        change(lambda: g.output_node()),
        change(lambda: t.fx.map_arg((x,), 3)),
        change(lambda: t.fx.GraphModule(3, g)),
        change(lambda: t.fx.GraphModule({}, g)),
        change(lambda: setattr(traced(t), "graph", 3)),
        change(lambda: t.fx.wrap(3)),
        change(lambda: t.fx.wrap("f")),
    ]
    return results


def lint(t):
    def broken(change):
        m = traced(t)
        nodes = list(m.graph.nodes)
        change(m, nodes)
        return attempt(m.graph.lint)

    def foreign(m, nodes):
        nodes[2].args = (t.fx.Graph().placeholder("z"),)

    def late(m, nodes):
        nodes[1].args = (nodes[3],)

    def missing(m, nodes):
        nodes[1].target = "nowhere.at.all"

    def named(m, nodes):
        nodes[1].name = nodes[2].name

    return [broken(change) for change in (foreign, late, missing, named)]


def dead_code(t):
    def program(x):
        y = x + 1
        x.relu()
        t.sigmoid(y)
        return x * 2

    m = t.fx.symbolic_trace(program)
    before = str(m.graph)
    changed = m.graph.eliminate_dead_code(), m.graph.eliminate_dead_code()
    m.recompile()
    other = traced(t)
    list(other.graph.nodes)[-1].args = (list(other.graph.nodes)[1],)
    return before, changed, m.code, m(t.ones(2)), other.graph.eliminate_dead_code(), str(other.graph)


def copies(t):
    m = traced(t)
    g = t.fx.Graph()
    values = {}
    result = g.graph_copy(m.graph, values)
    g.output(result)
    h = t.fx.Graph()
    env = {}
    for n in m.graph.nodes:
        env[n] = h.node_copy(n, lambda a: env[a])
    deep = copy.deepcopy(m)
    deep.get_submodule("0").weight.data.zero_()
    shallow = copy.copy(m)
    x = t.ones(1, 3)
    return (
        str(g),
        str(h),
        deep(x),
        m(x),
        shallow(x),
        deep.code == m.code,
        str(copy.deepcopy(m.graph)),
        type(deep).__name__,
    )


def submodules(t):
    m = traced(t)
    done = [m.add_submodule("new.deep.relu", t.nn.ReLU()), m.add_submodule("0.weight.x", t.nn.ReLU())]
    done += [m.delete_submodule("nothing"), m.delete_submodule("0.weight"), m.delete_submodule("new.deep")]
    m.add_submodule("unused", t.nn.Linear(2, 2))
    before = [n for n, _ in m.named_modules()]
    m.delete_all_unused_submodules()
    return done, before, [n for n, _ in m.named_modules()]


def pickles(t):
    m = traced(t)
    again = pickle.loads(pickle.dumps(m))
    file = io.BytesIO()
    t.save(m, file)
    file.seek(0)
    loaded = t.load(file, weights_only=False)
    x = t.ones(1, 3)
    return again.code, str(again.graph), again(x), loaded.code, loaded(x), m(x), type(again).__name__


def code_changes(t):
    m = t.fx.symbolic_trace(lambda x: x + 1)
    with m.graph.on_generate_code(lambda before: lambda body: ["x = x * 10\n", *body]):
        m.recompile()
        first = m.code, m(t.ones(1))
    m.recompile()

    class Named(t.fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return super().gen_fn_def([*free_vars, "unused=None"], maybe_return_annotation)

        def additional_globals(self):
            return [("answer", 42)]

    m.graph.set_codegen(Named())
    m.recompile()
    return first, m.code, m(t.ones(1), 3), m.graph.python_code("self").globals["answer"]


def readable(t):
    m = traced(t)
    t.fx.passes.shape_prop.ShapeProp(m).propagate(t.ones(1, 3))
    outer = t.nn.Module()
    outer.inner = m
    g = t.fx.Graph()
    g.output(g.call_module("inner", (g.placeholder("x"),)))
    whole = t.fx.GraphModule(outer, g)
    list(m.graph.nodes)[1].meta["seq"] = 3
    texts = [
        whole.print_readable(False),
        m.print_readable(False, expanded_def=True),
        m.print_readable(False, colored=True),
    ]
    return texts, m.print_readable(False, additional_meta=["seq"]), m.graph.python_code("self", verbose=True).src


def line_numbers(t):
    code = traced(t).graph.python_code("self")
    return code._lineno_map, code._prologue_start, code.src, sorted(code.globals)


def odd_arguments(t):
    g = t.fx.Graph()
    x = g.placeholder("x")
    values = [float("inf"), -1, None, ..., "text", t.float32, t.device("cpu"), True, 1j, t.contiguous_format, (1,), []]
    for value in values:
        g.call_function(t.add, (x, value), {"k": [value, {"a": slice(x, None)}]})
    g.call_function(getattr, (x, "shape"))
    g.call_function(getattr, (x, "a b"))
    g.call_function(getattr, (x, "shape", 3))
    g.call_function(operator.setitem, (x, 0, 1))
    g.call_function(operator.iadd, (x, 1))
    g.call_method("a.b", (x,))
    g.get_attr("0.1.weight")
    g.output(x)
    return str(g), g.python_code("self").src


def hooks(t):
    m = traced(t)
    seen = []
    m._register_create_node_hook(lambda n: seen.append(("made", str(n))))
    m._register_erase_node_hook(lambda n: seen.append(("erased", str(n))))
    nodes = list(m.graph.nodes)
    with m._set_replace_hook(lambda old, new, user: seen.append((str(old), new, str(user)))):
        with m.graph.inserting_before(nodes[3]):
            new = m.graph.call_function(t.sigmoid, (nodes[1],))
        nodes[2].replace_all_uses_with(new)
        m.graph.erase_node(nodes[2])
    return seen


def warned(t):
    m = traced(t)
    node = m.graph.call_function(t.sigmoid, (next(iter(m.graph.nodes)),))
    m.graph.erase_node(node)
    m.graph.erase_node(node)
    m.graph.get_attr("missing")
    m.graph.get_attr("missing.deep")
    return attempt(lambda: m.graph.call_module("missing"))


def mapped(t):
    g = t.fx.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    tree = (x, [y, {"a": x, "b": (1, slice(y, None, 2))}])
    map_aggregate = t.fx.node.map_aggregate
    doubled = map_aggregate((1, [2, {"a": 3}], slice(1, 2)), lambda v: v * 2 if isinstance(v, int) else v)
    lists = t.fx.immutable_collections.immutable_list([1, 2]), t.fx.immutable_collections.immutable_dict(a=1)
    kinds = [type(v).__name__ for v in (doubled, doubled[1], doubled[1][1])]
    return str(t.fx.map_arg(tree, lambda n: n.name)), str(doubled), kinds, hash(lists[0]) == hash((1, 2)), lists


PROGRAMS = [
    *[by_hand, names, users_and_moves, refused_changes, lint, dead_code, copies, submodules, pickles, code_changes],
    *[readable, line_numbers, odd_arguments, hooks, warned, mapped],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs_are_made_changed_and_printed_as_in_torch(program):
    same(program)
