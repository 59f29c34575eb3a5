"""Every node knows the line of the user's that made it, and the module it was made in."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

import pullback
from pullback import nn, ops
from pullback._op.declare import Op, spaces
from pullback.insight.locations import detached_at, location_of
from tests.insight.programs import KINDS, line_of, nodes_of, run

MAKERS = {
    "an operator": "y = x * 2",
    "a method": "y = x.exp()",
    "a function": "y = torch.sin(x)",
    "a composite function": "y = F.gelu(x)",
    "a loss": "y = F.mse_loss(x, x + 1)",
    "a view": "y = x[0]",
    "several outputs": "y = x.max(0)[0]",
    "a list of outputs": "y = x.unbind(0)[1]",
    "a reduction": "y = x.sum()",
    "an in-place op": "y = x.clone(); y.mul_(3)",
    "a write through a view": "y = x.clone(); y[0] = x[1]",
    "mixed dtypes": "y = x * torch.ones(2, 2, dtype=torch.float64)",
    "numbers on the left": "y = 1 - x",
    "einsum": "y = torch.einsum('ij,jk->ik', x, x)",
    "a lambda": "y = (lambda t: t.tanh())(x)",
    "a comprehension": "y = [t.cos() for t in (x,)][0]",
    "a generator": "y = next(t.log() for t in (x,))",
    "a module": "y = nn.Linear(2, 2)(x)",
    "double backward": "y, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_node_knows_its_line(maker, kind):
    source = f"x = torch.ones(2, 2, requires_grad=True)\n\n{MAKERS[maker]}  # made\n"
    y = run(source, KINDS[kind])["y"]
    place = location_of(y.grad_fn)
    assert (place.file, place.line) == (KINDS[kind], 3)
    assert place.text == source.splitlines()[2]
    assert place.user == place


@pytest.mark.parametrize("maker", MAKERS)
def test_every_node_of_a_call_knows_its_line(maker):
    y = run(f"x = torch.ones(2, 2, requires_grad=True)\n\n{MAKERS[maker]}")["y"]
    places = [location_of(node) for node in nodes_of(y) if node.name() != "torch::autograd::AccumulateGrad"]
    assert {place.line for place in places} == {3}


def test_leaves_have_no_place():
    x = pullback.ones(2, requires_grad=True)
    assert location_of((x * 2).grad_fn.next_functions[0][0]) is None


def test_a_place_says_function_and_text():
    source = """
def model(x):
    return x.sigmoid()  # made

y = model(torch.ones(2, requires_grad=True))
"""
    place = location_of(run(source)["y"].grad_fn)
    assert place.function == "model"
    assert str(place) == f"{KINDS['script']}:2, in model: return x.sigmoid()  # made"


def test_each_part_of_an_expression_on_several_lines_has_its_own():
    source = """
x = torch.ones(2, requires_grad=True)
y = (
    x.exp()  # exp
    .sin()  # sin
    .cos()  # cos
)
"""
    node = run(source)["y"].grad_fn
    for mark in ("cos", "sin", "exp"):
        assert location_of(node).line == line_of(source, mark)
        node = node.next_functions[0][0]


NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def forward(self, x):
        return self.body(x) + x  # block

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.relu()  # net

net = Net()
out = net(torch.ones(2, 2))
"""


def test_a_node_knows_the_module_it_was_made_in():
    names = run(NET)  # nodes hold modules weakly: somebody must keep them
    found = {(node.name(), location_of(node).module) for node in nodes_of(names["out"]) if location_of(node)}
    assert found == {
        ("ReluBackward0", "net (Net)"),
        ("AddBackward0", "net.blocks.0 (Block)"),
        ("AddBackward0", "net.blocks.1 (Block)"),
        ("TanhBackward0", "net.blocks.0.body.1 (Tanh)"),
        ("TanhBackward0", "net.blocks.1.body.1 (Tanh)"),
        ("AddmmBackward0", "net.blocks.0.body.0 (Linear)"),
        ("AddmmBackward0", "net.blocks.1.body.0 (Linear)"),
        ("TBackward0", "net.blocks.0.body.0 (Linear)"),
        ("TBackward0", "net.blocks.1.body.0 (Linear)"),
    }


