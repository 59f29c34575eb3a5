"""Matrices that hold infinities: LAPACK may look for their singular values for ever, so it is not asked."""

from typing import Any

import pytest

import pullback as torch
from tests.conformance.both import same

INF = float("inf")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_singular_values_of_infinite_matrices_are_nan(size: int, dtype: str) -> None:
    def program(torch: Any) -> Any:
        a = torch.ones(2, size, size, dtype=getattr(torch, dtype))
        a[1, 0, -1] = INF
        return torch.linalg.svdvals(a).isnan()

    same(program)


def test_eigenvalues_and_vectors_of_infinite_matrices_come_to_an_end() -> None:
    for size in (1, 2, 5, 40):
        a = torch.eye(size, dtype=torch.float64)
        a[0, 0] = INF
        values, vectors = torch.linalg.eigh(a)
        assert values.isnan().all() and vectors.isnan().all()
        assert torch.linalg.svd(a)[1].isnan().all()
