"""Ops without a kernel of their own, computed by the kernels of what their forwards are made of.

The forward of an op is NumPy's code, and arrays of the device answer to NumPy's words: so it is run on them, read for
the device (reading.py). Where a word has no kernel, or wants to see more than one element, the attempt ends with
nothing written, the op is computed by way of the host, and calls of the same kind are not tried again.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._op.declare import Op
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.carry import attempts, place_among
from pullback.kernels.cuda.composed.reading import recoded, where
from pullback.kernels.cuda.errors import AcceleratorError, OutOfMemoryError

refused: set[Any] = set()
"""What was tried in vain: ops with the dtypes and plain arguments of a call."""
MOST = 4096
refusals: dict[str, str] = {}
"""What ended the last attempt at an op, for whoever wonders."""


def composed(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """What the forward of an op makes of arrays of the device; None if it needs the host."""
    if "random" in op.declared.__module__ or "generator" in op.param_names:
        return None  # draws of an attempt that fails would be lost
    key = (op.key, *map(fact_of, positional), *map(fact_of, keywords.values()))
    if key in refused:
        return None
    attempts.depth += 1
    before, where.place = where.place, place_among((*positional, *keywords.values()))
    try:
        made = forward_on(op)(*positional, **keywords)
        outs = made if isinstance(made, (list, tuple)) else [made]
        if all([out is None or type(out) is DeviceArray for out in outs]):
            return made
    except (AcceleratorError, OutOfMemoryError):
        raise
    except Exception as error:  # whatever it is, the host will say it better
        refusals[op.key] = f"{type(error).__name__}: {error}"
    finally:
        attempts.depth -= 1
        where.place = before
    if len(refused) >= MOST:
        refused.clear()
    refused.add(key)
    return None


@cache
def forward_on(op: Op) -> Any:
    """The forward of an op, read for the device."""
    return recoded(op.declared)


def fact_of(value: Any) -> Any:
    """What of an argument decides whether there are kernels for it."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.ndim, 0 in value.shape  # only nothing may need the host
    if isinstance(value, (list, tuple)):
        return tuple([fact_of(item) for item in value])
    return type(value), str(value)
