"""Sparse Jacobians and Hessians are the dense ones, computed with few passes."""

import numpy as np
import pytest
from scipy.sparse import diags

import pullback as torch
from pullback.func import hessian, hessian_sparse, jacfwd, jacobian_sparse
from pullback.func.sparse import Plan, as_pattern, coloured


def chain(x):
    return x[1:] * x[:-1].sin() + x[1:] ** 2


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def arrow(x):
    return x * x[0]


def one_sum(x):
    return x.exp().sum().reshape(1)


def grid(x):
    return x[1:, :] * x[:-1, :] - x[1:, :].cos()


@pytest.mark.parametrize("function", [chain, arrow, one_sum])
def test_the_jacobian_is_the_dense_one(function):
    x = torch.linspace(-1, 1, 12, dtype=torch.float64)
    dense = jacfwd(function)(x).reshape(-1, 12).numpy()
    assert np.allclose(jacobian_sparse(function)(x).toarray(), dense)


def test_tensors_of_several_dimensions_are_flattened():
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    assert np.allclose(jacobian_sparse(grid)(x).toarray(), jacfwd(grid)(x).reshape(9, 12).numpy())


def test_the_hessian_is_the_dense_one():
    x = torch.linspace(-1, 1, 15, dtype=torch.float64)
    sparse = hessian_sparse(rosenbrock)(x)
    assert sparse.nnz <= 3 * 15
    assert np.allclose(sparse.toarray(), hessian(rosenbrock)(x).numpy())


def test_few_passes_do():
    calls = []

    def counted(x):
        calls.append(tuple(x.shape))
        return chain(x)

    x = torch.linspace(-1, 1, 200, dtype=torch.float64)
    jacobian = jacobian_sparse(counted)
    jacobian(x)
    calls.clear()
    jacobian(x)
    assert len(calls) == 2, "one call for the output, one for all colours at once"


def test_a_band_needs_as_many_colours_as_it_is_wide():
    pattern = as_pattern(np.tri(50, 50, 1) - np.tri(50, 50, -2), (50, 50))
    assert coloured(pattern).max() + 1 == 3


def test_columns_of_one_colour_share_no_row():
    rng = np.random.default_rng(0)
    pattern = as_pattern(rng.random((30, 40)) < 0.1, (30, 40))
    colours = coloured(pattern)
    for row in pattern.toarray():
        used = colours[row]
        assert len(set(used)) == len(used)


def test_a_full_row_is_computed_by_backward():
    assert Plan(as_pattern(np.ones((1, 20)), (1, 20))).by_rows


def test_a_zero_at_the_point_is_found_at_points_around():
    x = torch.zeros(5, dtype=torch.float64)
    square = jacobian_sparse(lambda x: x * x)
    square(x)
    assert np.allclose(square(x + 1).toarray(), 2 * np.eye(5))


def test_a_given_pattern_is_used_and_checked():
    x = torch.linspace(0, 1, 4, dtype=torch.float64)
    assert np.allclose(jacobian_sparse(lambda x: x**2, pattern=np.eye(4))(x).toarray(), np.diag(2 * x.numpy()))
    with pytest.raises(ValueError, match="the pattern has shape"):
        jacobian_sparse(lambda x: x**2, pattern=np.eye(3))(x)


def test_only_single_tensors_can_be_returned():
    with pytest.raises(RuntimeError, match="one Tensor"):
        jacobian_sparse(lambda x: (x, x))(torch.ones(3))


def test_a_tridiagonal_jacobian_of_size_ten_thousand_takes_three_directions_in_two_calls():
    calls = []

    def three(x):
        calls.append(tuple(x.shape))
        return x[1:-1] ** 2 + x[:-2].sin() - x[2:]

    size = 10_000
    x = torch.linspace(-1, 1, size, dtype=torch.float64)
    band = diags([np.ones(size - 2)] * 3, [0, 1, 2], shape=(size - 2, size))
    found = jacobian_sparse(three, pattern=band)(x)
    assert len(calls) == 2 and Plan(as_pattern(band, band.shape)).count == 3
    values = x.numpy()
    expected = diags([np.cos(values[:-2]), 2 * values[1:-1], -np.ones(size - 2)], [0, 1, 2], shape=band.shape)
    assert abs(found - expected).max() < 1e-12
