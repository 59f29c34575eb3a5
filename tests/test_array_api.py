"""The Python array API standard: every function it lists is there as it lists it, and computes what NumPy's does."""

import inspect
import itertools
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import pullback

XP = pullback.ones(1).__array_namespace__()
X = np.array([[3.0, 1.0, 2.0], [0.5, 1.0, 4.0]])
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])
I = np.array([2, 0])
C = np.array([1 + 2j, -0.4 - 1.6j])

LISTED = (Path(__file__).parent / "inventory" / "array_api.txt").read_text().splitlines()

CALLS = [
    "xp.sum(x, axis=0)", "xp.sum(x, axis=(0, 1), keepdims=True)", "xp.sum(x, axis=())", "xp.sum(i)", "xp.mean(x)",
    "xp.mean(c)", "xp.prod(x)", "xp.prod(x, axis=1)", "xp.prod(x, axis=(0, 1), keepdims=True)", "xp.max(x)",
    "xp.max(x, axis=())", "xp.min(x, axis=1, keepdims=True)", "xp.std(x)", "xp.std(x, axis=(0, 1), correction=0.5)",
    "xp.var(x, axis=0, correction=1)", "xp.any(x > 3)", "xp.any(x > 3, axis=(0, 1))", "xp.all(x > 0, axis=1)",
    "xp.all(x > 1, axis=())", "xp.cumulative_sum(x, axis=1)", "xp.cumulative_sum(i)",
    "xp.cumulative_sum(x, axis=0, include_initial=True)", "xp.cumulative_prod(x, axis=1)",
    "xp.cumulative_prod(x, axis=-1, include_initial=True)", "xp.diff(x)", "xp.diff(x, axis=0, n=2)",
    "xp.diff(x, prepend=x[:, :1], append=x)", "xp.count_nonzero(x > 1)",
    "xp.count_nonzero(x - 1, axis=1, keepdims=True)", "xp.count_nonzero(x, axis=(0, 1))",
    "xp.sort(x)", "xp.sort(x, axis=0)", "xp.argsort(x, axis=1)",
    "xp.argmax(x, axis=1)", "xp.argmin(x)", "xp.argmax(x, axis=0, keepdims=True)", "xp.nonzero(x > 1)", "xp.flip(x)",
    "xp.flip(x, axis=1)", "xp.roll(x, 1)", "xp.roll(x, 1, axis=0)", "xp.roll(x, 1, axis=(0, 1))",
    "xp.roll(x, (1, 2), axis=(0, 1))", "xp.roll(x, 1, axis=())", "xp.permute_dims(x, (1, 0))",
    "xp.permute_dims(x, (-1, 0))",
    "xp.matrix_transpose(x)", "xp.expand_dims(x, axis=1)", "xp.expand_dims(x, axis=(0, -1))",
    "xp.expand_dims(x, (2, 0))", "xp.squeeze(x[:1], axis=0)", "xp.unstack(x, axis=1)", "xp.repeat(x, 2)",
    "xp.repeat(x, 2, axis=1)", "xp.repeat(i, i)", "xp.meshgrid(x[0], x[1])", "xp.meshgrid(x[0], x[1], indexing='ij')",
    "xp.meshgrid()", "xp.clip(x, 1, 2)", "xp.clip(x, max=2)", "xp.clip(x, x[0], 3)", "xp.take(x, i, axis=1)",
    "xp.take(x, i - 1, axis=1)", "xp.take(i, i[1:])", "xp.take_along_axis(x, xp.argsort(x))",
    "xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0)", "xp.take_along_axis(x, i.reshape((2, 1)) - 1, axis=1)",
    "xp.unique_values(x)", "xp.unique_counts(x)", "xp.unique_inverse(x).inverse_indices", "xp.unique_all(x).indices",
    "xp.unique_values(xp.concat([c, c]))", "xp.unique_inverse(xp.stack([c, c]))", "xp.unique_counts(xp.concat([c, c]))",
    "xp.unique_all(xp.concat([c, c, c[:1]]))",
    "xp.isin(i, xp.asarray([0, 5]))", "xp.isin(i, 2)", "xp.isin(2, i)", "xp.isin(i, i[:1], invert=True)",
    "xp.equal(x, x)", "xp.equal(x, 1)", "xp.not_equal(x, 1.0)", "xp.add(1, x)", "xp.subtract(2.5, x)",
    "xp.multiply(x, 2j)", "xp.divide(1, x)", "xp.floor_divide(x, 2)", "xp.remainder(-x, 2)", "xp.pow(2, x)",
    "xp.atan2(1, x)", "xp.hypot(x, 2.0)", "xp.copysign(x, -1.0)", "xp.logaddexp(x, 1.0)", "xp.maximum(x, 2)",
    "xp.minimum(2.5, x)", "xp.nextafter(x, 10.0)", "xp.bitwise_and(i, 2)", "xp.bitwise_left_shift(1, i)",
    "xp.greater(2, x)", "xp.logical_or(x > 2, False)", "xp.reciprocal(x)", "xp.sign(x - 1)", "xp.sign(c)",
    "xp.sign(x * xp.nan)", "xp.round(c)", "xp.round(x + 0.5)", "xp.conj(c)", "xp.conj(x)", "xp.real(c)", "xp.real(x)",
    "xp.imag(c)", "xp.abs(c)", "xp.signbit(-x)", "xp.square(x)", "xp.astype(x, xp.float32)",
    "xp.concat([x, x], axis=1)", "xp.concat([x, i], axis=None)", "xp.stack([x, x], axis=-1)",
    "xp.vecdot(x, x, axis=0)", "xp.vecdot(c, c)", "xp.vecdot(x, x[0])",
    "xp.searchsorted(xp.sort(x[0]), x[1], side='right')", "xp.searchsorted(xp.sort(x[0]), 2.5)",
    "xp.searchsorted(x[0], x[1], sorter=xp.argsort(x[0]))", "xp.where(x > 1, x, -x)", "xp.where(x > 1, x, 0)",
    "xp.where(x > 1, 1.5, x)", "xp.matmul(x, xp.matrix_transpose(x))", "xp.tensordot(x, x, axes=2)",
    "xp.tensordot(x, x, axes=((0,), (-2,)))", "xp.bitwise_invert(i)", "xp.broadcast_arrays(x, x[0])",
    "xp.broadcast_shapes((2, 1), (3,), (1, 1))", "xp.broadcast_shapes()", "xp.broadcast_to(i, (3, 2))",
    "xp.reshape(x, (3, -1))", "xp.reshape(x, (6,), copy=True)", "xp.tile(x, (2, 1))", "xp.tile(x, (2,))",
    "xp.moveaxis(x, 0, 1)", "xp.tril(x)", "xp.triu(x, k=1)", "xp.eye(3)", "xp.eye(2, 3, k=1)", "xp.eye(3, k=-5)",
    "xp.arange(5)", "xp.arange(5, 1)", "xp.arange(1, 2, 0.25)", "xp.arange(3, 0, -1)", "xp.linspace(0, 1, 5)",
    "xp.linspace(0, 1, 5, endpoint=False)", "xp.linspace(0, 1j, 3)", "xp.full((2,), 3)", "xp.full(2, True)",
    "xp.zeros(3)", "xp.ones((2, 1))", "xp.full_like(x, 2)", "xp.zeros_like(i)", "xp.asarray([[1, 2], [3, 4]])",
    "xp.isdtype(x.dtype, 'real floating')", "xp.isdtype(i.dtype, ('bool', 'integral'))", "xp.can_cast(i, xp.float64)",
    "xp.can_cast(xp.float64, xp.float32)", "xp.can_cast(xp.uint8, xp.int16)", "xp.can_cast(xp.uint64, xp.int8)",
    "xp.finfo(x.dtype).eps", "xp.finfo(xp.complex64).max", "xp.iinfo(xp.uint16).max", "xp.iinfo(xp.int8).bits",
    "xp.linalg.cholesky(a)", "xp.linalg.cholesky(a, upper=True)", "xp.linalg.cross(x, x[::1] + i[:, None])",
    "xp.linalg.det(a)", "xp.linalg.diagonal(x, offset=1)", "xp.linalg.eigvalsh(a)", "xp.linalg.eigh(a).eigenvalues",
    "xp.linalg.inv(a)", "xp.linalg.matrix_norm(a)", "xp.linalg.matrix_norm(a, ord=2, keepdims=True)",
    "xp.linalg.matrix_power(a, 3)", "xp.linalg.matrix_rank(a)", "xp.linalg.matrix_rank(a, rtol=0.9)",
    "xp.linalg.outer(x[0], x[1])", "xp.linalg.pinv(x)", "xp.linalg.pinv(x, rtol=0.9)", "xp.linalg.slogdet(a)",
    "xp.linalg.solve(a, i)", "xp.linalg.solve(a, x)", "xp.linalg.solve(xp.stack([a, a]), a)", "xp.linalg.svdvals(x)",
    "xp.linalg.svd(x, full_matrices=False).S", "xp.linalg.qr(a).R.shape", "xp.linalg.qr(x, mode='complete').Q.shape",
    "xp.linalg.trace(x, offset=1)", "xp.linalg.trace(xp.stack([x, x]))", "xp.linalg.vector_norm(x)",
    "xp.linalg.vector_norm(x, axis=1, keepdims=True, ord=1)", "xp.linalg.vector_norm(x, axis=(0, 1), ord=xp.inf)",
    "xp.sort(xp.real(xp.linalg.eigvals(a)))", "xp.sort(xp.real(xp.linalg.eig(a).eigenvalues))",
    "xp.fft.fft(x)", "xp.fft.fft(x, n=4, axis=0, norm='ortho')", "xp.fft.ifft(c)", "xp.fft.rfft(x, axis=0)",
    "xp.fft.irfft(c, n=3)", "xp.fft.hfft(c)", "xp.fft.ihfft(x)", "xp.fft.fftn(x)", "xp.fft.ifftn(x, axes=(0,))",
    "xp.fft.rfftn(x, s=(2, 2), axes=(0, 1), norm='forward')", "xp.fft.irfftn(x)", "xp.fft.fftfreq(5, d=0.5)",
    "xp.fft.rfftfreq(5)", "xp.fft.fftshift(x)", "xp.fft.ifftshift(x, axes=1)",
]  # fmt: skip


