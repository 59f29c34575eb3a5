"""The random slopes of rrelu, drawn as torch draws them: one for each element that is not positive, in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback.kernels.numpy.random.draws import cast, unit_doubles
from pullback.kernels.numpy.random.engine import Engine

Array = Any


@answered(meta=lambda engine, x, lower, upper: (np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)))
def rrelu(engine: Engine, x: Array, lower: float, upper: float) -> tuple[Array, Array]:
    """x with every element that is zero or negative times its slope, and the slopes (1 elsewhere)."""
    noise, out = np.ones(x.shape, x.dtype), x.copy("C")
    negative = x <= 0
    count = int(np.count_nonzero(negative))
    if count:
        # The bounds are numbers of the array's dtype; between them the draw is made in double precision.
        low, high = (float(bound) for bound in cast(np.array([lower, upper]), x.dtype))
        noise[negative] = cast(unit_doubles(engine, count) * (high - low) + low, x.dtype)
        out *= noise
    return out, noise
