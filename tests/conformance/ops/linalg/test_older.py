"""The linear algebra of torch itself: deprecated functions and what they warn of, low-rank decompositions, lobpcg."""

import warnings

import numpy as np
import pytest

import pullback
from pullback._runtime import warnings as _warnings
from tests.conformance.both import on_both, same
from tests.conformance.ops.expressions import agree

OLDER = [
    "torch.cholesky(x(3, 3) @ x(3, 3).mT + 2 * torch.eye(3))", "torch.qr(x(2, 3, 3))", "torch.qr(x(4, 3), some=True)",
    "torch.qr(x(4, 3, grad=False), some=False)", "torch.triangular_solve(x(3, 2), x(3, 3))",
    "torch.triangular_solve(x(3, 2), x(3, 3), upper=False, transpose=True)",
    "torch.triangular_solve(x(2, 3, 2), x(3, 3), unitriangular=True)",
    "torch.triangular_solve(x(3, 2, dtype=c128), x(3, 3, dtype=c128), transpose=True)",
    "torch.lu(x(3, 3))", "torch.lu(x(2, 3, 4), get_infos=True)", "x(3, 3).lu()",
    "torch.lu_solve(x(3, 2), *torch.linalg.lu_factor(x(3, 3)))", "torch.nuclear_norm(x(3, 4))",
    "torch.nuclear_norm(x(3, 4), True)", "torch.nuclear_norm(x(2, 3, 4), dim=(0, 2))",
    "torch.frobenius_norm(x(2, 3, 4), (1, 2))", "torch.frobenius_norm(x(2, 3), 1, True)",
    "torch.frobenius_norm(x(2, 3, dtype=c128), (0, 1))", "torch.chain_matmul(x(2, 3), x(3, 4), x(4, 2))",
    "torch.chain_matmul(x(3, 3), torch.ones(2, 3))", "torch.chain_matmul(torch.ones(3), x(3, 3))",
    "torch.triangular_solve(torch.ones(3), torch.eye(3))", "torch.triangular_solve(torch.eye(3), torch.eye(2))",
]  # fmt: skip


@pytest.mark.parametrize("expression", OLDER)
def test_an_older_function_is_torchs(expression):
    agree(expression)


DEPRECATED = [
    "cholesky(torch.eye(2))", "qr(torch.eye(2))", "triangular_solve(torch.eye(2), torch.eye(2))", "lu(torch.eye(2))",
    "lu_solve(torch.eye(2), torch.eye(2), torch.ones(2, dtype=torch.int32))", "nuclear_norm(torch.eye(2))",
    "frobenius_norm(torch.eye(2), (0, 1))", "chain_matmul(torch.eye(2), torch.eye(2))",
]  # fmt: skip


@pytest.mark.parametrize("call", DEPRECATED)
def test_a_deprecated_function_warns_in_torchs_words(call):
    same(lambda torch: eval(f"torch.{call}", {"torch": torch}))


def test_a_deprecation_is_said_once():
    _warnings.given.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pullback.qr(pullback.eye(2))
        pullback.qr(pullback.eye(2))
    assert len(caught) == 1


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 5, 4)])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_a_low_rank_decomposition_draws_torchs_numbers(name, shape):
    def program(torch):
        torch.manual_seed(0)
        x = torch.arange(float(np.prod(shape)), dtype=torch.float64).reshape(shape).sin().requires_grad_()
        u, s, v = getattr(torch, name)(x, q=2, niter=1)
        product = (u * s.unsqueeze(-2)) @ v.mT
        return [s.detach(), product.detach(), torch.autograd.grad((product**3).sum(), x)]

    same(program)


@on_both
def test_svd_lowrank_takes_a_matrix_to_subtract(torch):
    torch.manual_seed(0)
    x = torch.arange(24.0, dtype=torch.float64).reshape(6, 4).cos()
    return torch.svd_lowrank(x, q=3, M=x.mean(0, keepdim=True))[1]


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_torchs_eigenpairs_and_gradients(largest):
    def program(torch):
        torch.manual_seed(0)
        x = torch.arange(2 * 144.0, dtype=torch.float64).square().reshape(2, 12, 12).sin()
        a = (x @ x.mT).requires_grad_()
        values, vectors = torch.lobpcg(a, k=3, largest=largest, tol=1e-10)
        grad = torch.autograd.grad((values**2).sum() + (vectors**4).sum(), a)
        return [values.detach(), vectors.detach().abs(), grad, values.grad_fn]

    same(program)


@on_both
def test_lobpcg_solves_generalized_problems_from_a_guess(torch):
    x = torch.arange(144.0, dtype=torch.float64).reshape(12, 12).sin()
    b = x @ x.mT + 12 * torch.eye(12)
    guess = (torch.arange(24.0, dtype=torch.float64) ** 2).reshape(12, 2).cos()
    return torch.lobpcg(x + x.mT, B=b, X=guess, tol=1e-8)[0]
