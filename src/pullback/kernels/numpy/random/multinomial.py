"""Drawing category numbers by weight, with and without replacement.

See note: random.
"""

from __future__ import annotations

import numpy as np

from pullback._arrays.kinds import answered
from pullback._dtype import FROM_NUMPY
from pullback.kernels.numpy.random.draws import DIGITS, PIECE, fill, fill_order, log1p, unit_doubles
from pullback.kernels.numpy.random.engine import Engine


def undrawn(engine: Engine, prob: np.ndarray, num_samples: int, replacement: bool = False) -> np.ndarray:
    """The result where nothing can be drawn."""
    check_multinomial(prob, num_samples, replacement)
    return np.empty((*prob.shape[:-1], num_samples), np.int64)


@answered(meta=undrawn)
def multinomial(engine: Engine, prob: np.ndarray, num_samples: int, replacement: bool = False) -> np.ndarray:
    """Draw category numbers with the weights of the last dimension of `prob`, which has one or two dimensions."""
    check_multinomial(prob, num_samples, replacement)
    if prob.ndim == 2 and prob.shape[0] == 0:
        return np.empty((0, num_samples), np.int64)
    # One sample is the same with and without replacement; torch takes the way without.
    if replacement and num_samples > 1:
        return _with_replacement(engine, prob, num_samples)
    if prob.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if not (prob.max() < np.inf and prob.min() >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (prob.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    # The category whose exponential waiting time, at the rate of its weight, is over first; and the next, and so on.
    # They are drawn in the order of the weights' memory; where rows share theirs, in the order of indices.
    waits = np.empty(prob.shape, prob.dtype) if 0 in prob.strides else np.empty_like(prob)
    target = fill_order(waits)
    exact = prob.dtype == np.float64
    target[...] = fill(target.shape, prob.dtype, lambda k: -log1p(-unit_doubles(engine, k), exact), "exponential_cpu")
    rates = np.divide(prob, waits, waits)
    if num_samples == 1:
        return np.argmax(rates, -1)[..., None]
    best = np.argpartition(np.negative(rates, rates), num_samples - 1, -1)[..., :num_samples]
    best.sort(-1)
    order = np.argsort(np.take_along_axis(rates, best, -1), -1, kind="stable")
    return np.take_along_axis(best, order, -1)


def _with_replacement(engine: Engine, prob: np.ndarray, num_samples: int) -> np.ndarray:
    accumulate = np.float64 if prob.dtype == np.float64 else np.float32
    rows = prob if prob.ndim == 2 else prob[None]
    result = np.empty((len(rows), num_samples), np.int64)
    for row, places in zip(rows, result, strict=True):
        _check_weights(row)
        total = np.cumsum(row, dtype=accumulate)
        total /= total[-1]
        total[-1] = 1
        total = total.astype(np.float64)
        for start in range(0, num_samples, PIECE):
            piece = places[start : start + PIECE]
            piece[:] = np.searchsorted(total, unit_doubles(engine, len(piece)))
    return result.reshape(*prob.shape[:-1], num_samples)


def _check_weights(row: np.ndarray) -> None:
    """Raise torch's error for the first weight that is none, or if all are 0."""
    if row.size and row.min() >= 0 and 0 < row.max() < np.inf:
        return
    wrong = ~((row >= 0) & (row < np.inf))
    if wrong.any():
        entry = "= infinity or NaN" if row[wrong.argmax()] >= 0 else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {entry})")
    if not row.any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def check_multinomial(prob: np.ndarray, num_samples: int, replacement: bool) -> None:
    """Raise torch's errors for weights and counts that do not fit."""
    if prob.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if prob.dtype.name not in DIGITS:
        name = FROM_NUMPY[prob.dtype].scalar_type
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {name}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > prob.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if prob.shape[-1] > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")
