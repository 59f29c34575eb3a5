"""The dtypes and devices by themselves."""

import copy
import pickle
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from pullback import _device, _dtype
from pullback._arrays import element as _element
from pullback._device import CPU, check_device, device
from pullback._dtype import ALL, FROM_NUMPY, FROM_TYPE_NAME, NAMES, TYPE_NAME, defaults


@pytest.fixture
def restore_defaults():
    yield
    _dtype.set_default_dtype(_dtype.float32)
    _device.set_default_device(None)


@pytest.mark.parametrize("self", ALL, ids=str)
def test_a_dtype_copies_and_pickles_to_itself(self):
    assert copy.copy(self) is self
    assert copy.deepcopy([self])[0] is self
    assert pickle.loads(pickle.dumps(self)) is self


def test_a_dtype_cannot_be_made_changed_or_subclassed():
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        _dtype.dtype()
    with pytest.raises(AttributeError, match="not writable"):
        _dtype.float32.itemsize = 3
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (_dtype.dtype,), {})


def test_aliases_are_the_same_objects_and_python_types_stay_what_they_are():
    assert _dtype.float is _dtype.float32 and _dtype.int is _dtype.int32 and _dtype.bool is _dtype.bool_
    assert NAMES["double"] is _dtype.float64 and NAMES["cfloat"] is _dtype.complex64
    assert repr(NAMES["long"]) == "torch.int64"


def test_numpy_dtypes_map_both_ways():
    for numpy, self in FROM_NUMPY.items():
        assert self.numpy == numpy and _dtype.of(numpy) is self
        assert numpy.itemsize == self.itemsize


def test_type_names_map_both_ways():
    assert TYPE_NAME[_dtype.float32] == "torch.FloatTensor"
    assert all(FROM_TYPE_NAME[name] is self for self, name in TYPE_NAME.items())


def test_importing_does_not_load_ml_dtypes(run_python):
    run_python("import sys, pullback._dtype, pullback._device; assert 'ml_dtypes' not in sys.modules")


def test_bfloat16_arrays_are_recognised():
    numpy = np.dtype(ml_dtypes.bfloat16)
    assert _dtype.of(numpy) is _dtype.bfloat16
    assert FROM_NUMPY[numpy] is _dtype.bfloat16 and _dtype.bfloat16.numpy is numpy


def test_complex32_has_no_arrays():
    with pytest.raises(NotImplementedError, match="complex64"):
        _dtype.complex32.numpy


def test_setting_the_default_dtype_reaches_hot_code_and_promotion(restore_defaults):
    ints = np.zeros(2, np.int8)
    assert _dtype.result_numpy_dtype((ints, 1.5)) == np.float32
    _dtype.set_default_dtype(_dtype.float64)
    assert defaults.dtype is _dtype.get_default_dtype() is _dtype.float64
    assert defaults.numpy == np.float64 and defaults.complex_dtype is _dtype.complex128
    assert _dtype.result_numpy_dtype((ints, 1.5)) == np.float64
    assert _dtype.result_numpy_dtype((ints, 1j)) == np.complex128


def test_the_two_forms_of_promotion_agree():
    tensor = SimpleNamespace(_array=np.zeros(3, np.float32))
    zero_dim = SimpleNamespace(_array=np.zeros((), np.float64))
    assert _dtype.result_dtype((tensor, zero_dim, 2)) is _dtype.float32
    assert _dtype.result_numpy_dtype((tensor._array, zero_dim._array, 2)) == np.float32


def test_a_numpy_scalar_is_a_number_to_users_and_a_zero_dim_array_to_kernels():
    tensor = SimpleNamespace(_array=np.zeros((), np.float32))
    assert _dtype.result_dtype((tensor, np.float64(1))) is _dtype.float32
    assert _dtype.result_numpy_dtype((tensor._array, np.float64(1))) == np.float64


def test_numbers_wrap_to_the_width_of_an_integer_dtype():
    assert _element.wrap_number(300, _dtype.int8) == 44
    assert _element.wrap_number(-300, _dtype.uint8) == 212
    assert _element.wrap_number(2**63, _dtype.int64) == -(2**63)


def test_converted_numbers_are_accepted_by_numpy():
    assert np.full(1, _element.convert_number(-1, _dtype.uint64), np.uint64)[0] == 2**64 - 1
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        _element.convert_number(300, _dtype.int8)


def test_a_device_is_one_object_and_pickles_to_itself():
    assert device("cpu") is CPU and device(CPU) is CPU
    for one in (CPU, device("cuda:1")):
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one
    assert {device("cuda", 1): 1}[device("cuda:1")] == 1
    assert CPU != "cpu" and str(device("cuda:1")) == "cuda:1"


def test_data_stays_on_the_cpu():
    assert check_device("cpu:1") is check_device(None) is check_device(device("cpu", 0)) is CPU
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        check_device("cuda:0")
    with pytest.raises(NotImplementedError, match="'meta'"):
        check_device("meta")


def test_a_device_block_sets_the_default_and_puts_it_back(restore_defaults):
    with device("meta") as inner, device("cpu:0"):
        assert inner == device("meta")
        assert _device.get_default_device() == device("cpu:0")
    assert _device.get_default_device() is CPU
    _device.set_default_device("cuda")
    with pytest.raises(AssertionError, match="CUDA"):
        check_device()


@pytest.mark.skipif(not hasattr(ml_dtypes, "complex32"), reason="older ml_dtypes have no complex32")
def test_complex32_says_once_that_it_is_experimental(run_python):
    code = (
        "import warnings, pullback as torch\n"
        "with warnings.catch_warnings(record=True) as shown:\n"
        "    warnings.simplefilter('always')\n"
        "    torch.zeros(2, dtype=torch.complex32), torch.zeros(2, dtype=torch.complex32)\n"
        "print([str(w.message)[:35] for w in shown])"
    )
    assert run_python(code).strip() == "['ComplexHalf support is experimental']"
