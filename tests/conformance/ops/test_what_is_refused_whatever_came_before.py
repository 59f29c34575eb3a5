"""Calls that torch refuses, also where nothing is left to compute or a call just like them has been answered."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.conformance.both import same

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("order", list(itertools.permutations([(1.0, 1.0), (1, 1), (1.0, 1)])))
def test_widths_that_are_refused_do_not_stand_in_for_whole_numbers(order: Any, mode: str) -> None:
    def program(torch: Any, padding: Any) -> Any:
        return torch.nn.functional.pad(torch.ones(1, 2, 5), padding, mode)

    for padding in order:
        same(partial(program, padding=padding))


@pytest.mark.parametrize("value", [0.0, -0.0, 0, -1.0])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_padding_with_zeros_of_both_signs(dtype: str, value: float) -> None:
    same(
        lambda torch: torch.signbit(
            torch.nn.functional.pad(torch.ones(2, dtype=getattr(torch, dtype)), (1, 1), value=value)
        )
    )


@pytest.mark.parametrize("dim", [NAN, INFINITY, -INFINITY, 1e30, 0.0])
@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x, dim: torch.softmax(x, dim),
        lambda torch, x, dim: torch.cumsum(x, dim),
        lambda torch, x, dim: x.scatter_(dim, torch.zeros(3, 3, dtype=torch.int64), x.clone()),
        lambda torch, x, dim: torch.gather(x, dim, torch.zeros(3, 3, dtype=torch.int64)),
        lambda torch, x, dim: torch.as_strided(x, (2, 0), (1, 1), dim),
        lambda torch, x, dim: torch.as_strided_copy(x, (2, 0), (1, 1), dim),
    ],
)
def test_floats_are_no_places(call: Callable[[Any, Any, float], Any], dim: float) -> None:
    same(lambda torch: call(torch, torch.ones(3, 3), dim))


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2,), (1, 1), (0, 1), (2, 3), (3, 2), (1, 2, 3)])
@pytest.mark.parametrize("op", ["addr", "addmm", "addmv", "addbmm", "baddbmm"])
def test_what_a_product_is_added_to_has_to_fit_also_where_nothing_is_taken_of_it(
    op: str, shape: tuple[int, ...], beta: int
) -> None:
    sizes = {"addr": ((2,), (3,)), "addmm": ((2, 4), (4, 3)), "addmv": ((2, 3), (3,))}
    one, other = sizes.get(op, ((2, 2, 4), (2, 4, 3)))
    same(lambda torch: getattr(torch, op)(torch.ones(shape), torch.ones(one), torch.ones(other), beta=beta))


@pytest.mark.parametrize("pivots", [(1, 2, 3), (1, 2, 0), (1, 2, 9)])
def test_nobody_looks_at_the_pivots_of_a_system_without_right_hand_sides(pivots: tuple[int, ...]) -> None:
    def program(torch: Any, count: int) -> Any:
        return torch.linalg.lu_solve(torch.eye(3), torch.tensor(pivots, dtype=torch.int32), torch.ones(3, count))

    same(lambda torch: program(torch, 0))
    same(lambda torch: program(torch, 1))


@pytest.mark.parametrize("weights", [(NAN, 1.0), (1.0, -1.0), (INFINITY, 1.0), (-0.0, 1.0)])
def test_weights_of_observations_that_are_not_positive(weights: tuple[float, float]) -> None:
    same(lambda torch: torch.cov(torch.tensor([1.0, 2.0]), aweights=torch.tensor(weights)))


@pytest.mark.parametrize("dtypes", list(itertools.product(["float32", "float64", "complex64"], repeat=3)))
def test_weights_of_losses_that_have_no_room_for_complex_numbers(dtypes: tuple[str, str, str]) -> None:
    def operands(torch: Any) -> Any:
        return [torch.full((4,), 0.25, dtype=getattr(torch, dtype)) for dtype in dtypes]

    def of_probabilities(torch: Any) -> Any:
        x, target, weight = operands(torch)
        return torch.nn.functional.binary_cross_entropy(x, target, weight)

    def of_logits(torch: Any, name: str) -> Any:
        x, target, weight = operands(torch)
        return torch.nn.functional.binary_cross_entropy_with_logits(x, target, **{name: weight})

    same(of_probabilities)
    same(lambda torch: of_logits(torch, "weight"))
    same(lambda torch: of_logits(torch, "pos_weight"))
