"""The stepper shows a backward pass node by node and does exactly what backward does."""

import io
import pdb

import numpy as np
import pytest

import pullback as torch
from pullback import nn


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        return a * 2, b.clone()

    @staticmethod
    def backward(ctx, first, second):
        return first * 2, None


def network(x, w):
    return (torch.tanh(x @ w).sum(0, keepdim=True) * x).mean()


def several_outputs(x, w):
    values, _ = x.max(1)
    first, second = w.split(2)
    return (values * first.sum()).sum() + second.exp().prod() + x.unbind(0)[1].sum()


def views_written_in_place(x, w):
    y = x * 1
    y[0].mul_(w[0, 0])
    y[:, 1:].exp_()
    return (y * y).sum()


def custom_function(x, w):
    a, b = Doubled.apply(x, w)
    return (a * a).sum() + b.sum()


def leaf_used_often(x, w):
    return sum((x * k * w.sum() for k in range(5)), x).sum()


def leaf_itself(x, w):
    return x


PROGRAMS = [network, several_outputs, views_written_in_place, custom_function, leaf_used_often, leaf_itself]


def leaves():
    generator = np.random.default_rng(0)
    return [torch.from_numpy(generator.normal(size=(4, 4))).requires_grad_() for _ in range(2)]


def grads(run, program):
    x, w = leaves()
    loss = program(x, w)
    run(loss, torch.ones_like(loss))
    return [None if t.grad is None else t.grad.numpy().tobytes() for t in (x, w)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_finished_loop_has_done_what_backward_does(program):
    stepped = grads(lambda loss, g: list(torch.autograd.steps(loss, gradient=g)), program)
    assert stepped == grads(lambda loss, g: loss.backward(g), program)


@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda p: p.__name__)
def test_the_order_is_the_engines(program):
    loss = program(*leaves())
    loss = loss.sum()
    order, pending = [], [loss.grad_fn]
    seen = {loss.grad_fn}
    while pending:
        node = pending.pop()
        node.register_prehook(lambda grads, node=node: order.append(node))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                pending.append(following)
    loss.backward(retain_graph=True)
    engine, order[:] = order[:], []
    assert [step.node for step in torch.autograd.steps(loss)] == engine


def test_gradients_are_shown_before_they_are_applied():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    shown = []
    for step in torch.autograd.steps((x * x).sum()):
        shown.append((step.name, step.op, [g.tolist() for g in step.incoming], [g.tolist() for g in step.outgoing]))
        assert x.grad is None
    assert shown == [
        ("SumBackward0", "sum", [1.0], [[1.0, 1.0]]),
        ("MulBackward0", "mul", [[1.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]]),
        ("AccumulateGrad", "AccumulateGrad", [[2.0, 4.0]], []),
    ]
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_step_says_which_leaf_will_get_what():
    x, y = (torch.tensor([v], requires_grad=True) for v in (2.0, 3.0))
    mul, *ends = torch.autograd.steps(x * y)
    assert [(leaf is x, grad.tolist()) for leaf, grad in mul.leaves] == [(True, [3.0]), (False, [2.0])]
    assert mul.targets == [x, y] and mul.leaf is None
    assert [step.leaf for step in ends] == [x, y]
    assert ends[0].leaves == [(x, ends[0].incoming[0])]


def test_a_step_knows_its_line():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()  # this line
    step = next(torch.autograd.steps(y.sum(), break_on="exp"))
    assert step.place.file == __file__ and step.place.text == "y = x.exp()  # this line"
    assert f"ExpBackward0 at {__file__}:{step.place.line}" in str(step)


def test_a_step_in_one_line():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    step = next(torch.autograd.steps(x.exp().sum(), break_on="SumBackward0"))
    assert str(step).endswith("| in [] 1 | out to ExpBackward0 [2] 1")


# ------------------------------------------------------------------ leaving early


def test_leaving_early_leaves_everything_as_it_was():
    x, w = leaves()
    x.grad = torch.full_like(x, 7.0)
    h = x * w
    h.retain_grad()
    loss = (h.exp() + x).sum()
    held = x.grad
    for step in torch.autograd.steps(loss):
        if step.leaf is w:
            break
    assert x.grad is held and x.grad.unique().tolist() == [7.0]
    assert w.grad is None and h.grad is None
    loss.backward()
    assert w.grad is not None


def test_an_error_in_the_loop_leaves_everything_as_it_was():
    x, w = leaves()
    loss = network(x, w)
    with pytest.raises(ZeroDivisionError):
        for step in torch.autograd.steps(loss):
            if step.leaf is not None:
                1 / 0
    del step
    assert x.grad is None and w.grad is None
    loss.backward()


def test_grad_mode_is_the_programs_own_between_steps():
    x, w = leaves()
    for _ in torch.autograd.steps(network(x, w)):
        assert torch.is_grad_enabled()
        assert (x * 2).requires_grad


def test_another_backward_may_run_between_steps():
    x, w = leaves()
    for _ in torch.autograd.steps(x.exp().sum()):
        (w * w).sum().backward()
    assert torch.equal(x.grad, x.exp()) and torch.equal(w.grad, 2 * w * 3)


