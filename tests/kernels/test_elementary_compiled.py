"""exp, log, tanh and their kin: every exponent, both signs, and the special numbers, beside a wider format."""

import numpy as np
import pytest
import scipy.special

from pullback.kernels.compiled import room
from pullback.kernels.jit.pointwise.fused import Kernels

pytestmark = pytest.mark.skipif(room("pointwise.loops") is None, reason="kernels are not compiled here")

ULPS = 2.0
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0]
UNARY = ["exp", "expm1", "log", "log1p", "log2", "log10", "tanh", "erf", "sin", "cos", "sqrt"]


def patterns(dtype):
    """Numbers of every exponent: a stride over all bit patterns, and more where functions bend."""
    rng = np.random.default_rng(0)
    if dtype == np.float32:
        bits = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)
    else:
        bits = rng.integers(0, 1 << 64, 200_000, dtype=np.uint64).view(np.float64)
    near = [rng.normal(size=50_000) * 3, rng.uniform(-750, 750, 50_000), 1 + rng.normal(size=50_000) * 1e-3]
    tiny = np.array(SPECIAL + [np.finfo(dtype).smallest_subnormal, -np.finfo(dtype).smallest_subnormal])
    return np.concatenate([bits, *near, tiny]).astype(dtype)


def errors(made, truth):
    """How many units in the last place lie between a result and the truth."""
    rounded = truth.astype(made.dtype)
    with np.errstate(all="ignore"):
        distance = np.abs(made.astype(truth.dtype) - truth) / np.spacing(np.abs(rounded)).astype(truth.dtype)
    same = (made == rounded) | (np.isnan(made) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_a_function_is_right_at_every_exponent(name, dtype):
    function = getattr(np, name, None) or getattr(scipy.special, name)
    x = patterns(dtype)
    made = Kernels(function).run((x,), {}, None)
    assert made is not None and made.dtype == dtype
    wider = np.float64 if dtype == np.float32 or name == "erf" else np.longdouble
    with np.errstate(all="ignore"):
        truth = function(x.astype(wider))
    # SciPy's erf of float64 is wrong by up to 3 units itself.
    assert errors(made, truth).max() <= (4 if name == "erf" and wider == dtype else ULPS)
    zeros = (made == 0) & (truth == 0)
    assert np.array_equal(np.signbit(made[zeros]), np.signbit(truth[zeros]))


def test_powers_follow_the_rules_for_zeros_infinities_and_signs():
    numbers = np.float32([*SPECIAL, -2.0, 3.0, -3.0, 1e-40, 1e30, -1e30, 7.5, 16777217.0, -0.5, 1e-45])
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(numbers, numbers))
    made = Kernels(np.power).run((x, y), {}, None)
    with np.errstate(all="ignore"):
        truth = np.power(x.astype(np.float64), y.astype(np.float64))
    assert errors(made, truth).max() <= ULPS
    zeros = (made == 0) & (truth == 0)
    assert np.array_equal(np.signbit(made[zeros]), np.signbit(truth[zeros]))


def test_the_logarithm_of_one_plus_an_exponential_is_right_at_every_exponent():
    for dtype in (np.float32, np.float64):
        x = patterns(dtype)
        x = np.concatenate([x, np.linspace(-120, 120, 100_001).astype(dtype)])
        made = Kernels(lambda x: np.log1p(np.exp(x))).run((x,), {}, None)
        with np.errstate(all="ignore"):
            wide = x.astype(np.longdouble)
            truth = np.where(wide > 0, wide, 0) + np.log1p(np.exp(-np.abs(wide)))
            truth = np.where(np.isinf(np.exp(x)), np.inf, truth)
        assert errors(made, truth).max() <= ULPS


def test_huge_angles_are_reduced_with_all_the_bits_they_need():
    x = np.ldexp(np.random.default_rng(1).uniform(1, 2, 4096), np.arange(4096) % 1024)
    for function in (np.sin, np.cos):
        made = Kernels(function).run((x,), {}, None)
        assert errors(made, function(x.astype(np.longdouble))).max() <= ULPS
