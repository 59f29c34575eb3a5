"""Pointwise code as one kernel: any dtypes, shapes and strides, and what is left to NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback  # noqa: F401  # declares the ops
from pullback._op.declare import REQUIRED, registry
from pullback._op.readings import forward_of
from pullback._op.ufuncs import is_traced
from pullback._thresholds import LARGE
from pullback.kernels import workers
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import Halfway, Stand, Trace, Untraceable, evaluate
from pullback.kernels.jit.pointwise.fused import Kernels, overwrite, row_major_copy
from tests.kernels.edge_of_memory import at_the_edge

compiled = pytest.mark.skipif(room("pointwise.loops") is None, reason="kernels are not compiled here")
DTYPES = ["float32", "float64", "int64", "int32", "bool"]


def numbers(shape, dtype, seed=0):
    made = np.random.default_rng(seed).normal(size=shape) * 10
    return made > 0 if dtype == "bool" else made.astype(dtype)


# ------------------------------------------------------------------ tracing


def traced(function, *dtypes):
    trace = Trace()
    return trace.node_of(function(*[trace.input(np.dtype(dtype)) for dtype in dtypes]))


def test_an_expression_is_printed_as_it_is_computed():
    assert str(traced(lambda x, y: np.exp(x) * (1 - y), "f4", "f4")) == "multiply(exp(x0), subtract(1.0, x1))"


def test_equal_steps_are_one():
    root = traced(lambda x: np.exp(x) + np.exp(x), "f4")
    assert root.args[0] is root.args[1]


def test_zeros_of_both_signs_are_two_constants():
    root = traced(lambda x: np.where(x > 0, -0.0, 0.0), "f4")
    assert np.signbit(root.args[1].value) and not np.signbit(root.args[2].value)


@pytest.mark.parametrize(
    "code",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x.reshape(-1),
        lambda x: x[0] + 1,
        lambda x: np.add.reduce(x),
        lambda x: np.asarray(x) + 1,
        lambda x: np.ones(x.size) * x,
        lambda x: np.cumsum(x),
        lambda x: x + np.ones(3),
        lambda x: np.gcd(x, x),
    ],
)
def test_what_looks_at_values_or_shapes_is_not_pointwise(code):
    with pytest.raises((Untraceable, TypeError, AttributeError)):
        traced(code, "f4")


def test_numbers_promote_as_numpys_do():
    for code in (lambda x: x * 2, lambda x: x * 2.5, lambda x: x / 3, lambda x: x + np.float64(1), lambda x: x * True):
        for dtype in ("float32", "float64", "int64", "int32", "bool"):
            assert traced(code, dtype).dtype == code(np.ones(1, dtype)).dtype


def test_an_expression_is_evaluated_by_numpy_too():
    def code(x, y):
        return np.where(x > 0, np.tanh(x) * y, -y).astype(np.float64)

    x, y = numbers(50, "float32"), numbers(50, "float32", 1)
    assert np.array_equal(evaluate(traced(code, "f4", "f4"), (x, y)), code(x, y))


def test_a_shape_is_given_away_only_where_asked_for():
    def code(x):
        return x / x.shape[0]

    with pytest.raises(Untraceable):
        traced(code, "f4")
    fused = Kernels(code, shapes=True)
    for size in (5000, 6000):  # an expression made for one shape does not serve another
        assert np.array_equal(fused(np.ones(size)), np.full(size, 1 / size))


def test_code_may_stop_being_pointwise_halfway():
    def code(x, y):
        loss = np.square(x - y)
        if type(loss) is Stand:
            raise Halfway(loss, np.mean)
        return np.mean(loss)

    x, y = numbers(5000, "float64"), numbers(5000, "float64", 1)
    np.testing.assert_allclose(Kernels(code)(x, y), code(x, y))


# ------------------------------------------------------------------ kernels

PROGRAMS = {
    "add": np.add,
    "multiply": np.multiply,
    "subtract": lambda x, y: np.subtract(x, y) if x.dtype.kind != "b" else np.logical_xor(x, y),
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "where": lambda x, y: np.where(x > y, x, y),
    "chosen": lambda x, y: np.where(np.isfinite(x), x * y, 0),
    "wider": lambda x, y: x.astype(np.float64) + y,
}


@st.composite
def layouts(draw):
    """Two arrays that broadcast, each perhaps turned, sliced, stretched or backwards."""
    ndim = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim))
    shape[draw(st.integers(0, ndim - 1))] = draw(st.integers(1, 70))
    dtype = draw(st.sampled_from(DTYPES))
    arrays = []
    for seed in range(2):
        step = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, -1]), min_size=ndim, max_size=ndim))
        order = draw(st.permutations(range(ndim)))
        sizes = [n * abs(s) for n, s in zip(shape, step, strict=True)]
        array = numbers([sizes[d] for d in order], dtype, seed).transpose(np.argsort(order))
        array = array[tuple(slice(None, None, s) for s in step)]
        kept = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=ndim, max_size=ndim))
        if seed:
            array = array[tuple(slice(None) if k else slice(0, 1) for k in kept)]
            array = array.reshape(array.shape[1:]) if array.shape[0] == 1 and draw(st.booleans()) else array
        arrays.append(array)
    return arrays


@compiled
@settings(deadline=None, max_examples=300)
@given(arrays=layouts(), name=st.sampled_from(sorted(PROGRAMS)))
def test_arrays_of_any_strides_give_numpys_results_to_the_bit(arrays, name):
    code = PROGRAMS[name]
    made = Kernels(code)(*arrays)
    with np.errstate(all="ignore"):
        expected = code(*arrays)
    assert made.dtype == expected.dtype and made.shape == expected.shape
    assert made.tobytes() == expected.astype(expected.dtype, "C").tobytes() or np.array_equal(made, expected, True)


@compiled
@settings(deadline=None, max_examples=100)
@given(arrays=layouts())
def test_a_result_is_written_into_an_array_of_any_strides(arrays):
    x, y = arrays
    shape = np.broadcast_shapes(x.shape, y.shape)
    memory = np.zeros([2 * n for n in shape[::-1]], x.dtype)
    out = memory[tuple(slice(None, None, 2) for _ in shape)].T
    assert Kernels(np.add).into(out, x, y)
    assert np.array_equal(out, np.add(x, y))
    out[...] = 0
    assert not memory.any()


@compiled
@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 1000, 4099])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_beyond_an_array_is_read(size, dtype):
    x, y = at_the_edge(numbers(size, dtype)), at_the_edge(numbers(size, dtype, 1))
    assert np.array_equal(Kernels(np.add).run((x, y), {}, None), np.add(x, y))
    assert np.array_equal(Kernels(np.add).run((x[::-1], y[::-1]), {}, None), np.add(x, y)[::-1])


@compiled
def test_one_kernel_serves_all_constants():
    fused = Kernels(lambda x, slope: np.where(x > 0, x, x * slope))
    x = numbers(5000, "float32")
    before = len(room("runtime.calls").compiled)
    for slope in (0.1, 0.2, 0.3, 7.5):
        assert np.array_equal(fused(x, slope), np.where(x > 0, x, x * np.float32(slope)))
    assert len(room("runtime.calls").compiled) <= before + 1


@compiled
def test_arguments_that_differ_only_in_the_sign_of_zero_are_different():
    fused = Kernels(lambda x, value: np.where(x > 0, x, value))
    x = -np.ones(5000, np.float32)
    assert not np.signbit(fused(x, 0.0)).any() and np.signbit(fused(x, -0.0)).all()


def test_a_function_called_with_ever_new_numbers_stays_right_and_small():
    fused = Kernels(lambda x, factor: x * factor)
    x = numbers(5000, "float32")
    for nr in range(200):
        assert np.array_equal(fused(x, nr / 7), x * np.float32(nr / 7))
    assert len(fused.programs) < 100


def test_a_call_that_fails_for_one_shape_does_not_spoil_the_others():
    def code(x, y):
        if x.shape != y.shape:
            raise ValueError("shapes differ")
        return x * y

    fused = Kernels(code, shapes=True)
    x = numbers(5000, "float64")
    with pytest.raises(ValueError, match="shapes differ"):
        fused(x, x[:1])
    assert np.array_equal(fused(x, x), x * x)
    assert room("pointwise.loops") is None or fused.run((x, x), {}, None) is not None


@compiled
def test_results_do_not_depend_on_the_number_of_threads():
    x = numbers(300_001, "float32")
    fused = Kernels(lambda x: np.exp(x) * np.sin(x))
    before = workers.threads()
    try:
        results = []
        for threads in (1, 2, 3):
            workers.set_threads(threads)
            results.append(fused(x).tobytes())
    finally:
        workers.set_threads(before)
    assert len(set(results)) == 1


def test_what_no_kernel_takes_is_left_to_the_function():
    swapped = numbers(5000, "float32").astype(">f4")
    half, imaginary = numbers(5000, "float16"), numbers(5000, "float32") * 1j
    for x in (swapped, half, imaginary):
        assert np.array_equal(Kernels(np.multiply)(x, x), x * x)
    unaligned = np.zeros(20001, np.uint8)[1:].view(np.float32)
    assert np.array_equal(Kernels(np.add)(unaligned, unaligned), unaligned)


def test_errors_are_the_functions_own():
    with pytest.raises(ValueError, match="broadcast"):
        Kernels(np.add)(np.ones(5000), np.ones(5001))
    with pytest.raises(ZeroDivisionError):
        Kernels(lambda x, n: x * (1 // n))(np.ones(5000), 0)


def test_a_readonly_array_is_not_written():
    out = np.zeros(5000)
    out.flags.writeable = False
    assert not Kernels(np.add).into(out, np.ones(5000), np.ones(5000))
    assert not out.any()


@settings(deadline=None, max_examples=60)
@given(arrays=layouts(), dtype=st.sampled_from(["float32", "float64", "bool", "int64"]))
def test_a_copy_is_row_major_whatever_it_copies(arrays, dtype):
    x = np.broadcast_to(arrays[0], (300, *arrays[0].shape))
    made = row_major_copy(x, np.dtype(dtype))
    assert made.flags.c_contiguous and np.array_equal(made, x.astype(dtype))


def test_an_array_is_overwritten_by_a_part_of_itself():
    x = np.arange(2.0 * LARGE)
    overwrite(x[1:], x[:-1])
    assert np.array_equal(x[1:], np.arange(2.0 * LARGE - 1))


# ------------------------------------------------------------------ the ops

CANDIDATES = sorted(key for key, op in registry.items() if is_traced(op))
ALIKE = {"float32": 3e-6, "float64": 1e-14}
LESS_ALIKE = {"digamma": 10}
"""SciPy's loses digits beside its poles, which the kernel keeps."""


