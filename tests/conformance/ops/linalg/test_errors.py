"""What linear algebra refuses, in torch's words: shapes, dtypes, options, and matrices that cannot be computed with."""

import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both, same
from tests.conformance.ops.expressions import agree

SQUARE = ("cholesky", "cholesky_ex", "det", "eig", "eigvals", "eigh", "eigvalsh", "inv", "inv_ex", "ldl_factor",
          "ldl_factor_ex", "matrix_exp", "slogdet")  # fmt: skip
ANY = ("cond", "lu", "lu_factor", "lu_factor_ex", "matrix_norm", "matrix_rank", "norm", "pinv", "qr", "svd", "svdvals",
       "tensorinv", "vander", "vector_norm", "diagonal")  # fmt: skip
OLDER = ("cholesky_inverse", "det", "logdet", "slogdet", "inverse", "pinverse", "geqrf", "svd", "matrix_exp")
INPUTS = {
    "a vector": "torch.ones(3)",
    "a number": "torch.ones(())",
    "wide matrices": "torch.tensor([[[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]]])",
    "integers": "torch.ones(3, 3, dtype=torch.int64)",
    "bools": "torch.ones(3, 3, dtype=torch.bool)",
    "half precision": "torch.ones(3, 3, dtype=torch.float16)",
    "an int": "3",
    "nothing": "None",
}

UNLIKE = {
    ("eigvals", INPUTS["half precision"]),
    ("eig", INPUTS["half precision"]),  # torch warns of complex numbers in half precision before it refuses
    ("matrix_exp", INPUTS["half precision"]),  # torch's overflows
    ("svd", INPUTS["wide matrices"]),  # accepted: the signs of the vectors differ
}


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("name", [*(f"linalg.{name}" for name in SQUARE + ANY), *OLDER])
def test_an_input_that_does_not_fit_is_refused_as_torch_does(name, given):
    if (name.removeprefix("linalg."), given) in UNLIKE:
        pytest.skip("see UNLIKE")
    agree(f"torch.{name}({given})")


SYSTEMS = {
    "vectors": "torch.ones(3), torch.ones(3)",
    "a matrix and a vector": "torch.eye(3), torch.ones(3)",
    "sizes": "torch.eye(3), torch.eye(2)",
    "wide matrices": "torch.ones(2, 3), torch.ones(2, 3)",
    "dtypes": "torch.eye(3), torch.eye(3, dtype=torch.float64)",
    "integers": "torch.ones(3, 3, dtype=torch.int64), torch.ones(3, 3, dtype=torch.int64)",
    "batches": "torch.ones(2, 3, 3) + torch.eye(3), torch.ones(4, 3, 3)",
    "an int": "torch.eye(3), 3",
    "numbers": "torch.ones(()), torch.ones(())",
}
CALLS = (
    "linalg.solve({})", "linalg.solve({}, left=False)", "linalg.solve_ex({})", "linalg.lstsq({})", "linalg.vecdot({})",
    "linalg.householder_product({})", "orgqr({})", "cholesky_solve({})", "linalg.multi_dot([{}])",
    "ormqr({}, torch.ones(3, 3))", "lu_unpack({})",
)  # fmt: skip


