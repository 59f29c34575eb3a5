"""Arguments of types an op does not take, and tensors that cannot be written to: torch's errors, before all others."""

from __future__ import annotations

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

WRONG = [
    "torch.kron(torch.ones(2, 3), 0.5)",
    "torch.topk(torch.ones(3, dtype=torch.complex64), 0.5)",
    "torch.topk(torch.ones(3), 0.5)",
    "torch.tril(torch.ones(3, 3), 0.5)",
    "torch.triu(torch.ones(3, 3), 0.5)",
    "torch.triu_indices(2, 0.5)",
    "torch.cumsum(torch.ones(3), 0.5)",
    "torch.cumsum(torch.ones(3), True)",
    "torch.gather(torch.ones(3), nan, torch.tensor([0]))",
    "torch.flip(torch.tensor(1.0), 0)",
    "torch.softmax(torch.ones(3), 0.5)",
    "torch.normal(torch.ones(3), 0, 5)",
    "torch.diag(torch.ones(3), 0.5)",
    "torch.chunk(torch.ones(3), 0.5)",
    "torch.kthvalue(torch.ones(3), 0.5)",
    "torch.renorm(torch.ones(3, 3), 1, 0.5, 1)",
    "torch.polygamma(0.5, torch.ones(3))",
    "torch.cdist(torch.ones(3, 3), 1)",
    "torch.outer(torch.ones(3), 1)",
    "torch.diff(torch.ones(3), 0.5)",
    "torch.cumprod(torch.ones(3), None)",
    "F.one_hot(torch.tensor([1]), 0.5)",
    "F.poisson_nll_loss(torch.ones(2), torch.ones(2), eps=None)",
    "torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=True)",
    "torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), beta=False)",
    "torch.addr(torch.ones(2, 2).int(), torch.ones(2), torch.ones(2), alpha=True)",
    "torch.addr(torch.ones(2, 2).bool(), torch.ones(2).bool(), torch.ones(2).bool(), alpha=True, beta=False)",
    "torch.flatten(torch.ones(2, 3, 4), torch.tensor(1, dtype=torch.uint8))",
    "torch.chunk(torch.ones(2, 3), 3, torch.tensor(1, dtype=torch.uint8))",
]
OUT = [
    "torch.topk(torch.ones(3), 1, out=torch.ones(2))",
    "torch.topk(torch.ones(3), 1, out=(torch.ones(2),))",
    "torch.linalg.eig(torch.eye(2), out=torch.ones(2))",
    "torch.linalg.svd(torch.eye(2), out=torch.ones(2))",
    "torch.median(torch.ones(3), 0, out=torch.ones(2))",
    "torch.abs(torch.ones(3), out=(torch.ones(2),))",
    "torch.all(torch.ones(3), out=torch.ones(1))",
    "torch.any(torch.ones(3), 0, out=torch.empty(0, dtype=torch.int64))",
    "torch.any(torch.ones(3), 0, out=torch.empty(0, dtype=torch.uint8))",
    "torch.isin(torch.ones(3), torch.ones(2), out=torch.ones(1))",
    "torch.signbit(torch.ones(3), out=torch.ones(1))",
    "torch.isneginf(torch.ones(3), out=torch.ones(1))",
    "torch.bitwise_not(torch.tensor([1]), out=torch.ones(1, dtype=torch.int32))",
]


@pytest.mark.parametrize("source", WRONG)
def test_an_argument_of_a_wrong_type_is_named(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("source", OUT)
def test_an_out_of_a_wrong_kind_is_refused(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize(
    "source",
    [
        "torch.ne(x, 1.5, out=out)",
        "torch.logical_not(x, out=out)",
        "torch.special.bessel_j0(x, out=out)",
        "torch.special.chebyshev_polynomial_t(x, x, out=out)",
        "torch.histc(x, out=out)",
        "torch.bitwise_or(torch.tensor([1, 2]), 1, out=out)",
        "torch.exp(x, out=out)",
    ],
)
def test_results_without_derivative_go_into_tensors_that_want_gradients(source: str) -> None:
    start = "x = torch.tensor([0.5, 2.0], requires_grad=True); out = torch.empty(0, requires_grad=True)"
    same(lambda torch: attempt(lambda: value_of(torch, f"{start}; {source}")))
