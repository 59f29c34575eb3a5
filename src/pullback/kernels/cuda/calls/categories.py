"""`multinomial` on the device, with the draws of torch's CUDA generator.

One sample, or several without replacement: the categories whose exponential waiting times, at the rates of their
weights, are over first. With replacement: where uniform numbers fall among the running sums of the weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.launch import BLOCK
from pullback.kernels.cuda.native import INT64, copied, native, ramp, reduced
from pullback.kernels.cuda.order.extrema import found
from pullback.kernels.cuda.order.scans import running
from pullback.kernels.cuda.order.sorts import places_among, topk
from pullback.kernels.cuda.random import draw, exponential
from pullback.kernels.numpy.random import draws
from pullback.kernels.numpy.random.multinomial import check_multinomial
from pullback.ops.random.generator import engine_of

ROW = 128
"""Threads of a block of torch's kernel, which draw for one row."""


@native("multinomial")
def multinomial(self: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None) -> Any:
    """Category numbers with the weights of each row."""
    count = int(num_samples)
    check_multinomial(self, count, replacement)
    with_replacement = replacement and count > 1
    if not self.size or room("cuda.reductions") is None or (with_replacement and is_half(self.dtype)):
        return None
    check_weights(self)
    engine = engine_of("multinomial", generator)
    if with_replacement:
        rows = self.reshape((-1, self.shape[-1]))
        return among_sums(engine, rows, count).reshape((*self.shape[:-1], count))
    waits = empty(self.shape, self.dtype, None, self.device) if 0 in self.strides else np.empty_like(self)
    ordered = draws.fill_order(waits)
    ordered[...] = exponential(engine, ordered.shape, self.dtype, 1.0)
    rates = self / waits
    made = found("max", rates, rates.ndim - 1, True) if count == 1 else topk(rates, count)
    return None if made is None else made[1]


def check_weights(weights: Any) -> None:
    """Raise torch's errors for weights that are none; the host waits for the device."""
    most, least = (reduced(how, weights, None, False).on_host().item() for how in ("max", "min"))
    if not (most < math.inf and least >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    totals = reduced("sum", weights, weights.ndim - 1, False)
    if not reduced("min", totals, None, False).on_host().item():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def among_sums(engine: Any, rows: DeviceArray, count: int) -> Any:
    """Every sample is the first of a thread's turn; the last category that has a weight takes what rounding leaves."""
    blocks = -(-count // ROW)
    uniform = draw(
        engine, "uniform", (len(rows), blocks * ROW), 1.0, 0.0, math.nan, rows.device,
        blocks=-(-len(rows) * blocks * ROW // BLOCK),
    )  # fmt: skip
    uniform = uniform[:, :count]
    values = uniform if uniform.dtype == rows.dtype else copied(uniform, rows.dtype)
    shares = rows / reduced("sum", rows, 1, True)
    sums = running(shares, 1, shares.dtype, False)
    places = np.minimum(places_among(sums, values.copy("C"), False), rows.shape[1] - 1)
    there = np.where(shares > shares.dtype.type(0), ramp(rows.shape[1], rows.device), 0)
    last = running(there, 1, INT64, False, "max")
    return np.take_along_axis(last, places, 1)
