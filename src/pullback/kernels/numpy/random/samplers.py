"""The distributions that draw a number of uniforms not known beforehand: Poisson, binomial, gamma, Dirichlet.

See note: random.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pullback._arrays.kinds import answered
from pullback._thresholds import FEW_SAMPLES
from pullback.kernels.numpy.random.draws import (
    FLOAT_AND_DOUBLE,
    PIECE,
    cast,
    libm,
    require,
    undrawn_like,
    unit_double_list,
    unit_doubles,
)
from pullback.kernels.numpy.random.engine import Engine

# float constants of torch's source that are not exact.
_THIRD = float(np.float32(1) / np.float32(3))
_SQUEEZE = float(np.float32(0.0331))


class _Uniforms:
    """Uniform doubles one at a time, drawn from the engine in batches; `close` gives back the ones not used.

    A batch never reaches into the next block of the engine, so that giving back is a matter of moving its place.
    """

    __slots__ = ("engine", "index", "values")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.values: list[float] = []
        self.index = 0

    def __call__(self) -> float:
        index = self.index
        if index == len(self.values):
            # A pair that straddles two blocks comes alone.
            size = max(1, min(self.engine.ready() // 2, 4 + 2 * len(self.values)))
            self.values = unit_double_list(self.engine, size)
            index = 0
        self.index = index + 1
        return self.values[index]

    def close(self) -> None:
        self.engine.unread(2 * (len(self.values) - self.index))
        self.values, self.index = [], 0


@answered(meta=undrawn_like)
def poisson(engine: Engine, rate: np.ndarray) -> np.ndarray:
    """Draw Poisson counts with the given rates."""
    require("poisson_cpu", rate.dtype)
    if not (rate >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    rates = rate.astype(np.float64).ravel()
    # A rate of 0 draws nothing.
    drawing = rates[rates > 0]
    if len(drawing) > FEW_SAMPLES and (drawing < 10).all():
        drawn = _products(engine, drawing.tolist())
    elif len(drawing) > FEW_SAMPLES and (drawing == drawing[0]).all():
        constants = _poisson_constants(float(drawing[0]))
        drawn = _accepted(engine, len(drawing), lambda u, v: _poisson_trials(u, v, *constants))
    else:
        uniform = _Uniforms(engine)
        drawn = [_poisson(r, uniform) for r in drawing.tolist()]
        uniform.close()
    counts = np.zeros(rates.size, np.int64)
    counts[rates > 0] = drawn
    return cast(counts, rate.dtype).reshape(rate.shape)


def _products(engine: Engine, rates: list[float]) -> list[int]:
    """Count, for each rate in turn, the factors until a product of uniforms falls to exp(-rate)."""
    limits = iter([math.exp(-rate) for rate in rates])
    limit, product, count = next(limits, 0.0), 1.0, 0
    counts: list[int] = []
    while len(counts) < len(rates):
        # Every count that is missing takes at least one more uniform: that many are drawn at once.
        for u in unit_doubles(engine, min(len(rates) - len(counts), PIECE)).tolist():
            product *= u
            if product > limit:
                count += 1
            else:
                counts.append(count)
                limit, product, count = next(limits, 0.0), 1.0, 0
    return counts


def _accepted(engine: Engine, n: int, trials: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Repeat trials of two uniforms each until `n` are accepted; `trials` returns the accepted values in order."""
    out = np.empty(n)
    done = 0
    while done < n:
        # Never more trials than values missing: none is drawn in vain.
        u = unit_doubles(engine, 2 * min(n - done, PIECE)).reshape(-1, 2)
        values = trials(u[:, 0] - 0.5, u[:, 1])
        out[done : done + len(values)] = values
        done += len(values)
    return out


def _poisson_constants(rate: float) -> tuple[float, float, float, float, float, float]:
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    return rate, math.log(rate), a, b, math.log(1.1239 + 1.1328 / (b - 3.4)), 0.9277 - 3.6224 / (b - 2)


def _poisson(rate: float, uniform: Callable[[], float]) -> int:
    if rate < 10:
        limit, product, count = math.exp(-rate), uniform(), 0
        while product > limit:
            product *= uniform()
            count += 1
        return count
    # Transformed rejection: Hörmann, 1993.
    rate, log_rate, a, b, log_inverse_alpha, inside = _poisson_constants(rate)
    while True:
        u = uniform() - 0.5
        v = uniform()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        place = (2 * a / us + b) * u + rate + 0.43
        # Out of int64's range, C++ gives its smallest.
        k = math.floor(place) if abs(place) < 2.0**63 else -(2**63)
        if us >= 0.07 and v <= inside:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        log_v = math.log(v) if v else -math.inf
        if log_v + log_inverse_alpha - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return k


