"""What holds still adds nothing to a derivative: infinite factors of absent tangents make no NaN, dtypes no error."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import pullback
from tests.conformance.both import attempt, same

INF = float("inf")
CALLS = {
    "mul": lambda torch, x: x * torch.tensor([1.0, 2.0, 3.0]),
    "mul by a number": lambda torch, x: x * 2 * 1.5,
    "div": lambda torch, x: x / torch.tensor([1.0, 2.0, 3.0]),
    "div of a bool": lambda torch, x: torch.true_divide(torch.tensor([True]), x),
    "fmod of a bool": lambda torch, x: torch.fmod(torch.tensor([True]), x),
    "sub from an integer": lambda torch, x: torch.tensor([3, 4, 5]) - x,
    "pow": lambda torch, x: x ** torch.tensor([2.0, 1.0, 3.0]),
    "base of pow": lambda torch, x: torch.tensor([2.0, INF, 0.5]) ** x,
    "xlogy": lambda torch, x: torch.xlogy(x, torch.tensor([2.0, INF, 0.0])),
    "lerp": lambda torch, x: torch.lerp(x, torch.ones(3), torch.tensor(0.5)),
    "addcmul": lambda torch, x: torch.addcmul(x, torch.ones(3), x),
    "addcdiv": lambda torch, x: torch.addcdiv(x, x, torch.full((3,), 2.0)),
    "atan2": lambda torch, x: torch.atan2(x, torch.tensor([2.0])),
    "dot": lambda torch, x: torch.dot(x, torch.tensor([1.0, 2.0, 3.0])),
    "cross": lambda torch, x: torch.linalg.cross(x, torch.tensor([1.0, 2.0, 3.0])),
    "prelu": lambda torch, x: torch.nn.functional.prelu(x, torch.tensor([2.0])),
    "poisson_nll_loss": lambda torch, x: torch.nn.functional.poisson_nll_loss(x, torch.tensor([2.0, 1.0, 0.0])),
    "broadcast": lambda torch, x: x * torch.ones(2, 3),
    "where": lambda torch, x: torch.where(x > 0, x, torch.zeros(3)) * 2,
    "half": lambda torch, x: (x.half() * torch.tensor(2) + 1).float(),
    "complex": lambda torch, x: torch.view_as_real(torch.tensor([1 + 2j, 1j, 2.0]) * x),
}
WAYS = {
    "jvp": lambda f, function, x: f.jvp(function, (x,), (x.new_ones(3),)),
    "jacfwd": lambda f, function, x: f.jacfwd(function)(x),
    "jvp of vmap": lambda f, function, x: f.jvp(f.vmap(function), (x.repeat(2, 1),), (x.new_ones(2, 3),)),
    "jacfwd of jacfwd": lambda f, function, x: f.jacfwd(f.jacfwd(lambda u: function(u).sum()))(x),
    "jacfwd of jacrev": lambda f, function, x: f.jacfwd(f.jacrev(lambda u: function(u).sum()))(x),
    "jacrev of jacfwd": lambda f, function, x: f.jacrev(f.jacfwd(lambda u: function(u).sum()))(x) + 0,
}


@pytest.mark.parametrize("values", [(INF, 1.5, -2.0), (0.5, -1.5, 3.0)], ids=["infinite", "finite"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS)
def test_what_holds_still_adds_nothing(call: str, way: str, values: tuple[float, ...]) -> None:
    if (call, way) == ("pow", "jacrev of jacfwd"):
        pytest.skip("torch multiplies the logarithm of a negative base by zero on the way back, and makes it NaN")

    def program(torch: Any) -> Any:
        return attempt(lambda: WAYS[way](torch.func, lambda u: CALLS[call](torch, u), torch.tensor(values)))

    same(program)


@pytest.mark.parametrize("values", [(INF, 1.5, -2.0), (0.5, -1.5, 3.0)], ids=["infinite", "finite"])
def test_a_sum_with_what_holds_still_has_a_tangent_of_its_own(values: tuple[float, ...]) -> None:
    def program(torch: Any) -> Any:
        def function(u: Any) -> Any:
            out = u + torch.ones(3)
            out.mul_(2)
            return out, u * 1

        return torch.func.jvp(function, (torch.tensor(values),), (torch.ones(3),))

    same(program)


WEIGHTED = {
    "weight": lambda torch, x: {"weight": x},
    "double weight": lambda torch, x: {"weight": x.double()},
    "pos_weight": lambda torch, x: {"pos_weight": x},
    "both": lambda torch, x: {"weight": x, "pos_weight": x * x},
}
DERIVED = {
    "grad": lambda f, function, x: f.grad(function)(x),
    "jacfwd": lambda f, function, x: f.jacfwd(function)(x),
    "jacrev of jacfwd": lambda f, function, x: f.jacrev(f.jacfwd(function))(x),
    "jacfwd of jacrev": lambda f, function, x: f.jacfwd(f.jacrev(function))(x),
    "vmap": lambda f, function, x: f.vmap(function)(x.repeat(2, 1)),
}


@pytest.mark.parametrize("way", DERIVED)
@pytest.mark.parametrize("given", WEIGHTED)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_transforms_differentiate_the_weights_of_logits(given: str, way: str, reduction: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            return torch.nn.functional.binary_cross_entropy_with_logits(
                x * 2 - 1, torch.tensor([0.1, 0.5, 1.0]), reduction=reduction, **WEIGHTED[given](torch, x)
            )

        return DERIVED[way](torch.func, function, torch.tensor([0.5, 0.7, 1.5]))

    same(program)


def test_outside_transforms_the_weights_of_logits_have_no_derivative() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.5], requires_grad=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return attempt(lambda: loss(torch.zeros(1), torch.ones(1), weight=x))

    same(program)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d"])
def test_dropping_everything_draws_nothing_in_a_vmap(name: str) -> None:
    def program(torch: Any) -> Any:
        function = getattr(torch.nn.functional, name)
        return [
            attempt(lambda p=p: torch.func.vmap(lambda x: function(x, p, True))(torch.ones(2, 3, 4)))
            for p in (1.0, 0.0, 2.0, 0.5)
        ]

    same(program)


@pytest.mark.parametrize(
    "program", ["dual * 2", "dual * other", "other @ dual", "dual / 2", "2 / dual", "dual.mul(leaf)"]
)
def test_the_tangent_of_a_product_with_something_still_is_differentiable(program):
    """Its gradient is zero where the product is linear, not an error."""

    def run(lib):
        forward_ad = lib.autograd.forward_ad
        leaf = lib.tensor([1.0, 2.0, 3.0]).requires_grad_()
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(leaf, lib.full((3,), 0.5))
            out = eval(program, {"dual": dual, "other": lib.tensor([4.0, 5.0, 6.0]), "leaf": leaf})
            tangent = forward_ad.unpack_dual(out).tangent
        (grad,) = lib.autograd.grad(tangent.sum(), leaf)
        return tangent.grad_fn.name(), tangent.tolist(), (lib.ones(3) + grad).tolist()

    assert run(pullback) == run(torch)
