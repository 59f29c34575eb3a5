"""What a formula of operators alone computes, found by running it on stand-ins for its operands.

    operators(lambda grad, other: grad * conj(other), conj=itself)      # multiply(grad, other)

Reading a formula's bytecode would tell the same, but differently in each version of Python.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pullback._op.declare import names_of


class Operand:
    """Stands for an array or a number: it notes which ufuncs the operators are, and knows nothing else."""

    __slots__ = ("source",)

    def __init__(self, source: str) -> None:
        self.source = source

    def __add__(self, other: Any) -> Operand:
        return noted("add", self, other)

    def __sub__(self, other: Any) -> Operand:
        return noted("subtract", self, other)

    def __mul__(self, other: Any) -> Operand:
        return noted("multiply", self, other)

    def __truediv__(self, other: Any) -> Operand:
        return noted("divide", self, other)

    def __neg__(self) -> Operand:
        return Operand(f"negative({self.source})")

    # What every object can be asked: a formula that does has a choice, so one run does not show what it computes.
    def __bool__(self) -> bool:
        raise TypeError("a stand-in has no value")

    def __eq__(self, other: object) -> bool:
        raise TypeError("a stand-in has no value")

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


def noted(ufunc: str, left: Operand, right: Any) -> Operand:
    """An operator between operands. A number written in the formula is not one: its dtype is for NumPy to choose."""
    return Operand(f"{ufunc}({left.source}, {right.source})") if type(right) is Operand else NotImplemented


def itself(operand: Operand) -> Operand:
    """What conj is for real numbers."""
    return operand


def operators(formula: Any, **functions: Any) -> str | None:
    """A formula as calls of ufuncs; None if it is more than operators and the functions given here by their names."""
    if formula.__closure__:
        return None
    known = FunctionType(formula.__code__, {"__builtins__": {}, **functions})
    try:
        made = known(*[Operand(name) for name in names_of(formula)])
    except (AttributeError, NameError, TypeError):
        return None
    return made.source if type(made) is Operand else None


def unchanged(formula: Any) -> bool:
    """True for the formula that passes the gradient on."""
    return operators(formula) == "grad"
