"""Builtins that make their result beside NumPy: pointwise functions, sums, scans, views, and what they hand on."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback._arrays.memory import laid_out
from pullback._thresholds import FEW_OF_SMALL as FEW
from pullback._thresholds import LARGE, MANY
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import BINARY, UNARY
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import OFTEN, Adding, Chooser, Scanning, Variants, Viewing, is_exact
from pullback.kernels.numpy.linalg import products
from pullback.kernels.numpy.loss import nll
from pullback.ops.shape.reshape import plain_view
from tests.kernels.edge_of_memory import at_the_edge

pytestmark = pytest.mark.skipif(room("small.allocating") is None, reason="kernels are not compiled here")
EXACT = sorted({u.__name__: u for u in (getattr(np, n) for n in (*UNARY, *BINARY) if hasattr(np, n)) if is_exact(u)})
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**-126, 7.25]


def eager(function, **kwargs):
    """A function of small arrays that is compiled on its first call."""
    made = Chooser(function, **kwargs)
    made.often = 1
    return made


def same_bits(actual, wanted):
    """Equal in dtype, shape and every bit, but for the bits of a nan."""
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    assert actual.dtype == wanted.dtype and actual.shape == wanted.shape
    if wanted.dtype.kind == "f":
        real = wanted == wanted
        assert (np.isnan(actual) == ~real).all()
        actual, wanted = actual[real], wanted[real]
    assert actual.tobytes() == wanted.tobytes()


# ------------------------------------------------------------------ pointwise


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_function_has_every_bit_of_numpys(name, dtype):
    ufunc = getattr(np, name)
    first, second = (a.ravel().astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
    operands = (first, second)[: ufunc.nin]
    try:
        with np.errstate(all="ignore"):
            wanted = ufunc(*operands)
    except TypeError:
        return  # bitwise functions have no floats
    if name in ("fmax", "fmin", "maximum", "minimum"):  # which of two zeros NumPy gives depends on where they stand
        wanted = wanted + 0.0
    small = eager(ufunc)
    for _ in range(2):
        made = small.head(*operands)
        same_bits(made + 0.0 if name in ("fmax", "fmin", "maximum", "minimum") else made, wanted)


@st.composite
def pairs(draw):
    """Two arrays that broadcast to the shape of one of them, in many layouts."""
    full = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=3)))
    dtype = draw(st.sampled_from(["f", "d", "l"]))

    def one():
        kind = draw(st.sampled_from(["whole", "number", "stretched", "part", "strided", "ones", "tail", "turned"]))
        numbers = lambda shape: np.random.default_rng(len(shape)).integers(1, 9, shape).astype(dtype)
        if kind == "number" or not full:
            return numbers(())
        if kind == "stretched":
            return np.broadcast_to(numbers(()), full)
        if kind == "part":
            return numbers((*full[:-1], full[-1] + 3))[..., 1 : 1 + full[-1]]
        if kind == "strided":
            return numbers((*full[:-1], full[-1] * 2))[..., ::2]
        if kind == "ones":
            shape = tuple([1 if draw(st.booleans()) else n for n in full])
            return np.broadcast_to(numbers(shape), full) if draw(st.booleans()) else numbers(shape)
        if kind == "tail":
            return numbers(full[draw(st.integers(0, len(full) - 1)) :])
        return numbers(full[::-1]).T if kind == "turned" else numbers(full)

    return one(), one()


SUBTRACT = eager(np.subtract)


@settings(max_examples=300, deadline=None)
@given(operands=pairs())
def test_arrays_of_any_layout_give_what_numpy_gives(operands):
    wanted = np.subtract(*operands)
    for _ in range(2):
        made = SUBTRACT.head(*operands)
        same_bits(made, wanted)
    fresh = eager(np.subtract)
    same_bits(fresh.head(*operands), wanted)
    same_bits(fresh.head(*operands), wanted)


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (2, 130), (129, 3), (1, 4), (4, 1), (0, 3), (64, 64)])
@pytest.mark.parametrize("ufunc", [np.subtract, np.less, np.negative])
def test_matrices_that_lie_column_by_column_have_builtins_and_the_first_says_how_the_result_lies(ufunc, shape):
    whole, number = np.arange(1.0, 1 + shape[0] * shape[1], dtype="f").reshape(shape), np.array(3, "f")
    turned = np.ascontiguousarray(whole.T[::-1]).T
    pairs = [(turned, whole), (whole, turned), (turned, turned), (turned, number), (number, turned)]
    chooser = eager(ufunc)
    for operands in pairs if ufunc.nin == 2 else [(turned,)]:
        wanted = chooser.computed(*operands)
        for _ in range(2):
            made = chooser.head(*operands)
            same_bits(made, wanted)
            assert made.strides == wanted.strides
    turns = min(shape) > 1
    assert turns == any("t" in letters for _, letters, _ in chooser.builtins) and chooser.misses == 0


def test_a_matrix_in_the_last_bytes_of_memory_is_read_no_further_column_by_column():
    add = eager(np.add)
    for rows, columns in ((2, 3), (65, 2), (2, 65), (64, 3)):
        x = at_the_edge(np.arange(rows * columns, dtype="f").reshape(rows, columns))
        turned = at_the_edge(np.arange(rows * columns, dtype="f").reshape(columns, rows)).T
        for _ in range(2):
            same_bits(add.head(x, turned), x + turned)
            same_bits(add.head(turned, x), x + turned)


def test_a_row_in_the_last_bytes_of_memory_is_read_no_further():
    add = eager(np.add)
    for size in (1, 3, 15, 16, 17, 33):
        x, row = at_the_edge(np.arange(4 * size, dtype="f").reshape(4, size)), at_the_edge(np.ones(size, "f"))
        for _ in range(2):
            same_bits(add.head(x, row), x + row)
            same_bits(add.head(x, x), x + x)


def test_what_a_builtin_does_not_take_is_handed_on():
    add = eager(np.add)
    x = np.ones(4, "f")
    add.head(x, x)
    assert type(add.head).__name__ == "builtin_function_or_method"
    assert add.head(x, x.astype("d")).dtype == "d"
    assert add.head(x, 2.0).tolist() == [3] * 4
    assert add.head(x.astype("F"), x).dtype == "F"
    assert add.head(x.astype(">f4"), x).tolist() == [2] * 4
    assert add.head(np.ones(MANY, "f"), np.ones(MANY, "f")).sum() == 2 * MANY
    with pytest.raises(ValueError, match="broadcast"):
        add.head(x, np.ones(5, "f"))
    with pytest.raises(TypeError):
        add.head(x)
    unaligned = np.zeros(17, "u1")[1:].view("f")
    assert add.head(unaligned, x).tolist() == [1] * 4


def test_results_do_not_depend_on_how_often_a_function_was_called():
    x = torch.tensor([0.1, -2.7, 3.3e-5, 1e20])
    y = torch.tensor([7.3, 0.3, -1.1, 3.0])
    programs = [
        lambda: x * y, lambda: x / y, lambda: x - 0.3, lambda: torch.lerp(x, y, 0.3), lambda: torch.addcmul(x, x, y),
        lambda: (x * y).sum(), lambda: y.mean(), lambda: x.cumsum(0), lambda: y.cumprod(0), lambda: torch.sigmoid(y),
        lambda: torch.nn.functional.gelu(y), lambda: torch.nn.functional.leaky_relu(y, 0.3), lambda: torch.sinc(y),
    ]  # fmt: skip
    for program in programs:
        first = program().numpy().tobytes()
        assert all(program().numpy().tobytes() == first for _ in range(3 * OFTEN))


def test_an_op_called_often_calls_a_builtin():
    x = torch.tensor([1.0, 2.0])
    for _ in range(2 * OFTEN):
        torch.mul(x, x)
    assert type(torch.mul.__globals__["UFUNC"]).__name__ == "builtin_function_or_method"


@pytest.mark.parametrize("dtype", ["?", "l", "i", "e", "b"])
@pytest.mark.parametrize("name", EXACT)
def test_integers_bools_and_halves_give_what_numpy_gives(name, dtype):
    ufunc = getattr(np, name)
    operands = tuple(np.array([0, 1, 3, 5, 7], dtype)[:: 1 if i else -1].copy() for i in range(ufunc.nin))
    try:
        with np.errstate(all="ignore"):
            wanted = ufunc(*operands)
    except TypeError:
        return
    small = eager(ufunc)
    with np.errstate(all="ignore"):
        for _ in range(3):
            same_bits(small.head(*operands), wanted)


def test_equal_numbers_of_several_types_are_not_confused():
    for exponent in (1, 1.0, True, 1):
        for base in (torch.tensor([True]), torch.tensor([2]), torch.tensor([2.0])):
            wanted = torch.tensor(
                [bool, int, float][max(KINDS[type(exponent)], KINDS[type(base.tolist()[0])])](1)
            ).dtype
            assert (base**exponent).dtype is wanted


KINDS = {bool: 0, int: 1, float: 2}


def test_a_function_for_few_elements_is_used_for_few_only():
    small = eager(lambda x: x + 1, few=Kernels(lambda x: x + 2))
    for _ in range(2):
        assert small.head(np.zeros(FEW - 1, "f"))[0] == 2
        assert small.head(np.zeros(FEW, "f"))[0] == 1


def test_builtins_hold_no_references_to_what_they_were_given():
    add, x, y = eager(np.add), np.ones(5, "f"), np.ones(5, "f")
    add.head(x, y)
    made = add.head(x, y)
    before = [sys.getrefcount(o) for o in (x, y, made, np.dtype("f"))]
    for _ in range(1000):
        made = add.head(x, y)
    after = [sys.getrefcount(o) for o in (x, y, made, np.dtype("f"))]
    assert after[:3] == before[:3] and abs(after[3] - before[3]) < 5


# ------------------------------------------------------------------ sums and scans


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_sums_and_means_add_in_numpys_order(dtype):
    total = Adding(lambda a: np.add.reduce(a, None))
    mean = Adding(lambda a: np.add.reduce(a, None) / a.size if a.size else np.array(np.nan, dtype), True)
    total.often = mean.often = 1
    rng = np.random.default_rng(0)
    for size in (*range(140), 1000):
        a = (rng.standard_normal(size) * 10 ** rng.uniform(-3, 3, size)).astype(dtype)
        same_bits(total.head(a), np.add.reduce(a))
        if size:
            same_bits(mean.head(a), np.add.reduce(a) / size)
        if size % 6 == 0:
            same_bits(total.head(a.reshape(2, 3, -1)), np.add.reduce(a.reshape(2, 3, -1), None))
    same_bits(total.head(np.array([-0.0], dtype)), np.add.reduce(np.array([-0.0], dtype)))


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 7), (0, 3), (3, 0), (1,), (40, 40)])
def test_running_sums_and_products_are_rounded_once(shape, dtype):
    a = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    for times, ufunc in ((False, np.add), (True, np.multiply)):
        scan = Scanning(lambda a, ufunc=ufunc: ufunc.accumulate(a.astype("d"), -1).astype(a.dtype), times)
        scan.often = 1
        for _ in range(2):
            same_bits(scan.head(a), ufunc.accumulate(a.astype("d"), -1).astype(dtype))


# ------------------------------------------------------------------ views


@pytest.mark.parametrize("dtype", ["f", "F", "u1", "?"])
def test_views_look_at_the_same_memory(dtype):
    view, stretch = Viewing(plain_view, "viewing"), Viewing(np.broadcast_to, "stretching")
    view.often = stretch.often = 1
    x = np.arange(6).astype(dtype)
    for _ in range(2):
        made = view.head(x, (2, 3))
        assert made.shape == (2, 3) and made.strides == x.reshape(2, 3).strides
        assert np.shares_memory(made, x) and made.base is x and made.flags.writeable
        wide = stretch.head(x, (4, 6))
        assert wide.strides == (0, x.itemsize) and (wide == x).all() and wide.base is x
    x.flags.writeable = False
    assert not view.head(x, (3, 2)).flags.writeable and not stretch.head(x, (2, 6)).flags.writeable


def test_shapes_that_do_not_fit_are_handed_on():
    handed = []
    for how in ("viewing", "stretching"):
        view = Viewing(lambda *args: handed.append(args), how)
        view.often = 1
        x = np.arange(6.0)
        assert view.head(x, (2, 6) if how == "stretching" else (2, 3)) is not None
        for shape in ((-1, 6), (7,), (2, 7), (2**70,), (2**40, 2**40), (1.0, 6), (True,), [6], (6,) * 40, ()):
            assert view.head(x, shape) is None
        assert view.head([1.0], (1,)) is None and view.head(x[::2], (7,)) is None
    assert len(handed) == 24


# ------------------------------------------------------------------ others


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize(
    "sizes", [(2, 4, 4, 4), (1, 1, 1, 1), (3, 5, 7, 17), (2, 3, 0, 4), (0, 3, 2, 4), (2, 15, 16, 17)]
)
def test_small_batches_of_matrices_are_multiplied(sizes, dtype):
    batch, rows, depth, columns = sizes
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((batch, rows, depth)).astype(dtype), rng.standard_normal((batch, depth, columns))
    b = at_the_edge(b.astype(dtype)) if b.size else b.astype(dtype)
    made = products.batch_product(a, b)
    assert made.dtype == a.dtype
    np.testing.assert_allclose(made, np.matmul(a, b), rtol=1e-4 if dtype == "f" else 1e-12, atol=1e-5)
    with pytest.raises(ValueError):
        products.batch_product(a, np.ones((batch, depth + 2, columns), dtype))


def test_a_target_beyond_the_classes_is_not_picked():
    x, pick = np.log(np.full((3, 4), 0.25, "f")), room("rows.nll").picking("f", True)
    assert pick(x, np.array([0, 3, 1])) == nll.nll_loss(x, np.array([0, 3, 1]), None, 1, -100)[0]
    for wrong in ([0, 4, 1], [0, -1, 1], [0, 1], [-100, 0, 0]):
        assert pick(x, np.array(wrong)) is None


# ------------------------------------------------------------------ choosing


def rounded(x, slope=1.0):
    """A function that kernels round in their own way."""
    return np.exp(x) * slope + x


def test_large_arrays_are_chosen_by_their_size_before_anybody_looks_at_their_layout(monkeypatch):
    chooser = Chooser(rounded)
    monkeypatch.setattr(Chooser, "layout_of", lambda self, args: pytest.fail("looked"))
    x = np.linspace(0, 1, LARGE, dtype="f")
    same_bits(chooser.head(x), Kernels(rounded)(x))


def test_a_rounded_function_gives_the_bits_of_its_builtin_where_it_has_none():
    random = np.random.default_rng(0)
    flat, part = random.random(100, "f"), random.random((10, 12), "f")[:, 1:9]
    for array in (flat, flat.astype("d"), part, random.random(300, "f")):
        one, other, tired = Chooser(rounded), Chooser(rounded), Chooser(rounded)
        other.most = 0
        for _ in range(300):
            tired.head(flat[::2])  # no builtin takes it
        wanted = one.head(array)
        assert type(one.head).__name__ == "builtin_function_or_method" and other.head is other
        same_bits(other.head(array), wanted)
        same_bits(tired.head(array), wanted)


def test_a_rounded_function_of_a_hundred_plain_arguments_gives_the_same_bits_in_any_order():
    x = np.linspace(0, 1, 50, dtype="f")
    slopes = [1.0 + i / 64 for i in range(100)]

    def results(slopes):
        variants = Variants(rounded, Kernels(rounded, "rounded"), 1, [])
        return {slope: variants(x, slope).tobytes() for slope in slopes}

    forwards, backwards = results(slopes), results(slopes[::-1])
    assert forwards == backwards
    large = np.linspace(0, 1, LARGE, dtype="f")
    kernels = Kernels(rounded)
    assert kernels(large, slopes[-1]).tobytes() == [kernels(large, slope) for slope in slopes][-1].tobytes()


def test_results_lie_in_memory_as_before_when_there_is_no_compiler(monkeypatch):
    chooser = eager(np.add)
    monkeypatch.setattr("pullback.kernels.jit.small.choose.room", lambda name: None)
    x, y = np.ones((4, 3), "f").T, np.ones((3, 4), "f")
    assert [chooser.head(x, y).strides for _ in range(3)] == [(4, 12)] * 3


def test_a_function_that_gave_up_other_layouts_still_gets_a_builtin_for_row_major_arrays():
    chooser, x = Chooser(np.multiply), np.arange(16, dtype="f").reshape(4, 4)
    apart = np.repeat(x, 2, 0)[::2].T
    for _ in range(300):
        made = chooser.head(apart, x)  # no builtin takes it
    assert made.strides == (4, 16) and np.array_equal(made, x.T * x)
    assert not chooser.builtins
    for _ in range(2 * OFTEN):
        chooser.head(x, x)
    assert type(chooser.head).__name__ == "builtin_function_or_method"
    for _ in range(300):
        assert chooser.head(apart, x).strides == (4, 16)
    same_bits(chooser.head(x, x), x * x)


@pytest.mark.parametrize("shape", [(4, 4), (1, 4), (4, 1), (2, 3)])
def test_the_first_of_two_matrices_decides_how_the_result_lies_in_memory(shape):
    chooser = Chooser(np.subtract)
    x, y = np.arange(16, dtype="f")[: shape[0] * shape[1]].reshape(shape[::-1]).T, np.ones(shape, "f")
    for first, second in ((x, y), (y, x), (x, x), (x, y[:1]), (y[:1], x)):
        wanted = laid_out(np.subtract(first, second), (first, second))
        assert chooser.head(first, second).strides == wanted.strides
        assert np.array_equal(chooser.head(first, second), wanted)


def test_large_arrays_are_left_to_kernels_however_often_small_ones_came_before_without_a_compiler(monkeypatch):
    chooser, asked = eager(np.add), []
    monkeypatch.setattr("pullback.kernels.jit.small.choose.room", lambda name: None)
    monkeypatch.setattr(Kernels, "__call__", lambda self, *args: asked.append(self) or np.add(*args))
    small, large = np.ones(3, "f"), np.ones(20000, "f")
    for _ in range(3):
        chooser.head(small, small)
    chooser.head(large, large)
    assert asked == [chooser.kernels]