def found(name):
    value = XP
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("listed", LISTED)
def test_a_listed_name_is_there_with_the_signature_of_the_standard(listed):
    name, bracket, _ = listed.partition("(")
    value = found(name)
    if bracket:
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(value).parameters.values()]
        assert f"{name}{inspect.Signature(plain)}" == listed
        assert value.__name__ == name.rpartition(".")[2]
        assert value.__doc__


@contextmanager
def of_a_later_numpy():
    """Skip where NumPy cannot be asked, because it has followed this part of the standard only later."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        if np.lib.NumpyVersion(np.__version__) >= "2.3.0":
            raise
        pytest.skip(f"NumPy {np.__version__}: {error}")


@pytest.mark.parametrize("call", CALLS)
def test_a_function_computes_what_numpys_does(call):
    values = {"x": X, "i": I, "c": C, "a": SQUARE}
    with np.errstate(all="ignore"), of_a_later_numpy():
        expected = eval(call, {"xp": np, **values})
    got = eval(call, {"xp": XP, **{name: pullback.tensor(array) for name, array in values.items()}})
    assert isinstance(got, (tuple, list)) == isinstance(expected, (tuple, list))
    for one, other in zip(*[v if isinstance(v, (tuple, list)) else [v] for v in (got, expected)], strict=True):
        if isinstance(other, np.ndarray):
            assert isinstance(one, pullback.Tensor)
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", ["broadcast_arrays", "meshgrid"])
def test_several_arrays_come_as_a_tuple(function):
    assert type(getattr(XP, function)(pullback.ones(2), pullback.ones(2))) is tuple


# ------------------------------------------------------------------ promotion

KINDS = [
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    ["float32", "float64", "complex64", "complex128"],
]


@pytest.mark.parametrize("kinds", KINDS, ids=["integers", "floats"])
def test_two_dtypes_make_the_third_of_the_standard(kinds):
    for one, other in itertools.product(kinds, repeat=2):
        expected = np.result_type(one, other).name
        first, second = getattr(XP, one), getattr(XP, other)
        if expected not in kinds:  # of uint64 and a signed integer NumPy makes a float
            with pytest.raises(TypeError, match="no common dtype"):
                XP.result_type(first, second)
            continue
        assert XP.result_type(first, second) is getattr(XP, expected)
        for shapes in (((2,), (2,)), ((), (2,)), ((2,), ())):
            operands = [XP.ones(shape, dtype=dtype) for shape, dtype in zip(shapes, (first, second), strict=True)]
            assert XP.add(*operands).dtype is getattr(XP, expected)
            assert XP.equal(*operands).dtype is XP.bool
            assert XP.where(XP.asarray(True), *operands).dtype is getattr(XP, expected)


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        ("int8", 1, "int8"),
        ("uint16", 1, "uint16"),
        ("float32", 1, "float32"),
        ("float32", 1.5, "float32"),
        ("float64", 1.5, "float64"),
        ("float32", 1j, "complex64"),
        ("float64", 1j, "complex128"),
        ("complex64", 1.5, "complex64"),
        ("complex64", 1j, "complex64"),
    ],
)
def test_a_number_of_python_takes_the_dtype_of_the_array(dtype, scalar, expected, shape):
    array = XP.ones(shape, dtype=getattr(XP, dtype))
    assert XP.result_type(array, scalar) is getattr(XP, expected)
    assert XP.add(array, scalar).dtype is XP.multiply(scalar, array).dtype is getattr(XP, expected)


def test_clipping_keeps_the_dtype_of_the_array():
    clipped = XP.clip(XP.asarray([1, 50, 100], dtype=XP.int8), XP.asarray([40, 40, 40], dtype=XP.int16), 90)
    assert clipped.dtype is XP.int8
    assert clipped.tolist() == [40, 50, 90]


def test_numbers_alone_have_no_result_type():
    with pytest.raises(ValueError, match="at least one array or dtype"):
        XP.result_type(1, 2.0)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint32", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("function", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_sums_and_products_have_the_dtype_of_numpys(function, dtype):
    with of_a_later_numpy():
        expected = getattr(np, function)(np.ones(3, dtype)).dtype.name
    assert getattr(XP, function)(XP.ones(3, dtype=getattr(XP, dtype))).dtype is getattr(XP, expected)
    assert getattr(XP, function)(XP.ones(3, dtype=XP.int8), dtype=XP.int16).dtype is XP.int16


def test_the_dtype_of_several_operands_is_found():
    assert XP.result_type(pullback.ones(1), pullback.float64, pullback.ones(1).int()) is pullback.float64


# ------------------------------------------------------------------ what NumPy cannot show


def test_gradients_flow_through_the_functions_of_the_standard():
    x = pullback.tensor(X, requires_grad=True)
    XP.sum(XP.multiply(2, XP.take(XP.concat([x, XP.asarray(x)]), pullback.tensor([0, -1]), axis=0))).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 2.0))


def test_elements_are_sorted_downwards_on_demand():
    np.testing.assert_array_equal(XP.sort(pullback.tensor(X), descending=True).numpy(), -np.sort(-X))


def test_every_nan_is_an_element_of_its_own():
    values, indices, inverse, counts = XP.unique_all(pullback.tensor([np.nan, 1.0, np.nan, 1.0]))
    assert values.tolist()[0] == 1.0 and np.isnan(values.tolist()[1:]).all()
    assert sorted(indices.tolist()) == [0, 1, 2]
    assert counts.tolist() == [2, 1, 1]
    assert inverse.shape == (4,)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: XP.squeeze(x, axis=0), ValueError),
        (lambda x: XP.expand_dims(x, axis=5), IndexError),
        (lambda x: XP.expand_dims(x, axis=(0, 0)), ValueError),
        (lambda x: XP.expand_dims(x, axis=(0, -4)), ValueError),
        (lambda x: XP.broadcast_shapes((2,), (3,)), ValueError),
        (lambda x: XP.reshape(x.T, (6,), copy=False), ValueError),
        (lambda x: XP.asarray(x, dtype=XP.int8, copy=False), ValueError),
        (lambda x: XP.nonzero(XP.sum(x)), ValueError),
        (lambda x: XP.cumulative_sum(x), ValueError),
        (lambda x: XP.take(x, XP.asarray([0])), ValueError),
        (lambda x: XP.vecdot(x, x[:, :1]), ValueError),
        (lambda x: XP.isdtype(x.dtype, "number"), ValueError),
        (lambda x: XP.arange(0, 1, 0), ValueError),
        (lambda x: x.__array_namespace__(api_version="1999.12"), ValueError),
    ],
)
def test_a_wrong_call_raises(call, error):
    with pytest.raises(error):
        call(pullback.tensor(X))


def test_a_copy_is_one_and_no_copy_is_none():
    x = pullback.tensor(X)
    assert XP.asarray(x) is x
    assert XP.reshape(x, (6,), copy=False).data_ptr() == x.data_ptr()
    assert XP.astype(x, x.dtype, copy=False) is x
    for copied in (XP.asarray(x, copy=True), XP.reshape(x, (6,), copy=True), XP.astype(x, x.dtype)):
        assert copied.data_ptr() != x.data_ptr()


def test_limits_are_those_of_a_dtype_or_of_an_array():
    assert XP.finfo(pullback.ones(1)).dtype is XP.float32
    assert XP.finfo(XP.complex128) == XP.finfo(XP.float64)
    assert XP.iinfo(pullback.ones(1).int()) == XP.iinfo(XP.int32)
    assert XP.iinfo(XP.int32).dtype is XP.int32


# ------------------------------------------------------------------ what the namespace says of itself


def test_the_namespace_knows_its_version():
    assert XP.__array_api_version__ == "2025.12"
    assert pullback.ones(1).__array_namespace__(api_version="2023.12") is XP


def test_the_namespace_describes_itself():
    info = XP.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert pullback.ones((1,) * 64).ndim == 64
    assert info.default_device() in info.devices()
    assert [XP.ones(1, device=device).device for device in info.devices()] == list(info.devices())
    assert info.default_dtypes() == {
        "real floating": XP.float32,
        "complex floating": XP.complex64,
        "integral": XP.int64,
        "indexing": XP.int64,
    }
    with pytest.raises((ValueError, RuntimeError)):
        info.dtypes(device="elsewhere")


@pytest.mark.parametrize("kind", [None, "bool", "signed integer", "integral", "numeric", ("bool", "complex floating")])
def test_the_dtypes_of_a_kind_are_those_numpy_lists(kind):
    with of_a_later_numpy():
        expected = np.__array_namespace_info__().dtypes(kind=kind)
    got = XP.__array_namespace_info__().dtypes(kind=kind)
    assert got == {name: getattr(XP, name) for name in expected}
    for name in got:
        assert XP.zeros(1, dtype=got[name]).dtype is got[name]


def test_the_default_dtypes_follow_the_default():
    before = pullback.get_default_dtype()
    pullback.set_default_dtype(pullback.float64)
    try:
        assert XP.__array_namespace_info__().default_dtypes()["complex floating"] is XP.complex128
    finally:
        pullback.set_default_dtype(before)
