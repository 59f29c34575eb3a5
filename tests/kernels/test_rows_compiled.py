"""Compiled row programs beside their NumPy counterparts: softmax, the norms, pooling, rows added to a table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels.compiled import room
from pullback.kernels.numpy.index import embedding
from pullback.kernels.numpy.index import subscript as index
from pullback.kernels.numpy.norm import normalize, softmax
from pullback.kernels.numpy.pool import sliding as pool

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")
dtypes = st.sampled_from(["float32", "float64"])
shapes = st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple).filter(lambda s: np.prod(s) < 20_000)


def close(actual, expected):
    """Equal up to the rounding of their dtype."""
    tolerance = 2e-5 if expected.dtype == np.float32 else 1e-12
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape


def by_numpy(monkeypatch, *modules):
    """Let modules do without the compiler."""
    for module in modules:
        monkeypatch.setattr(module, "room", lambda name: None)


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@settings(deadline=None, max_examples=40)
@given(shape=shapes, dtype=dtypes, data=st.data())
def test_softmax_and_its_gradient_are_numpys(name, shape, dtype, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, grad = numbers(shape, dtype) * 10, numbers(shape, dtype, 1)
    compiled = getattr(softmax, name)(x, dim)
    with pytest.MonkeyPatch.context() as patch:
        by_numpy(patch, softmax)
        expected = getattr(softmax, name)(x, dim)
        expected_grad = getattr(softmax, name + "_backward")(grad, expected, dim)
    close(compiled, expected)
    close(getattr(softmax, name + "_backward")(grad, expected, dim), expected_grad)


@pytest.mark.parametrize("row", [[np.nan, 1, 2], [np.inf, 0, 1], [-np.inf] * 3, [-np.inf, 0, 1], [1e4, -1e4, 0]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@np.errstate(invalid="ignore")
def test_softmax_of_what_is_no_number_is_numpys(row, dtype, monkeypatch):
    x = np.array([row, row[::-1]], dtype)
    compiled = [softmax.softmax(x, 1), softmax.log_softmax(x, 1), softmax.softmax(x, 0)]
    by_numpy(monkeypatch, softmax)
    for actual, expected in zip(compiled, [softmax.softmax(x, 1), softmax.log_softmax(x, 1), softmax.softmax(x, 0)]):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(1, 200), length=st.integers(1, 200), dtype=dtypes, weighted=st.booleans())
def test_layer_norm_and_its_gradients_are_numpys(rows, length, dtype, weighted):
    x, grad = numbers((rows, length), dtype) * 3 + 1, numbers((rows, length), dtype, 1)
    weight, bias = (numbers(length, dtype, 2), numbers(length, dtype, 3)) if weighted else (None, None)
    out, mean, rstd = normalize.layer_norm(x, weight, bias, length, 1e-5)
    grads = normalize.layer_norm_backward(grad, x, mean, rstd, weight, length)
    with pytest.MonkeyPatch.context() as patch:
        by_numpy(patch, normalize)
        expected = normalize.layer_norm(x, weight, bias, length, 1e-5)
        expected_grads = normalize.layer_norm_backward(grad, x, mean, rstd, weight, length)
    for actual, wanted in zip((out, mean, rstd, *grads), (*expected, *expected_grads), strict=True):
        if length > 1:  # the variance of one number is zero: eps alone decides
            close(actual, wanted)


@settings(deadline=None, max_examples=40)
@given(
    samples=st.integers(1, 6), groups=st.integers(1, 4), each=st.integers(1, 4), size=st.integers(2, 60), dtype=dtypes
)
def test_batch_and_group_norm_are_numpys(samples, groups, each, size, dtype):
    channels = groups * each
    x, grad = numbers((samples, channels, size), dtype) + 2, numbers((samples, channels, size), dtype, 1)
    weight, bias = numbers(channels, dtype, 2), numbers(channels, dtype, 3)

    def everything():
        out, mean, rstd, var = normalize.batch_norm(x, weight, bias, 1e-5)
        yield from (out, mean, rstd, var, *normalize.batch_norm_backward(grad, x, mean, rstd, weight))
        yield normalize.batch_norm_by(x, mean, var, weight, bias, 1e-5)
        out, mean, rstd = normalize.group_norm(x, weight, bias, channels, size, groups, 1e-5)
        yield from (out, mean, rstd)
        yield from normalize.group_norm_backward(grad, x, mean, rstd, weight, channels, size)

    compiled = list(everything())
    with pytest.MonkeyPatch.context() as patch:
        by_numpy(patch, normalize)
        for actual, expected in zip(compiled, everything(), strict=True):
            close(actual, expected)


@settings(deadline=None, max_examples=60)
@given(
    ndim=st.integers(1, 3), size=st.integers(1, 13), kernel=st.integers(1, 4), stride=st.integers(1, 4),
    padding=st.integers(0, 2), dilation=st.integers(1, 3), ceil_mode=st.booleans(), dtype=dtypes,
)  # fmt: skip
def test_pooling_is_numpys(ndim, size, kernel, stride, padding, dilation, ceil_mode, dtype):
    padding = min(padding, kernel // 2)
    count = pool.pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    if count <= 0 or (padding and dilation > 1 and kernel * dilation > size):
        return  # a window between whose elements the whole plane fits has no maximum
    sizes, counts, k, s, p, d = ((n,) * ndim for n in (size, count, kernel, stride, padding, dilation))
    x = np.random.default_rng(0).integers(-4, 5, (2, 2, *sizes)).astype(dtype)
    x.flat[x.size // 2] = np.nan
    x.flat[0] = -np.inf
    grad = numbers((2, 2, *counts), dtype)
    once = pool.pooled_size(size, kernel, stride, padding, 1, ceil_mode)

    def everything():
        values, places = pool.max_pool(x, counts, k, s, p, d)
        yield from (values, places, pool.scatter_to_places(grad, places, sizes))
        if once > 0:
            clean = np.nan_to_num(x, neginf=0.0)
            for include in (True, False):
                yield pool.avg_pool(clean, (once,) * ndim, k, s, p, include, None)
                part = numbers((2, 2, *[once] * ndim), dtype, 1)
                yield pool.avg_pool_backward(part, sizes, k, s, p, include, None)

    compiled = list(everything())
    with pytest.MonkeyPatch.context() as patch:
        by_numpy(patch, pool)
        for actual, expected in zip(compiled, everything(), strict=True):
            close(actual, expected)


@settings(deadline=None, max_examples=60)
@given(count=st.integers(1, 50), width=st.integers(1, 40), n=st.integers(0, 300), dtype=dtypes)
def test_rows_added_to_a_table_are_numpys_to_the_bit(count, width, n, dtype):
    rng = np.random.default_rng(0)
    rows, at = numbers((n, width), dtype), rng.integers(0, count, n)
    expected = np.zeros((count, width), dtype)
    np.add.at(expected, at, rows)
    table = np.zeros((count, width), dtype)
    index.add_rows(table, at, rows)
    np.testing.assert_array_equal(table, expected)
    close(embedding.add_rows(rows, at, count), expected)


def test_an_index_outside_the_table_touches_nothing():
    table = np.zeros((3, 4), np.float32)
    room("rows.scatter").add_rows(table, np.array([7, -2, 1]), np.ones((3, 4), np.float32))
    assert table.sum() == 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (1, 2), (0, 2)])
def test_logsumexp_over_any_dimensions(axis, dtype):
    x = (np.random.default_rng(0).standard_normal((5, 37, 21)) * 30).astype(dtype)
    x[0, 0], x[1, 2, 3], x[2, 3, 4], x[3, 5] = -np.inf, np.inf, np.nan, 3e38
    for keepdim in (False, True):
        made = softmax.logsumexp(x, axis, keepdim)
        if axis == (0, 2):
            assert made is None  # they do not follow each other
            continue
        truth = np.logaddexp.reduce(x.astype("d"), axis, keepdims=keepdim)
        assert made.dtype == dtype and made.shape == truth.shape
        np.testing.assert_allclose(made, truth, rtol=2e-6 if dtype == "float32" else 1e-13)
