"""The same tensor printed by torch and by pullback gives the same text."""

import math
import warnings

import hypothesis
import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import pullback
from pullback import printing

FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64", ml_dtypes.bfloat16)]
COMPLEX = [np.dtype(name) for name in ("complex64", "complex128")]
INTEGERS = [np.dtype(sign + bits) for sign in ("int", "uint") for bits in ("8", "16", "32", "64")]

BORDERS = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, 1000.0, 1001.0, 1e8, 1.1e8, 1e-4, 9.9999e-5, 0.5, 99999.99995]


@pytest.fixture(autouse=True)
def _default_settings():
    before = torch.get_default_dtype(), pullback.get_default_dtype()
    yield
    for library, dtype in zip((torch, pullback), before, strict=True):
        library.set_default_dtype(dtype)
        library.set_printoptions(profile="default")


def torch_from_numpy(array):
    """torch's own from_numpy, taught bfloat16."""
    if array.dtype.kind == "V":
        return torch_from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@st.composite
def float_values(draw, count):
    """Finite and special float64 numbers that sometimes share a magnitude and sometimes share nothing."""
    scale = 10.0 ** draw(st.integers(-12, 12))
    elements = draw(
        st.sampled_from(
            [
                st.floats(),
                st.sampled_from(BORDERS),
                st.integers(-(10**9), 10**9).map(float),
                st.floats(-10, 10).map(lambda value: value * scale),
                st.integers(-3, 3).map(float),
            ]
        )
    )
    return np.array(draw(st.lists(elements, min_size=count, max_size=count)), dtype=np.float64)


@st.composite
def arrays(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    count = math.prod(shape)
    dtype = draw(st.sampled_from([*FLOATS, *COMPLEX, *INTEGERS, np.dtype(bool)]))
    if dtype in FLOATS or dtype in COMPLEX:
        values = draw(float_values(count))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the casts overflow on purpose
            array = values.astype(dtype)
            if dtype in COMPLEX:
                array.imag = draw(float_values(count))
    else:
        array = draw(hnp.arrays(dtype, count))
    array = array.reshape(shape)
    return array.T if draw(st.booleans()) else array


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 17),
        "threshold": st.sampled_from([0, 1, 5, 20, 1000, math.inf]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(1, 140),
        "profile": st.sampled_from(["default", "short", "full", "unknown"]),
        "sci_mode": st.sampled_from([None, True, False]),
    },
)
many = hypothesis.settings(max_examples=300)


@many
@hypothesis.given(arrays())
def test_every_array_prints_the_same(array):
    assert repr(pullback.from_numpy(array)) == repr(torch_from_numpy(array))


@many
@hypothesis.given(arrays(), SETTINGS)
def test_every_array_prints_the_same_under_all_print_options(array, settings):
    for library in (torch, pullback):
        library.set_printoptions(profile="default")
        library.set_printoptions(**settings)
    assert repr(pullback.from_numpy(array)) == repr(torch_from_numpy(array))


@pytest.mark.parametrize("shape", [(1001,), (40, 30), (11, 12, 13), (2, 3, 200), (7, 6, 8, 5), (1, 1001)])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int16", "bool"])
def test_large_arrays_are_summarised_alike(shape, dtype):
    array = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    assert repr(pullback.from_numpy(array)) == repr(torch.from_numpy(array))


@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (2,), (0,), (0, 2)])
def test_the_default_dtype_decides_alike_which_dtype_goes_unsaid(default, shape):
    for library in (torch, pullback):
        library.set_default_dtype(getattr(library, default))
    for dtype in [*FLOATS, *COMPLEX, *INTEGERS, np.dtype(bool)]:
        array = np.ones(shape, dtype)
        assert repr(pullback.from_numpy(array)) == repr(torch_from_numpy(array))


