"""A pass through part of the graph computes the gradients that lead to what it is for, and no others."""

from __future__ import annotations  # annotations are read as they are written

import numpy as np
import pytest

import pullback as torch
from pullback._op.declare import registry
from pullback._op.define import Array, elementwise, op


def seen(name, value):
    """A value, and a note that it was computed."""
    computed.append(name)
    return value


computed: list[str] = []


@op(
    self=lambda grad, other: seen("self", grad * other),
    other=lambda grad, self: seen("other", grad * self),
    result=elementwise,
    untraced=True,
    space=None,
    method=False,
)
def noted(self: Array, other: Array) -> Array:
    """A product whose formulas say when they are read."""
    return np.multiply(self, other)


del registry["noted"]  # other tests go through the ops of the library


@pytest.fixture
def leaves():
    computed.clear()
    return [torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("wanted", [[0], [1], [0, 1]])
def test_only_what_was_asked_for_is_computed(leaves, wanted, create_graph):
    out = noted(*leaves).sum()
    grads = torch.autograd.grad(out, [leaves[i] for i in wanted], create_graph=create_graph)
    assert computed == [["self", "other"][i] for i in wanted]
    assert [grad.tolist() for grad in grads] == [[1.0, 2.0]] * len(wanted)


def test_backward_with_inputs_computes_no_more(leaves):
    noted(*leaves).sum().backward(inputs=[leaves[1]])
    assert computed == ["other"] and leaves[0].grad is None and leaves[1].grad.tolist() == [1.0, 2.0]


def test_the_next_whole_pass_computes_everything(leaves):
    out = noted(*leaves).sum()
    torch.autograd.grad(out, leaves[0], retain_graph=True)
    out.backward()
    assert computed == ["self", "self", "other"]


def test_hooks_and_steps_see_nothing_where_the_pass_does_not_go(leaves):
    out = noted(*leaves)
    got = []
    out.grad_fn.register_hook(lambda outs, grads: got.append([None if g is None else g.tolist() for g in outs]))
    torch.autograd.grad(out.sum(), leaves[1])
    assert got == [[None, [1.0, 2.0]]] and computed == ["other"]


def test_nan_of_a_gradient_nobody_asked_for_is_no_anomaly():
    x, y = (torch.tensor([0.0], requires_grad=True) for _ in range(2))
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        (grad,) = torch.autograd.grad((x / y).sum(), x)
        assert grad.item() == float("inf")
        seen_too = pytest.raises(RuntimeError, match="nan values in its 1th output")
        with pytest.warns(UserWarning, match="Error detected in DivBackward0"), seen_too:
            torch.autograd.grad((x / y).sum(), y)


def test_what_was_written_over_is_told_even_if_only_other_gradients_need_it(leaves):
    x, y = (leaf * 1 for leaf in leaves)
    out = (x * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(out, leaves[1])


def test_convolutions_and_layers_leave_out_what_is_not_wanted():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.GroupNorm(1, 3), torch.nn.Flatten(), torch.nn.Linear(27, 2)
    )
    x = torch.randn(2, 2, 5, 5, requires_grad=True)
    everything = [x, *net.parameters()]
    whole = torch.autograd.grad(net(x).square().sum(), everything)
    for i, one in enumerate(everything):
        (alone,) = torch.autograd.grad(net(x).square().sum(), one)
        assert torch.equal(alone, whole[i])
