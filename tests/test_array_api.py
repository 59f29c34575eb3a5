"""The Python array API standard: every function it lists is there and computes what NumPy's does."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import pullback

XP = pullback.ones(1).__array_namespace__()
X = np.array([[3.0, 1.0, 2.0], [0.5, 1.0, 4.0]])

LISTED = (Path(__file__).parent / "inventory" / "array_api.txt").read_text().split()

CALLS = [
    "xp.sum(x, axis=0)", "xp.sum(x, axis=(0, 1), keepdims=True)", "xp.mean(x)", "xp.prod(x)", "xp.prod(x, axis=1)",
    "xp.prod(x, axis=(0, 1), keepdims=True)", "xp.max(x)", "xp.min(x, axis=1, keepdims=True)", "xp.std(x)",
    "xp.var(x, axis=0, correction=1)", "xp.any(x > 3)", "xp.all(x > 0, axis=1)", "xp.cumulative_sum(x, axis=1)",
    "xp.cumulative_sum(x, axis=0, include_initial=True)", "xp.sort(x)", "xp.sort(x, axis=0)",
    "xp.argsort(x, axis=1)", "xp.nonzero(x > 1)", "xp.flip(x)", "xp.flip(x, axis=1)", "xp.roll(x, 1)",
    "xp.roll(x, 1, axis=0)", "xp.permute_dims(x, (1, 0))", "xp.matrix_transpose(x)", "xp.expand_dims(x, axis=1)",
    "xp.squeeze(x[:1], axis=0)", "xp.unstack(x, axis=1)", "xp.repeat(x, 2)", "xp.repeat(x, 2, axis=1)",
    "xp.meshgrid(x[0], x[1])", "xp.clip(x, 1, 2)", "xp.clip(x, max=2)", "xp.take(x, i, axis=1)", "xp.unique_values(x)",
    "xp.unique_counts(x)", "xp.unique_inverse(x).inverse_indices", "xp.unique_all(x).indices", "xp.equal(x, x)",
    "xp.astype(x, xp.float32)", "xp.concat([x, x], axis=1)", "xp.stack([x, x], axis=-1)", "xp.vecdot(x, x, axis=0)",
    "xp.searchsorted(xp.sort(x[0]), x[1], side='right')", "xp.where(x > 1, x, -x)",
    "xp.matmul(x, xp.matrix_transpose(x))",
    "xp.tensordot(x, x, axes=2)", "xp.bitwise_invert(i)", "xp.broadcast_arrays(x, x[0])", "xp.argmax(x, axis=1)",
    "xp.linspace(0, 1, 5)", "xp.tile(x, (2, 1))", "xp.moveaxis(x, 0, 1)", "xp.isdtype(x.dtype, 'real floating')",
    "xp.isdtype(i.dtype, ('bool', 'integral'))", "xp.can_cast(i, xp.float64)",
]  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_name_is_there(name):
    assert hasattr(XP, name)


@pytest.mark.parametrize("call", CALLS)
def test_a_function_computes_what_numpys_does(call):
    scope = {"xp": XP, "x": pullback.tensor(X), "i": pullback.tensor([2, 0])}
    found = eval(call, scope)
    expected = eval(call, {"xp": np, "x": X, "i": np.array([2, 0])})
    for one, other in zip(*[v if isinstance(v, (tuple, list)) else [v] for v in (found, expected)], strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other))


def test_the_dtype_of_several_operands_is_found():
    assert XP.result_type(pullback.ones(1), pullback.float64, pullback.ones(1).int()) is pullback.float64


def test_elements_are_sorted_downwards_on_demand():
    np.testing.assert_array_equal(XP.sort(pullback.tensor(X), descending=True).numpy(), -np.sort(-X))


def test_squeezing_a_larger_dimension_raises():
    with pytest.raises(ValueError, match="has the size 2, not one"):
        XP.squeeze(pullback.ones(2, 1), axis=0)


def test_every_function_of_its_own_says_what_it_does():
    own = [f for f in vars(XP).values() if inspect.isfunction(f) and f.__module__ == "pullback.array_api"]
    assert own
    assert [f.__name__ for f in own if not f.__doc__] == []
