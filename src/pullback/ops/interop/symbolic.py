"""Plain numbers under names of torch: constants, arithmetic on sizes and conditions; control flow as functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback._op.declare import spaces
from pullback._op.define import function
from pullback._tensor import Tensor


@function(raw=True, method=False)
def sym_int(a: Any) -> int:
    """Convert a number to an int, rounding towards zero."""
    return math.trunc(a)


@function(raw=True, method=False)
def sym_float(a: Any) -> float:
    """Convert a number to a float."""
    return float(a)


@function(raw=True, method=False)
def sym_not(a: Any) -> bool:
    """Negate a condition."""
    return not a


@function(raw=True, method=False)
def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, as a float if either is one."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


@function(raw=True, method=False)
def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as a float if either is one."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


@function(raw=True, method=False)
def sym_sum(args: Iterable[Any]) -> Any:
    """Return the sum of a sequence of numbers."""
    return sum(args)


@function(raw=True, method=False)
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t` if the condition `b` is True, else `f`; both must be of the same type."""
    assert isinstance(b, bool), f"expected SymBool or bool, got {type(b)}"
    assert type(t) is type(f)
    return t if b else f


@function(raw=True, method=False)
def sym_fresh_size(a: int) -> int:
    """Return the size `a` itself."""
    return a


spaces["torch"].update(e=math.e, inf=math.inf, nan=math.nan, newaxis=None, pi=math.pi)
spaces["torch"].update(has_lapack=True, has_mkl=False, has_openmp=False, has_spectral=True)

ROOTS = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
"""Functions of numbers that torch also has under a symbolic name."""


def declare_math(name: str) -> None:
    """Publish sym_sqrt and its like."""

    def call(a: Any) -> float:
        return float(getattr(math, name)(a))

    call.__name__ = call.__qualname__ = f"sym_{name}"
    call.__doc__ = f"The {name} of a number."
    spaces["torch"][f"sym_{name}" if name == "sqrt" else f"_sym_{name}"] = call


for each in ROOTS:
    declare_math(each)

LARGEST = 2**63 - 1


@function(raw=True, method=False)
def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise an error unless `min <= size <= max`; a bound left out is that of int64."""
    low, high = -LARGEST - 1 if min is None else min, LARGEST if max is None else max
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@function(raw=True, method=False)
def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise an error unless `min <= size <= max`; without `min` the size must not be negative."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


# ------------------------------------------------------------------ control flow


@function(raw=True, method=False)
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Call one of two functions, depending on a condition.

    Returns `true_fn(*operands)` if `pred`, a bool or a tensor with one element, is true, else `false_fn(*operands)`.
    """
    if isinstance(pred, Tensor) and pred._array.size != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return true_fn(*operands) if pred else false_fn(*operands)


@function(raw=True, method=False)
def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Repeat a function for as long as a condition holds.

    Starts from `carried_inputs`, a tuple, and replaces it by `body_fn(*carried)` while `cond_fn(*carried)` is true.
    Returns the last values.
    """
    carried = tuple(carried_inputs)
    out: Any = carried
    while cond_fn(*carried):
        out = body_fn(*carried)
        carried = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    return out