def test_an_op_of_a_library_module_is_at_the_nearest_line_of_the_user():
    names = run(NET)
    lines = {node.name(): location_of(node).line for node in nodes_of(names["out"]) if location_of(node)}
    assert lines["ReluBackward0"] == line_of(NET, "net")
    assert lines["AddmmBackward0"] == lines["TanhBackward0"] == lines["AddBackward0"] == line_of(NET, "block")


def test_a_hook_of_a_module_has_its_own_line():
    source = """
net = nn.Linear(2, 2)
net.register_forward_hook(lambda module, args, out: out * 2)  # hook
y = net(torch.ones(1, 2))
"""
    place = location_of(run(source)["y"].grad_fn)
    assert (place.line, place.module) == (line_of(source, "hook"), "net (Linear)")


def test_the_backward_of_a_custom_function_has_its_own_lines():
    source = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * x * 3  # backward

x = torch.ones(2, requires_grad=True)
g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
"""
    assert location_of(run(source)["g"].grad_fn).line == line_of(source, "backward")


def test_after_a_module_raised_nodes_are_outside_of_it():
    source = """
class Wrong(nn.Module):
    def forward(self, x):
        raise KeyError

try:
    Wrong()(torch.ones(1))
except KeyError:
    pass
y = torch.ones(1, requires_grad=True) * 2
"""
    assert location_of(run(source)["y"].grad_fn).module is None


def test_a_node_keeps_no_frame_and_no_module_alive():
    def program():
        held = Held()
        net = nn.Linear(2, 2)
        return weakref.ref(held), weakref.ref(net), net(pullback.ones(1, 2)).tanh()

    class Held:
        pass

    gc.disable()
    try:
        held, net, out = program()
        assert held() is None
        assert net() is None
        assert location_of(nodes_of(out)[1]).module is None
    finally:
        gc.enable()


def test_threads_do_not_see_each_others_modules():
    inside, done = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def forward(self, x):
            inside.set()
            assert done.wait(10)
            return x * 2

    thread = threading.Thread(target=lambda: Slow()(pullback.ones(1, requires_grad=True)))
    thread.start()
    assert inside.wait(10)
    place = location_of((pullback.ones(1, requires_grad=True) * 2).grad_fn)
    done.set()
    thread.join()
    assert place.module is None


def test_both_paths_note_the_same_places():
    program = (
        "import pullback as torch, pullback.nn as nn\n"
        "from pullback.insight.locations import location_of\n"
        "net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n"
        "y = net(torch.ones(1, 2)).sum() * 2\n"
        "node = y.grad_fn\n"
        "while node is not None and location_of(node):\n"
        "    print(node.name(), location_of(node).line, location_of(node).module)\n"
        "    node = node.next_functions[0][0]\n"
    )
    seen = []
    for reference in ("0", "1"):
        environment = {**os.environ, "PULLBACK_REFERENCE": reference}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        seen.append(done.stdout)
    assert seen[0] == seen[1]
    assert (
        "AddmmBackward0 4 None" in seen[0] or "AddmmBackward0 4 net.0 (Linear)" in seen[0] or "Sequential.0" in seen[0]
    )


def test_no_op_that_users_call_counts_as_private():
    ops.load_all()
    shown = [f for names in spaces.values() for f in names.values()] + list(vars(pullback.Tensor).values())
    assert not [f for f in shown if isinstance(op := getattr(f, "op", None), Op) and op.private and op.call is f]


def test_cut_of_says_what_and_where():
    x = pullback.ones(2, requires_grad=True)
    what, place = detached_at((x * 2).detach() + 1)
    assert what == "detach()"
    assert place.file == __file__
    assert detached_at(pullback.ones(2)) is None
