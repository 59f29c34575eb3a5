"""Which NumPy ufunc an op is, if it is no more than one: such an op needs no call of its forward."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._arrays.memory import laid_out
from pullback._op.declare import REQUIRED, Op, elementwise, names_of
from pullback._op.readings import forward_of, reread
from pullback._op.tracing import unchanged
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import Chooser, Variants


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
    """The kinds of dtypes (NumPy's letters) the op refuses or computes otherwise, though its ufunc would take them."""
    found = "" if op.of_complex is None else "c"
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
    if not is_traced(op):
        return laying_out(op)
    kernels = Kernels(forward_of(op), op.key, is_loss(op))
    kernels.lays_out = lays_out(op)
    return kernels


@cache
def chosen_forward(op: Op) -> Any:
    """The forward of an op, which looks at sizes and layouts itself where it is several calls of NumPy."""
    arrays = len(op.tensors)
    first = [p.name for p in op.params[:arrays]] == list(op.tensors)
    if not is_traced(op) or ufunc_of(op) is not None or is_loss(op) or not first:
        return forward_of(op)
    if len(op.params) > arrays:
        if op.jvp is not elementwise:
            return forward_of(op)
        variants = Variants(forward_of(op), large_forward(op), arrays, [p.name for p in op.params if p.keyword_only])
        variants.lays_out = lays_out(op)
        return variants
    chooser = Chooser(forward_of(op), large_forward(op), op.few and Kernels(reread(op.few)))
    chooser.lays_out = lays_out(op)
    return chooser


@cache
def is_pointwise(op: Op) -> bool:
    """True if each element of the result is made of the elements at its place: it says so, or is one ufunc."""
    return op.pointwise or op.jvp is elementwise or ufunc_of(op) is not None


def is_traced(op: Op, part: str = "forward") -> bool:
    """True if large arrays are given to a compiled kernel: in the forward, or in the derivative by the input `part`."""
    if not is_pointwise(op) or op.view or op.untraced is True or part in op.untraced:
        return False
    if "optional" in op.kinds.values() and not is_loss(op):
        return False  # a kernel is made for arrays that are there
    if part == "forward":
        return True
    formula = op.formulas[part]
    return callable(formula) and "grad" in names_of(formula) and not unchanged(formula)


def is_loss(op: Op) -> bool:
    """True for what is pointwise up to a reduction, and asks for shapes only to compare them and count elements."""
    return is_pointwise(op) and "reduction" in op.param_names


def lays_out(op: Op) -> bool:
    """True if torch gives the results of an op the memory order of its operands: see `order_of_result`."""
    return is_pointwise(op) and not op.view and op.layout not in ("row_major", "own")


def deciding(op: Op, operands: Any) -> Any:
    """The operands of an op in the order in which they decide about the memory order of its result."""
    return [operands[1], operands[0], *operands[2:]] if op.layout == "other_first" else operands


def laying_out(op: Op) -> Any:
    """The forward of an op, its results in the memory order torch gives them."""
    forward = forward_of(op)
    if len(op.tensors) < 2 or not lays_out(op):
        return forward

    def arranged(*args: Any, **kwargs: Any) -> Any:
        made = forward(*args, **kwargs)
        return laid_out(made, deciding(op, args)) if made.ndim > 1 else made

    return arranged


ARITHMETIC = {name: getattr(np, name) for name in ("add", "subtract", "multiply", "divide", "negative")}
"""The ufuncs of operators."""
