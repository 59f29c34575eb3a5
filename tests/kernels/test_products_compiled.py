"""Compiled products of matrices beside NumPy's: any strides, batches, sums, edges of memory, threads."""

import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels import workers
from pullback.kernels.compiled import room
from pullback.kernels.numpy.linalg import products
from tests.kernels.edge_of_memory import at_the_edge

pytestmark = pytest.mark.skipif(room("gemm.product") is None, reason="kernels are not compiled here")
sizes = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 97]))
depths = st.one_of(st.integers(1, 20), st.sampled_from([64, 191, 192, 193, 384, 600]))
dtypes = st.sampled_from("fd")
layouts = st.sampled_from(["rows", "columns", "strided", "backwards"])
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is protected the way of Linux")


def matrix(rng, shape, dtype, layout="rows"):
    """A matrix, or a batch of them, that lies in memory in a certain way."""
    *batch, rows, columns = shape
    if layout == "columns":
        return rng.standard_normal((*batch, columns, rows)).astype(dtype).swapaxes(-1, -2)
    if layout == "strided":
        return rng.standard_normal((*batch, rows * 2, columns * 3)).astype(dtype)[..., ::2, ::3]
    if layout == "backwards":
        return rng.standard_normal((*batch, rows, columns)).astype(dtype)[..., ::-1, ::-1]
    return rng.standard_normal(shape).astype(dtype)


def agree(made, a, b, plus=0.0):
    """Not farther from the truth than the rounding of a sum of so many terms."""
    truth = np.matmul(a.astype(np.float64), b.astype(np.float64)) + plus
    scale = np.matmul(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64)) + np.abs(plus)
    steps = 4 + a.shape[-1] ** 0.5
    assert made.dtype == a.dtype and made.shape == truth.shape and made.flags.c_contiguous
    assert np.all(np.abs(made - truth) <= steps * np.finfo(a.dtype).eps * scale)


@settings(max_examples=150, deadline=None)
@given(rows=sizes, columns=sizes, depth=depths, a=layouts, b=layouts, dtype=dtypes)
def test_matrices_with_any_strides(rows, columns, depth, a, b, dtype):
    rng = np.random.default_rng(rows + columns)
    left, right = matrix(rng, (rows, depth), dtype, a), matrix(rng, (depth, columns), dtype, b)
    agree(room("gemm.product").multiply(left, right), left, right)


@settings(max_examples=60, deadline=None)
@given(batch=st.integers(1, 5), rows=sizes, columns=sizes, depth=sizes, a=layouts, b=layouts, dtype=dtypes)
def test_batches_with_any_strides(batch, rows, columns, depth, a, b, dtype):
    rng = np.random.default_rng(rows + columns)
    left, right = matrix(rng, (batch, rows, depth), dtype, a), matrix(rng, (batch, depth, columns), dtype, b)
    agree(room("gemm.product").multiply(left, right), left, right)


def test_a_batch_that_repeats_one_matrix():
    rng = np.random.default_rng(0)
    left, right = matrix(rng, (5, 20, 30), "f"), np.broadcast_to(matrix(rng, (30, 40), "f"), (5, 30, 40))
    agree(room("gemm.product").multiply(left, right), left, right)
    agree(
        room("gemm.product").multiply(right.swapaxes(1, 2), left.swapaxes(1, 2)),
        right.swapaxes(1, 2),
        left.swapaxes(1, 2),
    )


@settings(max_examples=60, deadline=None)
@given(rows=sizes, columns=sizes, depth=depths, whole=st.booleans(), dtype=dtypes)
def test_what_is_added_is_a_row_or_a_matrix(rows, columns, depth, whole, dtype):
    rng = np.random.default_rng(rows + columns)
    left, right = matrix(rng, (rows, depth), dtype), matrix(rng, (depth, columns), dtype)
    plus = (
        rng.standard_normal((2 * rows, columns)).astype(dtype)[::2]
        if whole
        else rng.standard_normal(columns).astype(dtype)
    )
    before = plus.copy()
    agree(room("gemm.product").multiply(left, right, plus), left, right, plus.astype(np.float64))
    np.testing.assert_array_equal(plus, before)


@pytest.mark.parametrize("place", [0, 31, 48, 69])
def test_inf_and_nan_stay_in_their_row_and_column(place):
    rng = np.random.default_rng(0)
    left, right = matrix(rng, (70, 70), "f"), matrix(rng, (70, 70), "f")
    left[place, 3], right[5, place] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        expected = left.dot(right)
    made = room("gemm.product").multiply(left, right)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(made), np.isinf(expected))


