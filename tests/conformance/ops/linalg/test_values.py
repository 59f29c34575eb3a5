"""torch.linalg and its older names: values, graphs and gradients of every function, one matrix or a batch."""

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import same
from tests.conformance.ops.expressions import agree, given

SPD = "(lambda a: a @ a.mH + 3 * torch.eye(3, dtype=a.dtype))"
"""A Hermitian positive-definite matrix from any."""

EXPRESSIONS = [
    f"torch.linalg.cholesky({SPD}(A))", f"torch.linalg.cholesky({SPD}(A), upper=True)",
    f"torch.linalg.cholesky_ex({SPD}(A))", f"torch.cholesky_inverse(torch.linalg.cholesky({SPD}(A)))",
    "torch.cholesky_solve(B, torch.linalg.cholesky(" + SPD + "(A)))",
    "torch.cholesky_solve(B, A.triu(), upper=True)", "torch.cholesky_inverse(A.triu() + 2 * torch.eye(3), upper=True)",
    "torch.linalg.inv(A)", "torch.linalg.inv_ex(A)", "torch.inverse(A)", "A.inverse()",
    "torch.linalg.solve(A, B)", "torch.linalg.solve(A, B.mT, left=False)", "torch.linalg.solve_ex(A, B)",
    "torch.linalg.solve_triangular(A, B, upper=True)", "torch.linalg.solve_triangular(A, B, upper=False)",
    "torch.linalg.solve_triangular(A, B.mT, upper=True, left=False, unitriangular=True)",
    "torch.linalg.det(A)", "torch.det(A)", "A.det()", "torch.linalg.slogdet(A)", "A.slogdet()", "A.logdet()",
    "torch.linalg.lu(A)", "torch.linalg.lu(B)", "torch.linalg.lu(B.mT)", "torch.linalg.lu_factor(A)",
    "torch.linalg.lu_factor_ex(B)", "torch.lu_unpack(*torch.linalg.lu_factor(A))",
    "torch.lu_unpack(*torch.linalg.lu_factor(B.detach()), unpack_data=False)",
    "torch.lu_unpack(*torch.linalg.lu_factor(B), unpack_pivots=False)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B, adjoint=True)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B.mT, left=False)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(A), B.mT, left=False, adjoint=True)",
    "torch.linalg.qr(A)", "torch.linalg.qr(B)", "torch.linalg.qr(B.mT)", "torch.linalg.qr(A, mode='complete')",
    "torch.linalg.qr(A.detach(), mode='r')", "torch.linalg.qr(B.detach(), mode='complete')", "torch.geqrf(B.detach())",
    "torch.linalg.householder_product(B, B[..., 0, :])", "torch.orgqr(B, B[..., 1, :])",
    "torch.ormqr(B, B[..., 0, :], A)", "torch.ormqr(B, B[..., 0, :], A, left=False)",
    "torch.ormqr(B, B[..., 0, :], A, transpose=True)", "torch.ormqr(B, B[..., 0, :], A, False, True)",
    "torch.linalg.eigvalsh(A)", "torch.linalg.eigvalsh(A, UPLO='U')", "torch.linalg.eigh(A)[0]",
    "torch.linalg.eigh(A)[1].abs()", "torch.linalg.eigvals(A).abs().sort()[0]", "torch.linalg.eig(A)[1].abs().sum(-1)",
    "torch.linalg.svdvals(B)", "torch.linalg.svd(B, full_matrices=False)[0].abs()", "torch.linalg.svd(B)[2].abs()",
    "(lambda u, s, v: (u * s.unsqueeze(-2)) @ v.mH)(*torch.svd(B))", "torch.svd(A)[1]",
    "torch.svd(B, compute_uv=False)", "torch.linalg.pinv(B)", "torch.linalg.pinv(B.mT)", "torch.pinverse(B)",
    "torch.linalg.pinv(A + A.mH, hermitian=True)", "torch.linalg.pinv(B, rtol=0.5)", "torch.linalg.pinv(B, atol=1.0)",
    "torch.linalg.pinv(B, 0.5)", "torch.linalg.matrix_rank(B)", "torch.linalg.matrix_rank(B, tol=2.0)",
    "torch.linalg.matrix_rank(A @ A.mH, hermitian=True)", "torch.linalg.matrix_rank(B, rtol=0.6)",
    "torch.linalg.lstsq(B, A)[0]", "torch.linalg.lstsq(B, A, driver='gelsd')",
    "torch.linalg.lstsq(B, A, driver='gels')", "torch.linalg.lstsq(B, A[..., 0], driver='gels')",
    "torch.linalg.lstsq(B, A[..., 0], driver='gelsd')",
    "torch.linalg.lstsq(B.mT, B.mT, driver='gelss')", "torch.linalg.lstsq(B, A[..., 0])[0]",
    "torch.linalg.matrix_exp(A)", "torch.matrix_exp(A / 50)", "A.matrix_exp()",
    *(f"torch.linalg.matrix_power(A, {n})" for n in (0, 1, 2, 3, 5, 8, -1, -2)), "A.matrix_power(3)",
    *(f"torch.linalg.matrix_norm(A, {p!r})" for p in ("fro", "nuc", 1, -1, 2, -2)),
    "torch.linalg.matrix_norm(A, float('inf'), keepdim=True)", "torch.linalg.matrix_norm(A, 2, keepdim=True)",
    "torch.linalg.matrix_norm(A, -float('inf'))", "torch.linalg.matrix_norm(A, 1, dim=(-1, -2))",
    "torch.linalg.norm(A)", "torch.linalg.norm(A, dim=-1)", "torch.linalg.norm(A, 3, dim=0)",
    "torch.linalg.norm(A, 'nuc', dim=(-2, -1))", "torch.norm(A, 'nuc', dim=(-2, -1))", "A.norm('fro')",
    *(f"torch.linalg.cond(A, {p!r})" for p in (None, 2, -2, "nuc")),
    # torch writes into the inverse its derivative needs, so a gradient is an error there.
    *(f"torch.linalg.cond(A.detach(), {p!r})" for p in (1, -1, "fro")),
    "torch.linalg.vecdot(A, A)", "torch.linalg.vecdot(A, A, dim=-2)", "torch.linalg.matmul(A, B)",
    "torch.linalg.diagonal(A)", "torch.linalg.diagonal(A, offset=1)", "torch.linalg.vander(A)",
    "torch.linalg.vander(A, N=2)",
    "torch.linalg.ldl_solve(*torch.linalg.ldl_factor((A + A.mT).detach()), B.detach())",
    "torch.linalg.ldl_factor((A + A.mH).detach(), hermitian=True)", "torch.linalg.ldl_factor_ex((A + A.mT).detach())",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "c128"])
