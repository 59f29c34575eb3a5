"""Builtins for small matrices beside NumPy: products with and without a bias, sums of rows, what they hand on."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels.compiled import room
from pullback.kernels.numpy.linalg import products
from pullback.kernels.numpy.reduce import dims as reduce
from tests.kernels.edge_of_memory import at_the_edge
from tests.kernels.test_products_compiled import agree, dtypes, layouts, matrix, sizes

pytestmark = pytest.mark.skipif(room("small.products") is None, reason="kernels are not compiled here")
ELEMENTS = {"f": "float", "d": "double"}
depths = st.one_of(st.integers(1, 20), st.sampled_from([31, 64, 100, 255, 256]))


def refused(*operands):
    """Called for what a builtin does not take."""
    return operands


builtins = {}


def builtin(dtype):
    """The product of a dtype, made once."""
    if dtype not in builtins:
        builtins[dtype] = room("small.products").product(ELEMENTS[dtype], refused)
    return builtins[dtype]


@settings(max_examples=200, deadline=None)
@given(
    rows=sizes,
    columns=sizes,
    depth=depths,
    left=st.sampled_from(["rows", "columns", "backwards"]),
    right=st.sampled_from(["rows", "columns"]),
    dtype=dtypes,
    biased=st.booleans(),
)
def test_small_products_of_any_layout_agree_with_numpy(rows, columns, depth, left, right, dtype, biased):
    rng = np.random.default_rng(rows + columns)
    a, b = matrix(rng, (rows, depth), dtype, left), matrix(rng, (depth, columns), dtype, right)
    bias = rng.standard_normal(columns).astype(dtype)
    made = builtin(dtype)(a, b, bias) if biased else builtin(dtype)(a, b)
    if type(made) is not tuple:
        agree(made, a, b, bias.astype(np.float64) if biased else 0.0)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("shape", [(16, 32, 256), (8, 64, 64), (17, 33, 70), (1, 32, 32), (40, 256, 16)])
def test_layers_and_the_gradients_of_their_weights_are_taken(shape, dtype):
    rng = np.random.default_rng(0)
    rows, depth, columns = shape
    x, weight = matrix(rng, (rows, depth), dtype), matrix(rng, (columns, depth), dtype)
    bias = rng.standard_normal(columns).astype(dtype)
    agree(builtin(dtype)(x, weight.T, bias), x, weight.T, bias.astype(np.float64))
    grad, y = matrix(rng, (rows, columns), dtype), matrix(rng, (rows, 64), dtype)
    agree(builtin(dtype)(grad.T, y), grad.T, y)


def test_nan_and_infinity_stay_in_their_rows():
    x, weight, bias = np.ones((8, 16), "f"), np.ones((24, 16), "f"), np.zeros(24, "f")
    x[1, 3], x[2, 0], x[3, 15], bias[5] = np.nan, np.inf, -np.inf, np.nan
    made = builtin("f")(x, weight.T, bias)
    assert np.isnan(made[1]).all() and np.isnan(made[:, 5]).all()
    others = np.delete(made, 5, 1)
    assert (others[2] == np.inf).all() and (others[3] == -np.inf).all() and (others[[0, 4, 5, 6, 7]] == 16).all()


@pytest.mark.parametrize(
    "operands",
    [
        (np.ones((8, 8), "f"), np.ones((8, 8), "d")),
        (np.ones((8, 8), "f"), np.ones((9, 8), "f")),
        (np.ones((8, 8), "f"), np.ones((8, 8), ">f4")),
        (np.ones((8, 8), "f"), np.ones(8, "f")),
        (np.ones((8, 8), "f"), np.ones((8, 16), "f")[:, ::2]),
        (np.ones((8, 300), "f"), np.ones((300, 8), "f")),
        (np.ones((128, 128), "f"), np.ones((128, 128), "f")),
        (np.ones((8, 8), "f"), np.ones((8, 8), "f"), np.ones(7, "f")),
        (np.ones((8, 8), "f"), np.ones((8, 8), "f"), np.ones((8, 8), "f")),
        (np.ones((8, 8), "f"), np.ones((8, 8), "f"), np.ones(16, "f")[::2]),
        (np.ones((8, 8), "f"), np.ones((8, 8), "f"), np.ones(8, "d")),
        (np.ones((8, 8), "f"), [[1.0]]),
        (np.ones((8, 8), "f"),),
        (),
        (None, None, None, None),
    ],
)
def test_what_is_not_a_small_product_of_one_dtype_is_handed_on(operands):
    made = builtin("f")(*operands)
    assert type(made) is tuple and all(a is b for a, b in zip(made, operands, strict=True))


def test_products_give_the_same_bits_however_they_are_asked_for():
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.standard_normal(shape).astype("f") for shape in ((16, 32), (64, 32), (64,)))
    made = products.product_plus(x, weight.T, bias)
    assert made.tobytes() == (products.product(x, weight.T) + bias).tobytes()
    wide = products.product_plus(x, weight.T, np.broadcast_to(bias, (16, 64)))
    assert wide.tobytes() == made.tobytes()


@settings(max_examples=60, deadline=None)
@given(rows=sizes, columns=sizes, depth=depths, a=layouts, b=layouts, dtype=st.sampled_from("fdeil"))
def test_products_of_every_dtype_and_layout_agree_with_numpy(rows, columns, depth, a, b, dtype):
    rng = np.random.default_rng(rows + columns)
    left, right = (4 * matrix(rng, shape, "d", how) for shape, how in (((rows, depth), a), ((depth, columns), b)))
    left, right = left.astype(dtype), right.astype(dtype)
    made, plus = products.product(left, right), products.product_plus(left, right, right[:1])
    truth = left.astype("d") @ right.astype("d")
    scale = np.abs(left).astype("d") @ np.abs(right).astype("d") + np.abs(right[:1])
    room_for = 0.0 if dtype in "il" else (4 + depth) * np.finfo(dtype).eps
    assert made.dtype == plus.dtype == left.dtype
    assert np.all(np.abs(made - truth) <= room_for * scale)
    assert np.all(np.abs(plus - truth - right[:1]) <= room_for * scale)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected the way of Linux")
@pytest.mark.parametrize("shape", [(9, 33, 47), (16, 16, 16), (20, 1, 17), (8, 250, 9)])
def test_small_products_read_nothing_beyond_their_operands(shape):
    rng = np.random.default_rng(0)
    rows, depth, columns = shape
    x, weight = at_the_edge(matrix(rng, (rows, depth), "f")), at_the_edge(matrix(rng, (columns, depth), "f"))
    bias, y = at_the_edge(matrix(rng, (1, columns), "f"))[0], at_the_edge(matrix(rng, (depth, columns), "f"))
    left = at_the_edge(matrix(rng, (depth, rows), "f")).T
    for a, b in ((x, weight.T), (x, y), (left, y)):
        made = builtin("f")(a, b, bias)
        if type(made) is not tuple:
            agree(made, a, b, bias.astype(np.float64))


# ------------------------------------------------------------------ sums of rows


@settings(max_examples=100, deadline=None)
@given(rows=st.integers(1, 128), columns=st.integers(1, 150), dtype=st.sampled_from("fde"))
def test_sums_of_rows_have_the_bits_of_other_reductions(rows, columns, dtype):
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(dtype)
    made = reduce.column_sums(x)
    wanted = np.add.reduce(x, 0) if x.size < 4096 and dtype != "e" else reduce.total(x, 0, False)
    assert made.dtype == x.dtype and made.tobytes() == wanted.tobytes()


def test_sums_of_rows_hand_on_what_is_not_row_major():
    x = np.arange(64.0, dtype="f").reshape(8, 8)
    sums = room("small.sums").column_sums("float", refused)
    assert all(sums(other)[0] is other for other in (x.T, x[:, ::2], x[:0], x[0], x.astype("d")))
    assert sums(x).tolist() == x.sum(0).tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected the way of Linux")
@pytest.mark.parametrize("shape", [(1, 9), (5, 67), (16, 256), (128, 33)])
def test_sums_of_rows_read_nothing_beyond_them(shape):
    x = at_the_edge(np.random.default_rng(0).standard_normal(shape).astype("f"))
    np.testing.assert_allclose(reduce.column_sums(x), x.astype("d").sum(0), rtol=1e-5, atol=1e-5)