def _poisson_trials(
    u: np.ndarray,
    v: np.ndarray,
    rate: float,
    log_rate: float,
    a: float,
    b: float,
    log_inverse_alpha: float,
    inside: float,
) -> np.ndarray:
    """Do what `_poisson` does to many pairs of uniforms for one rate."""
    us = 0.5 - np.abs(u)
    place = (2 * a / us + b) * u + rate + 0.43
    k = np.where(np.abs(place) < 2.0**63, np.floor(place), -(2.0**63))
    accepted = (us >= 0.07) & (v <= inside)
    unsure = np.flatnonzero(~accepted & (k >= 0) & ((us >= 0.013) | (v <= us)))
    log_v = np.log(v[unsure]) + log_inverse_alpha - np.log(a / (us[unsure] * us[unsure]) + b)
    accepted[unsure] = log_v <= -rate + k[unsure] * log_rate - libm(math.lgamma, k[unsure] + 1.0)
    return k[accepted]


@answered(meta=undrawn_like)
def binomial(engine: Engine, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """Draw numbers of successes among `count` tries of probability `prob`; the two have one dtype and broadcast."""
    require("binomial_cpu", count.dtype, FLOAT_AND_DOUBLE)
    count, prob = np.broadcast_arrays(count, prob)
    single = np.float32 if count.dtype == np.float32 else float
    counts, probs = count.ravel().tolist(), prob.ravel().tolist()
    if len(counts) > FEW_SAMPLES and _all_equal(counts) and _all_equal(probs):
        c, p = single(counts[0]), single(probs[0])
        tries = p if p <= 0.5 else type(p)(1.0 - p)
        if c > 0 and 0 < p < 1 and c * tries >= 10:
            constants = _rejection_constants(c, tries)
            values = _accepted(engine, len(counts), lambda u, v: _rejection_trials(u, v, *constants))
            return (values if p <= 0.5 else counts[0] - values).astype(count.dtype).reshape(count.shape)
    uniform = _Uniforms(engine)
    values = [_binomial(single(c), single(p), uniform) for c, p in zip(counts, probs, strict=True)]
    uniform.close()
    return np.array(values, count.dtype).reshape(count.shape)


def _all_equal(values: list[float]) -> bool:
    return values.count(values[0]) == len(values)


def _binomial(count, prob, uniform: Callable[[], float]) -> float:
    # count and prob are float32 scalars or Python floats, and the arithmetic among them is of that width, as in torch.
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return float(count)
    if prob <= 0.5:
        sample = _rejection if count * prob >= 10 else _inversion
        return sample(count, prob, uniform)
    if prob > 0.5:
        rest = type(prob)(1.0 - prob)
        sample = _rejection if count * rest >= 10 else _inversion
        return float(count) - sample(count, rest, uniform)
    return math.nan


def _inversion(count, prob, uniform: Callable[[], float]) -> float:
    """Add up waiting times until they pass `count`."""
    log_fail = float(type(prob)(math.log1p(-float(prob))))
    total, successes, count = 0.0, 0, float(count)
    while True:
        u = uniform()
        total += math.ceil(math.log(u) / log_fail) if u else math.inf
        if total > count:
            return float(successes)
        successes += 1


_TAIL = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211)
_TAIL += (0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def _stirling_tail(k: float) -> float:
    if k < len(_TAIL):
        return _TAIL[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _rejection_constants(count, prob) -> tuple[float, float, float, float, float, float, float, float, float]:
    one = type(prob)(1)
    fail = one - prob
    deviation = float(np.sqrt(count * prob * fail))
    m = float(math.floor((count + one) * prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * float(prob)
    alpha = (2.83 + 5.1 / b) * deviation
    return (
        float(count),
        float(count + one),
        float(prob / fail),
        m,
        a,
        b,
        float(count * prob) + 0.5,
        0.92 - 4.2 / b,
        alpha,
    )


def _rejection(count, prob, uniform: Callable[[], float]) -> float:
    """Transformed rejection: Hörmann's BTRS, 1993."""
    n, upper, ratio, m, a, b, c, inside, alpha = _rejection_constants(count, prob)
    while True:
        u = uniform() - 0.5
        v = uniform()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = float(math.floor((2 * a / us + b) * u + c))
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= inside:
            return k
        v = v * alpha / (a / (us * us) + b)
        if (math.log(v) if v else -math.inf) <= _rejection_bound(k, n, upper, ratio, m):
            return k


def _rejection_bound(k: float, n: float, upper: float, ratio: float, m: float) -> float:
    return (
        (m + 0.5) * math.log((m + 1) / (ratio * (n - m + 1)))
        + upper * math.log((n - m + 1) / (n - k + 1))
        + (k + 0.5) * math.log(ratio * (n - k + 1) / (k + 1))
        + _stirling_tail(m)
        + _stirling_tail(n - m)
        - _stirling_tail(k)
        - _stirling_tail(n - k)
    )


def _rejection_trials(
    u: np.ndarray,
    v: np.ndarray,
    n: float,
    upper: float,
    ratio: float,
    m: float,
    a: float,
    b: float,
    c: float,
    inside: float,
    alpha: float,
) -> np.ndarray:
    """Do what `_rejection` does to many pairs of uniforms for one count and probability."""
    us = 0.5 - np.abs(u)
    k = np.floor((2 * a / us + b) * u + c)
    possible = (k >= 0) & (k <= n)
    accepted = possible & (us >= 0.07) & (v <= inside)
    unsure = np.flatnonzero(possible & ~accepted)
    log_v = np.log(v[unsure] * alpha / (a / (us[unsure] * us[unsure]) + b))
    # Counts repeat: one bound for each.
    different, which = np.unique(k[unsure], return_inverse=True)
    bounds = np.array([_rejection_bound(one, n, upper, ratio, m) for one in different.tolist()])
    accepted[unsure] = log_v <= bounds[which]
    return k[accepted]


@answered(meta=undrawn_like)
def standard_gamma(engine: Engine, alpha: np.ndarray) -> np.ndarray:
    """Draw gamma numbers of shape `alpha` and scale 1."""
    require("gamma_cpu", alpha.dtype, FLOAT_AND_DOUBLE)
    return _gammas(engine, alpha, alpha.dtype)


@answered(meta=undrawn_like)
def dirichlet(engine: Engine, alpha: np.ndarray) -> np.ndarray:
    """Draw points of the simplex over the last dimension, with concentrations `alpha`."""
    require("dirichlet", alpha.dtype, FLOAT_AND_DOUBLE)
    gammas = _gammas(engine, alpha, np.dtype(np.float64))
    shares = (gammas / gammas.sum(-1, keepdims=True)).astype(alpha.dtype)
    one = alpha.dtype.type(1)
    return np.clip(shares, np.finfo(alpha.dtype).tiny, np.nextafter(one, alpha.dtype.type(0)))


def _gammas(engine: Engine, alpha: np.ndarray, dtype: np.dtype) -> np.ndarray:
    # The arithmetic on alpha itself has the width of `dtype`, all that follows is in double.
    alphas = alpha.astype(dtype).ravel()
    small = alphas < 1
    d = (alphas + small.astype(dtype) - dtype.type(_THIRD)).astype(np.float64)
    c = 1.0 / np.sqrt(9.0 * d)
    powers = np.where(small, dtype.type(1) / alphas, 0).astype(np.float64)
    uniform = _Uniforms(engine)
    rows = zip(alphas.tolist(), powers.tolist(), d.tolist(), c.tolist(), strict=True)
    result = np.array([_gamma(*row, uniform) for row in rows], dtype).reshape(alpha.shape)
    uniform.close()
    # NaN, from a negative alpha, becomes the smallest number too.
    return np.fmax(result, np.finfo(dtype).tiny)


def _gamma(alpha: float, power: float, d: float, c: float, uniform: _Uniforms) -> float:
    """Marsaglia and Tsang, 2000; an alpha below 1 is drawn as alpha + 1 and scaled."""
    if alpha == 0:
        return 0.0
    scale = _power(1 - uniform(), power) if alpha < 1 else 1.0
    while True:
        while True:
            x = _normal(uniform)
            y = 1.0 + c * x
            if not y <= 0:
                break
        v = y * y * y
        u = 1 - uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def _normal(uniform: _Uniforms) -> float:
    """Draw one normal number, or take the one the engine kept."""
    engine = uniform.engine
    kept = engine.next_double_normal_sample
    if kept is not None:
        engine.next_double_normal_sample = None
        return kept
    theta = 2.0 * math.pi * uniform()
    radius = math.sqrt(-2.0 * math.log1p(-uniform()))
    engine.next_double_normal_sample = radius * math.sin(theta)
    return radius * math.cos(theta)
