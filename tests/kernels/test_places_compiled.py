"""Builtins that read and write small arrays where an index says, beside NumPy's way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.kernels.compiled import room
from pullback.kernels.numpy.index import gather, slices

places = room("small.places")
pytestmark = pytest.mark.skipif(places is None, reason="kernels are not compiled")
DTYPES = ["float32", "float64", "int64"]


class Refused(Exception):
    """A builtin handed its arguments on."""


def refuse(*args: object) -> None:
    raise Refused


@st.composite
def shapes(draw):
    """A shape, a dimension of it in either spelling, and how many places there are along it."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    return tuple(shape), dim, draw(st.integers(1, 6))


def arrays(case, dtype, slices, seed):
    """The array, the index, and values for it."""
    shape, dim, count = case
    rng = np.random.default_rng(seed)
    window = list(shape)
    window[dim] = count
    index = rng.integers(0, shape[dim], count if slices else window)
    return rng.normal(size=shape).astype(dtype), index, rng.normal(size=window).astype(dtype)


@given(shapes(), st.sampled_from([*DTYPES, "bool"]), st.integers(0, 99))
def test_gathering_reads_what_numpy_reads(case, dtype, seed):
    array, index, _ = arrays(case, dtype, False, seed)
    found = places.gathering(dtype, refuse)(array, case[1], index)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, gather.gather_any(array, case[1], index))


@pytest.mark.parametrize(
    ("add", "whole", "plain"),
    [
        (False, False, gather.scatter_any),
        (True, False, gather.scatter_add_any),
        (False, True, slices.index_copy_any),
        (True, True, slices.index_add_any),
    ],
)
@given(case=shapes(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_scattering_writes_what_numpy_writes_to_the_bit(add, whole, plain, case, dtype, seed):
    array, index, values = arrays(case, dtype, whole, seed)
    expected = array.copy()
    plain(expected, case[1], index, values)
    assert places.scattering(dtype, add, whole, refuse)(array, case[1], index, values) is array
    np.testing.assert_array_equal(array, expected)


def hostile():
    """Calls that are not for a builtin, each wrong in one way."""
    x, index, values = np.zeros((3, 4), "f"), np.zeros((3, 2), "l"), np.ones((3, 2), "f")
    frozen = x.copy()
    frozen.flags.writeable = False
    shared = np.zeros(64, "f")
    yield "an index beyond the end", x, 1, np.full((3, 2), 4), values
    yield "a negative index", x, 1, np.full((3, 2), -1), values
    yield "a dimension that is not there", x, 2, index, values
    yield "a dimension beyond 64 bits", x, 1 << 70, index, values
    yield "a dimension below 64 bits", x, -(1 << 70), index, values
    yield "a bool for a dimension", x, True, index, values
    yield "an index of fewer dimensions", x, 1, index[0], values
    yield "an index that is smaller elsewhere", x, 1, index[:2], values[:2]
    yield "no index at all", x, 1, index[:, :0], values[:, :0]
    yield "int32", x, 1, index.astype("i"), values
    yield "another dtype", x.astype("d"), 1, index, values
    yield "values of another shape", x, 1, index, values[:, :1]
    yield "an array that lies otherwise", np.zeros((4, 3), "f").T, 1, index, values
    yield "an array that may not be written", frozen, 1, index, values
    yield "values in the memory that is written", shared[:12].reshape(3, 4), 1, index, shared[6:12].reshape(3, 2)
    yield "no array", 1.0, 1, index, values


@pytest.mark.parametrize(("array", "dim", "index", "values"), [pytest.param(*c, id=n) for n, *c in hostile()])
def test_what_a_builtin_does_not_take_is_handed_on_untouched(array, dim, index, values):
    before = np.copy(array)
    with pytest.raises(Refused):
        places.scattering("float32", True, False, refuse)(array, dim, index, values)
    np.testing.assert_array_equal(array, before)


def test_gathering_hands_on_indices_that_are_not_inside():
    x = np.zeros((3, 4), "f")
    for wrong in (np.full((3, 2), 4), np.full((3, 2), -1), np.full((3, 2), np.iinfo("l").min)):
        with pytest.raises(Refused):
            places.gathering("float32", refuse)(x, 1, wrong)
