"""The parameters of a generated function as source: torch's names, and the keywords that few calls bring."""

from __future__ import annotations

from typing import Any

from pullback._op.declare import REQUIRED, Op, Parameter
from pullback._op.missing import lacking

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
"""The names torch takes from NumPy, and the parameters they name."""


def public_name(name: str) -> str:
    """Torch's functions call their first tensor `input`, its formulas call it `self`."""
    return "input" if name == "self" else name


def renamed(params: list[Parameter]) -> tuple[str, ...]:
    """The parameters that NumPy has a name for too."""
    known = NUMPY_NAMES.values()
    return tuple([name for p in params if (name := public_name(p.name)) in known])


def signature(params: list[Parameter], rare: bool, more: bool = False) -> str:
    """The parameter list as source; defaults are read from the namespace, so that any object can be one.

    With `rare` other keywords are collected. Even a required argument may be among them, so it gets a default.
    With `more` so are further positional arguments.
    """
    out, star = [], False
    for p in params:
        if p.keyword_only and not star:
            out.append("*more" if more else "*")
            star = True
        default = "=MISSING" if rare and not p.keyword_only else ""
        out.append(public_name(p.name) + (default if p.default is REQUIRED else f"=DEFAULT_{p.name}"))
    return ", ".join([*out, "**rare"] if rare else out)


def arguments(op: Op) -> str:
    """The arguments as a tuple for the reference path."""
    return f"({', '.join(public_name(p.name) for p in op.params)},)"


class Rare:
    """Reads the keywords of a call that its signature does not have: NumPy's names for parameters, and `out`."""

    __slots__ = ("defaults", "function", "names", "out")

    def __init__(self, function: str, params: list[Parameter], out: bool) -> None:
        self.function, self.names, self.out = function, renamed(params), out
        self.defaults = {public_name(p.name): p.default for p in params}

    def __call__(self, rare: dict[str, Any], *values: Any) -> tuple[Any, ...]:
        """The values of the parameters that NumPy has names for, and `out`."""
        given, out = dict(zip(self.names, values, strict=True)), None
        for keyword, value in rare.items():
            name = NUMPY_NAMES.get(keyword, "")
            if keyword == "out" and self.out:
                out = value
            elif name in given and (lacking(given[name]) or given[name] is self.defaults[name]):
                given[name] = value
            else:
                raise TypeError(f"{self.function}() got an unexpected keyword argument '{keyword}'")
        return (*given.values(), out)

    def source(self) -> str:
        """The line that calls it."""
        return "".join(f"{name}, " for name in self.names) + f"out, = RARE({', '.join(('rare', *self.names))})"
