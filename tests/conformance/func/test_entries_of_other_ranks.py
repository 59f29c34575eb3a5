"""Entries of a batch with fewer or more dimensions than usual: vmap refuses what a call of one entry refuses.

A vector with a batch in front looks like a matrix. Whether an entry is refused is asked of torch, what comes out is
compared with calls entry by entry, because torch itself does not broadcast all of them after the batch.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch as reference

import pullback

pytestmark = pytest.mark.filterwarnings("ignore")
SHAPES = [(), (3,), (0,), (3, 3), (2, 3, 3), (1, 3, 3)]
ONE = (
    "cholesky_inverse", "geqrf", "linalg.cholesky_ex", "linalg.det", "linalg.eigh", "linalg.eigvalsh", "linalg.inv_ex",
    "linalg.ldl_factor_ex", "linalg.lu", "linalg.lu_factor_ex", "linalg.matrix_exp", "linalg.matrix_rank",
    "linalg.pinv", "linalg.qr", "linalg.slogdet", "linalg.svd", "linalg.svdvals", "logdet", "trace",
)  # fmt: skip
TWO = {
    "cholesky_solve": lambda torch, a, b: torch.cholesky_solve(a, b),
    "linalg.householder_product": lambda torch, a, b: torch.linalg.householder_product(a, b),
    "linalg.lu_solve": lambda torch, a, b: torch.linalg.lu_solve(a, torch.full(a.shape[:-1], 3, dtype=torch.int32), b),
    "linalg.solve_ex": lambda torch, a, b: torch.linalg.solve_ex(a, b),
    "linalg.solve_triangular": lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=True),
    "triangular_solve": lambda torch, a, b: torch.triangular_solve(a, b),
    "masked_fill": lambda torch, a, b: torch.masked_fill(a, a > 0, b),
    "layer_norm": lambda torch, a, b: torch.nn.functional.layer_norm(a, a.shape[-1:], b, b),
}


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A batch of two entries of a shape; matrices among them have large diagonals."""
    array = np.random.default_rng(seed).random((2, *shape))
    if shape[-2:] == (3, 3):
        array = array @ array.swapaxes(-1, -2) + np.eye(3)
    return array


def parts(result: Any) -> list[np.ndarray]:
    return [part.numpy() for part in (result if isinstance(result, tuple) else (result,)) if hasattr(part, "numpy")]


def refused(action: Any) -> Any:
    try:
        return action()
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error)


def agree(function: Any, *shapes: tuple[int, ...]) -> None:
    batches = [numbers(shape, seed) for seed, shape in enumerate(shapes)]
    theirs, ours = (
        refused(lambda torch=torch: torch.vmap(lambda *x: function(torch, *x), randomness="different")(
            *map(torch.from_numpy, batches)
        ))
        for torch in (reference, pullback)
    )  # fmt: skip
    entries = [[pullback.from_numpy(batch[i, ...]) for batch in batches] for i in range(2)]
    alone = [refused(lambda entry=entry: function(pullback, *entry)) for entry in entries]
    assert isinstance(ours, type) == isinstance(alone[0], type)
    assert isinstance(theirs, type) <= isinstance(ours, type) or not isinstance(alone[0], type)
    if not isinstance(ours, type):
        for one, *each in zip(parts(ours), *map(parts, alone), strict=True):
            np.testing.assert_allclose(one, np.stack(each), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ONE)
def test_an_entry_that_is_no_matrix_is_refused_with_a_batch_in_front_as_well(name: str, shape: Any) -> None:
    def function(torch: Any, x: Any) -> Any:
        for part in name.split("."):
            torch = getattr(torch, part)
        return torch(x)

    agree(function, shape)


@pytest.mark.parametrize("name", TWO)
def test_two_operands_of_any_ranks_go_together_entry_by_entry(name: str) -> None:
    for shapes in itertools.product(SHAPES, SHAPES):
        agree(TWO[name], *shapes)


def test_random_numbers_are_drawn_for_means_and_deviations_that_broadcast_after_the_batch() -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        draw = torch.vmap(torch.normal, randomness="different")
        return [draw(torch.ones(2, *one), torch.ones(2, *two)) for one, two in (((2, 3), (5, 2, 3)), ((3, 1), (3,)))]

    for one, other in zip(program(pullback), program(reference), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_a_value_and_an_index_of_one_batch_are_written_in_place() -> None:
    def program(torch: Any) -> Any:
        def fill(x: Any) -> Any:
            return x.index_fill_(0, torch.tensor([0]), x[1])

        return torch.vmap(fill)(torch.arange(6.0).reshape(2, 3))

    np.testing.assert_array_equal(program(pullback).numpy(), program(reference).numpy())


@pytest.mark.parametrize("dtype", ["complex64", "bool"])
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_reductions_by_index_refuse_the_dtypes_of_an_entry(shape: Any, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(2, *shape).to(getattr(torch, dtype))
        index = torch.tensor([0, 1, 2])
        return refused(lambda: torch.vmap(lambda x: torch.index_reduce(x, 0, index, x, "mean"))(x).shape)

    assert program(pullback) == program(reference)


@pytest.mark.parametrize("bias", ["uint8", "float32", "float64"])
def test_a_bias_of_another_dtype_is_refused_beside_weights_with_a_batch(bias: str) -> None:
    def program(torch: Any) -> Any:
        x, weight = torch.ones(2, 1, 4, 8), torch.ones(2, 2, 4, 3)
        shift = torch.ones(2, dtype=getattr(torch, bias))
        return refused(lambda: torch.vmap(lambda x, w: torch.nn.functional.conv1d(x, w, shift))(x, weight).shape)

    assert program(pullback) == program(reference)


@pytest.mark.parametrize("name", ["chebyshev_polynomial_u", "shifted_chebyshev_polynomial_w", "laguerre_polynomial_l"])
def test_polynomials_of_enormous_degree_end_where_they_are_no_numbers(name: str) -> None:
    def program(torch: Any) -> Any:
        function = getattr(torch.special, name)
        x = torch.tensor([[-8.478], [-3.0], [-7.0]])
        return [function(x, torch.tensor([4e8, 0.2, 3.0])), function(x, 2**40), function(x[0, 0], torch.tensor(1e9))]

    for one, other in zip(program(pullback), program(reference), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 0)])
def test_cholesky_of_nothing_is_nothing_of_whatever_shape(shape: Any, dtype: str) -> None:
    def program(torch: Any) -> Any:
        made = torch.cholesky(torch.ones(shape, dtype=getattr(torch, dtype)))
        return tuple(made.shape), str(made.dtype)

    assert program(pullback) == program(reference)
