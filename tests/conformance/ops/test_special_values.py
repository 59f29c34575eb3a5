"""Edges of reductions, windows and special functions, at each of which a value once differed from torch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import pullback
from tests.conformance.edges import INF, NAN, distance

TINY = np.finfo(np.float64).smallest_subnormal


def both(program: Any, *arrays: Any) -> tuple[Any, Any]:
    """What a program gives on torch and on pullback, as arrays."""
    made = []
    for module in (torch, pullback):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = program(module, *[module.from_numpy(np.array(array)) for array in arrays])
        results = results if isinstance(results, (tuple, list)) else [results]
        made.append([result.numpy(force=True) for result in results])
    return made[0], made[1]


def agree(program: Any, *arrays: Any, units: float = 2) -> None:
    theirs, ours = both(program, *arrays)
    for their, our in zip(theirs, ours, strict=True):
        assert our.dtype == their.dtype
        assert our.shape == their.shape
        apart = distance(np.atleast_1d(their), np.atleast_1d(our))
        assert (apart <= units).all(), f"torch {their}, pullback {our}"


# ------------------------------------------------------------------ reductions

ROWS = [[INF, 1, 2], [1, INF, 2], [1, 2, INF], [-INF, -INF, -INF], [INF, -INF, 1], [NAN, 1, 2], [1, 2, 4]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("dim", [1, (0, 1), None])
@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_a_mean_beside_a_variance_is_nan_after_an_infinite_element(name: str, dim: Any, dtype: str) -> None:
    for rows in (ROWS, ROWS[2:3], ROWS[6:]):
        agree(lambda module, x: getattr(module, name)(x, dim=dim), np.array(rows).astype(dtype))
        agree(lambda module, x: getattr(module, name)(x, dim=dim, keepdim=True), np.array(rows).astype(dtype))


@pytest.mark.parametrize("correction", [0, 1, 3, 4])
@pytest.mark.parametrize("name", ["var", "std"])
def test_the_variance_of_complex_numbers_is_that_of_their_parts(name: str, correction: int) -> None:
    rows = np.array([[1, 2, 4], [1j, 2 + 1j, 3], [INF, 1, 2], [2, 2, 2], [1e30, 2e30, 0]], np.complex64)
    agree(lambda module, x: getattr(module, name)(x, dim=1, correction=correction), rows)
    agree(lambda module, x: getattr(module, name)(x, correction=correction), rows[1])


@pytest.mark.parametrize("order", [2, 1, INF, -INF, 0, 0.5])
def test_the_norm_of_complex_numbers_is_infinite_if_a_part_is(order: float) -> None:
    rows = np.array([[complex(NAN, INF), 1], [complex(INF, NAN), 1], [complex(1e-30, 1e-30), 0], [3 + 4j, 12]])
    agree(lambda module, x: module.linalg.vector_norm(x, order, dim=1), rows)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float64", "bool"])
def test_nansum_leaves_nan_out_before_it_converts(dtype: str) -> None:
    rows = np.array([[NAN, 1, 2], [NAN, NAN, NAN], [3, 4, 5]])
    agree(lambda module, x: module.nansum(x, 1, dtype=getattr(module, dtype)), rows)


def test_nansum_does_not_make_complex_numbers() -> None:
    for module in (torch, pullback):
        with pytest.raises(NotImplementedError, match="\"nansum_cpu\" not implemented for 'ComplexFloat'"):
            module.nansum(module.ones(2), dtype=module.complex64)


# ------------------------------------------------------------------ powers of two


@pytest.mark.parametrize("exponent", ["uint8", "int16", "int32", "int64", "float32"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
def test_ldexp_overflows_only_if_its_result_does(dtype: str, exponent: str) -> None:
    x = np.array([0.0, 1.5, -3.0, 1e-30]).astype(dtype)
    for power in (130, 100, 1):
        agree(lambda module, x, n: module.ldexp(x, n), x, np.full(4, power, exponent))
    if exponent not in ("uint8", "float32"):
        agree(lambda module, x, n: module.ldexp(x, n), x, np.full(4, -140, exponent))


def test_ldexp_reads_32_bits_of_its_exponent() -> None:
    agree(lambda module, x, n: module.ldexp(x, n), np.ones(3), np.array([2**32 + 3, 2**40, -(2**40)]))


def test_both_gradients_of_ldexp_are_found() -> None:
    def gradients(module: Any, x: Any, n: Any) -> Any:
        x.requires_grad_(), n.requires_grad_()
        return module.autograd.grad(module.ldexp(x, n).sum(), (x, n))

    agree(gradients, np.array([1, 2], np.float32), np.array([1, 3], np.float32))
    agree(gradients, np.array([1.0, 2.0]), np.array([1.0, 3.0]))


def test_ldexp_of_one_complex_number_keeps_its_precision_beside_many_integers() -> None:
    agree(lambda module, x, n: module.ldexp(x, n), np.array(1 + 2j), np.arange(3))


# ------------------------------------------------------------------ special functions


def test_the_logarithm_of_gamma_keeps_its_digits_near_its_roots_and_does_not_overflow_near_zero() -> None:
    x = np.array([1 + 1e-15, 1 - 1e-15, 2 + 1e-15, 2 - 1e-15, 1, 2, 1.1, TINY, -TINY, 1e-309])
    agree(lambda module, x: module.lgamma(x), x, units=4)
    agree(lambda module, x: module.lgamma(x[:3]), x, units=4)


def test_the_tail_of_erfc_keeps_its_digits() -> None:
    agree(lambda module, x: module.erfc(x), np.linspace(1, 26, 1001), units=4)


def test_trigamma_ends_for_large_numbers_and_has_large_numbers_for_poles() -> None:
    x = np.array([1e30, 2.0**31 + 0.5, INF, -INF, 0.25, -33.0, -0.5])
    agree(lambda module, x: module.polygamma(1, x), x, units=4)
    agree(lambda module, x: module.polygamma(1, x), x.astype(np.float32), units=8)


def test_the_airy_function_vanishes_on_the_right_and_waves_on_the_left() -> None:
    agree(lambda module, x: module.special.airy_ai(x), np.array([104.0, 1e4, 1e7, 1e30, 1e300]))
    theirs, ours = both(lambda module, x: module.special.airy_ai(x), np.array([-1e4, -12345.6, -1e5]))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["i0", "special.i1", "special.modified_bessel_i0", "special.modified_bessel_i1"])
def test_growing_bessel_functions_are_infinite_where_the_exponential_is(name: str) -> None:
    for module in (torch, pullback):
        function = module
        for part in name.split("."):
            function = getattr(function, part)
        assert function(module.tensor([88.0, 89.0])).isfinite().tolist() == [True, False]


POLYNOMIALS = [
    *[f"{shifted}chebyshev_polynomial_{kind}" for kind in "tuvw" for shifted in ("", "shifted_")],
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_polynomial_of_a_degree_that_is_no_integer_is_zero(name: str) -> None:
    x, n = np.meshgrid([0.5, 2.0, -0.25], [NAN, INF, -INF, 1e30, -3.0, 2.7])
    agree(lambda module, x, n: getattr(module.special, name)(x, n), x, n)
    agree(lambda module, x, n: getattr(module.special, name)(x, n[0, 0]), x, n)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_the_incomplete_gamma_functions_have_limits_beside_nan(name: str) -> None:
    a, x = (part.ravel() for part in np.meshgrid([NAN, INF, 0.0, -1.0, 2.0], [NAN, INF, 0.0, -1.0, 2.0]))
    agree(lambda module, a, x: getattr(module, name)(a, x), a, x, units=4)


# ------------------------------------------------------------------ windows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 14.0, 100.0, 800.0])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 64, 1001])
def test_kaiser_windows_are_computed_in_their_dtype(length: int, beta: float, dtype: str) -> None:
    for periodic in (True, False):
        agree(lambda m, p=periodic: m.kaiser_window(length, p, beta, dtype=getattr(m, dtype)), units=8)
        agree(
            lambda m, p=periodic: m.signal.windows.kaiser(length, beta=beta, sym=p, dtype=getattr(m, dtype)), units=500
        )


SIGNAL: dict[str, dict[str, Any]] = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 3.0}, "gaussian": {"std": 7.0},
    "general_hamming": {"alpha": 0.7}, "hamming": {}, "hann": {}, "nuttall": {},
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNAL)
def test_windows_of_torch_signal_are_computed_at_the_points_of_linspace(name: str) -> None:
    for length in (2, 3, 8, 101):
        for sym in (True, False):
            for dtype in ("float32", "float64"):
                theirs, ours = both(
                    lambda m, n=length, sym=sym, dtype=dtype: getattr(m.signal.windows, name)(
                        n, sym=sym, dtype=getattr(m, dtype), **SIGNAL[name]
                    )
                )
                # Differences of cosines: what is left of one unit in the last place of one.
                np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=4 * np.finfo(dtype).eps / 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int64"])
def test_linspace_rounds_where_torch_does(dtype: str) -> None:
    for low, high, steps in ((-1.0, 3.7, 11), (-16.833333, 16.5, 101), (0.0, -61.15, 13), (-0.4578, -0.04235, 115)):
        made = [m.linspace(low, high, steps, dtype=getattr(m, dtype)) for m in (torch, pullback)]
        theirs, ours = (tensor.to(m.complex128).numpy() for m, tensor in zip((torch, pullback), made))
        np.testing.assert_array_equal(ours, theirs)
