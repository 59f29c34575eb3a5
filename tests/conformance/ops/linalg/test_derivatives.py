"""Derivatives of decompositions: first and second, backward and forward, real and complex, and where there are none."""

import numpy as np
import pytest

import pullback
from tests.conformance.both import attempt, on_both, same

PARTS = {
    "cholesky": "torch.linalg.cholesky(a @ a.mH + 2 * torch.eye(3))",
    "upper cholesky": "torch.linalg.cholesky(a @ a.mH + 2 * torch.eye(3), upper=True)",
    "cholesky_inverse": "torch.cholesky_inverse(torch.linalg.cholesky(a @ a.mH + torch.eye(3)))",
    "cholesky_solve": "torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mH + torch.eye(3)))",
    "upper cholesky_solve": "torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.mH + torch.eye(3)).mH, upper=True)",
    "inv": "torch.linalg.inv(a)",
    "solve": "torch.linalg.solve(a, b)",
    "solve with a vector": "torch.linalg.solve(a, b[:, 0])",
    "solve from the right": "torch.linalg.solve(a, b.mT, left=False)",
    "solve_triangular": "torch.linalg.solve_triangular(a, b, upper=False)",
    "unitriangular": "torch.linalg.solve_triangular(a, b.mT, upper=True, left=False, unitriangular=True)",
    "det": "torch.linalg.det(a)",
    "det of singular matrices": "torch.linalg.det(a * (1 - torch.eye(3)[0]))",
    "det of a batch with a singular matrix": "torch.linalg.det(torch.stack([a, a * (1 - torch.eye(3)[1])]))",
    "slogdet": "torch.linalg.slogdet(a)[1]",
    "sign of slogdet": "torch.linalg.slogdet(a)[0] * 2",
    "logdet": "torch.logdet(a @ a.mH)",
    "lu": "torch.cat(torch.linalg.lu(a)[1:])",
    "lu of tall matrices": "torch.linalg.lu(b)[1] @ torch.linalg.lu(b)[2] ** 2",
    "lu of wide matrices": "torch.linalg.lu(b.mT)[1] ** 2 @ torch.linalg.lu(b.mT)[2]",
    "lu_factor": "torch.linalg.lu_factor(a)[0]",
    "lu_solve": "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)",
    "adjoint lu_solve": "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True)",
    "lu_solve from the right": "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False)",
    "adjoint lu_solve, right": "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False, adjoint=True)",
    "qr": "torch.cat(torch.linalg.qr(a))",
    "qr of tall matrices": "torch.linalg.qr(b)[0] @ torch.linalg.qr(b)[1] ** 2",
    "qr of wide matrices": "torch.linalg.qr(b.mT)[0] ** 2 @ torch.linalg.qr(b.mT)[1]",
    "eigvalsh": "torch.linalg.eigvalsh(a + a.mH)",
    "eigh": "(lambda v: (v[1] * v[0].exp().unsqueeze(-2)) @ v[1].mH)(torch.linalg.eigh(a + a.mH))",
    "eigenvectors of eigh": "torch.linalg.eigh(a + a.mH)[1].abs()",
    "eigvals": "(torch.linalg.eigvals(a) ** 3).sum()",
    "eig": "(lambda v: torch.linalg.solve(v[1], v[1] * v[0].exp().unsqueeze(-2), left=False))(torch.linalg.eig(a))",
    "eigenvectors of eig": "torch.linalg.eig(a)[1].abs().sum(-1)",
    "svdvals": "torch.linalg.svdvals(b)",
    "svd": "(lambda u, s, v: (u * s.exp().unsqueeze(-2)) @ v)(*torch.linalg.svd(a))",
    "svd of tall matrices": "(lambda u, s, v: (u * s.exp().unsqueeze(-2)) @ v)(*torch.linalg.svd(b, False))",
    "svd of wide matrices": "(lambda u, s, v: (u * s.exp().unsqueeze(-2)) @ v)(*torch.linalg.svd(b.mT, False))",
    "singular vectors": "torch.linalg.svd(b, False)[0].abs() @ torch.linalg.svd(b, False)[2].abs()",
    "pinv": "torch.linalg.pinv(b)",
    "pinv of wide matrices": "torch.linalg.pinv(b.mT)",
    "pinv of Hermitian matrices": "torch.linalg.pinv(a + a.mH, hermitian=True)",
    "lstsq": "torch.linalg.lstsq(b, a)[0]",
    "lstsq of wide matrices": "torch.linalg.lstsq(b.mT, b.mT)[0]",
    "residuals": "torch.linalg.lstsq(b, a, driver='gelsd')[1]",
    "matrix_exp": "torch.linalg.matrix_exp(a)",
    "matrix_power": "torch.linalg.matrix_power(a, -3)",
    "householder_product": "torch.linalg.householder_product(b, b[0])",
    "ormqr": "torch.ormqr(b, b[0], a)",
    "adjoint ormqr from the right": "torch.ormqr(b, b[0], a, left=False, transpose=True)",
    "matrix_norm 2": "torch.linalg.matrix_norm(a, 2)",
    "matrix_norm nuc": "torch.linalg.matrix_norm(b, 'nuc')",
    "cond": "torch.linalg.cond(a)",
    "vecdot": "torch.linalg.vecdot(a, a)",
    "vander": "torch.linalg.vander(a, N=4)",
}  # fmt: skip
NO_TANGENT = {"ormqr", "adjoint ormqr from the right", "cholesky_inverse"}
"""torch has no forward rule, or a wrong one."""


