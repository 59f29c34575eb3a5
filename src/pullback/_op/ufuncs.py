"""Which NumPy ufunc an op is, if it is no more than one: such an op needs no call of its forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.declare import REQUIRED, Op


class Probe:
    """Stands for an array while we ask a forward which ufunc it is."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return (ufunc, inputs) if method == "__call__" and not kwargs else None


def ufunc_of(op: Op) -> Any:
    """The ufunc a forward amounts to when its plain arguments have their defaults; None if it is more than that."""
    if any(p.kind not in ("tensor", "number") and p.default is REQUIRED for p in op.params):
        return None
    if any(p.kind in ("optional", "list") for p in op.params):
        return None
    probes = {p.name: Probe() for p in op.params if p.kind != "plain"}
    try:
        traced = op.declared(*probes.values())
    except Exception:  # a forward that looks at its arguments is not a bare ufunc
        return None
    same = type(traced) is tuple and len(traced) == 2 and isinstance(traced[0], np.ufunc)
    return traced[0] if same and traced[1] == tuple(probes.values()) else None
