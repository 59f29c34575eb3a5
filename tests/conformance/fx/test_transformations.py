"""Interpreters, transformations and patterns, on torch and on pullback."""

import importlib
import operator
import warnings

import pytest

from tests.conformance.both import attempt, same


def net(t):
    t.manual_seed(0)
    nn = t.nn
    layers = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8, 2)
    model = nn.Sequential(*layers)
    model[1].running_mean.fill_(0.5)
    model[1].running_var.fill_(2.0)
    return model.eval()


def image(t):
    return t.arange(16.0).reshape(1, 1, 4, 4) / 16


def shown(m):
    return str(m.graph), m.code, [name for name, _ in m.named_modules()]


def interpreted(t):
    m = t.fx.symbolic_trace(net(t))

    class Logging(t.fx.Interpreter):
        def __init__(self, module):
            super().__init__(module)
            self.log = []

        def run_node(self, n):
            result = super().run_node(n)
            self.log.append((n.op, n.name, list(result.shape)))
            return result

        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * (2 if target == "2" else 1)

    runner = Logging(m)
    partial = t.fx.Interpreter(m, garbage_collect_values=False)
    relu = list(m.graph.nodes)[3]
    skipped = partial.run(image(t), initial_env={relu: t.ones(1, 2, 2, 2)})
    boxed = [image(t)]
    return runner.run(image(t)), runner.log, skipped, len(partial.env), t.fx.Interpreter(m).boxed_run(boxed), boxed


def failing_interpreters(t):
    m = t.fx.symbolic_trace(lambda x, y=2: t.matmul(x, x) + y)
    run = t.fx.Interpreter(m).run
    broken = t.fx.symbolic_trace(net(t))
    list(broken.graph.nodes)[1].target = "nowhere"
    errors = [lambda: run(t.ones(2, 3)), lambda: run(), lambda: t.fx.Interpreter(broken).run(image(t))]
    errors += [lambda: t.fx.Interpreter(m).boxed_run([1]), lambda: m(t.ones(2, 3))]
    raised = [attempt(e) for e in errors]  # pullback says more about the tensors before the node is named
    texts = [[r.kind, r.text[:20], r.text.partition("While executing")[2]] for r in raised]
    return texts, run(t.ones(2, 2)), run(t.ones(2, 2), 5)


