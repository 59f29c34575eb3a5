"""Names that are there and do nothing but refuse: what a name of torch is here, told without calling it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any

from pullback import dtype
from pullback.compat.reasons import reason
from pullback.compat.standin import StandIn


def only_raises(function: Any) -> str | None:
    """What a function says that does nothing but refuse; None if it does more."""
    function = function.fget if isinstance(function, property) else function
    function = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    if not isinstance(function, FunctionType) or hasattr(function, "op"):
        return None
    if hasattr(function, "out_of_scope"):
        return str(function.__doc__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    body = getattr(tree.body[0], "body", [])
    does = [line for line in body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
    if len(does) == 1 and isinstance(does[0], ast.Raise) and "NotImplementedError" in ast.unparse(does[0]):
        return (function.__doc__ or "").strip().split("\n")[0]
    return None


def is_missing(value: Any) -> bool:
    """Whether something only stands for a part of torch that is not here."""
    alone = isinstance(value, ModuleType) and getattr(value, "_pullback_target", value) is None
    return isinstance(value, StandIn) or alone


def refusal(value: Any, full: str) -> str | None:
    """Why a name does nothing here; None if it does what it does in torch."""
    if isinstance(value, StandIn):
        return reason(value._stand_in_for)
    if is_missing(value):
        return reason(f"{full}.")  # a module: the reason of what is below it
    if isinstance(value, dtype) and not has_arrays(value):
        return "no tensor can have it"
    return only_raises(value)


def has_arrays(value: Any) -> bool:
    """Whether there are arrays of a dtype."""
    try:
        return value.stored is not None
    except NotImplementedError:
        return False
