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


SAMPLES = {"b": np.bool_, "i": np.int64, "u": np.uint8, "f": np.float32, "c": np.complex64}


def refused_kinds(op: Op, ufunc: Any) -> str:
    """The kinds of dtypes (NumPy's letters) that the op's check refuses though its ufunc would take them."""
    found = ""
    check = op.check
    for kind, dtype in SAMPLES.items() if check is not None else ():
        assert check is not None
        given = {p.name: p.default if p.kind == "plain" else np.ones(1, dtype) for p in op.params}
        try:
            ufunc(*[given[t] for t in op.tensors])
        except TypeError:
            continue  # the fast path fails by itself
        try:
            check(
                *[given[p.name] for p in op.params if not p.keyword_only],
                **{p.name: given[p.name] for p in op.params if p.keyword_only},
            )
        except (RuntimeError, TypeError, ValueError):
            found += kind
    return found
