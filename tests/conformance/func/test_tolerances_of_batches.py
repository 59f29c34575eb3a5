"""Tolerances and dimensions inside vmap: those of one entry, also where there is nothing in it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.both import attempt, same

MATRICES = [(0, 3, 0), (3, 0), (0, 5, 2), (2, 3, 0), (2, 3, 3), (3, 3)]
TOLERANCES = [(), (0,), (3, 0), (0, 3, 0), (1,), (2,), (4,)]


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
def test_a_tolerance_for_each_matrix_of_an_entry(name: str, dims: Any) -> None:
    def program(torch: Any) -> Any:
        function = getattr(torch.linalg, name)
        found = []
        for matrix in MATRICES:
            for tolerance in TOLERANCES:
                a = torch.eye(max(matrix[-1], matrix[-2]))[: matrix[-2], : matrix[-1]]
                a = a.expand(2, *matrix) if dims[0] == 0 else a.expand(matrix)
                b = torch.full((2, *tolerance) if dims[1] == 0 else tolerance, 0.25)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of what is slow
                    seen = attempt(lambda: torch.vmap(function, in_dims=dims)(a, b))  # noqa: B023
                found.append(seen if isinstance(seen, torch.Tensor) else type(seen).__name__)
        return found

    same(program)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
def test_tolerances_that_do_not_broadcast_are_refused(name: str, tolerance: Any) -> None:
    def program(torch: Any) -> Any:
        return attempt(lambda: getattr(torch.linalg, name)(torch.eye(3).expand(2, 3, 3), torch.full(tolerance, 0.25)))

    same(program)


@pytest.mark.parametrize("shape", [(0,), (0, 2), (3,), (2, 3), (0, 0, 0)])
@pytest.mark.parametrize("batch", [0, 2])
def test_the_dimensions_of_roll_inside_vmap_are_those_of_an_entry(batch: int, shape: Any) -> None:
    def program(torch: Any) -> Any:
        found = []
        for shifts, dims in ((1, 0), (1, 1), (1, 2), (1, -3), ((1, 2), (0, 1)), (1, ()), ((1, 2), 0)):
            seen = attempt(lambda: torch.vmap(lambda x: torch.roll(x, shifts, dims))(torch.ones(batch, *shape)))  # noqa: B023
            found.append(seen if isinstance(seen, torch.Tensor) else (seen.kind, seen.text))
        return found

    same(program)
