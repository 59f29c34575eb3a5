"""The signature that `inspect` and `help` show of an op: torch's parameters, before its first call and after.

The code of an op is generated when it is first called, and what it collects as `**rare` has names. Both are worked out
here when somebody looks, and not before: there are hundreds of ops, and few are ever looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from inspect import signature as signature_of
from types import MappingProxyType
from typing import Any

from pullback._op.missing import MISSING
from pullback._op.signatures import NUMPY_NAMES, Rare


class Shown(Signature):
    """The signature of a function made from a declaration, worked out when its parameters are first asked for."""

    __slots__ = ("function", "known")

    def __init__(self, function: Any) -> None:
        self.function = function
        self.known: Mapping[str, Parameter] | None = None

    @property
    def _parameters(self) -> Mapping[str, Parameter]:
        """Where `Signature` keeps its parameters."""
        if self.known is None:
            self.known = MappingProxyType({p.name: p for p in parameters_of(self.function)})
        return self.known

    @property
    def _return_annotation(self) -> Any:
        """Where it keeps what a function returns."""
        return Signature.empty

    def replace(self, **changes: Any) -> Signature:  # type: ignore[override]
        """A signature with other parameters, which is that of no declaration."""
        return Signature(list(self.parameters.values())).replace(**changes)

    __replace__ = replace  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Signature, (list(self.parameters.values()),)


def parameters_of(function: Any) -> list[Parameter]:
    """The parameters of a function that a declaration made; an in-place one takes those of its op, without `out`."""
    names = function.__globals__
    if "COMPILE" not in names:
        return [p for p in parameters_of(function.op.call) if p.name != "out"]
    found = list(signature_of(names["COMPILE"]()).parameters.values())
    return found if names.get("RARE") is None else with_rare_keywords(found, names["RARE"])


def with_rare_keywords(found: list[Parameter], rare: Rare) -> list[Parameter]:
    """Parameters with `axis`, `keepdims` and `out` in place of the keywords that are collected."""
    made: list[Parameter] = []
    for parameter in reversed([p for p in found if p.kind is not p.VAR_KEYWORD and p.name != "more"]):
        # A required dim that may come as axis can only be left out where nothing required follows.
        last = all(p.kind is p.KEYWORD_ONLY or p.default is not p.empty for p in made)
        if parameter.default is MISSING and not (parameter.name == "dim" and last and rare.names):
            parameter = parameter.replace(default=parameter.empty)
        made.insert(0, parameter)
    aliases = [alias for alias in ("axis", "keepdims") if NUMPY_NAMES[alias] in rare.names]
    if "axis" in aliases and next(p.default for p in made if p.name == "dim") is Parameter.empty:
        aliases.remove("axis")
    made += [Parameter(alias, Parameter.KEYWORD_ONLY, default=MISSING) for alias in aliases]
    if rare.out:
        made.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None))
    return made
