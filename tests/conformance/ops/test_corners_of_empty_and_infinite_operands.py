"""Operands without elements and at infinity, where an op has a way of its own for a dtype or a backend."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same

INF = float("inf")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_logarithm_of_gamma_is_infinite_at_minus_infinity(dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([-INF, INF, -3.0, -60000.0, 0.5]).to(getattr(torch, dtype)).requires_grad_()
        return torch.lgamma(x).detach(), torch.igamma(x.detach(), torch.full_like(x.detach(), 2.0))

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(), (4,), (3, 4)])
@pytest.mark.parametrize("beta", [0, 1, 0.5])
def test_no_products_are_added_to_a_multiple_of_the_input(beta: float, shape: tuple[int, ...], dtype: str) -> None:
    def program(torch: Any) -> Any:
        start = torch.full(shape, 2.0).to(getattr(torch, dtype)).requires_grad_()
        factors = [torch.ones(0, *size).to(getattr(torch, dtype)).requires_grad_() for size in ((3, 2), (2, 4))]
        made = torch.addbmm(start, *factors, beta=beta, alpha=0.3)
        return made.detach(), torch.autograd.grad(made.sum(), (start, *factors))

    same(program)


@pytest.mark.parametrize("p", [-1.0, INF, -INF, 0.0, 2.0])
def test_distances_of_vectors_without_elements_are_refused_where_a_norm_has_no_identity(p: float) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, 0)
        return attempt(lambda: torch.nn.functional.pairwise_distance(x, x, p=p))

    same(program)
