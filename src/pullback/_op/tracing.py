"""What a formula of operators alone computes, found by running it on stand-ins for its operands.

    operators(lambda grad, other: grad * conj(other), conj=itself)      # multiply(grad, other)

Reading a formula's bytecode would tell the same, but differently in each version of Python.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pullback._arrays.half import SINGLE
from pullback._op.declare import names_of
from pullback.kernels.jit.language.expression import Node, Stand, Trace, Untraceable

OPERATORS = ("add", "subtract", "multiply", "divide", "negative")


def itself(operand: Any) -> Any:
    """What conj is for real numbers."""
    return operand


def operators(formula: Any, **functions: Any) -> str | None:
    """A formula as calls of ufuncs; None if it is more than operators and the functions given here by their names."""
    if formula.__closure__:
        return None
    known, trace, names = FunctionType(formula.__code__, {"__builtins__": {}, **functions}), Trace(), names_of(formula)
    try:
        made = known(*[trace.input(SINGLE) for _ in names])
    except (AttributeError, NameError, TypeError, Untraceable):
        return None
    return written(made.node, names) if type(made) is Stand else None


def written(node: Node, names: tuple[str, ...]) -> str | None:
    """An expression with its inputs by their names. A number written in the formula has a dtype for NumPy to choose."""
    if node.op == "input":
        return str(names[node.value])
    args = [written(arg, names) for arg in node.args]
    return None if node.op not in OPERATORS or None in args else f"{node.op}({', '.join(map(str, args))})"


def unchanged(formula: Any) -> bool:
    """True for the formula that passes the gradient on."""
    return operators(formula) == "grad"
