"""Ranges that half a unit to both sides does not make wider: all edges are one number."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of


@pytest.mark.parametrize("bins", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("value", [1e30, -1e17])
@pytest.mark.parametrize("density", [False, True])
def test_equal_numbers_too_large_for_bins_are_counted_in_the_second(value: float, bins: int, density: bool) -> None:
    def program(torch: Any) -> Any:
        x = torch.full((3,), value, dtype=torch.float64)
        counts = torch.histogramdd(x[:, None], [bins], density=density)
        return torch.histogram(x, bins, density=density), torch.histc(x, bins), counts[0]

    same(program)


@pytest.mark.parametrize("bins", [1, 3, 6, 7, 10, 100])
@pytest.mark.parametrize("power", [23, 24, 25, 53, 60])
@pytest.mark.parametrize("sign", [1, -1])
def test_equal_numbers_lie_between_their_neighbours_where_these_are_further_than_one(
    power: int, bins: int, sign: int
) -> None:
    def program(torch: Any) -> Any:
        x = torch.full((3,), sign * 2.0**power)
        return torch.histc(x, bins), torch.histc(x.double(), bins), torch.histc(x + 2, bins)

    same(program)


DTYPES = ["int8", "int32", "uint8", "bool", "complex64", "float16", "bfloat16", "float32"]
ENDS = [
    "0, 0",
    "1, 1",
    "1, 5",
    "5, 1",
    "0.0, nan",
    "1e30, 1e30",
    "inf, inf",
    "300, 400",
    "-3, 0",
    "1.5, 1.5",
    "2**70, 2**70",
]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("shape", [(), (3,), (0,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_histograms_that_are_refused_are_so_for_what_torch_asks_first(dtype: str, shape: Any, ends: str) -> None:
    made = f"x = torch.ones({shape}).to(torch.{dtype})"
    for bins in (3, 1, 0, -1):
        same(lambda torch, n=bins: attempt(lambda: value_of(torch, f"{made}; torch.histc(x, {n}, {ends})")))
