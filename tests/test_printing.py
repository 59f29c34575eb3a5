"""Printed texts, written out: what a reader of the screen sees."""

import math

import ml_dtypes
import numpy as np
import pytest

import pullback
from pullback import printing
from pullback.autograd import forward_ad


@pytest.fixture(autouse=True)
def _default_settings():
    dtype = pullback.get_default_dtype()
    pullback.set_printoptions(profile="default")
    yield
    pullback.set_printoptions(profile="default")
    pullback.set_default_dtype(dtype)


def shown(values, dtype="float32"):
    return repr(pullback.from_numpy(np.array(values, dtype=dtype)))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 2, -3], "tensor([ 1.,  2., -3.])"),
        ([1.5, 2, -3], "tensor([ 1.5000,  2.0000, -3.0000])"),
        (3.14159, "tensor(3.1416)"),
        (2, "tensor(2.)"),
        (-0.0, "tensor(-0.)"),
        ([0, math.nan, math.inf, -math.inf], "tensor([0., nan, inf, -inf])"),
        ([1.5, math.nan, -math.inf], "tensor([1.5000,    nan,   -inf])"),
        ([[1, 2], [3, 4]], "tensor([[1., 2.],\n        [3., 4.]])"),
        ([[[1], [2]], [[3], [4]]], "tensor([[[1.],\n         [2.]],\n\n        [[3.],\n         [4.]]])"),
    ],
)
def test_floats_are_written_at_one_width(values, text):
    assert shown(values) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 1000], "tensor([   1., 1000.])"),
        ([1, 1001], "tensor([1.0000e+00, 1.0010e+03])"),
        ([1e8], "tensor([100000000.])"),
        ([2e8], "tensor([2.0000e+08])"),
        ([0.5, 500], "tensor([  0.5000, 500.0000])"),
        ([0.5, 501], "tensor([5.0000e-01, 5.0100e+02])"),
        ([1e-4], "tensor([0.0001])"),
        ([9e-5, 0], "tensor([9.0000e-05, 0.0000e+00])"),
    ],
)
def test_numbers_far_apart_or_extreme_are_written_in_scientific_notation(values, text):
    assert shown(values, "float64").replace(", dtype=torch.float64", "") == text


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([1, -20], "int64", "tensor([  1, -20])"),
        ([1, -20], "int32", "tensor([  1, -20], dtype=torch.int32)"),
        ([7], "uint8", "tensor([7], dtype=torch.uint8)"),
        ([65535], "uint16", "tensor([65535], dtype=torch.uint16)"),
        ([2**64 - 1], "uint64", "tensor([18446744073709551615], dtype=torch.uint64)"),
        ([True, False], "bool", "tensor([ True, False])"),
        (True, "bool", "tensor(True)"),
        (3, "int64", "tensor(3)"),
        ([1.5], "float16", "tensor([1.5000], dtype=torch.float16)"),
        ([1.5], "float64", "tensor([1.5000], dtype=torch.float64)"),
        ([1 + 2j, -1j], "complex64", "tensor([1.+2.j, -0.-1.j])"),
        ([1.5 + 10j], "complex128", "tensor([1.5000+10.j], dtype=torch.complex128)"),
        ([complex(0.25, math.nan)], "complex64", "tensor([0.2500+nanj])"),
    ],
)
def test_the_dtype_is_named_unless_the_numbers_tell_it(values, dtype, text):
    assert shown(values, dtype) == text


def test_bfloat16_is_written_like_any_float():
    assert shown([1, 2.5], ml_dtypes.bfloat16) == "tensor([1.0000, 2.5000], dtype=torch.bfloat16)"


def test_the_default_dtype_decides_which_dtype_goes_unsaid():
    pullback.set_default_dtype(pullback.float64)
    assert shown([1], "float64") == "tensor([1.])"
    assert shown([1], "float32") == "tensor([1.], dtype=torch.float32)"
    assert shown([1], "complex128") == "tensor([1.+0.j])"
    assert shown([1], "complex64") == "tensor([1.+0.j], dtype=torch.complex64)"


