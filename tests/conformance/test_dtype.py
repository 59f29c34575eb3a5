"""Dtypes and devices beside torch's: attributes, every promotion, numbers, texts."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pullback import _device, _dtype
from pullback._arrays import element as _element

DTYPES = [self.name for self in _dtype.ALL]
WITH_ARRAYS = [name for name in DTYPES if name != "complex32"]
NUMBERS = (True, 3, 2**63, 1.5, 2j)


def outcome(function, *args, **kwargs):
    """What a call gives, as text: its value, or the type and text of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return repr(function(*args, **kwargs))
    except Exception as error:
        said = str(error).partition("\n  pullback computes")[0]
        return f"{type(error).__name__}: {said}".replace(f"module '{_dtype.__name__}'", "module 'torch'")


def both(name):
    return getattr(torch, name), getattr(_dtype, name)


def torch_tensor(name, ndim):
    return torch.zeros((2,) * ndim, dtype=getattr(torch, name))


def tensor(name, ndim):
    return SimpleNamespace(_array=np.zeros((2,) * ndim, getattr(_dtype, name).numpy))


@pytest.fixture(params=["float32", "float64", "float16", "bfloat16"])
def default(request):
    torch.set_default_dtype(getattr(torch, request.param))
    _dtype.set_default_dtype(getattr(_dtype, request.param))
    yield request.param
    torch.set_default_dtype(torch.float32)
    _dtype.set_default_dtype(_dtype.float32)


@pytest.mark.parametrize("name", DTYPES)
def test_attributes(name):
    theirs, ours = both(name)
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize", "abbr"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == repr(theirs)
    assert outcome(ours.to_real) == outcome(theirs.to_real)
    assert outcome(ours.to_complex) == outcome(theirs.to_complex)


