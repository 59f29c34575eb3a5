"""Casts by compiled kernels: every float16 and bfloat16, floats as integers in and out of range, narrow integers."""

import ml_dtypes
import numpy as np
import pytest

from pullback.kernels.compiled import room
from pullback.kernels.jit.pointwise import fused

pytestmark = pytest.mark.skipif(room("pointwise.loops") is None, reason="kernels are not compiled here")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALF = np.dtype(np.float16)
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


def cast(array, dtype):
    """The compiled cast; NumPy must not have done it."""
    out = np.empty(array.shape, dtype)
    assert fused.Kernels(fused.same_in).into(out, array, np.dtype(dtype))
    return out


def same_bits(made, wanted):
    """Equal to the bit, but for what kind of nan it is."""
    assert made.dtype == wanted.dtype
    nan = np.isnan(wanted.astype("d")) if wanted.dtype.kind in "fV" else np.zeros(wanted.shape, bool)
    word = f"u{wanted.itemsize}"
    different = (made.view(word) != wanted.view(word)) & ~nan
    assert not different.any(), (made[different][:5], wanted[different][:5])
    assert nan.sum() == 0 or np.isnan(made[nan].astype("d")).all()


def ties(dtype):
    """Floats at, just below and just above every number of a format and every middle between two."""
    every = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float32)
    every = np.sort(every[np.isfinite(every)])
    middles = ((every[1:].astype("d") + every[:-1].astype("d")) / 2).astype(np.float32)
    marks = np.concatenate(
        [every, middles, np.array([np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, 65519.996, 65520], "f")]
    )
    with np.errstate(invalid="ignore"):
        return np.concatenate(
            [marks, np.nextafter(marks, np.float32(np.inf)), np.nextafter(marks, np.float32(-np.inf))]
        )


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16], ids=str)
@pytest.mark.parametrize("wide", ["f", "d"])
def test_every_number_of_16_bits_is_read_as_what_it_is(dtype, wide):
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    same_bits(cast(every, wide), every.astype(wide))


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16], ids=str)
def test_floats_are_rounded_to_the_nearest_and_ties_to_even(dtype):
    x = ties(dtype)
    with np.errstate(over="ignore"):
        same_bits(cast(x, dtype), x.astype(dtype))


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16], ids=str)
def test_doubles_go_through_float32_as_in_torch(dtype):
    x = np.random.default_rng(0).standard_normal(5000) * 10.0 ** np.random.default_rng(1).integers(-9, 9, 5000)
    with np.errstate(over="ignore"):
        same_bits(cast(x, dtype), x.astype("f").astype(dtype))


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16], ids=str)
@pytest.mark.parametrize("other", [*INTEGERS, "bool"])
def test_integers_and_numbers_of_16_bits_become_each_other(dtype, other):
    x = np.random.default_rng(0).integers(0, 2 if other == "bool" else 120, 5000).astype(other)
    same_bits(cast(x, dtype), x.astype(dtype))
    same_bits(cast(x.astype(dtype), other), x)


@pytest.mark.parametrize("float", ["f", "d"])
@pytest.mark.parametrize("integer", INTEGERS)
def test_floats_become_integers_as_numpy_makes_them_even_out_of_range(float, integer):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(6000) * 10.0 ** rng.integers(-3, 22, 6000)
    x[:8] = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), -0.5]
    x = x.astype(float)
    with np.errstate(invalid="ignore"):
        same_bits(cast(x, integer), x.astype(integer))


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", [*INTEGERS, "f", "d", "bool"])
def test_integers_of_every_width_become_each_other(source, target):
    limits = np.iinfo(source)
    x = np.random.default_rng(0).integers(limits.min, limits.max, 5000, source, endpoint=True)
    x[:3] = 0, limits.min, limits.max
    same_bits(cast(x, target), x.astype(target))


@pytest.mark.parametrize("dtype", [HALF, BFLOAT16], ids=str)
@pytest.mark.parametrize(
    "op", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.less], ids=lambda f: f.__name__
)
def test_arithmetic_of_16_bits_is_rounded_once(dtype, op):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(5000).astype(dtype) * dtype.type(30) for _ in range(2))
    made = fused.Kernels(op).run((x, y), {}, None)
    if made is not None:
        same_bits(made, op(x, y))
    assert made is not None or dtype is BFLOAT16


def test_each_step_of_a_formula_in_float16_is_rounded():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(5000).astype("e") for _ in range(2))

    def formula(x, y):
        return (x * y + x) / (y * y + 1)

    made = fused.Kernels(formula).run((x, y), {}, None)
    assert made is not None
    same_bits(made, formula(x, y))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_narrow_integers_wrap_around(dtype):
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x, y = (rng.integers(limits.min, limits.max, 5000, dtype, endpoint=True) for _ in range(2))
    for op in (np.add, np.subtract, np.multiply, np.bitwise_and, np.bitwise_xor):
        made = fused.Kernels(op).run((x, y), {}, None)
        assert made is not None
        same_bits(made, op(x, y))
    assert fused.Kernels(np.maximum).run((x, y), {}, None) is None


def test_casts_of_strided_arrays():
    x = np.random.default_rng(0).standard_normal((100, 200)).astype("f")[::2, ::-1].T
    same_bits(cast(x, HALF), x.astype(HALF))
    same_bits(cast(x.astype(HALF)[:, ::3], "f"), x.astype(HALF)[:, ::3].astype("f"))
    same_bits(cast(x, "uint8"), x.astype("i4").astype("uint8"))
