"""Linear algebra under the transformations of torch.func."""

import warnings

import numpy as np
import pytest

from tests.conformance.both import same

FUNCTIONS = {
    "inv": "torch.linalg.inv(a)",
    "solve": "torch.linalg.solve(a, b)",
    "solve with a vector": "torch.linalg.solve(a, b[:, 0])",
    "det": "torch.linalg.det(a)",
    "slogdet": "torch.linalg.slogdet(a)[1]",
    "svdvals": "torch.linalg.svdvals(b)",
    "eigvalsh": "torch.linalg.eigvalsh(a + a.mT)",
    "qr": "torch.linalg.qr(b)[1]",
    "cholesky": "torch.linalg.cholesky(a @ a.mT + torch.eye(3))",
    "matrix_exp": "torch.linalg.matrix_exp(a)",
    "matrix_norm": "torch.linalg.matrix_norm(a, 2)",
    "lstsq": "torch.linalg.lstsq(b, a)[0]",
    "pinv": "torch.linalg.pinv(b)",
    "solve_triangular": "torch.linalg.solve_triangular(a, b, upper=True)",
    "lu": "torch.linalg.lu(a)[2]",
}
TRANSFORMED = {
    "vmap": lambda torch, f, a, b: torch.func.vmap(f)(a, b),
    "vmap of grad": lambda torch, f, a, b: torch.func.vmap(torch.func.grad(lambda a, b: (f(a, b) ** 2).sum()))(a, b),
    "hessian": lambda torch, f, a, b: torch.func.hessian(lambda a: (f(a, b[0]) ** 2).sum())(a[0]),
    "jacfwd": lambda torch, f, a, b: torch.func.jacfwd(lambda a: f(a, b[0]))(a[0]),
    "jacrev": lambda torch, f, a, b: torch.func.jacrev(lambda b: f(a[0], b))(b[0]),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_transformed_function_is_torchs(name, transformed):
    def program(torch):
        random = np.random.default_rng(0)
        a, b = (torch.tensor(random.normal(size=(4, 3, n))) for n in (3, 2))
        function = eval(f"lambda a, b: {FUNCTIONS[name]}", {"torch": torch})
        with warnings.catch_warnings():  # which functions run entry by entry is not the same in the two libraries
            warnings.filterwarnings("ignore", "There is a performance drop")
            return TRANSFORMED[transformed](torch, function, a, b)

    same(program)
