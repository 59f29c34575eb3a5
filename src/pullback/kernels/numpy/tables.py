"""Tables that depend on shapes alone, kept for the next call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._thresholds import MOST_IN_TABLE

TABLES = 256
"""So many of one kind are kept; then all are forgotten."""


def kept(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, a function of shapes and numbers, that makes small tables once; large ones would cost too much memory."""
    known: dict[Any, Any] = {}

    @answered(meta=make)  # whose arrays have no elements: such a table must not be found by who needs them
    @wraps(make)
    def table(*key: Any) -> Any:
        found = known.get(key)
        if found is None:
            found = make(*key)
            if found.size <= MOST_IN_TABLE:
                found.flags.writeable = False
                if len(known) >= TABLES:
                    known.clear()
                known[key] = found
        return found

    table.answers["cuda"] = table  # a table of the host, which is brought to a device as it is
    return table


@kept
def lower(rows: int, columns: int, diagonal: int) -> Any:
    """True on and below a diagonal of a matrix."""
    return np.greater_equal.outer(np.arange(diagonal, rows + diagonal), np.arange(columns))
