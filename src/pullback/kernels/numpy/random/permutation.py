"""Random permutations: torch's exchanges, without a loop over them.

See note: random.
"""

from __future__ import annotations

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._kinds import answered
from pullback._thresholds import SHORT_PERMUTATION, TINY_PERMUTATION
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
    if n < SHORT_PERMUTATION:
        order = list(range(n))
        for i, r in enumerate(raw.tolist()):
            j = i + r % (n - i)
            order[i], order[j] = order[j], order[i]
        return cast(np.array(order), dtype)
    steps = np.arange(n - 1, dtype=np.uint32)
    partners = np.remainder(raw, np.uint32(n) - steps)
    return cast(_exchange(steps.view(np.int32), np.add(partners, steps, partners).view(np.int32), n), dtype)


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


def _exchange(steps: np.ndarray, partners: np.ndarray, n: int) -> np.ndarray:
    """Start from 0 to n - 1 and exchange place i with partners[i], for every i in turn, without a loop.

    partners[i] >= i, so that place i is final after step i.
    """
    # `origin[i]` is what place i holds when its turn comes. It was put there by the latest step with partner i, which
    # gave away what its own place held: follow these steps down to a place nobody wrote to, doubling the jumps.
    # Steps that exchange a place with itself write to a place of no importance, n.
    origin = np.arange(n + 1, dtype=np.int32)
    origin[np.where(partners == steps, np.int32(n), partners)] = steps
    origin[n] = n
    while True:
        further = origin[origin]
        if np.array_equal(further, origin):
            break
        origin = further
    # Step i takes what its partner's place holds: what the latest earlier step with this partner put there, if any.
    # Sorting brings equal partners side by side, in the order of their steps: twice by 16 bits, which NumPy does by
    # counting.
    by_low = np.argsort(partners.astype(np.uint16), kind="stable")
    writers = by_low[np.argsort((partners >> 16).astype(np.uint16)[by_low], kind="stable")]
    places = partners[writers]
    taken = places.copy()
    np.copyto(taken[1:], origin[writers[:-1]], where=places[1:] == places[:-1])
    order = np.empty(n, np.int32)
    order[writers] = taken
    order[n - 1] = origin[n - 1]
    return order


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
