"""Calls as they were written once, `x.add(2, y)`: torch still takes them, and warns on the line that makes them."""

import warnings

import pytest

import pullback
from tests.conformance.both import attempt, evaluated, same

METHODS = [
    "x.add(2, y)", "x.sub(2, y)", "x.add(2.5, y)", "x.addcmul(2, y, y)", "x.addcdiv(2, y, y)", "torch.add(x, 2, y)",
    "torch.addcmul(x, 2, y, y)", "x.add(torch.tensor(2.0), y)", "torch.add(x, torch.tensor(2), y)", "i.add(2.5, i)",
    "x.add(y, 2)", "x.sub(y, 2)", "torch.add(x, y, 2)", "x.addcmul(y, y, 2)", "x.add(True, y)", "x.add_(2, y)",
    "m.addmm(2, m, m)", "m.addmm(2, 3, m, m)", "torch.addmm(2, m, 3, m, m)", "torch.addr(2, m, x, y)",
]  # fmt: skip


@pytest.mark.parametrize("call", METHODS)
def test_methods_and_functions_are_told_apart(call):
    def program(torch):
        x, y, m = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        return attempt(lambda: evaluated(call, dict(torch=torch, x=x, y=y, m=m, i=torch.tensor([1, 2]))))

    same(program)


@pytest.mark.parametrize("call", ["x.add(2, y)", "x.add_(2, y)", "torch.add(x, 2, y)", "x.addmv(2, m, y)"])
def test_the_warning_names_the_line_of_the_program(call):
    pullback.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            evaluated(call, dict(torch=pullback, x=pullback.ones(2), y=pullback.ones(2), m=pullback.eye(2)))
    finally:
        pullback.set_warn_always(False)
    assert [one.filename for one in caught] == [f"<{call}>"]