@pytest.mark.parametrize("linewidth", range(20, 61))
def test_suffixes_are_broken_into_lines_alike(linewidth):
    for library in (torch, pullback):
        library.set_printoptions(linewidth=linewidth)
    for count in (0, 1, 2, 5):
        array = np.arange(count, dtype=np.float64)
        ours, theirs = (library.from_numpy(array).requires_grad_() for library in (pullback, torch))
        assert repr(ours) == repr(theirs)
        assert printing.tensor_repr(ours, tensor_contents="a" * 9) == theirs.__repr__(tensor_contents="a" * 9)


def function_output(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Double.apply(lib.ones(2, requires_grad=True))


def view_without_a_history(lib):
    base = lib.zeros(4)
    with lib.no_grad():
        view = base.view(2, 2)
    base.add_(lib.ones(4, requires_grad=True))
    return view


def slice_written_in_place(lib):
    x = lib.ones(3, requires_grad=True).clone()
    x[0] = 3
    return x


def subclass(lib, *shape):
    class Measured(lib.Tensor):
        pass

    return lib.ones(shape).as_subclass(Measured)


def parameter_subclass(lib):
    class Weight(lib.nn.Parameter):
        pass

    return Weight(lib.ones(30))


def inference_tensor(lib):
    with lib.inference_mode():
        return lib.ones(2) * 2


PROGRAMS = {
    "a leaf": lambda lib: lib.ones(2, requires_grad=True),
    "a product": lambda lib: lib.ones(2, 2, requires_grad=True) * 2,
    "a sum": lambda lib: lib.ones(2, requires_grad=True).sum(),
    "an empty product": lambda lib: lib.ones(0, 2, requires_grad=True) * 2,
    "a detached product": lambda lib: (lib.ones(2, requires_grad=True) * 2).detach(),
    "a custom function's output": function_output,
    "a view without a history": view_without_a_history,
    "a slice written in place": slice_written_in_place,
    "a subclass": lambda lib: subclass(lib, 2, 2),
    "a subclass without dimensions": lambda lib: subclass(lib),
    "a long subclass": lambda lib: subclass(lib, 50),
    "a parameter": lambda lib: lib.nn.Parameter(lib.ones(2, 2)),
    "a frozen parameter": lambda lib: lib.nn.Parameter(lib.ones(2), requires_grad=False),
    "a parameter times two": lambda lib: lib.nn.Parameter(lib.ones(2)) * 2,
    "a parameter subclass": parameter_subclass,
    "a subclass made a parameter": lambda lib: lib.nn.Parameter(subclass(lib, 2)),
    "an inference tensor": inference_tensor,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_program_prints_the_same(program):
    assert repr(program(pullback)) == repr(program(torch))
    assert f"{program(pullback)}" == f"{program(torch)}"


@pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")  # torch's own, when it first makes a dual
@pytest.mark.parametrize("shape", [(), (2,), (5, 2), (0, 2)])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_print_the_same(shape, requires_grad):
    def program(lib):
        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            primal, tangent = lib.ones(shape, requires_grad=requires_grad), lib.ones(shape) * 1.5
            dual = forward_ad.make_dual(primal, tangent)
            inside = [repr(dual), repr(dual * 2), f"{dual}"]
        return [*inside, repr(dual)]

    assert program(pullback) == program(torch)


def outcome(function):
    try:
        return function()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("spec", ["", ".3f", ">10", "d", "%", "s", "!!"])
@pytest.mark.parametrize("value", [3.14159, 3, True, 1 + 2j, [1.0, 2.0], [1.5], []])
def test_format_follows_the_same_rules(value, spec):
    array = np.array(value)
    ours, theirs = (library.from_numpy(array) for library in (pullback, torch))
    assert outcome(lambda: format(ours, spec)) == outcome(lambda: format(theirs, spec))


def test_the_settings_are_the_same_after_every_call():
    calls = [{"profile": "short"}, {"precision": 2, "sci_mode": True}, {"profile": "full", "edgeitems": 1}, {}]
    for changes in calls:
        for library in (torch, pullback):
            library.set_printoptions(**changes)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