@LINUX
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (33, 49, 257), (8, 16, 48), (40, 48, 50), (9, 300, 17)])
@pytest.mark.parametrize("turned", [False, True])
def test_nothing_beyond_the_operands_is_read(shape, turned):
    rng = np.random.default_rng(0)
    rows, depth, columns = shape
    left, right = at_the_edge(matrix(rng, (rows, depth), "f")), at_the_edge(matrix(rng, (depth, columns), "f"))
    if turned:
        left = at_the_edge(matrix(rng, (depth, rows), "f")).T
        right = at_the_edge(matrix(rng, (columns, depth), "f")).T
    plus = at_the_edge(matrix(rng, (1, columns), "f"))[0]
    agree(room("gemm.product").multiply(left, right, plus), left, right, plus.astype(np.float64))


def test_the_number_of_threads_does_not_change_a_bit():
    rng = np.random.default_rng(0)
    left, right = matrix(rng, (300, 700), "f"), matrix(rng, (700, 200), "f")
    before = workers.threads()
    try:
        made = []
        for count in (1, 2, 3):
            workers.set_threads(count)
            made.append(room("gemm.product").multiply(left, right))
    finally:
        workers.set_threads(before)
    assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()


def test_several_python_threads_multiply_at_once():
    rng = np.random.default_rng(0)
    pairs = [(matrix(rng, (150, 200), "f"), matrix(rng, (200, 170), "f")) for _ in range(4)]
    expected = [room("gemm.product").multiply(*pair) for pair in pairs]
    wrong = []

    def work(nr):
        for _ in range(20):
            if room("gemm.product").multiply(*pairs[nr]).tobytes() != expected[nr].tobytes():
                wrong.append(nr)

    threads = [threading.Thread(target=work, args=(nr,)) for nr in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unaligned_and_swapped_matrices_are_left_to_numpy():
    rng = np.random.default_rng(0)
    right = matrix(rng, (80, 80), "f")
    raw = np.zeros(80 * 80 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(80, 80)
    raw[...] = right
    assert room("gemm.product").multiply(raw, right) is None
    agree(products.product(raw, right), raw, right)
    assert room("gemm.product").multiply(right.astype(">f4"), right) is None


def test_sizes_that_do_not_fit_are_not_multiplied():
    left, right = np.ones((300, 300), np.float32), np.ones((299, 300), np.float32)
    for multiply in (products.product, lambda a, b: products.product_plus(a, b, np.ones(300, np.float32))):
        with pytest.raises(ValueError, match="not aligned"):
            multiply(left, right)
    with pytest.raises(ValueError, match="mismatch"):
        products.batch_product(left[None], right[None])


@pytest.mark.parametrize("plus", [(300,), (200, 300), (1,), (200, 1), ()])
def test_what_broadcasts_to_the_product_is_added(plus):
    rng = np.random.default_rng(0)
    left, right = matrix(rng, (200, 100), "f"), matrix(rng, (100, 300), "f")
    given = rng.standard_normal(plus).astype("f")
    agree(products.product_plus(left, right, given), left, right, np.broadcast_to(given, (200, 300)).astype("d"))


@pytest.mark.parametrize("shape", [(1, 4096, 300), (4096, 300, 1), (300, 300, 300), (2, 600, 600), (600, 600, 4)])
def test_every_shape_finds_its_way(shape):
    rng = np.random.default_rng(0)
    rows, depth, columns = shape
    for layout in ("rows", "columns"):
        left, right = matrix(rng, (rows, depth), "f", layout), matrix(rng, (depth, columns), "f", layout)
        agree(np.ascontiguousarray(products.product(left, right)), left, right)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_integers_are_cut_off_as_numpy_does(dtype):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    left, right = (rng.integers(limits.min, limits.max, (70, 70), dtype) for _ in range(2))
    for a, b in ((left, right), (left.T, right[::-1])):
        made = products.product(a, b)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, np.dot(a, b))
        batch = products.batch_product(np.stack([a, b]), np.stack([b, a]))
        np.testing.assert_array_equal(batch, np.stack([np.dot(a, b), np.dot(b, a)]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(dtype):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((70, 70)).astype(kind) for _ in range(2))
    truth = left.astype("d").dot(right.astype("d"))
    for made in (products.product(left, right), products.batch_product(left[None], right[None])[0]):
        assert made.dtype == kind
        assert np.all(
            np.abs(made.astype("d") - truth) <= 0.6 * np.abs(np.spacing(truth.astype(kind)).astype("d")) + 1e-4
        )