def inputs(torch, dtype):
    """Two fixed matrices."""
    random = np.random.default_rng(3)
    arrays = [random.normal(size=size) + 1j * random.normal(size=size) for size in ((3, 3), (3, 2))]
    return [
        torch.tensor(array if dtype == "complex128" else array.real, dtype=getattr(torch, dtype)) for array in arrays
    ]


def function(torch, name):
    return eval(f"lambda a, b: {PARTS[name]}", {"torch": torch})


def total(value):
    """A real number from any result, with different weights for its elements."""
    value = value.reshape(-1)
    weights = value.detach().real * 0 + 1
    weights = weights.cumsum(0) / 7
    return (value.real * weights + (value.imag * weights.flip(0) if value.is_complex() else 0)).sum()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", PARTS)
def test_the_gradient_and_its_gradient_are_torchs(name, dtype):
    def program(torch):
        a, b = (x.requires_grad_() for x in inputs(torch, dtype))
        out = total(function(torch, name)(a, b))
        first = torch.autograd.grad(out, [a, b], create_graph=True, allow_unused=True)
        wanted = [g for g in first if g is not None]
        if not wanted:  # the sign of a real determinant does not move
            return [out.detach(), first]
        plain = torch.autograd.grad(total(function(torch, name)(a, b)), [a, b], allow_unused=True)
        second = torch.autograd.grad(sum(total(g) for g in wanted), [a, b], allow_unused=True)
        return [out.detach(), [g if g is None else g.detach() for g in first], plain, second]

    same(program)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [name for name in PARTS if name not in NO_TANGENT])
def test_the_tangent_is_torchs(name, dtype):
    def program(torch):
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, (x * 3).cos()) for x in inputs(torch, dtype)]
            return forward_ad.unpack_dual(total(function(torch, name)(*duals))).tangent

    same(program)


def finite_difference(torch, f, x, direction, step=1e-6):
    return (f(x + step * direction) - f(x - step * direction)) / (2 * step)


@pytest.mark.parametrize("upper", [False, True])
def test_the_tangent_of_cholesky_inverse_is_the_derivative(upper):
    torch = pullback
    a, _ = inputs(torch, "float64")
    factor = torch.linalg.cholesky(a @ a.mH + 2 * torch.eye(3, dtype=a.dtype), upper=upper)
    direction = (a * 5).sin()
    direction = direction.triu() if upper else direction.tril()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(factor, direction)
        tangent = torch.autograd.forward_ad.unpack_dual(torch.cholesky_inverse(dual, upper)).tangent
    expected = finite_difference(torch, lambda x: torch.cholesky_inverse(x, upper), factor, direction)
    np.testing.assert_allclose(tangent.numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_the_tangent_of_triangular_solve_ignores_the_triangle_that_is_not_read():
    torch = pullback
    a, b = inputs(torch, "float64")
    direction = (a * 5).sin()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(a, direction)
        tangent = torch.autograd.forward_ad.unpack_dual(torch.triangular_solve(b, dual)[0]).tangent
    expected = finite_difference(torch, lambda x: torch.triangular_solve(b, x)[0], a, direction)
    np.testing.assert_allclose(tangent.numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)


@on_both
def test_what_depends_on_a_phase_nothing_determines_has_no_gradient(torch):
    a, _ = inputs(torch, "complex128")

    def backward(value):
        return attempt(lambda: value.imag.sum().backward())

    a.requires_grad_()
    return [
        backward(torch.linalg.svd(a)[0] ** 2),
        backward(torch.linalg.svd(a)[2] ** 2),
        backward(torch.linalg.eigh(a + a.mH)[1] ** 2),
        backward(torch.linalg.eig(a)[1] ** 2),
    ]


@on_both
def test_what_qr_does_not_compute_has_no_gradient(torch):
    a, b = (x.requires_grad_() for x in inputs(torch, "float64"))
    return [
        attempt(lambda: torch.linalg.qr(a, mode="r")[1].sum().backward()),
        attempt(lambda: torch.linalg.qr(b, mode="complete")[1].sum().backward()),
        attempt(lambda: torch.geqrf(a)[0].sum().backward()),
        attempt(lambda: torch.linalg.ldl_factor_ex(a)[0].sum().backward()),
    ]


@on_both
def test_permutations_ranks_and_singular_values_of_lstsq_are_constants(torch):
    a, b = (x.requires_grad_() for x in inputs(torch, "float64"))
    solved = torch.linalg.lstsq(b, a, driver="gelsd")
    return [[part.requires_grad for part in found] for found in (torch.linalg.lu(a), solved, torch.linalg.inv_ex(a))]
