"""Compiled reductions beside NumPy's in double precision: all dimensions, layouts and lengths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels import workers
from pullback.kernels.compiled import room
from pullback.kernels.numpy.reduce import dims as reduce
from tests.kernels.edge_of_memory import at_the_edge

pytestmark = pytest.mark.skipif(room("rows.reductions") is None, reason="kernels are not compiled here")

NUMPY = {
    "sum": lambda x, axis, keep: np.add.reduce(
        x, axis, dtype=np.int64 if x.dtype.kind in "bi" else None, keepdims=keep
    ),
    "square": lambda x, axis, keep: np.add.reduce(x * x, axis, keepdims=keep),
    "size": lambda x, axis, keep: np.add.reduce(np.abs(x), axis, keepdims=keep),
    "product": lambda x, axis, keep: np.multiply.reduce(x, axis, keepdims=keep),
    "max": lambda x, axis, keep: np.maximum.reduce(x, axis, keepdims=keep),
    "min": lambda x, axis, keep: np.minimum.reduce(x, axis, keepdims=keep),
    "top": lambda x, axis, keep: np.maximum.reduce(np.abs(x), axis, keepdims=keep),
}


def reduced(*arguments):
    return room("rows.reductions").reduced(*arguments)


def numbers(shape, dtype, seed=0):
    made = np.random.default_rng(seed).normal(size=shape)
    return made > 0.5 if dtype == "bool" else (made * (1 if "f" in dtype else 1000)).astype(dtype)


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim))
    shape[draw(st.integers(0, ndim - 1))] = draw(st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 129, 300, 1100]))
    x = numbers(shape, draw(st.sampled_from(["float32", "float64", "int64", "int32", "bool"])))
    x = x.transpose(draw(st.permutations(range(ndim))))
    axis = draw(st.one_of(st.none(), st.sets(st.integers(0, ndim - 1), min_size=1).map(tuple)))
    return x, axis, draw(st.booleans())


@settings(deadline=None, max_examples=300)
@given(case=cases(), how=st.sampled_from(sorted(NUMPY)))
def test_a_reduction_over_any_dimensions_is_numpys(case, how):
    x, axis, keepdim = case
    made = reduced(how, x, axis, keepdim)
    if made is None:
        return
    wide = x.astype(np.float64) if x.dtype.kind == "f" and how not in ("max", "min", "top") else x
    with np.errstate(all="ignore"):
        expected = NUMPY[how](wide, axis, keepdim)
    assert made.shape == expected.shape and made.flags.c_contiguous
    if x.dtype.kind == "f" and how not in ("max", "min", "top"):
        np.testing.assert_allclose(made, expected, rtol=1e-5 if x.itemsize == 4 else 1e-12, atol=1e-4)
    else:
        assert made.dtype == expected.dtype and np.array_equal(made, expected)


def test_most_reductions_are_compiled():
    x = numbers((40, 50, 60), "float32")
    for axis in (None, 0, 1, 2, (0, 1), (1, 2), (0, 2)):
        assert reduced("sum", x, axis, False) is not None
        assert reduced("max", x.transpose(2, 0, 1), axis, True) is not None


@pytest.mark.parametrize("shape, axis", [((3_000_001,), None), ((7, 400_000), 1), ((300_000, 9), 0)])
def test_long_sums_are_exact_to_the_precision_of_the_terms(shape, axis):
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    exact = np.add.reduce(x.astype(np.float64), axis)
    np.testing.assert_allclose(reduced("sum", x, axis, False), exact, rtol=3e-8)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("how", ["max", "min", "top", "sum"])
def test_one_nan_is_the_result_of_what_it_takes_part_in(how, axis):
    x = numbers((70, 130), "float32")
    for place in ((0, 0), (69, 129), (33, 64)):
        y = x.copy()
        y[place] = np.nan
        made = reduced(how, y, axis, True)
        assert np.array_equal(np.isnan(made), np.isnan(NUMPY[how](y, axis, True)))


def test_infinities_are_extrema():
    x = np.full((5000, 3), -np.inf, np.float32)
    assert np.array_equal(reduced("max", x, 0, False), [-np.inf] * 3)
    assert np.array_equal(reduced("min", -x, 0, False), [np.inf] * 3)


@pytest.mark.parametrize("loop", [(1, 1_000_003), (1_000_003, 1), (200_001, 5), (1000, 1003)])
def test_results_do_not_depend_on_the_number_of_threads(loop):
    x = numbers(loop, "float32")
    before = workers.threads()
    try:
        results = []
        for threads in (1, 2, 3):
            workers.set_threads(threads)
            results.append(
                [reduced("sum", x, axis, False).tobytes() for axis in (None, 0, 1) if axis is None or x.shape[axis] > 1]
            )
    finally:
        workers.set_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("shape", [(5, 3), (64, 17), (3, 1000), (1000, 3), (129, 65)])
def test_nothing_beyond_an_array_is_read(shape):
    for dtype in ("float32", "float64", "bool", "int32"):
        x = at_the_edge(numbers(shape, dtype))
        for axis in (None, 0, 1):
            for how in ("sum", "max"):
                assert np.allclose(reduced(how, x, axis, False), NUMPY[how](x, axis, False), rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=80)
@given(
    shape=st.lists(st.integers(1, 40), min_size=2, max_size=3),
    axis=st.integers(0, 1),
    dtype=st.sampled_from(["float32", "float64"]),
    offset=st.sampled_from([0.0, 3.0, 1e4]),
)
def test_variances_are_taken_around_the_mean(shape, axis, dtype, offset):
    x = (numbers((130, *shape), dtype) + offset).astype(dtype)
    found = reduce.variance(x, axis, False, x.shape[axis], x.shape[axis] - 1)
    if found is not None and x.shape[axis] > 1:
        wide = x.astype(np.float64)
        np.testing.assert_allclose(found[1], wide.mean(axis), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found[0], wide.var(axis, ddof=1), rtol=1e-5 if offset < 1e4 else 1e-4, atol=1e-10)


@settings(deadline=None, max_examples=150)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    dtype=st.sampled_from(["float32", "float64", "int64", "int32"]),
    data=st.data(),
)
def test_the_first_extremum_is_found(shape, dtype, data):
    x = numbers((200, *shape), dtype).round()
    if "f" in dtype and data.draw(st.booleans()):
        x.reshape(-1)[data.draw(st.integers(0, x.size - 1))] = np.nan
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    for name in ("argmax", "argmin"):
        found = room("rows.positions").position(name[3:], x, axis, False)
        if found is not None:
            assert np.array_equal(found[1], getattr(x, name)(axis))
            values = getattr(np, name[3:])(x, axis)
            assert np.array_equal(found[0], values, equal_nan="f" in dtype)
