"""Functions of each element, on arrays of any shape, layout and dtype."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.ops.arrays import DTYPES, agree, arrays, names

WITHOUT_HALF = [dtype for dtype in DTYPES if dtype != "float16"]  # with a complex number it would be complex32

UNARY = names(
    """
    abs acos acosh angle asin asinh atan atanh ceil conj_physical cos cosh deg2rad exp exp2 expm1 fix floor frac
    isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not logit nan_to_num neg positive
    rad2deg reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
    """
)
BINARY = names(
    """
    add atan2 copysign div eq float_power floor_divide fmax fmin fmod ge gt hypot isclose le logaddexp
    logical_and logical_or logical_xor lt maximum minimum mul ne nextafter pow remainder rsub sub true_divide
    xlogy bitwise_and bitwise_or bitwise_xor gcd heaviside
    """
)
BINARY_NUMBERS = names(
    """
    add copysign div eq floor_divide fmod ge gt le lt mul ne pow remainder rsub sub true_divide xlogy
    bitwise_and
    """
)


@settings(max_examples=400)
@given(st.sampled_from(UNARY), arrays())
def test_functions_of_one_tensor_agree(name: str, x: np.ndarray) -> None:
    agree(lambda torch, x: getattr(torch, name)(x), x)


@settings(max_examples=500)
@given(st.sampled_from(BINARY), arrays(WITHOUT_HALF, special=False), arrays(WITHOUT_HALF, special=False))
def test_functions_of_two_tensors_agree(name: str, x: np.ndarray, y: np.ndarray) -> None:
    agree(lambda torch, x, y: getattr(torch, name)(x, y), x, y)


@settings(max_examples=300)
@given(
    st.sampled_from(BINARY_NUMBERS),
    arrays(WITHOUT_HALF, special=False),
    st.sampled_from([2, 3, -1, 1.5, -0.5, 0, True, 1 + 2j]),
)
def test_functions_of_a_tensor_and_a_number_agree(name: str, x: np.ndarray, number: complex) -> None:
    agree(lambda torch, x: getattr(torch, name)(x, number), x)


@settings(max_examples=150)
@given(arrays(WITHOUT_HALF, special=False), arrays(WITHOUT_HALF, special=False), arrays(["bool"]))
def test_where_agrees(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    agree(lambda torch, x, y, mask: torch.where(mask, x, y), x, y, mask)


@settings(max_examples=150)
@given(arrays(), st.sampled_from([None, -1, 0.5, 2]), st.sampled_from([None, 1, 1.5, -2]))
def test_clamp_agrees(x: np.ndarray, low: float | None, high: float | None) -> None:
    agree(lambda torch, x: torch.clamp(x, low, high), x)
