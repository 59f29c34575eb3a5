"""find_nonfinite names the op where NaNs and infinities begin, forward or backward."""

import json

import pytest

import pullback as torch
from pullback import nn


def test_the_first_op_is_named_with_its_line():
    x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
    with torch.find_nonfinite() as first:
        y = x * 2
        z = y.log()
        (z - z).sum()
    assert first and first.op == "log"
    assert (first.nan, first.inf, first.numel) == (0, 1, 3)
    assert first.input_shapes == [(3,)]
    assert "test_nonfinite.py" in first.stack[0]
    assert first.first.place.text == "z = y.log()"
    assert str(first).startswith("log made 1 inf in 3 elements, called at ")


def test_the_ranges_of_the_inputs_are_told():
    x = torch.tensor([1.0, 0.0, 4.0])
    found = torch.find_nonfinite(lambda: x.log())
    (given,) = found.first.inputs
    assert (given.name, given.low, given.high, given.nan, given.inf) == ("self", 0.0, 4.0, 0, 0)
    assert str(found).splitlines()[1] == "  self: float32 [3], 0 .. 4"


def test_the_first_nan_is_told_beside_the_first_infinity():
    x = torch.tensor([1.0, 0.0])
    found = torch.find_nonfinite(lambda: (x.log() - x.log()).sum())
    assert [(finding.op, finding.kind) for finding in found.findings] == [("log", "inf"), ("sub", "nan")]
    assert "\nthen sub made 1 nan in 2 elements" in str(found)


def test_inputs_that_are_not_finite_are_not_blamed_on_the_op():
    with torch.find_nonfinite() as first:
        torch.tensor([float("nan")]).exp()
        torch.tensor([1.0]).div_(0.0)
    assert first.op == "div_"


def test_infinities_the_program_asked_for_are_blamed_on_nobody():
    def attention():
        scores = torch.zeros(2, 2).masked_fill(torch.tensor([[False, True], [False, False]]), float("-inf"))
        return scores.softmax(-1)

    assert not torch.find_nonfinite(attention)


def test_a_nan_made_of_infinities_is_found():
    found = torch.find_nonfinite(lambda: torch.full((2,), float("-inf")).softmax(0))
    assert (found.op, found.first.kind) == ("_softmax", "nan")


def test_the_backward_of_what_the_function_returns_is_walked():
    x = torch.tensor([0.0, 4.0], requires_grad=True)

    def distance():
        return x.sqrt().sum()

    found = torch.find_nonfinite(distance)
    assert (found.op, found.first.backward, found.inf) == ("SqrtBackward0", True, 1)
    assert found.first.place.text == "return x.sqrt().sum()"
    assert [given.name for given in found.first.inputs] == ["grad", "result"]
    assert x.grad is None and found.result.item() == 2.0


def test_a_backward_inside_is_watched():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.find_nonfinite() as found:
        (x.norm() * 0 + (x * 0).norm(p=3).sqrt()).backward()
    assert found and found.first.backward


def test_a_function_that_runs_backward_itself_is_not_walked_again():
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def train():
        loss = x.exp().sum()
        loss.backward()
        return loss

    assert not torch.find_nonfinite(train)
    assert torch.equal(x.grad, x.exp())


def test_the_backward_of_a_custom_function_is_looked_into():
    class Inverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad / 0  # here

    x = torch.ones(2, requires_grad=True)
    found = torch.find_nonfinite(lambda: Inverse.apply(x).sum())
    assert found.op == "div" and found.first.place.text == "return grad / 0  # here"


def test_the_module_is_named():
    class Log(nn.Module):
        def forward(self, x):
            return x.log()

    net = nn.Sequential(nn.Identity(), Log())
    found = torch.find_nonfinite(lambda: net(torch.zeros(2, requires_grad=True)))
    assert found.first.place.module == "net.1 (Log)" and "in net.1 (Log)" in str(found)


def test_finite_programs_are_clean():
    with torch.find_nonfinite() as first:
        torch.ones(3).exp().sum()
    assert not first and str(first) == "everything is finite"


def test_it_can_raise_at_once():
    with pytest.raises(RuntimeError, match="the first result that is not finite: sqrt"):
        with torch.find_nonfinite(raise_error=True):
            torch.tensor([-1.0]).sqrt()
    torch.tensor([-1.0]).sqrt()


def test_an_error_of_the_function_carries_what_was_found():
    def fails():
        torch.zeros(1).log()
        raise ValueError("later")

    with pytest.raises(ValueError, match="later") as caught:
        torch.find_nonfinite(fails)
    assert caught.value.__notes__[0].startswith("log made 1 inf")


def test_it_works_inside_a_profile():
    with torch.autograd.profiler.profile() as prof, torch.autograd.find_nonfinite() as first:
        x = torch.zeros(1, requires_grad=True)
        x.log().backward()
    assert first.op == "log"
    assert "aten::log" in [event.name for event in prof.function_events]
    assert "LogBackward0" in [event.name for event in prof.function_events]


def test_the_findings_as_plain_data():
    data = json.loads(json.dumps(torch.find_nonfinite(lambda: torch.zeros(2).log()).json()))
    (finding,) = data["findings"]
    assert (finding["op"], finding["kind"], finding["result"]["inf"]) == ("log", "inf", 2)
    assert finding["place"]["file"] == __file__
