"""Compiled running sums and extremes, sorting and the few largest, beside their NumPy counterparts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pullback.kernels import workers
from pullback.kernels.compiled import room
from pullback.kernels.numpy.index import sorting
from pullback.kernels.numpy.reduce import scan

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")
dtypes = st.sampled_from(["float32", "float64", "int64"])
shapes = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple).map(lambda s: (*s[:-1], s[-1] * 17))
shapes = shapes.filter(lambda s: np.prod(s) < 30_000)


@st.composite
def arrays(draw):
    """Arrays with ties, nan, infinities and both zeros, in any order of memory."""
    shape, dtype = draw(shapes), draw(dtypes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = (rng.standard_normal(shape) * draw(st.sampled_from([0.7, 3, 1e4]))).round(draw(st.sampled_from([0, 3])))
    if dtype != "int64" and draw(st.booleans()):
        x.flat[rng.integers(0, x.size, 5)] = [np.nan, np.inf, -np.inf, -0.0, -np.nan]
    x = x.astype(dtype)
    return x.T if draw(st.booleans()) else x


@pytest.fixture
def at_once(monkeypatch):
    """Kernels take arrays of any size."""
    for module, name in (
        (scan, "LARGE_SCAN"),
        (sorting, "MANY_TO_SORT"),
        (sorting, "LONG_TO_SORT"),
        (sorting, "FEW_TO_SORT"),
    ):
        monkeypatch.setattr(module, name, 0)


def by_numpy(call):
    with pytest.MonkeyPatch.context() as patch:
        for module in (scan, sorting):
            patch.setattr(module, "room", lambda name: None)
        return call()


def equal(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


anything = settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("ufunc", [np.add, np.multiply])
@anything
@given(x=arrays(), reverse=st.booleans(), data=st.data())
def test_running_sums_and_products_are_numpys_to_the_bit(at_once, ufunc, x, reverse, data):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    with np.errstate(all="ignore"):
        equal(scan.accumulate(ufunc, x, dim, reverse), by_numpy(lambda: scan.accumulate(ufunc, x, dim, reverse)))


@anything
@given(x=arrays(), reverse=st.booleans(), data=st.data())
def test_running_sums_of_exponentials_are_numpys(at_once, x, reverse, data):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    with np.errstate(all="ignore"):
        actual = scan.running_logsumexp(x, dim, reverse)
        expected = by_numpy(lambda: scan.running_logsumexp(x, dim, reverse))
    assert actual.dtype == expected.dtype
    tolerance = 1e-6 if x.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
@anything
@given(x=arrays(), data=st.data())
def test_running_extremes_and_their_places_are_numpys(at_once, ufunc, x, data):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    for actual, expected in zip(
        scan.running_extreme(ufunc, x, dim), by_numpy(lambda: scan.running_extreme(ufunc, x, dim)), strict=True
    ):
        equal(actual, expected)


@anything
@given(x=arrays(), descending=st.booleans(), data=st.data())
def test_sorting_keeps_the_order_of_equals_as_numpy_does(at_once, x, descending, data):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    for actual, expected in zip(
        sorting.sort(x, dim, descending), by_numpy(lambda: sorting.sort(x, dim, descending)), strict=True
    ):
        equal(actual, expected)


@anything
@given(x=arrays(), largest=st.booleans(), data=st.data())
def test_the_few_largest_are_the_first_when_sorted(at_once, x, largest, data):
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    k = data.draw(st.integers(1, min(x.shape[dim], 300)))
    values, places = sorting.topk(x, k, dim, largest)
    expected, order = by_numpy(lambda: sorting.sort(x, dim, largest))
    equal(values, sorting.along(expected, dim, 0, k))
    equal(places, sorting.along(order, dim, 0, k))


@pytest.mark.parametrize("rows", [2, 3, 9])
def test_rows_are_sorted_right_by_more_threads_than_rows(rows):
    before = workers.threads()
    x = np.random.default_rng(0).standard_normal((rows, 20_000)).astype(np.float32)
    workers.set_threads(5)
    try:
        for _ in range(5):
            equal(sorting.argsort(x, 1), np.argsort(x, 1, kind="stable"))
    finally:
        workers.set_threads(before)


@pytest.mark.parametrize("k", [1, 10, 100, 256])
@pytest.mark.parametrize("order", [1, -1])
def test_the_few_largest_of_sorted_numbers_are_found(k, order):
    x = np.arange(300_000, dtype=np.float32)[::order].copy()
    values, places = sorting.topk(x, k, 0, True)
    equal(values, np.sort(x)[: -k - 1 : -1])
    equal(places, np.argsort(x)[: -k - 1 : -1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_ranks_and_medians_are_numpys(dtype):
    x = (np.random.default_rng(0).standard_normal((3, 2000)) * 50).astype(dtype)
    for call in (
        lambda: sorting.at_rank(x, 1, 700, False),
        lambda: sorting.at_rank(x, 0, 1, True),
        lambda: sorting.at_rank(x[0], 0, 700, False),
        lambda: sorting.median_place(x[1], False),
        lambda: (sorting.median(x, False), sorting.mode(x, 1, False)[1]),
    ):
        for actual, expected in zip(call(), by_numpy(call), strict=True):
            equal(np.asarray(actual), np.asarray(expected))


@pytest.mark.parametrize("ignore_nan", [True, False])
@pytest.mark.parametrize("nans", [0, 1, 4, 2999, 3000])
def test_the_median_of_many_numbers_is_that_of_few(ignore_nan, nans, monkeypatch):
    x = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    x[:nans] = np.nan
    found = sorting.median(x.reshape(30, 100), ignore_nan)
    monkeypatch.setattr(sorting, "MANY_TO_SORT", 10**9)
    equal(np.asarray(found), np.asarray(sorting.median(x, ignore_nan)))


def test_kernels_refuse_arrays_of_the_wrong_size_and_kind():
    selection, scans = room("rows.selection"), room("rows.scan")
    x, places = np.zeros(10, np.float32), np.zeros(10, np.int64)
    assert selection.sort(x.astype(np.float16), 0, False) is None
    assert selection.topk(x, 11, 0, True) is None
    assert scans.running("add", x.astype(np.complex64), 0, False) is None
    assert scans.running("add", x, 1, False) is None
    keys = np.zeros(20, np.int32)
    assert not selection.sort_kernel("float")(x, x, places, keys, keys[:19], 1, 10, 1, 0, 1, 1)
    assert not selection.topk_kernel("float")(x, x[:3], places[:2], places[:1], 1, 10, 3, 0, 1, 1)