def transformed(t):
    def program(x, scale=2.0):
        return t.sigmoid(x).neg() * scale

    class Swap(t.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is t.sigmoid:
                return t.tanh(*args)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                return args[0] + 1
            return super().call_method(target, args, kwargs)

    m = t.fx.symbolic_trace(program)
    new = Swap(m).transform()
    plain = t.fx.Transformer(t.fx.symbolic_trace(net(t))).transform()
    return shown(new), new(t.ones(2)), shown(plain), plain(image(t))


def fused(t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's is deprecated in parts, and says so when first imported
        optimization = importlib.import_module(f"{t.__name__}.fx.experimental.optimization")
    model = net(t)
    quick = optimization.fuse(model)
    bare = optimization.remove_dropout(quick)
    return shown(quick), quick(image(t)), model(image(t)), shown(bare), bare(image(t)), model[0].weight


def replaced_patterns(t):
    def program(x, y):
        a = t.add(x, y).relu()
        b = t.add(a, x).relu()
        return a + b, t.add(b, 1)

    m = t.fx.symbolic_trace(program)
    before = m(t.ones(2), t.ones(2))
    matches = t.fx.replace_pattern(m, lambda p, q: t.add(p, q).relu(), lambda p, q: t.sub(p, q).clamp(min=0))
    found = [(str(k.anchor), {str(a): str(b) for a, b in k.nodes_map.items()}) for k in matches]
    return before, shown(m), found, m(t.ones(2), t.ones(2))


def patterns_with_modules(t):
    nn = t.nn

    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.inner(x).relu()

    t.manual_seed(0)

    def program(x):
        return t.sigmoid(x * 2) + 1

    m = t.fx.symbolic_trace(program)
    new = t.fx.symbolic_trace(Pattern())
    t.fx.replace_pattern(m, lambda x: t.sigmoid(x * 2), new)
    return shown(m), m(t.ones(1, 2))


def several_results_and_filters(t):
    def program(x):
        a, b = x + 1, x * 2
        c = t.cat([a, b])
        d = t.cat([a * 3, b * 3])
        return c.relu(), d.relu() + c

    rewriter = t.fx.subgraph_rewriter
    m = t.fx.symbolic_trace(program)
    two = rewriter.replace_pattern(m, lambda x: (x + 1, x * 2), lambda x: (x - 1, x / 2))
    n = t.fx.symbolic_trace(program)
    kept = rewriter.replace_pattern_with_filters(
        n,
        lambda p, q: t.cat([p, q]).relu(),
        lambda p, q: p - q,
        match_filters=[lambda match, graph, pattern: len(match.nodes_map) > 1],
    )
    o = t.fx.symbolic_trace(lambda x: x * 3 + x * 4)
    loose = rewriter.replace_pattern_with_filters(o, lambda x: x * 1, lambda x: x / 5, ignore_literals=True)
    return shown(m), len(two), shown(n), len(kept), [str(k.replacements) for k in kept], shown(o), len(loose)


def quantised_like(t):
    class Observer(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.high = 0.0, 0.0

        def forward(self, x):
            self.low, self.high = min(self.low, x.min().item()), max(self.high, x.max().item())
            return x

    m = t.fx.symbolic_trace(net(t))
    for i, node in enumerate([n for n in m.graph.nodes if n.op == "call_module"]):
        name = f"observers.{i}"
        m.add_submodule(name, Observer())
        with m.graph.inserting_after(node):
            seen = m.graph.call_module(name, (node,))
        node.replace_all_uses_with(seen, lambda user, seen=seen: user is not seen)
    m.recompile()
    m.graph.lint()
    m(image(t))
    watched = [(o.low, o.high) for o in m.observers.children()]
    for node in m.graph.nodes:
        if node.op == "call_module" and node.target.startswith("observers"):
            scale = max(abs(v) for v in watched[int(node.target[10:])]) / 127 or 1.0
            with m.graph.inserting_before(node):
                rounded = m.graph.call_function(
                    t.round, (m.graph.call_function(operator.truediv, (node.args[0], scale)),)
                )
                back = m.graph.call_function(operator.mul, (rounded, scale))
            node.replace_all_uses_with(back)
            m.graph.erase_node(node)
    m.delete_all_unused_submodules()
    m.recompile()
    return watched, [n.op for n in m.graph.nodes], m(image(t)), [name for name, _ in m.named_modules()]


def proxies_by_hand(t):
    m = t.fx.symbolic_trace(lambda x: x + 1)
    _, add, out = m.graph.nodes
    with m.graph.inserting_after(add):
        p = t.fx.Proxy(add)
        new = (p * 2).relu() + t.nn.functional.gelu(p) - t.sigmoid(p)
    out.args = (new.node,)
    m.recompile()
    return shown(m), m(t.ones(2)), repr(p)


def shapes(t):
    m = t.fx.symbolic_trace(net(t))
    t.fx.passes.shape_prop.ShapeProp(m).propagate(image(t))
    metas = [n.meta.get("tensor_meta") for n in m.graph.nodes]
    several = t.fx.symbolic_trace(lambda x: (x.chunk(2), x.permute(0, 2, 3, 1)))
    t.fx.passes.shape_prop.ShapeProp(several).propagate(t.ones(2, 3, 4, 5).to(memory_format=t.channels_last))
    kinds = [n.meta["type"].__name__ for n in m.graph.nodes]
    return [list(map(str, k)) for k in metas], [str(n.meta["tensor_meta"]) for n in several.graph.nodes], kinds


def normalised(t):
    m = t.fx.symbolic_trace(net(t))
    pairs = [
        n.normalized_arguments(m, normalize_to_only_use_kwargs=True) for n in m.graph.nodes if n.op == "call_module"
    ]
    f = t.fx.symbolic_trace(lambda x: t.nn.functional.relu(x))
    calls = [n.normalized_arguments(f) for n in f.graph.nodes if n.op == "call_function"]
    return [str(p) for p in pairs], [str(c) for c in calls]


def notes_are_kept(t):
    class Stacks(t.fx.Tracer):
        record_stack_traces = True

    class Net(t.nn.Module):
        def forward(self, x):
            return t.relu(x)

    graph = Stacks().trace(Net())
    relu = list(graph.nodes)[1]
    relu.meta["custom"] = {"mine": 1}
    m = t.fx.GraphModule(t.nn.Module(), graph)
    new = t.fx.Transformer(m).transform()
    copied = list(new.graph.nodes)[1]
    text = m.print_readable(False)
    return (
        "return t.relu(x)" in relu.stack_trace,
        copied.stack_trace == relu.stack_trace,
        copied.meta.get("custom"),
        text.split("File")[0],
    )


def normalised_ops(t):
    find = importlib.import_module(f"{t.__name__}.fx.operator_schemas").normalize_function
    calls = [("sum", (1, 0), {}), ("softmax", (1,), {"dim": 2}), ("cat", ([1],), {}), ("relu", (1,), {})]
    return [tuple(find(getattr(t, name), a, k, normalize_to_only_use_kwargs=n)) for name, a, k in calls for n in (0, 1)]


PROGRAMS = [
    *[interpreted, failing_interpreters, transformed, fused, replaced_patterns, patterns_with_modules],
    *[several_results_and_filters, quantised_like, proxies_by_hand, shapes, normalised, normalised_ops, notes_are_kept],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs_are_run_and_transformed_as_in_torch(program):
    same(program)
