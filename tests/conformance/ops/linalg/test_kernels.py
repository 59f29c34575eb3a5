"""The algorithms for many small matrices give what LAPACK gives for each of them."""

import itertools

import numpy as np
import pytest

from pullback.kernels.numpy.linalg import batched
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.kernels.numpy.linalg.spectral import matrix_exp

CHARS = "fdFD"
TOLERANCE = {"f": 2e-3, "F": 2e-3, "d": 1e-9, "D": 1e-9}


def matrices(char: str, *shape: int) -> np.ndarray:
    random = np.random.default_rng(sum(shape))
    array = random.normal(size=shape) + 1j * random.normal(size=shape)
    return (array if char in "FD" else array.real).astype(char)


@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("shape", [(20, 1, 1), (20, 4, 4), (9, 3, 5), (9, 5, 3), (3, 6, 2, 2)])
def test_lu_of_a_batch_is_lapacks_lu_of_each(char, shape):
    a = matrices(char, *shape)
    packed, pivots, info = batched.lu_factor(a)
    flat = a.reshape(-1, *shape[-2:])
    expected = [kernels.lapack("getrf", a.dtype)(one) for one in flat]
    np.testing.assert_array_equal(pivots.reshape(len(flat), -1), np.stack([found[1] + 1 for found in expected]))
    factors = np.stack([found[0] for found in expected])
    np.testing.assert_allclose(packed.reshape(factors.shape), factors, rtol=TOLERANCE[char], atol=TOLERANCE[char])
    assert not info.any() and packed.dtype == a.dtype


def test_a_zero_pivot_is_reported_where_it_is():
    a = np.stack([np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)[[1, 0, 2]]])
    np.testing.assert_array_equal(batched.lu_factor(a)[2], [0, 1, 2, 0])


@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("count", [1, 3, 30])
def test_every_triangular_system_is_solved(char, count):
    a, b = matrices(char, count, 3, 3), matrices(char, count, 3, 2)
    for upper, left, unit, adjoint in itertools.product((False, True), repeat=4):
        triangle = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
        triangle = triangle + np.eye(3, dtype=char) if unit else triangle
        operator = triangle.conj().swapaxes(-1, -2) if adjoint else triangle
        right = b if left else b.swapaxes(-1, -2)
        x = kernels.solve_triangular(a, right, upper, left, unit, adjoint)
        product = operator @ x if left else x @ operator
        np.testing.assert_allclose(product, right, atol=TOLERANCE[char] * 100 * max(1, np.abs(x).max()))


@pytest.mark.parametrize("char", CHARS)
@pytest.mark.parametrize("count", [1, 3, 30])
def test_every_system_is_solved_with_its_lu(char, count):
    a, b = matrices(char, count, 3, 3), matrices(char, count, 3, 2)
    packed, pivots, _ = kernels.lu_factor(a)
    for left, adjoint in itertools.product((False, True), repeat=2):
        operator = a.conj().swapaxes(-1, -2) if adjoint else a
        right = b if left else b.swapaxes(-1, -2)
        x = kernels.lu_solve(packed, pivots, right, left, adjoint)
        product = operator @ x if left else x @ operator
        np.testing.assert_allclose(product, right, atol=TOLERANCE[char] * 100 * max(1, np.abs(x).max()))


@pytest.mark.parametrize("scale", [1e-9, 0.1, 0.7, 3.0, 40.0])
def test_the_exponential_of_a_diagonalizable_matrix_is_that_of_its_eigenvalues(scale):
    symmetric = matrices("d", 6, 6)
    symmetric = (symmetric + symmetric.T) * scale / 12
    values, vectors = np.linalg.eigh(symmetric)
    expected = (vectors * np.exp(values)) @ vectors.T
    np.testing.assert_allclose(matrix_exp(symmetric), expected, rtol=1e-12, atol=1e-13 * np.exp(values.max()))
