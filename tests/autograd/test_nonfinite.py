"""find_nonfinite names the op where NaNs and infinities begin."""

import pytest

import pullback as torch


def test_the_first_op_is_named_with_its_line():
    x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
    with torch.autograd.find_nonfinite() as first:
        y = x * 2
        z = y.log()
        (z - z).sum()
    assert first and first.op == "log"
    assert (first.nan, first.inf, first.numel) == (0, 1, 3)
    assert first.input_shapes == [(3,)]
    assert "test_nonfinite.py" in first.stack[0]
    assert str(first).startswith("log: 1 of 3 elements not finite (0 nan, 1 inf); called at ")


def test_inputs_that_are_not_finite_are_not_blamed_on_the_op():
    with torch.autograd.find_nonfinite() as first:
        torch.tensor([float("nan")]).exp()
        torch.tensor([1.0]).div_(0.0)
    assert first.op == "div_"


def test_finite_programs_are_clean():
    with torch.autograd.find_nonfinite() as first:
        torch.ones(3).exp().sum()
    assert not first and str(first) == "everything is finite"


def test_it_can_raise_at_once():
    with pytest.raises(RuntimeError, match="the first result that is not finite: sqrt"):
        with torch.autograd.find_nonfinite(raise_error=True):
            torch.tensor([-1.0]).sqrt()
    torch.tensor([-1.0]).sqrt()


def test_it_works_inside_a_profile():
    with torch.autograd.profiler.profile() as prof, torch.autograd.find_nonfinite() as first:
        torch.tensor([0.0]).log()
    assert first.op == "log"
    assert "aten::log" in [event.name for event in prof.function_events]
