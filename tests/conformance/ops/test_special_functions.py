"""Orthogonal polynomials and Bessel functions of torch.special."""

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.ops.expressions import agree

POLYNOMIALS = [
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip
BESSEL = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
]  # fmt: skip
POINTS = np.array([-1.0, -0.99, -0.5, 0.0, 0.1, 0.5, 0.75, 1.0, 1.5, 2.0])


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_polynomial_of_every_degree_is_torchs(name, dtype):
    x, n = POINTS[:, None].astype(dtype), np.arange(-1, 13)[None].astype(dtype)
    expected = getattr(peer.special, name)(peer.tensor(x), peer.tensor(n)).numpy()
    found = getattr(pullback.special, name)(pullback.tensor(x), pullback.tensor(n)).numpy()
    assert found.dtype == expected.dtype
    # Cosines of large angles differ in the last places.
    np.testing.assert_allclose(found, expected, rtol=2e-4 if dtype == "float32" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize(
    "arguments",
    ["x(3), 3", "x(3), 2.7", "x(3), -1", "0.5, torch.tensor([1, 2, 9])", "torch.tensor([1, 2]), 3", "1.0, 2.0",
     "torch.tensor([1j]), 2", "torch.ones(2, dtype=torch.float16), 2", "x(2, 3), torch.tensor([1.0, 2.0])"],
)  # fmt: skip
def test_the_arguments_of_a_polynomial_are_torchs(name, arguments):
    agree(f"torch.special.{name}({arguments})")


@pytest.mark.parametrize("name", ["hermite_polynomial_h", "hermite_polynomial_he"])
def test_hermite_polynomials_end_where_torchs_end(name):
    for dtype, n in (("float32", 129), ("float64", 513)):
        found = getattr(pullback.special, name)(pullback.ones(1, dtype=getattr(pullback, dtype)), n)
        assert found.isnan().all()


@pytest.mark.parametrize("name", BESSEL)
def test_a_bessel_function_is_torchs(name):
    x = np.array([0.0, 1e-10, 0.3, 1.0, 2.5, 7.0, 20.0, -1.5, np.inf, -np.inf, np.nan])
    expected = getattr(peer.special, name)(peer.tensor(x)).numpy()
    found = getattr(pullback.special, name)(pullback.tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4 if name == "airy_ai" else 1e-6, atol=1e-6)


@pytest.mark.parametrize("name", BESSEL)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16", "complex64"])
def test_the_dtype_of_a_bessel_function_is_torchs(name, dtype):
    agree(f"torch.special.{name}(torch.ones(2).to(torch.{dtype})).dtype")


def test_neither_has_a_derivative():
    x = pullback.ones(2, requires_grad=True)
    assert not pullback.special.bessel_j0(x).requires_grad
    assert not pullback.special.legendre_polynomial_p(x, 2).requires_grad


SPECIAL = [
    0.0,
    -0.0,
    -1.0,
    -2.0,
    -50.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-30,
    1e30,
    -1e20,
    -0.5,
    0.5,
    1.0,
    -1e-5,
    -3.7,
    1e-45,
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 20, 21])
def test_a_polygamma_function_is_torchs_at_poles_and_between_them(n, dtype):
    rng = np.random.default_rng(0)
    more = [5e-324, 1e110, 1e300] if dtype == "float64" else []
    points = np.array([*SPECIAL, *more, *rng.uniform(0, 20, 5000), *rng.uniform(-20, 0, 100)]).astype(dtype)
    for x in (points, points[: len(SPECIAL)]):  # by a kernel, and by what computes a few
        expected = peer.polygamma(n, peer.tensor(x)).numpy()
        found = pullback.polygamma(n, pullback.tensor(x)).numpy()
        loose = dtype == "float32" and n == 1  # whose poles are sines of float32
        np.testing.assert_allclose(found, expected, rtol=1e-3 if loose else 1e-6 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_zeta_function_is_torchs_wherever_a_kernel_computes_it_and_elsewhere(dtype):
    rng = np.random.default_rng(0)
    odd = np.array([1.0, 0.5, 2.0, 3.0, 2.5, np.nan, np.inf, 100.0, 1.0 + 1e-6, 2.0, 60.0, 65.0])
    beside = np.array([1.0, 2.0, -3.5, -3.0, -3.5, 1.0, 2.0, 1e-20, 5.0, np.inf, 1e-3, 3.0])
    s = np.concatenate([odd, 1.001 + rng.exponential(3, 20_000)]).astype(dtype)
    q = np.concatenate([beside, 10 ** rng.uniform(-3, 3, 20_000)]).astype(dtype)
    expected = peer.special.zeta(peer.tensor(s), peer.tensor(q)).numpy()
    found = pullback.special.zeta(pullback.tensor(s), pullback.tensor(q)).numpy()
    rtol, atol = (1e-6, 1e-44) if dtype == "float32" else (1e-11, 0)
    np.testing.assert_allclose(found, expected, rtol, atol)
