"""Random permutations: torch's exchanges, one after the other.

See note: random.
"""

from __future__ import annotations

import numpy as np

from pullback._arrays.kinds import answered
from pullback._dtype import FROM_NUMPY
from pullback._thresholds import TINY_PERMUTATION
from pullback.kernels.compiled import room
from pullback.kernels.numpy.random.draws import DIGITS, PIECE, cast, require, undrawn
from pullback.kernels.numpy.random.engine import Engine

_NUMBERS = frozenset({"uint8", "int8", "int16", "int32", "int64"} | DIGITS.keys())

# From this length on torch draws 64 bits for each step and goes another way.
_LONG_PERMUTATION = (2**32 - 1) // 20


@answered(meta=undrawn)
def randperm(engine: Engine, n: int, dtype: np.dtype | type = np.int64) -> np.ndarray:
    """Draw a permutation of 0 to n - 1."""
    dtype = np.dtype(dtype)
    _check_permutation(n, dtype)
    if n >= _LONG_PERMUTATION:
        return _inside_out(engine, n).astype(dtype)
    if n < 2:
        return np.arange(n).astype(dtype)
    raw = engine.raw32(n - 1)
    if n >= TINY_PERMUTATION and (compiled := room("random")) is not None:
        made = compiled.permutation(raw, n)
        if made is not None:
            return made if dtype.char == "l" else cast(made, dtype)
    order = list(range(n))
    for i, r in enumerate(raw.tolist()):
        j = i + r % (n - i)
        order[i], order[j] = order[j], order[i]
    return cast(np.array(order), dtype)


def _check_permutation(n: int, dtype: np.dtype) -> None:
    if dtype.char == "l":
        return
    most = {"float16": "2049", "float32": "2^24+1", "float64": "2^53+1"}.get(dtype.name)
    if most and n > 2 ** DIGITS[dtype.name] + 1:
        raise RuntimeError(f"n cannot be greater than {most} for {FROM_NUMPY[dtype].scalar_type} type.")
    if dtype.kind in "iu" and n - 1 > int(np.iinfo(dtype).max):
        name = "int" if dtype.name == "int32" else f"{dtype.name}_t"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    require("randperm", dtype, _NUMBERS)


def _inside_out(engine: Engine, n: int) -> np.ndarray:
    """Insert each i at a random place among the first i + 1, moving what was there to place i."""
    order = np.zeros(n, np.int64)
    for start in range(0, n, PIECE):
        steps = np.arange(start, min(start + PIECE, n), dtype=np.uint64)
        places = np.remainder(engine.raw64(len(steps)), steps + np.uint64(1))
        for i, j in zip(steps.tolist(), places.tolist(), strict=True):
            order[i] = order[j]
            order[j] = i
    return order
