"""The signatures of torch's functions and methods: names, order, defaults and what is keyword only.

torch's compiled functions tell `inspect` nothing. Their overloads are read from the type stubs torch ships, those of
`linalg`, `fft` and `special` from the schemas of its operators.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.conformance.library import TORCH

STUBS = Path(torch.__file__).parent / "_C"


@dataclass
class Signature:
    """One overload: its positional and its keyword-only parameters, and the defaults that are plain values."""

    positional: list[str]
    keywords: list[str]
    defaults: dict[str, Any] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)

    @property
    def names(self) -> list[str]:
        return [*self.positional, *self.keywords]

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name, or None if they do not fit."""
        bound = dict(zip(self.positional, args)) | kwargs
        fits = len(args) <= len(self.positional) and len(bound) == len(args) + len(kwargs)
        required = set(self.names) - self.optional
        return bound if fits and bound.keys() <= set(self.names) and required <= bound.keys() else None


def overloads(path: str) -> list[Signature]:
    """The signatures of what a dotted path below torch leads to; none where torch does not tell."""
    space, _, name = path.rpartition(".")
    if space in ("linalg", "fft", "special"):
        return [_of_schema(schema) for schema in torch._C._jit_get_schemas_for_operator(f"aten::{space}_{name}")]
    if space == "nn.functional" and inspect.isfunction(TORCH.resolve(path)):
        return _of_function(TORCH.resolve(path))
    file, kind = ("__init__", "TensorBase") if space == "Tensor" else ("_VariableFunctions", None)
    return stub(file, kind).get(name, [])


@functools.cache
def stub(file: str, kind: str | None) -> dict[str, list[Signature]]:
    """The signatures in one of torch's type stubs, of its functions or of one of its classes."""
    body = ast.parse((STUBS / f"{file}.pyi").read_text()).body
    if kind is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == kind)
    found: dict[str, list[Signature]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.args.vararg:
            given = node.args
            made = Signature([a.arg for a in (*given.posonlyargs, *given.args)], [a.arg for a in given.kwonlyargs])
            late = made.positional[len(made.positional) - len(given.defaults) :]
            for name, default in [*zip(late, given.defaults), *zip(made.keywords, given.kw_defaults)]:
                if default is not None:
                    _add_default(made, name, default)
            made.optional |= {"out"} & set(made.names)
            found.setdefault(node.name, []).append(made)
    return found


def _add_default(signature: Signature, name: str, default: ast.expr) -> None:
    signature.optional.add(name)
    with contextlib.suppress(ValueError):  # a dtype or a layout is left out of calls, never written into them
        signature.defaults[name] = ast.literal_eval(default)


def _of_schema(schema: Any) -> Signature:
    made = Signature([], [])
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        (made.keywords if argument.kwarg_only else made.positional).append(name)
        if argument.has_default_value():
            made.optional.add(name)
            made.defaults[name] = argument.default_value
    made.optional |= {"out"} & set(made.names)
    return made


def _of_function(function: Any) -> list[Signature]:
    made = Signature([], [])
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            return []
        (made.keywords if parameter.kind is parameter.KEYWORD_ONLY else made.positional).append(name)
        if parameter.default is not parameter.empty:
            made.optional.add(name)
            made.defaults[name] = parameter.default
    return [made]