@pytest.mark.parametrize("given", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("call", CALLS)
def test_operands_that_do_not_fit_together_are_refused_as_torch_does(call, given):
    agree(f"torch.{call.format(given)}")


OTHERS = [
    "torch.linalg.solve_triangular(torch.ones(3), torch.ones(3), upper=True)",
    "torch.linalg.solve_triangular(torch.eye(3), torch.ones(3), upper=True)",
    "torch.linalg.solve_triangular(torch.eye(3), torch.ones(2, 2), upper=True, left=False)",
    "torch.linalg.solve_triangular(torch.eye(3), torch.ones(2, 3, 3), upper=True).shape",
    "torch.linalg.lu_solve(torch.eye(3), torch.ones(3, dtype=torch.int64), torch.ones(3, 2))",
    "torch.linalg.lu_solve(torch.eye(3), torch.ones(2, dtype=torch.int32), torch.ones(3, 2))",
    "torch.linalg.lu_solve(torch.eye(3).expand(2, 3, 3), torch.ones(3, dtype=torch.int32), torch.ones(3, 2))",
    "torch.linalg.lu_solve(torch.eye(3), torch.zeros(3, dtype=torch.int32), torch.ones(3, 2))",
    "torch.linalg.lu_solve(torch.eye(3), torch.full((3,), 9, dtype=torch.int32), torch.ones(3, 2))",
    "torch.linalg.lu_solve(torch.eye(3), torch.ones(3, dtype=torch.int32), torch.ones(3))",
    "torch.lu_unpack(torch.eye(3), torch.full((3,), 4, dtype=torch.int32))",
    "torch.lu_unpack(torch.eye(3), torch.ones(2, dtype=torch.int32))",
    "torch.linalg.ldl_solve(torch.eye(3), torch.ones(2, dtype=torch.int32), torch.ones(3, 2))",
    "torch.linalg.ldl_solve(torch.eye(3), torch.ones(3, dtype=torch.int32), torch.ones(2, 2))",
    "torch.linalg.lu(torch.eye(3), pivot=False)", "torch.linalg.lu_factor_ex(torch.eye(3), pivot=False)",
    "torch.linalg.qr(torch.eye(3), 'full')", "torch.linalg.qr(torch.eye(3), 3)", "torch.linalg.eigh(torch.eye(3), 'X')",
    "torch.linalg.svd(torch.eye(3), driver='gesvd')", "torch.linalg.lstsq(torch.eye(3), torch.eye(3), driver='qr')",
    "torch.linalg.lstsq(torch.ones(4, 3), torch.ones(3, 3))", "torch.linalg.cond(torch.eye(3), 3)",
    "torch.linalg.cond(torch.eye(3), 'inf')", "torch.linalg.cond(torch.ones(2, 3), 1)",
    "torch.linalg.cond(torch.ones(2, 3), 'nuc')", "torch.linalg.cond(torch.ones(2, 3), 'fro')",
    "torch.linalg.matrix_norm(torch.eye(3), 0)",
    "torch.linalg.matrix_norm(torch.eye(3), 2.5)", "torch.linalg.matrix_norm(torch.eye(3), 'max')",
    "torch.linalg.matrix_norm(torch.eye(3), None)", "torch.linalg.matrix_norm(torch.eye(3), dim=(0,))",
    "torch.linalg.matrix_norm(torch.ones(2, 2, 2), dim=(0, 0))", "torch.linalg.matrix_norm(torch.eye(3), dim=(0, 5))",
    "torch.linalg.matrix_norm(torch.eye(3), dtype=torch.float16)",
    "torch.linalg.matrix_norm(torch.eye(3), dtype=torch.int64)",
    "torch.linalg.matrix_norm(torch.eye(3), dtype=torch.complex64)", "torch.linalg.norm(torch.ones(2, 2, 2), 2)",
    "torch.linalg.norm(torch.ones(2, 2, 2), dim=(0, 1, 2))", "torch.linalg.norm(torch.ones(3), 'nuc')",
    "torch.linalg.norm(torch.ones(3, 3), 'fro', dim=0)", "torch.norm(torch.ones(3), 'nuc')",
    "torch.norm(torch.ones(2, 2, 2), 'nuc')", "torch.linalg.matrix_power(torch.ones(2, 3), 2)",
    "torch.linalg.matrix_power(torch.eye(3), 0.5)", "torch.linalg.matrix_power(torch.ones(2, 2), -1)",
    "torch.linalg.pinv(torch.ones(2, 3), hermitian=True)", "torch.linalg.pinv(torch.eye(3), rtol=torch.ones(1) * 1j)",
    "torch.linalg.matrix_rank(torch.eye(3), tol=torch.ones(1) * 1j)", "torch.linalg.multi_dot([torch.eye(3)])",
    "torch.linalg.multi_dot([])", "torch.linalg.multi_dot(torch.eye(3))",
    "torch.linalg.multi_dot([torch.eye(3), torch.ones(3, 3, 3), torch.eye(3)])",
    "torch.linalg.multi_dot([torch.eye(3), torch.eye(2), torch.eye(3)])",
    "torch.linalg.multi_dot([torch.eye(3), torch.eye(3).double()])", "torch.linalg.tensorinv(torch.eye(4), ind=0)",
    "torch.linalg.tensorinv(torch.ones(4, 3, 4), ind=1)",
    "torch.linalg.tensorsolve(torch.ones(2, 3, 4), torch.ones(2, 3))",
    "torch.linalg.vander(torch.ones(3), N=1)", "torch.linalg.vecdot(torch.ones(3), torch.ones(4))",
    "torch.linalg.householder_product(torch.ones(3, 4), torch.ones(3))",
    "torch.linalg.householder_product(torch.ones(4, 3), torch.ones(4))",
    "torch.linalg.householder_product(torch.ones(2, 4, 3), torch.ones(3, 3))",
    "torch.linalg.householder_product(torch.ones(4, 3), torch.ones(3).double())",
    "torch.ormqr(torch.ones(4, 3), torch.ones(3), torch.ones(3, 4))",
    "torch.ormqr(torch.ones(4, 3), torch.ones(2), torch.ones(4, 4))",
    "torch.ormqr(torch.ones(2, 4, 3), torch.ones(2, 3), torch.ones(3, 4, 3))",
    "torch.ormqr(torch.ones(4, 3), torch.ones(3), torch.ones(4, 3).double())",
    "torch.pca_lowrank(torch.eye(3), q=7)", "torch.pca_lowrank(torch.eye(3), niter=-1)",
    "torch.lobpcg(torch.eye(3), k=2)", "torch.lobpcg(torch.ones(2, 3))", "torch.frobenius_norm(torch.eye(3))",
]  # fmt: skip


@pytest.mark.parametrize("expression", OTHERS)
def test_options_that_do_not_fit_are_refused_as_torch_does(expression):
    agree(expression)


SINGULAR = [
    "inv(torch.zeros(2, 2))", "inv(torch.ones(2, 2))", "inv(torch.stack([torch.eye(2), torch.ones(2, 2)]))",
    "inv(torch.stack([torch.eye(2)] * 6 + [torch.ones(2, 2)]))", "inv_ex(torch.ones(2, 2), check_errors=True)",
    "inv_ex(torch.ones(2, 2))[1]", "inv_ex(torch.zeros(2, 2))", "solve(torch.ones(2, 2), torch.ones(2))",
    "solve_ex(torch.ones(2, 2), torch.ones(2))", "solve_ex(torch.ones(2, 2), torch.ones(2), check_errors=True)",
    "cholesky(-torch.eye(2))", "cholesky(torch.stack([torch.eye(2), torch.ones(2, 2) - 2 * torch.eye(2)]))",
    "cholesky(torch.stack([torch.eye(3)] * 5 + [torch.eye(3) - torch.ones(3, 3)]))",
    "cholesky(torch.full((2, 2), float('nan')))", "cholesky_ex(-torch.eye(2))[1]",
    "cholesky_ex(-torch.eye(2), check_errors=True)", "lu_factor(torch.ones(2, 2))", "lu_factor(torch.ones(2, 2, 3))",
    "lu_factor_ex(torch.ones(2, 2), check_errors=True)", "svd(torch.full((2, 2), float('nan')))",
    "svdvals(torch.full((9, 2, 2), float('nan')))", "pinv(torch.full((2, 2), float('nan')))",
    "eig(torch.full((2, 2), float('inf')))", "tensorinv(torch.ones(2, 2), ind=1)", "det(torch.ones(3, 3))",
    "tensorsolve(torch.ones(2, 2), torch.ones(2))", "slogdet(torch.ones(3, 3))", "cond(torch.zeros(2, 2), 1)",
    "solve_triangular(torch.zeros(2, 2), torch.ones(2, 1), upper=True)", "matrix_rank(torch.ones(3, 3))",
]  # fmt: skip


@pytest.mark.parametrize("call", SINGULAR)
def test_a_matrix_that_cannot_be_computed_with_is_reported_as_torch_does(call):
    agree(f"torch.linalg.{call}")


@on_both
def test_linalg_errors_are_runtime_errors_with_a_name_of_their_own(torch):
    try:
        torch.linalg.inv(torch.zeros(2, 2))
    except torch.linalg.LinAlgError as error:
        return isinstance(error, RuntimeError), str(error)


@pytest.mark.parametrize("name", ["solve", "eig", "symeig", "matrix_rank", "lstsq"])
def test_a_removed_name_says_what_took_its_place(name):
    agree(f"torch.{name}(torch.eye(2), torch.eye(2))" if name in ("solve", "lstsq") else f"torch.{name}(torch.eye(2))")


def test_every_public_name_of_torch_linalg_exists():
    names = [name for name in dir(peer.linalg) if not name.startswith("_") and name != "common_notes"]
    assert [name for name in names if not hasattr(pullback.linalg, name)] == []


@on_both
def test_a_wrong_out_changes_nothing(torch):
    out = torch.zeros(3, 3, dtype=torch.int64)
    try:
        torch.linalg.inv(torch.eye(3) * 2, out=out)
    except RuntimeError as error:
        return str(error), out


@on_both
def test_out_is_written_and_returned(torch):
    a = torch.eye(3) * 2 + torch.ones(3, 3)
    one, pair = torch.empty(3, 3), (torch.empty(0), torch.empty(0))
    results = [torch.linalg.inv(a, out=one) is one, torch.linalg.slogdet(a, out=pair)[1] is pair[1]]
    return results, one, pair, torch.linalg.solve(a, a, out=torch.empty(0)), torch.linalg.qr(a, out=pair)


OUT = [
    "linalg.inv(a, out={})", "linalg.det(a, out={})", "linalg.pinv(a, out={})", "linalg.matrix_rank(a, out={})",
    "linalg.cond(a, out={})", "linalg.tensorinv(a, ind=1, out={})", "linalg.eigvals(a, out={})",
    "orgqr(a, a[0], out={})",
    "linalg.matrix_power(a, 2, out={})", "linalg.matrix_norm(a, 2, out={})", "linalg.norm(a, out={})",
    "inverse(a, out={})", "linalg.multi_dot([a, a], out={})", "linalg.vecdot(a, a, out={})",
    "ormqr(a, a[0], a, out={})",
    "cholesky_inverse(a, out={})", "cholesky_solve(a, a, out={})", "linalg.solve_triangular(a, a, upper=True, out={})",
    "linalg.lstsq(a, a, out=({0}, {0}, {0}, {0}))", "geqrf(a, out=({0}, {0}))", "linalg.eig(a, out=({0}, {0}))",
    "linalg.svd(a, out=({0}, {0}, {0}))", "linalg.tensorsolve(a, a[0], out={})",
    "linalg.householder_product(a, a[0], out={})",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
@pytest.mark.parametrize("call", OUT)
def test_an_out_of_another_dtype_is_taken_or_refused_as_torch_does(call, dtype):
    def program(torch):
        a = torch.eye(3) + 0.5
        call_of = call.format(f"torch.empty(0, dtype=torch.{dtype})")
        result = eval(f"torch.{call_of}", {"torch": torch, "a": a})
        return [(part.dtype, part.shape) for part in (result if isinstance(result, tuple) else (result,))]

    same(program)


def test_true_is_no_dimension_of_a_cross_product_even_after_one_was():
    for call in ("torch.cross(x, x, True)", "x.cross(x, True)"):
        agree(f"(lambda x: [torch.cross(x, x, 1), {call}])(torch.ones(3, 3))")
