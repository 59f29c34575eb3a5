"""Formulas of a few operators, such as `grad * conj(other)`, as source: a call less in every backward step."""

from __future__ import annotations

import math
from operator import mul
from types import FunctionType
from typing import Any

from pullback._op.declare import Op, names_of
from pullback._op.tracing import itself, operators, unchanged
from pullback._op.ufuncs import is_traced


def formula_call(op: Op, t: str, reading: str) -> str:
    """The gradient of one input, as source: the call of its formula, or what that computes on small real arrays."""
    formula = op.formulas[t]
    call = f"({', '.join(names_of(formula))})"
    if reading == "tensor":
        return f"tensor_{t}{call}"
    if not op.multiple and unchanged(formula):
        return "grad"
    expression = None if op.multiple else real_expression(op, formula)
    large = is_traced(op, t)
    if chooses(op, t):
        call = f"pointwise_{t}{call}"
    else:
        call = (f"(array_{t} if grad.size < LARGE else kernels_{t})" if large else f"array_{t}") + call
    if takes_numbers(op, formula):
        call = f"halves_{t}({', '.join(names_of(formula))}) if grad.dtype.itemsize == 2 else {call}"
    if expression is None:
        return call
    several = large and expression.count("(") > 1
    return f"{expression} if node.dtype is FLOAT32{' and grad.size < MANY' if several else ''} else {call}"


def takes_numbers(op: Op, formula: Any) -> bool:
    """True for a formula of Python numbers, which half precision must not round: there it is read on tensors."""
    if op.multiple or not callable(formula) or "grad" not in names_of(formula):
        return False
    named = [str(op.annotations.get(name)) for name in names_of(formula) if op.kinds.get(name) == "plain"]
    return any([kind.startswith(("Number", "float")) for kind in named]) or holds_numbers(formula, set())


def holds_numbers(function: Any, seen: set[Any]) -> bool:
    """True if a formula, or a function it calls, computes with a number such as pi, which half precision rounds."""
    seen.add(function)
    values = [function.__globals__.get(name) for name in function.__code__.co_names]
    for value in (*function.__code__.co_consts, *values):
        if value is math or (type(value) is float and math.isfinite(value) and math.frexp(value)[0] * 256 % 1):
            return True
        plain = type(value) is FunctionType and not hasattr(value, "op") and value.__module__.startswith("pullback.ops")
        if plain and value not in seen and holds_numbers(value, seen):
            return True
    return False


def chooses(op: Op, t: str) -> bool:
    """True for a pointwise formula of arrays alone: it looks at sizes itself, as a `Chooser`."""
    return is_traced(op, t) and {*names_of(op.formulas[t])} <= {"grad", *op.tensors, *op.outputs}


def real_expression(op: Op, formula: Any) -> str | None:
    """What a formula computes on real arrays, as calls of ufuncs; None if it is more than operators and conj."""
    names = {*names_of(formula)}
    if not (set(op.promote) == set(op.tensors) or names <= {"grad", "result"}):
        return None  # an input might be complex though the result is real
    if any("None" in str(op.annotations.get(name, "")) for name in names):
        return None  # the formula may ask whether it is there
    return operators(formula, conj=itself, times_number=mul)  # single precision forgets what was whole