def test_the_graph_is_freed_at_the_end_unless_it_is_retained():
    x, w = leaves()
    loss = network(x, w)
    list(torch.autograd.steps(loss, retain_graph=True))
    list(torch.autograd.steps(loss))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as caught:
        list(torch.autograd.steps(loss))
    assert "freed by the backward at" in str(caught.value) and ": list(torch.autograd.steps(loss))" in str(caught.value)


def test_wrong_arguments_raise_before_the_first_step():
    x, _ = leaves()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        torch.autograd.steps(x * 2)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        torch.autograd.steps(torch.ones(()))
    with pytest.raises(TypeError, match="break_on expects a name, a tensor, a module"):
        torch.autograd.steps(x.sum(), break_on=3)


# ------------------------------------------------------------------ hooks, inputs, create_graph, replace


def test_hooks_run_as_in_backward():
    def run(back):
        x, w = leaves()
        seen = []
        h = x * w
        h.register_hook(lambda g: seen.append("tensor") or g * 2)
        h.retain_grad()
        h.grad_fn.register_prehook(lambda grads: seen.append("before"))
        h.grad_fn.register_hook(lambda outs, ins: seen.append("after"))
        x.register_hook(lambda g: seen.append("leaf"))
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad is not None))
        back(h.exp().sum())
        return seen, h.grad.tolist(), x.grad.tolist(), w.grad.tolist()

    assert run(lambda loss: list(torch.autograd.steps(loss))) == run(lambda loss: loss.backward())


def test_with_inputs_only_what_leads_to_them_runs():
    x, w = leaves()
    h = x * 2
    loss = (h * w).sum() + w.exp().sum()
    names = [step.name for step in torch.autograd.steps(loss, inputs=[h])]
    assert "ExpBackward0" not in names and "AccumulateGrad" not in names
    assert w.grad is None and torch.equal(h.grad, w)


def test_create_graph_makes_gradients_that_can_be_differentiated():
    x, _ = leaves()
    list(torch.autograd.steps((x**3).sum(), create_graph=True))
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    assert torch.allclose(second, 6 * x)


def test_a_gradient_can_be_replaced():
    x = torch.ones(2, requires_grad=True)
    for step in torch.autograd.steps(x.exp().sum()):
        if step.op == "exp":
            step.replace(torch.tensor([5.0, 6.0]))
        if step.leaf is x:
            step.replace(step.incoming[0] * 10)
    assert x.grad.tolist() == [50.0, 60.0]


def test_a_replacement_must_fit():
    x = torch.ones(2, requires_grad=True)
    step = next(torch.autograd.steps(x.exp().sum(), break_on="exp"))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        step.replace(torch.ones(3))


# ------------------------------------------------------------------ break_on


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.second(self.first(x).relu())


@pytest.mark.parametrize(
    "wish, names",
    [
        ("ReluBackward0", ["ReluBackward0"]),
        ("relu", ["ReluBackward0"]),
        ("Add*", ["AddmmBackward0", "AddmmBackward0"]),
        (lambda step: step.leaf is not None and step.leaf.ndim == 2, ["AccumulateGrad", "AccumulateGrad"]),
        (["relu", lambda step: step.index == 0], ["SumBackward0", "ReluBackward0"]),
        ("net.second", ["AddmmBackward0", "TBackward0"]),
        ("Net", ["ReluBackward0"]),
    ],
)
def test_break_on_yields_only_some_steps(wish, names):
    net = Net()
    loss = net(torch.ones(2, 4)).sum()
    assert [step.name for step in torch.autograd.steps(loss, break_on=wish)] == names
    assert net.first.weight.grad is not None


def test_break_on_a_module_stops_at_its_nodes_and_parameters():
    net = Net()
    stops = list(torch.autograd.steps(net(torch.ones(2, 4)).sum(), break_on=net.first))
    assert [s.name for s in stops] == ["AddmmBackward0", "AccumulateGrad", "TBackward0", "AccumulateGrad"]


def test_break_on_a_tensor_stops_where_its_gradient_arrives():
    x, w = leaves()
    h = x * w
    stops = list(torch.autograd.steps((h.exp() * h).sum(), break_on=[h, w]))
    assert [(s.node is h.grad_fn, s.leaf is w) for s in stops] == [(True, False), (False, True)]


def test_break_on_a_line():
    x, _ = leaves()
    y = x.exp()
    line = test_break_on_a_line.__code__.co_firstlineno + 2
    (stop,) = torch.autograd.steps(y.sin().sum(), break_on=f"test_steps.py:{line}")
    assert stop.op == "exp"


# ------------------------------------------------------------------ whole programs


def test_a_transformer_gets_the_same_gradients_to_the_bit():
    def run(back):
        torch.manual_seed(0)
        net = torch.models.GPT(torch.models.GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=16))
        tokens = torch.randint(0, 11, (2, 8))
        back(net(tokens, tokens)[1])
        return [parameter.grad.numpy().tobytes() for parameter in net.parameters()]

    assert run(lambda loss: list(torch.autograd.steps(loss))) == run(lambda loss: loss.backward())


def test_stepping_from_the_debugger():
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sum()
    said = io.StringIO()
    commands = "walk = torch.autograd.steps(loss)\np next(walk).name\np next(walk).name\ncontinue\n"
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=said, nosigint=True, readrc=False)
    debugger.runctx("loss", {"torch": torch}, {"loss": loss})
    assert "'SumBackward0'" in said.getvalue() and "'ExpBackward0'" in said.getvalue()
    assert x.grad is None
