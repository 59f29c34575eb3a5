"""fmod, remainder and floor_divide by compiled kernels: every bit that NumPy gives, whatever the quotient."""

import numpy as np
import pytest

from pullback.kernels.compiled import room
from pullback.kernels.jit.pointwise.fused import Kernels

pytestmark = pytest.mark.skipif(room("pointwise.loops") is None, reason="kernels are not compiled here")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 0.1, -0.1, np.inf, -np.inf, np.nan, 1e-45, 5e-324, 1e30, 3.4e38, 16777216.0]


def agree(ufunc, x, y):
    """The same numbers with the same signs; nan where NumPy has one."""
    with np.errstate(all="ignore"):
        made, wanted = Kernels(ufunc).run((x, y), {}, None), ufunc(x, y)
    assert made is not None and made.dtype == wanted.dtype
    word = f"i{wanted.itemsize}"
    wrong = (made.view(word) != wanted.view(word)) & ~(np.isnan(made) & np.isnan(wanted))
    assert not wrong.any(), (x[wrong][:5], y[wrong][:5], made[wrong][:5], wanted[wrong][:5])


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("ufunc", [np.fmod, np.remainder, np.floor_divide], ids=lambda f: f.__name__)
def test_quotients_of_every_size_leave_what_numpy_leaves(ufunc, dtype):
    rng = np.random.default_rng(0)
    for spread in (0, 1, 3, 7, 20, 37 if dtype == "f" else 300):
        x, y = (rng.standard_normal(20000) * 10.0 ** rng.uniform(-spread, spread, 20000) for _ in range(2))
        agree(ufunc, x.astype(dtype), y.astype(dtype))


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("ufunc", [np.fmod, np.remainder, np.floor_divide], ids=lambda f: f.__name__)
def test_multiples_and_their_neighbours(ufunc, dtype):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(20000).astype(dtype)
    x = (y * rng.integers(-4000, 4000, 20000)).astype(dtype)
    for near in (x, np.nextafter(x, dtype_of(dtype, np.inf)), np.nextafter(x, dtype_of(dtype, -np.inf))):
        agree(ufunc, near, y)
        agree(ufunc, near, np.full_like(y, 0.1))


def dtype_of(dtype, number):
    """A number of a dtype."""
    return np.dtype(dtype).type(number)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("ufunc", [np.fmod, np.remainder, np.floor_divide], ids=lambda f: f.__name__)
def test_zeros_infinities_and_nan(ufunc, dtype):
    x, y = (a.ravel() for a in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    agree(ufunc, x, y)
