"""Which NumPy ufunc an op is, if it is no more than one: such an op needs no call of its forward."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._op.declare import REQUIRED, Op, elementwise, names_of
from pullback._op.readings import forward_of
from pullback.kernels.jit.fused import Fused, Quick


class Probe:
    """Stands for an array while we ask a forward which ufunc it is."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return (ufunc, inputs) if method == "__call__" and not kwargs else None


@cache
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


@cache
def large_forward(op: Op) -> Any:
    """The forward of an op for large arrays."""
    return Fused(forward_of(op), op.key, is_loss(op)) if may_fuse(op) else forward_of(op)


ROUNDED_BY_NUMPY = {"sigmoid": 64}
"""Arrays of fewer elements keep NumPy's rounding: a gradcheck of a few float32 numbers sees it, as it sees torch's."""


@cache
def small_forward(op: Op) -> Any:
    """The forward of an op for small arrays: of one operand, several calls of NumPy become one of a kernel."""
    alone = op.jvp is elementwise and [op.params[0].name] == list(op.tensors) and not op.multiple
    if alone and ufunc_of(op) is None and may_fuse(op) and not any(p.keyword_only for p in op.params):
        return Quick(large_forward(op), ROUNDED_BY_NUMPY.get(op.key, 0))
    return forward_of(op)


def is_loss(op: Op) -> bool:
    """True for losses: pointwise up to a reduction, and asking for shapes only to compare them and count elements."""
    return "reduction" in op.param_names


UNCHANGED = (lambda grad: grad).__code__.co_code


ALSO = ("lerp_tensor", "prelu_kernel", "zero_where", "signbit", "isposinf", "isneginf")
"""Pointwise ops that nothing in their declaration gives away."""


def may_fuse(op: Op, formula: Any = None) -> bool:
    """True if an op, or a derivative of it, may be pointwise: then large arrays are given to a compiled kernel."""
    refused = ("list",) if is_loss(op) else ("optional", "list")
    if op.multiple or op.view or any(p.kind in refused for p in op.params) or not op.tensors:
        return False
    if op.key in ALSO:
        return formula is None
    factors = any(str(op.annotations.get(p.name)).startswith(("Number", "float")) for p in op.params)
    named = is_loss(op) or op.key.endswith("_backward")
    if not any((op.jvp is elementwise, op.floats, op.promote, op.inplace, named, factors)) and ufunc_of(op) is None:
        return False
    if formula is None:
        return True
    return callable(formula) and "grad" in names_of(formula) and formula.__code__.co_code != UNCHANGED
