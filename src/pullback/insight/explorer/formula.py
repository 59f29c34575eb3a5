"""The derivative of an op as its declaration writes it."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent
from types import FunctionType
from typing import Any

LONGEST = 40
"""Functions a formula calls are shown up to this many lines."""


def formulas_of(node: Any) -> list[list[str]]:
    """[input, formula] for each input of a node's op, then [name, source] of what these formulas call."""
    op = getattr(node, "op", None)
    if op is not None and hasattr(op, "formulas"):
        return of_op(op)
    cls = getattr(node, "_forward_cls", None)
    if cls is not None:
        backward = cls.backward if "backward" in vars(cls) or "vjp" not in vars(cls) else cls.vjp
        return [[f"{cls.__name__}.backward", source_of(backward)]]
    if hasattr(node, "fn") and hasattr(node, "steps"):
        inner = formulas_of(node.fn)
        return [["outside the view", "grad"], *([f"inside: {name}", text] for name, text in inner)]
    return []


def of_op(op: Any) -> list[list[str]]:
    """The formulas of a declared op."""
    written = declared(op)
    out, called = [], []
    for name, formula in (*op.formulas.items(), (", ".join(op.differentiable), op.joint)):
        if callable(formula):
            key = name if name in op.formulas else "backward"
            body = written.get(key)
            arguments = ", ".join(formula.__code__.co_varnames[: formula.__code__.co_argcount])
            text = f"{formula.__name__}({arguments})" if body is None else ast.unparse(body)
            out.append([name, text])
            called += [n.id for n in ast.walk(body) if isinstance(n, ast.Name)] if body else [formula.__name__]
    for name in dict.fromkeys(called):
        function = op.module.get(name)
        if isinstance(function, FunctionType) and not hasattr(function, "op"):
            source = source_of(function)
            if 0 < source.count("\n") <= LONGEST:
                out.append([name, source])
    return out


def declared(op: Any) -> dict[str, ast.expr]:
    """The bodies of the lambdas in an op's declaration; empty where the source is not at hand."""
    try:
        tree = ast.parse(source_of(op.declared)).body[0]
    except (SyntaxError, IndexError):
        return {}
    calls = [d for d in getattr(tree, "decorator_list", ()) if isinstance(d, ast.Call)]
    return {k.arg: k.value.body for c in calls for k in c.keywords if k.arg and isinstance(k.value, ast.Lambda)}


def source_of(function: Any) -> str:
    """The source of a function, or nothing."""
    try:
        return dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):
        return ""