def test_an_empty_tensor_tells_its_size_and_dtype():
    assert shown(np.empty(0)) == "tensor([])"
    assert shown(np.empty((0, 3))) == "tensor([], size=(0, 3))"
    assert shown(np.empty((2, 0)), "int64") == "tensor([], size=(2, 0), dtype=torch.int64)"


def test_long_rows_are_broken_at_the_line_width():
    lines = shown(np.arange(30)).split("\n")
    assert lines[0] == "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,"
    assert lines[2] == "        28., 29.])"


def test_more_elements_than_the_threshold_are_summarised():
    assert shown(np.arange(1001), "int64") == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    pullback.set_printoptions(threshold=5, edgeitems=1)
    assert shown(np.arange(9).reshape(3, 3), "int64") == "tensor([[0,  ..., 2],\n        ...,\n        [6,  ..., 8]])"


def test_without_edge_items_the_size_is_told_instead():
    pullback.set_printoptions(threshold=3, edgeitems=0)
    assert shown([1, 2, 3, 4]) == "tensor([...], size=(4,))"
    assert shown([1, 2]) == "tensor([1., 2.], size=(2,))"


def test_print_options_change_only_what_they_name_except_sci_mode():
    pullback.set_printoptions(precision=2, sci_mode=True)
    assert shown([1.5]) == "tensor([1.50e+00])"
    pullback.set_printoptions(linewidth=60)
    assert printing.get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 60,
        "sci_mode": None,
    }
    pullback.set_printoptions(profile="short", precision=7)
    assert printing.get_printoptions() == {
        "precision": 7,
        "threshold": 1000,
        "edgeitems": 2,
        "linewidth": 80,
        "sci_mode": None,
    }
    pullback.set_printoptions(profile="full")
    assert printing.get_printoptions()["threshold"] == math.inf


def test_printoptions_restores_the_settings_after_an_error():
    with pytest.raises(KeyError), printing.printoptions(precision=1, sci_mode=False):
        assert shown([1e-7]) == "tensor([0.0])"
        raise KeyError
    assert shown([1e-7]) == "tensor([1.0000e-07])"


def ones(*shape):
    return pullback.from_numpy(np.ones(shape, dtype=np.float32))


def test_what_a_tensor_needs_for_gradients_is_told():
    x = ones(2).requires_grad_()
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"


def test_a_suffix_that_does_not_fit_starts_a_line():
    x = pullback.from_numpy(np.arange(14.0)).requires_grad_()
    assert repr(x) == (
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.],\n"
        "       dtype=torch.float64, requires_grad=True)"
    )


def test_a_tangent_is_told_and_a_scalar_one_is_a_number():
    with forward_ad.dual_level():
        assert repr(forward_ad.make_dual(ones(2), ones(2))) == "tensor([1., 1.], tangent=tensor([1., 1.]))"
        assert repr(forward_ad.make_dual(ones(), ones())) == "tensor(1., tangent=1.0)"


class Measured(pullback.Tensor):
    pass


class Weight(pullback.nn.Parameter):
    pass


def test_a_subclass_is_written_under_its_own_name():
    assert repr(ones(2, 1).as_subclass(Measured)) == "Measured([[1.],\n          [1.]])"


def test_a_parameter_says_so():
    assert repr(pullback.nn.Parameter(ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(Weight(ones(1))) == "Parameter containing:\nParameter(Weight([1.], requires_grad=True))"


def test_other_contents_can_stand_for_the_numbers():
    x = ones(2).requires_grad_()
    assert printing.tensor_repr(x, tensor_contents="...") == "tensor(..., requires_grad=True)"


def test_a_tensor_without_dimensions_formats_as_its_number():
    pi = pullback.from_numpy(np.array(3.14159))
    assert f"{pi:.3f}" == "3.142"
    assert f"{pi}" == "3.14159"
    assert f"{pi!r}" == "tensor(3.1416, dtype=torch.float64)"
    assert f"{pullback.from_numpy(np.array(True))}" == "True"


def test_other_tensors_take_no_format_spec():
    assert f"{ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Tensor.__format__$"):
        format(ones(2), ".3f")
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Parameter.__format__$"):
        format(pullback.nn.Parameter(ones()), ".3f")
