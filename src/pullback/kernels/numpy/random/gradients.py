"""How a drawn gamma or Dirichlet number moves with its parameters: implicit reparametrization gradients.

A number x drawn from a distribution with cdf F and density f moves with a parameter a by -(dF/da) / f, as the
probability below it stays. Neither is elementary here: as in torch, each region of the parameters has an approximation
of its own, a Taylor series, a saddle point expansion or a fitted rational function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._runtime.building import loaded
from pullback.kernels.numpy.random.draws import FLOAT_AND_DOUBLE, require

# Gamma: numerator and denominator are cubic in log alpha, their coefficients quadratic in log (x / alpha).
_GAMMA_FIT = np.array([
    [[0.16009398, -0.094634809, 0.025146376, -0.0030648343],
     [1, 0.32668115, 0.10406089, 0.0014179084]],
    [[0.53487893, 0.1298071, 0.065735949, -0.0015649758],
     [0.16639465, 0.020070113, -0.0035938915, -0.00058392623]],
    [[0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
     [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07]],
])  # fmt: skip

# Beta: numerator and denominator, by powers of log x, of log (alpha / x) and of what is left of log total.
_BETA_FIT = np.array([
    [
        [[1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
         [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
         [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013]],
        [[0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
         [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
         [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05]],
        [[-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
         [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
         [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05]],
    ],
    [
        [[1, -0.02924021934, -0.04438342661, 0.007285809825],
         [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
         [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149]],
        [[0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
         [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
         [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05]],
        [[0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
         [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
         [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06]],
    ],
])  # fmt: skip

Region = tuple[Any, Callable[..., np.ndarray]]


def _by_region(regions: list[Region], arrays: list[np.ndarray]) -> np.ndarray:
    """Compute each element by the function of the first region it lies in; the last region has the rest."""
    result = np.empty(arrays[0].shape, arrays[0].dtype)
    left = np.ones(result.shape, bool)
    for inside, function in regions:
        chosen = left & inside
        if chosen.any():
            result[chosen] = function(*[array[chosen] for array in arrays])
        left &= ~chosen
    return result


def _digamma(x: np.ndarray) -> np.ndarray:
    return loaded("scipy.special").psi(x.astype(np.float64)).astype(x.dtype)  # type: ignore[no-any-return]


def _cubic(x: np.ndarray, c: Any) -> np.ndarray:
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]))  # type: ignore[no-any-return]


# ------------------------------------------------------------------ gamma


def standard_gamma_grad(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative of standard gamma numbers `x` by their shapes `alpha`."""
    require("_standard_gamma_grad_cpu", alpha.dtype, FLOAT_AND_DOUBLE)
    alpha, x = np.broadcast_arrays(alpha, x)
    wide = [alpha.astype(np.float64), x.astype(np.float64)]
    near = (0.9 * wide[0] <= wide[1]) & (wide[1] <= 1.1 * wide[0])
    regions: list[Region] = [
        (wide[1] < 0.8, _gamma_series),
        ((wide[0] > 8) & near, _gamma_near_mean),
        (wide[0] > 8, _gamma_saddle_point),
        (True, _gamma_fit),
    ]
    return _by_region(regions, wide).astype(alpha.dtype)