def test_names_and_aliases():
    theirs = {name: repr(value) for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
    ours = {name: repr(value) for name, value in _dtype.NAMES.items()}
    supported = {repr(value) for value in (*_dtype.ALL, *_dtype.EIGHTHS)}
    assert ours == {name: text for name, text in theirs.items() if text in supported}


@pytest.mark.parametrize("a", DTYPES)
def test_promote_types_and_can_cast_for_all_pairs(a):
    for b in DTYPES:
        (a_theirs, a_ours), (b_theirs, b_ours) = both(a), both(b)
        assert outcome(_dtype.promote_types, a_ours, b_ours) == outcome(torch.promote_types, a_theirs, b_theirs)
        assert _dtype.can_cast(a_ours, b_ours) == torch.can_cast(a_theirs, b_theirs)


def test_result_type_for_all_pairs_of_tensors():
    for a, b in itertools.product(WITH_ARRAYS, repeat=2):
        for m, n in itertools.product((0, 1), repeat=2):
            theirs = outcome(torch.result_type, torch_tensor(a, m), torch_tensor(b, n))
            assert outcome(_dtype.result_dtype, (tensor(a, m), tensor(b, n))) == theirs, (a, m, b, n)


def test_result_type_for_all_tensors_with_numbers(default):
    for name, ndim, number in itertools.product(WITH_ARRAYS, (0, 1), NUMBERS):
        theirs = outcome(torch.result_type, torch_tensor(name, ndim), number)
        assert outcome(_dtype.result_dtype, (tensor(name, ndim), number)) == theirs, (name, ndim, number)


def test_result_type_for_all_pairs_of_numbers(default):
    for a, b in itertools.product(NUMBERS, (*NUMBERS, 2**64, -(2**63) - 1)):
        assert outcome(_dtype.result_dtype, (a, b)) == outcome(torch.result_type, a, b), (a, b)
        assert outcome(_dtype.result_dtype, (b, a)) == outcome(torch.result_type, b, a), (b, a)


@pytest.mark.parametrize("number", [np.int64(3), np.float32(3), np.float64(3), np.complex128(3), np.bool_(True)])
def test_result_type_with_numpy_scalars(number):
    for name in ("bool", "int8", "float16", "float32"):
        theirs = repr(torch.result_type(torch_tensor(name, 1), number))
        if theirs != "torch.complex32":
            assert repr(_dtype.result_dtype((tensor(name, 1), number))) == theirs


def test_arithmetic_of_three_operands_promotes_like_torch():
    for a, b, c in itertools.product(("int8", "int64", "float32", "float64"), repeat=3):
        for dims in itertools.product((0, 1), repeat=3):
            names = (a, b, c)
            theirs = torch.addcmul(*[torch_tensor(name, ndim) for name, ndim in zip(names, dims)])
            ours = _dtype.result_numpy_dtype([tensor(name, ndim)._array for name, ndim in zip(names, dims)])
            assert repr(_dtype.of(ours)) == repr(theirs.dtype), (names, dims)


INFINITY = float("inf")
VALUES = [
    *(True, 0, 1, -1, 127, 128, 255, 256, -128, -129, -255, -256, 300, -300, 65535, -65535, 65536, 70000, 10**10),
    *(2**31, 2**31 - 1, -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 2**64, -(2**63) - 1, -(2**32), 2**32 - 1),
    *(0.5, -0.0, -0.5, -3.0, 127.0, 127.9, -128.9, 255.0, 255.5, 65504.0, 65520.0, 3.40282347e38, 1e300),
    *(
        INFINITY,
        -INFINITY,
        float("nan"),
        1j,
        3 + 0j,
        3 + 1j,
        300 + 0j,
        1e39j,
        complex(INFINITY, 0),
        complex(0, INFINITY),
    ),
]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_numbers_become_elements_or_overflow_as_in_fill(name):
    theirs, ours = both(name)

    def element(value):
        number = _element.convert_number(value, ours)
        return np.full(1, number, ours.numpy).item() if name != "complex32" else number

    for value in VALUES:
        expected = outcome(lambda value=value: torch.zeros(1, dtype=theirs).fill_(value).item())
        with np.errstate(over="ignore"):
            got = outcome(element, value)
        if name == "complex32" and "Error" not in expected:
            assert "Error" not in got, value  # no arrays here, so no rounding to compare
        else:
            assert got == expected, value


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_numbers_wrap_as_in_add(name):
    theirs, ours = both(name)
    for value in VALUES:
        if type(value) is int:
            expected = outcome(lambda value=value: torch.zeros(1, dtype=theirs).add(value).item())
            assert outcome(_element.wrap_number, value, ours) == expected, value


@pytest.mark.parametrize("name", DTYPES)
def test_finfo_and_iinfo(name):
    theirs, ours = both(name)
    for info in ("finfo", "iinfo"):
        expected, got = outcome(getattr(torch, info), theirs), outcome(getattr(_element, info), ours)
        assert got == expected
        if "Error" not in expected:
            a, b = getattr(torch, info)(theirs), getattr(_element, info)(ours)
            for attribute in (attribute for attribute in dir(a) if attribute[0] != "_"):
                assert getattr(b, attribute) == getattr(a, attribute)
                assert type(getattr(b, attribute)) is type(getattr(a, attribute))


def test_finfo_and_iinfo_refuse_other_arguments():
    for arguments in ((3,), ("float32",), (np.float32,)):
        assert outcome(_element.finfo, *arguments) == outcome(torch.finfo, *arguments)
        assert outcome(_element.iinfo, *arguments) == outcome(torch.iinfo, *arguments)
    assert outcome(_element.finfo) == outcome(torch.finfo)
    assert _element.finfo(_dtype.float32) == _element.finfo(_dtype.complex64) != 3


@pytest.mark.parametrize("code", ["U1", "O", ">i4", ">f8", "M8[s]", "m8[s]", "S1", "V3", "g", "G", "q", "<i4", "?"])
def test_unsupported_numpy_types(code):
    array = np.zeros(1, code)
    assert outcome(_dtype.of, array.dtype) == outcome(lambda: torch.from_numpy(array).dtype)


def test_type_names():
    for name in WITH_ARRAYS:
        theirs, ours = both(name)
        assert _dtype.TYPE_NAME[ours] == torch.zeros(1, dtype=theirs).type()


def test_setting_the_default_dtype(default):
    for value in ("int32", "complex64", "bool", "float64"):
        theirs, ours = both(value)
        assert outcome(_dtype.set_default_dtype, ours) == outcome(torch.set_default_dtype, theirs)
    for value in ("torch.float64", 3, None):
        assert outcome(_dtype.set_default_dtype, value) == outcome(torch.set_default_dtype, value)
    assert repr(_dtype.get_default_dtype()) == repr(torch.get_default_dtype())


LEGACY = [
    "torch.DoubleTensor",
    "torch.BFloat16Tensor",
    "torch.IntTensor",
    "torch.BoolTensor",
    "DoubleTensor",
    "torch.Foo",
]


@pytest.mark.parametrize(
    "value", [*LEGACY, "torch.ComplexFloatTensor", "torch.UInt16Tensor", "torch.cuda.FloatTensor", 3, None]
)
def test_setting_the_default_tensor_type(value, default):
    assert outcome(_dtype.set_default_tensor_type, value) == outcome(torch.set_default_tensor_type, value)
    assert repr(_dtype.get_default_dtype()) == repr(torch.get_default_dtype())


def test_setting_the_default_tensor_type_warns_like_torch(default):
    text = (
        r"torch\.set_default_tensor_type\(\) is deprecated as of PyTorch 2\.1, please use torch\.set_default_dtype\(\)"
    )
    torch.set_warn_always(True)
    for library in (torch, _dtype):
        with pytest.warns(UserWarning, match=text):
            library.set_default_tensor_type("torch.FloatTensor")
    torch.set_warn_always(False)


STRINGS = [
    *("cpu", "cpu:0", "cpu:1", "cuda", "cuda:127", "meta", "mps:0", "xla", "privateuseone", "cpu:01", "cpu:", "cpu:-1"),
    *("cpu:a", "cuda:1a", "cuda:1:2", "cuda:99999999999999", "", ":0", "foo", "foo:1", "CPU", " cpu", "cpu\n", "cpu_"),
]
CALLS = [
    *(((string,), {}) for string in STRINGS),
    *((args, {}) for args in [("cpu", 0), ("cpu:0", 0), ("cpu", -1), ("cuda", None), ("cpu", "0"), ("cpu", True)]),
    *((args, {}) for args in [("cpu", 1.0), ("cpu", 0, 1), (0,), (-1,), (True,), (1.5,), (None,), ()]),
    *(((), kwargs) for kwargs in [{"type": "cpu", "index": 0}, {"type": "cpu"}, {"device": "cuda:1"}, {"index": 0}]),
    *(
        ((), kwargs)
        for kwargs in [{"type": None, "index": 0}, {"type": "cpu", "foo": 1}, {"device": "cpu", "index": 0}]
    ),
    (("cuda",), {"index": 1}),
]


@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_making_a_device(call):
    args, kwargs = call
    expected = outcome(torch.device, *args, **kwargs)
    assert outcome(_device.device, *args, **kwargs) == expected
    if "Error" not in expected:
        assert str(_device.device(*args, **kwargs)) == str(torch.device(*args, **kwargs))


@pytest.mark.parametrize("name", ["cpu", "cpu:1", "cuda", "cuda:1", "xpu"])
def test_where_data_can_be_placed(name):
    def place():
        return torch.empty(1, device=name).device

    assert outcome(_device.check_device, name) == outcome(place)
