"""The line search of LBFGS, which packages call by itself: on torch and on pullback."""

import importlib
import inspect

import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both


def lbfgs(torch):
    return importlib.import_module(f"{torch.__name__}.optim.lbfgs")


FUNCTIONS = {
    "a parabola": lambda torch, x: ((x - 1) ** 2).sum(),
    "a valley": lambda torch, x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
    "waves": lambda torch, x: (x * 3).sin().sum() + (x * x).sum() / 10,
    "a slope without end": lambda torch, x: -x.sum() + x.pow(4).sum() / 1000,
}


@pytest.mark.parametrize("start", [(-0.9, 0.6), (3.0, 2.0)])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("options", [{}, {"max_ls": 2}, {"c1": 0.1, "c2": 0.3, "tolerance_change": 1e-3}], ids=str)
def test_a_step_along_a_direction_is_searched(function, start, options):
    @on_both
    def program(torch):
        asked = []

        def evaluated(x, t, d):
            at = (x + t * d).requires_grad_()
            value = FUNCTIONS[function](torch, at)
            asked.append(float(t))
            return float(value), torch.autograd.grad(value, at)[0]

        x = torch.tensor(start, dtype=torch.float64)
        value, grad = evaluated(x, 0.0, x)
        found = lbfgs(torch)._strong_wolfe(evaluated, x, 0.1, -grad, value, grad, -grad.dot(grad), **options)
        return [float(found[0]), found[1], float(found[2]), found[3]], asked

    program()


@on_both
def test_a_cubic_is_interpolated(torch):
    at = lbfgs(torch)._cubic_interpolate
    one, two = torch.tensor(-1.0), torch.tensor(0.5)
    calls = [at(0.0, 1.0, one, 1.0, 0.8, two), at(1.0, 0.8, two, 0.0, 1.0, one), at(0.0, 1.0, two, 1.0, 8.0, two)]
    calls += [at(0.0, 1.0, one, 1.0, 0.8, two, bounds=(0.0, 0.1)), at(0.0, 1.0, one, 1.0, 0.8, two, (0.9, 2.0))]
    return [float(call) for call in [*calls, at(0.0, 1.0, one * float("nan"), 1.0, 0.8, two)]]


@pytest.mark.parametrize("name", ["_strong_wolfe", "_cubic_interpolate"])
def test_it_has_torchs_parameters(name):
    own, theirs = (inspect.signature(getattr(lbfgs(torch), name)).parameters for torch in (pullback, peer))
    assert [(p.name, p.default) for p in own.values()] == [(p.name, p.default) for p in theirs.values()]
