"""Transforms over batches without entries, and over ops whose results torch stacks entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.both import same


@pytest.mark.parametrize(
    "program",
    [
        lambda torch: torch.func.jacrev(torch.func.jacrev(lambda x: torch.sigmoid(x).sum()))(torch.ones(1, 0, 3)),
        lambda torch: torch.func.hessian(lambda x: (torch.sigmoid(x) ** 2).sum())(torch.ones(1, 0, 3)),
        lambda torch: torch.func.jacfwd(torch.func.jacfwd(lambda x: torch.sigmoid(x).sum()))(torch.ones(1, 0, 3)),
        lambda torch: torch.func.jacrev(torch.func.jacrev(lambda x: torch.cholesky_inverse(x).sum()))(
            torch.ones(0, 2, 2)
        ),
        lambda torch: torch.func.jacrev(lambda x: torch.cumsum(x, 0))(torch.ones(0)),
        lambda torch: torch.func.vmap(lambda x: list(torch.kthvalue(x, 1)))(torch.ones(0, 3)),
        lambda torch: torch.func.vmap(lambda x: torch.bmm(x, x))(torch.ones(0, 2, 3, 3)),
        lambda torch: torch.func.vmap(lambda x: x.flatten())(torch.ones(0, 2, 3)),
        lambda torch: torch.func.vmap(lambda x: x.mT.reshape(-1, 2))(torch.ones(0, 2, 3)),
        lambda torch: torch.func.jacrev(torch.func.jacfwd(lambda x: x.mT.flatten()))(torch.ones(2, 0)),
    ],
)
def test_batches_without_entries(program: Callable[[Any], Any]) -> None:
    same(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda torch: torch.func.vmap(torch.argwhere)(torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]])),
        lambda torch: torch.func.vmap(lambda x: torch.nonzero_static(x, size=2))(
            torch.tensor([[1.0, 0.0], [3.0, 4.0]])
        ),
    ],
)
def test_places_of_elements_are_found_entry_by_entry(program: Callable[[Any], Any]) -> None:
    same(program)