def _gamma_series(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """For small x, six terms of the series of the incomplete gamma function and of its derivative."""
    term, place = np.ones_like(x), alpha.copy()
    value, slope = term / place, term / place**2
    for i in range(1, 6):
        term = term * -x / i
        place = place + 1
        value, slope = value + term / place, slope + term / place**2
    power = x**alpha
    density = x ** (alpha - 1) * np.exp(-x)
    by_alpha = (np.log(x) - _digamma(alpha)) * (power * value) - power * slope
    result = -by_alpha / density
    return np.where(np.isnan(result), 0.0, result)


def _gamma_near_mean(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """For large alpha, the saddle point expansion around its removable singularity x = alpha."""
    stirling = 1 + 24 * alpha * (1 + 12 * alpha)
    series = 1440 * alpha**2 + 6 * x * (53 - 120 * x) - 65 * x**2 / alpha + alpha * (107 + 3600 * x)
    return stirling * series / (1244160 * alpha**4)  # type: ignore[no-any-return]


def _gamma_saddle_point(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """For large alpha, Rice's saddle point expansion."""
    scale, distance = np.sqrt(8 * alpha), alpha - x
    log_ratio = np.log(x / alpha)
    bend = (-distance - alpha * log_ratio) ** -1.5
    slope = scale / distance + np.where(x < alpha, -bend, bend)
    inner = log_ratio * slope - np.sqrt(2 / alpha) * (alpha + x) / distance**2
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return -stirling * x * inner / scale  # type: ignore[no-any-return]


def _gamma_fit(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """In between, a rational function of log (x / alpha) and log alpha."""
    u, v = np.log(x / alpha), np.log(alpha)
    constant, linear, square = (row[..., None] for row in _GAMMA_FIT)
    coefficients = constant + u * (linear + u * square)
    return np.exp(_cubic(v, coefficients[0]) / _cubic(v, coefficients[1]))  # type: ignore[no-any-return]


# ------------------------------------------------------------------ Dirichlet


def dirichlet_grad(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The derivatives of Dirichlet numbers `x` by their own concentrations `alpha`, over 1 - x.

    A component of a Dirichlet vector is a Beta number of alpha and total - alpha.
    """
    require("_dirichlet_grad_cpu", x.dtype, FLOAT_AND_DOUBLE)
    x, alpha, total = np.broadcast_arrays(x, alpha, total)
    boundary = total * x * (1 - x)
    regions: list[Region] = [
        ((x <= 0.5) & (boundary < 2.5), lambda x, a, t: _beta_series(x, a, t - a)),
        ((x >= 0.5) & (boundary < 0.75), lambda x, a, t: -_beta_series_of_other(1 - x, t - a, a)),
        ((alpha > 6) & (total - alpha > 6), _beta_saddle_point),
        (True, _beta_fit),
    ]
    return _by_region(regions, [x, alpha, total])


def _beta_series(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """For x near zero, the series of the derivative by alpha."""
    factor = _digamma(alpha) - _digamma(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = term / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term = term * (i - beta) * x / i
        series = series + term / (alpha + i) * (factor + 1 / (alpha + i))
    result = x * (1 - x) ** -beta * series
    return np.where(np.isnan(result), 0, result)


def _beta_series_of_other(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """For x near zero, the series of the derivative by beta."""
    factor = _digamma(alpha + beta) - _digamma(beta)
    term, product, slope = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        term = term * -x / i
        slope = slope * (beta - i) + product
        product = product * (beta - i)
        series = series + term / (alpha + i) * (slope + factor * product)
    result = -((1 - x) ** (1 - beta)) * series
    return np.where(np.isnan(result), 0, result)


def _beta_saddle_point(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """For two large concentrations, Rice's saddle point expansion, and a polynomial at its singularity x = mean."""
    x, a, t = (array.astype(np.float64) for array in (x, alpha, total))
    b = t - a
    mean, std = a / t, np.sqrt(a * b / (t + 1)) / t
    near = (mean - 0.1 * std <= x) & (x <= mean + 0.1 * std)
    return np.where(near, _beta_near_mean(x, a, b, t), _beta_far(x, a, b, t, mean))


def _beta_near_mean(x: np.ndarray, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    fourth = 8 * (1 - x) * (135 * b - 11)
    third = (453 + 1620 * b * (1 - x) - 455 * x) * b + a * fourth
    second = 3 * (59 + 180 * b - 90 * x) * b**2 + a * third
    first = (43 + 20 * (16 + 27 * b) * x) * b**3 + a * second
    polynomial = 47 * x * b**4 + a * first
    above = (1 + 12 * a) * (1 + 12 * b) / t**2
    return above / (1 - x) * polynomial / (12960 * a**3 * b**2 * (1 + 12 * t))  # type: ignore[no-any-return]


def _beta_far(x: np.ndarray, a: np.ndarray, b: np.ndarray, t: np.ndarray, mean: np.ndarray) -> np.ndarray:
    def stirling(n: np.ndarray) -> np.ndarray:
        return 1 + 1 / (12 * n) + 1 / (288 * n * n)  # type: ignore[no-any-return]

    distance = a * (x - 1) + b * x
    top = 2 * a**2 * (x - 1) + a * b * (x - 1) - x * b**2
    first = top / (np.sqrt(2 * a / b) * t**1.5 * distance**2)
    log_a, log_b = np.log(a / (t * x)), np.log(b / (t * (1 - x)))
    bend = (b * log_b + a * log_a) ** -1.5
    second = 0.5 * log_a * (np.sqrt(8 * a * b / t) / distance + np.where(x < mean, bend, -bend))
    scale = -x / np.sqrt(2 * a * b / t)
    return stirling(a) * stirling(b) / stirling(t) * scale * (first + second)  # type: ignore[no-any-return]


def _beta_fit(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """In between, an approximation by digamma functions and a rational correction of it."""
    x, a, t = (array.astype(np.float64) for array in (x, alpha, total))
    log_x = np.log(x)
    log_ratio = np.log(a) - log_x
    rest = np.log(t) - log_ratio
    powers = [(1.0, log_x, log_x**2), (1.0, log_ratio, log_ratio**2)]
    above, below = (
        sum(powers[0][i] * powers[1][j] * _cubic(rest, fit[i][j]) for i in range(3) for j in range(3))
        for fit in _BETA_FIT
    )
    return above / below * x * (_digamma(t) - _digamma(a)) / (t - a)  # type: ignore[no-any-return]
