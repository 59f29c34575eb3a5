"""Compiled random numbers beside NumPy's: the same bits, and the same state afterwards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels.compiled import room
from pullback.kernels.numpy.random import distributions as random
from pullback.kernels.numpy.random import draws as random_draws
from pullback.kernels.numpy.random import engine as random_engine
from pullback.kernels.numpy.random import normal as random_normal
from pullback.kernels.numpy.random import permutation as random_permutation

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")
MODULES = (random, random_draws, random_engine, random_normal, random_permutation)


def both(draw, seed, *sizes):
    """What `draw(engine, size)` gives for each size in turn and the state at the end, compiled and by NumPy."""
    engine = random.Engine(seed)
    compiled = [draw(engine, size) for size in sizes], engine.get_state()
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            patch.setattr(module, "room", lambda name: None)
        engine = random.Engine(seed)
        expected = [draw(engine, size) for size in sizes], engine.get_state()
    return compiled, expected


def same(draw, seed, *sizes):
    (compiled, state), (expected, expected_state) = both(draw, seed, *sizes)
    for actual, wanted in zip(compiled, expected, strict=True):
        assert actual.dtype == wanted.dtype and actual.flags.c_contiguous
        np.testing.assert_array_equal(actual, wanted)
    np.testing.assert_array_equal(state, expected_state)


seeds, sizes = st.integers(0, 2**32 - 1), st.integers(1, 70_000)


@settings(deadline=None, max_examples=30)
@given(seed=seeds, counts=st.lists(st.integers(0, 3000), min_size=1, max_size=6))
def test_words_are_the_same_whatever_was_drawn_before(seed, counts):
    same(lambda engine, n: engine.raw32(n), seed, *counts)


@settings(deadline=None, max_examples=30)
@given(seed=seeds, first=sizes, second=sizes, dtype=st.sampled_from(["float32", "float64"]), data=st.data())
def test_uniform_numbers_are_numpys(seed, first, second, dtype, data):
    bound = st.floats(-1e6, 1e6, width=32)
    low, high = sorted([data.draw(bound), data.draw(bound)]) if data.draw(st.booleans()) else (0.0, 1.0)
    same(lambda engine, n: random.uniform(engine, (n,), np.dtype(dtype), low, high), seed, first, second)


def test_uniform_numbers_never_reach_the_upper_bound():
    high = float(np.nextafter(np.float32(1), np.float32(2)))
    assert set(random.uniform(random.Engine(0), (5000,), np.dtype(np.float32), 1.0, high).tolist()) == {1.0}


@settings(deadline=None, max_examples=30)
@given(seed=seeds, n=sizes, p=st.floats(0, 1), dtype=st.sampled_from(["float32", "float64", "bool", "int64"]))
def test_coins_are_numpys(seed, n, p, dtype):
    same(lambda engine, n: random.bernoulli(engine, (n,), np.dtype(dtype), p), seed, n, n)


@settings(deadline=None, max_examples=60)
@given(seed=seeds, n=st.integers(512, 5000), low=st.integers(-(2**62), 2**62), bits=st.integers(1, 63), data=st.data())
def test_integers_are_numpys_for_every_size_of_range(seed, n, low, bits, data):
    high = min(low + data.draw(st.integers(2 ** (bits - 1), 2**bits)), 2**63 - 1)
    same(lambda engine, n: random.random_from_to(engine, (n,), np.dtype(np.int64), low, high), seed, n)


@settings(deadline=None, max_examples=30)
@given(seed=seeds, n=sizes, mean=st.floats(-10, 10), std=st.floats(0, 10))
def test_normal_doubles_are_numpys(seed, n, mean, std):
    same(lambda engine, n: random.normal(engine, (n,), np.dtype(np.float64), mean, std), seed, n)


@settings(deadline=None, max_examples=30)
@given(seed=seeds, n=sizes, mean=st.floats(-10, 10, width=32), std=st.floats(0, 10, width=32))
def test_normal_floats_are_numpys(seed, n, mean, std):
    # NumPy's fused products are rounded twice, which one number in some hundred millions shows.
    (compiled, state), (expected, expected_state) = both(
        lambda engine, n: random.normal(engine, (n,), np.dtype(np.float32), mean, std), seed, n
    )
    assert np.count_nonzero(compiled[0] != expected[0]) <= 1
    np.testing.assert_allclose(compiled[0], expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(state, expected_state)


@settings(deadline=None, max_examples=30)
@given(seed=seeds, n=st.integers(2, 5000), dtype=st.sampled_from(["int64", "int32", "float32"]))
def test_permutations_are_numpys(seed, n, dtype):
    same(lambda engine, n: random.randperm(engine, n, dtype), seed, n)


@pytest.mark.parametrize("draw", [random.exponential, random.cauchy, random.log_normal])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions_made_by_the_c_library_are_the_same(draw, dtype):
    same(lambda engine, n: draw(engine, (n,), np.dtype(dtype)), 5, 1000, 40_000)


def test_numbers_drawn_before_do_not_change_when_more_are_drawn():
    engine = random.Engine(1)
    few = engine.raw32(10)
    kept = few.copy()
    engine.raw32(5000)
    np.testing.assert_array_equal(few, kept)


def test_a_restored_state_goes_on_with_the_same_numbers():
    engine = random.Engine(2)
    engine.raw32(3000)
    state = engine.get_state()
    expected = engine.raw32(4000)
    engine.raw32(999)
    engine.set_state(state)
    np.testing.assert_array_equal(engine.raw32(4000), expected)
    np.testing.assert_array_equal(engine.clone().raw32(2000), engine.raw32(2000))


def test_kernels_refuse_arrays_of_the_wrong_size():
    compiled = room("random")
    raw, out = np.zeros(100, np.int32), np.zeros(100, np.float32)
    assert not compiled.uniform_kernel("float")(raw[:99], out, 100, 0.0, 1.0, 0.0, 1.0, 1, 1)
    assert not compiled.exchange_kernel()(raw, np.zeros(100, np.int64), 100, 99, 1, 1)
    assert compiled.permutation(raw, 100) is None
    assert not out.any()
