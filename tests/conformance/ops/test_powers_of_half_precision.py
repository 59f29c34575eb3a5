"""Powers that are numbers: of float16 torch computes only the first ones with products, which its edges show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import same

EDGES = [float("inf"), -float("inf"), 0.0, -0.0, float("nan"), -4.0, 4.0, 200.0, 6e-5, 0.3, 300.0, 60000.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5])
def test_powers_at_the_edges_of_a_dtype(exponent: float, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(EDGES, dtype=getattr(torch, dtype))
        made = [torch.pow(x, exponent), x.clone().pow_(exponent)]
        if dtype.startswith(("float16", "bfloat16")):
            return [[y.tolist(), (torch.signbit(y) & (y == 0)).tolist()] for y in made]
        return [[torch.isnan(y).tolist(), torch.isinf(y).tolist()] for y in made]

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [0.5, 2.0, -1.0, 1.0, 0.0, 3.0])
@pytest.mark.parametrize("shape", [(), (1,), (12,), (3, 12)])
@pytest.mark.parametrize("name", ["pow", "float_power"])
def test_a_power_that_all_elements_share_is_a_power_and_no_root(
    name: str, shape: Any, exponent: float, dtype: str
) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(EDGES, dtype=getattr(torch, dtype))
        shared = torch.full((1,) * len(shape), exponent, dtype=x.dtype)
        wide, single = getattr(torch, name), x[1:2]
        made = [
            wide(x, shared),
            wide(x, shared.expand(shape)),
            wide(x.expand(12, 12).t(), shared),
            wide(single, shared),
        ]
        return [
            (torch.signbit(y) & (y == 0), torch.isnan(y), torch.isinf(y), torch.signbit(y) & y.isinf(), y.stride())
            for y in made
        ]

    same(program)