@pytest.mark.parametrize("batch", ["", "2, "])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_function_is_torchs(expression, batch, dtype):
    agree(f"(lambda A, B: {expression})(x({batch}3, 3, dtype={dtype}), x({batch}3, 2, dtype={dtype}))")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_keeps_single_precision(expression, dtype):
    def program(torch):
        a, b = (given(torch, 3, n, dtype=getattr(torch, dtype), grad=False) for n in (3, 2))
        result = eval(f"lambda A, B: {expression}", {"torch": torch})(a, b)
        return [(part.dtype, part.shape) for part in (result if isinstance(result, tuple) else (result,))]

    same(program)


BROADCAST = [
    "torch.linalg.solve(x(2, 1, 3, 3), x(4, 3, 2))", "torch.linalg.solve(x(3, 3), x(4, 3, 2))",
    "torch.linalg.solve(x(4, 3, 3), x(3))", "torch.linalg.solve(x(2, 3, 3), x(2, 3))",
    "torch.linalg.solve_triangular(x(2, 1, 3, 3), x(4, 3, 2), upper=True)",
    "torch.linalg.solve_triangular(x(3, 3), x(4, 2, 3), upper=False, left=False)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(x(3, 3)), x(5, 3, 2))",
    "torch.cholesky_solve(x(4, 3, 2), x(3, 3).tril())", "torch.linalg.vecdot(x(2, 1, 3), x(4, 3))",
    "torch.linalg.lstsq(x(2, 4, 3), x(2, 4, 2))[0]", "torch.linalg.lstsq(x(4, 3), x(4))[0]",
    "torch.linalg.lstsq(x(2, 1, 4, 3), x(2, 5, 4, 2))[0]",
]  # fmt: skip


@pytest.mark.parametrize("expression", BROADCAST)
def test_batches_broadcast(expression):
    agree(expression)


