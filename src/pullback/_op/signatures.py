"""The parameters of a generated function as source: torch's names for them, NumPy's names for dim and keepdim."""

from __future__ import annotations

from collections.abc import Iterator

from pullback._op.declare import REQUIRED, Op, Parameter
from pullback._op.missing import MISSING


def public_name(name: str) -> str:
    """Torch's functions call their first tensor `input`, its formulas call it `self`."""
    return "input" if name == "self" else name


def signature(params: list[Parameter], extras: list[str]) -> str:
    """The parameter list as source; defaults are read from the namespace, so that any object can be one."""
    out, star = [], False
    for p in params:
        if p.keyword_only and not star:
            out.append("*")
            star = True
        out.append(public_name(p.name) + ("" if p.default is REQUIRED else f"=DEFAULT_{p.name}"))
    if extras and not star:
        out.append("*")
    return ", ".join(out + extras)


def arguments(op: Op) -> str:
    """The arguments as a tuple for the reference path."""
    return f"({', '.join(public_name(p.name) for p in op.params)},)"


def alias_lines(params: list[Parameter]) -> Iterator[str]:
    """NumPy's names for dim and keepdim."""
    names = [p.name for p in params]
    if "dim" in names:
        yield "    if axis is not MISSING: dim = axis"
        if params[names.index("dim")].default is REQUIRED:
            yield "    if dim is MISSING: missing_dim(NAME)"
    if "keepdim" in names:
        yield "    if keepdims is not MISSING: keepdim = keepdims"


def with_aliases(params: list[Parameter]) -> tuple[list[Parameter], list[str]]:
    """Parameters whose required `dim` may come as `axis`, and the extra keywords."""
    names = [p.name for p in params]
    extras = [f"{alias}=MISSING" for alias, name in (("axis", "dim"), ("keepdims", "keepdim")) if name in names]
    if "dim" in names and params[names.index("dim")].default is REQUIRED:
        at = names.index("dim")
        if all(p.default is not REQUIRED or p.keyword_only for p in params[at + 1 :]):
            params = [*params[:at], Parameter("dim", "plain", MISSING, params[at].keyword_only), *params[at + 1 :]]
        else:
            extras = [e for e in extras if not e.startswith("axis")]
    return params, extras