@compiled
@pytest.mark.parametrize("key", CANDIDATES)
def test_an_op_on_large_arrays_is_the_op(key):
    op = registry[key]
    forward = forward_of(op)
    for dtype in DTYPES:
        arrays = iter([numbers(LARGE, dtype, seed) for seed in range(len(op.tensors))])
        given = {p.name: next(arrays) if p.kind != "plain" else 0.75 for p in op.params if p.default is REQUIRED}
        given |= {p.name: next(arrays) for p in op.params if p.kind != "plain" and p.name not in given}
        given |= {p.name: p.default for p in op.params if p.name not in given}
        args = tuple(given[p.name] for p in op.params if not p.keyword_only)
        keywords = {p.name: given[p.name] for p in op.params if p.keyword_only}
        made = Kernels(forward).run(args, keywords, None)
        if made is not None:
            with np.errstate(all="ignore"):
                expected = np.asarray(forward(*args, **keywords))
            assert made.dtype == expected.dtype and made.shape == expected.shape
            tolerance = ALIKE.get(made.dtype.name, 0) * LESS_ALIKE.get(key, 1)
            np.testing.assert_allclose(made, expected, rtol=10 * tolerance, atol=tolerance)


FIRST_CALLS = """
import sys, threading
import pullback
sys.setswitchinterval(1e-6)
barrier, answers = threading.Barrier(6), []

def call():
    x = pullback.ones(200, 200)
    barrier.wait()
    answers.append([(x * 2.5).sum().item(), x.exp().amax(0).sum().item(), (x.t() + x).cumsum(1)[0, -1].item()])

threads = [threading.Thread(target=call) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from pullback.kernels.compiled import room
made = room("runtime.calls").compiled
print(len(answers), len({tuple(a) for a in answers}), any(n.startswith("pointwise") for n in made))
"""


@compiled
def test_first_calls_from_several_threads_all_find_the_kernels():
    done = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.split() == ["6", "1", "True"]