SHAPES = [
    "torch.linalg.multi_dot([x(2, 3), x(3, 4)])", "torch.linalg.multi_dot([x(2, 3), x(3, 4), x(4, 2)])",
    "torch.linalg.multi_dot([x(7, 2), x(2, 9), x(9, 3)])", "torch.linalg.multi_dot([x(3), x(3, 4), x(4)])",
    "torch.linalg.multi_dot([x(2, 3), x(3, 9), x(9, 2), x(2, 8)])", "torch.linalg.multi_dot((x(3), x(3)))",
    "torch.linalg.tensorinv(x(4, 6, 8, 3))", "torch.linalg.tensorinv(x(6, 2, 3), ind=1)",
    "torch.linalg.tensorsolve(x(2, 3, 6), x(2, 3))", "torch.linalg.tensorsolve(x(2, 6, 3), x(2, 3), dims=(1,))",
    "torch.linalg.matrix_norm(x(2, 3, 4), 2, dim=(0, 2))", "torch.linalg.matrix_norm(x(2, 3, 4), 1, dim=(2, 0))",
    "torch.linalg.matrix_norm(x(2, 3, 4), 'nuc', dim=(1, 0), keepdim=True)",
    "torch.linalg.matrix_norm(x(2, 3, 4), float('inf'), (0, 1), True)", "torch.linalg.norm(x(2, 3, 4), 2, (0, 1))",
    "torch.linalg.matrix_norm(x(3, 3, dtype=torch.float32, grad=False), 2, dtype=torch.float64)",
    "torch.linalg.inv(x(2, 8, 3, 3))", "torch.linalg.svdvals(x(9, 2, 3))", "torch.linalg.eigvalsh(x(9, 3, 3))",
    "torch.linalg.det(x(3, 3, 2, 2))", "torch.linalg.qr(x(8, 3, 2))", "torch.linalg.eigh(x(40, 40))[0]",
    "torch.linalg.svdvals(x(40, 35))", "torch.linalg.inv(x(40, 40) + 9 * torch.eye(40))", "torch.linalg.qr(x(40, 3))",
]  # fmt: skip


@pytest.mark.parametrize("expression", SHAPES)
def test_shapes_of_every_kind_are_taken(expression):
    agree(expression)


EMPTY = [
    "inv(x(0, 0))", "inv(x(2, 0, 0))", "inv(x(0, 3, 3))", "det(x(0, 0))", "det(x(0, 2, 2))", "slogdet(x(2, 0, 0))",
    "solve(x(0, 0), x(0, 2))", "solve(x(2, 2), x(2, 0))", "solve(x(0, 2, 2), x(0, 2, 1))", "svd(x(0, 3))",
    "svd(x(3, 0), full_matrices=False)", "svdvals(x(2, 0, 3))", "eigh(x(0, 0))", "eigvalsh(x(0, 3, 3))",
    "eig(x(0, 0))", "qr(x(0, 3))", "qr(x(3, 0))", "qr(x(3, 0), mode='complete')", "lu(x(0, 3))",
    "lu_factor(x(2, 0, 0))",
    "cholesky(x(0, 0))", "cholesky(x(0, 3, 3))", "pinv(x(0, 3))", "pinv(x(2, 3, 0))", "matrix_rank(x(0, 3))",
    "matrix_exp(x(0, 0))", "matrix_power(x(0, 0), 3)", "matrix_norm(x(0, 3))", "matrix_norm(x(0, 3), 2)",
    "matrix_norm(x(3, 0), 1, keepdim=True)", "matrix_norm(x(3, 0), -1)", "matrix_norm(x(0, 3), 'nuc')", "cond(x(0, 0))",
    "cond(x(2, 0, 0), 1)", "lstsq(x(0, 3), x(0, 2))", "lstsq(x(3, 2), x(3, 0))", "vecdot(x(0), x(0))",
    "multi_dot([x(0, 3), x(3, 2)])", "householder_product(x(0, 0), x(0))",
    "solve_triangular(x(0, 0), x(0, 2), upper=True)",
]  # fmt: skip


@pytest.mark.parametrize("call", EMPTY)
def test_nothing_can_be_computed_with(call):
    agree(f"torch.linalg.{call}")


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_large_cholesky_factors_have_zeros_beside_them_and_lie_by_columns(dtype, upper):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(150, 150)) + (1j * rng.normal(size=(150, 150)) if dtype == "complex128" else 0)
    a = (a @ a.conj().T + 150 * np.eye(150)).astype(dtype)
    torn = a + (np.tril if upper else np.triu)(np.ones((150, 150)), -1 if upper else 1).astype(dtype)  # is not read
    expected = peer.linalg.cholesky(peer.tensor(torn), upper=upper)
    found = pullback.linalg.cholesky(pullback.tensor(torn), upper=upper)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    assert found.stride() == expected.stride()
    torn[70, 70] = -1
    assert pullback.linalg.cholesky_ex(pullback.tensor(torn), upper=upper).info.item() == 71
