"""The decorators `@op` and `@function`: from a declaration to everything users can call."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback._op import generate
from pullback._op.apply import apply_operator
from pullback._op.declare import (
    KINDS,
    REQUIRED,
    Array,
    Function,
    Number,
    Op,
    Publication,
    elementwise,
    functions,
    linear,
    not_implemented,
    publish,
    registry,
    spaces,
)
from pullback._op.inplace import make_inplace
from pullback._op.missing import MISSING, missing_dim
from pullback._op.out import write_result
from pullback._op.signatures import alias_lines, public_name, signature, with_aliases
from pullback._tensor import Tensor
from pullback.autograd import numbering

__all__ = ["Array", "Number", "elementwise", "function", "linear", "not_implemented", "op"]

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Operators without an augmented assignment."""


def stub(*args: Any, **kwargs: Any) -> Any:
    """The code of every op until its first call, which puts the generated code in its place."""
    COMPILE()  # type: ignore[name-defined] # noqa: F821
    return CALL(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821


def lazily(key: str, compile: Callable[[], Any], doc: str | None) -> FunctionType:
    """A function whose code is generated on its first call."""
    namespace: dict[str, Any] = {"__name__": "pullback"}
    function = FunctionType(stub.__code__, namespace, key)
    function.__doc__ = doc

    def replace_code() -> None:
        real = compile()
        namespace.update(real.__globals__)
        numbering.holders.append(namespace)
        # The code comes last: another thread may call the function at any moment, and the stub takes any arguments.
        function.__defaults__ = real.__defaults__
        function.__kwdefaults__ = real.__kwdefaults__
        function.__code__ = real.__code__

    namespace["COMPILE"], namespace["CALL"] = replace_code, function
    return function


def op(
    *,
    space: str | None = "torch",
    method: bool = True,
    operator: str | None = None,
    reflected: bool = False,
    aliases: tuple[str, ...] = (),
    out: bool = True,
    **declaration: Any,
) -> Callable[[Any], Any]:
    """Declare an op. See _op/declare.py for what a declaration says.

    Args:
        space: the namespace it is published in; None for an op that only other functions and formulas call.
        method: whether it is also a method of Tensor.
        operator: the Python operator it implements, and with `reflected` also its reflected form.
        aliases: further public names.
        out: whether it takes `out=`.
    """

    def declare(forward: Any) -> Any:
        o = Op(forward, **declaration)
        if o.key in registry:
            raise TypeError(f"op {o.key} is declared twice")
        registry[o.key] = o
        with_out = out and not o.view and space is not None
        o.compile = lambda: generate.compile_op(o, with_out)  # type: ignore[attr-defined]
        call = o.call = lazily(o.key, o.compile, o.doc)  # type: ignore[attr-defined]
        call.op = o  # type: ignore[attr-defined]
        call.__module__ = forward.__module__
        call.__name__ = call.__qualname__ = o.name
        publish(o.name, call, Publication(space, method and space is not None, aliases=aliases))
        if operator:
            publish_operator(o, operator, reflected)
        if o.inplace:
            twin = make_inplace(o)
            operands = sum(annotation in KINDS for annotation in o.annotations.values()) - 1
            for name in (o.name, *aliases):
                setattr(Tensor, f"{name}_", twin)
                if operands == 1 and space == "torch":
                    spaces["torch"][f"{name}_"] = twin
            if operator and operands == 2 and operator not in COMPARISONS:
                setattr(Tensor, f"__i{operator}__", make_inplace(o, operator=True))
        return call

    return declare


def publish_operator(o: Op, operator: str, reflected: bool) -> None:
    """The same generated code as an operator, which leaves operands of foreign types to them."""

    def compile() -> Any:
        real = generate.compile_op(o)
        real.__globals__["apply"] = apply_operator
        return real

    function = lazily(o.key, compile, o.doc)
    function.op = o  # type: ignore[attr-defined]
    for name in (f"__{operator}__", *((f"__r{operator}__",) if reflected else ())):
        setattr(Tensor, name, function)


def function(
    *,
    name: str | None = None,
    space: str | None = "torch",
    method: bool = True,
    operator: str | None = None,
    aliases: tuple[str, ...] = (),
    out: bool = False,
    raw: bool = False,
) -> Callable[[Any], Any]:
    """Declare a public function written in terms of ops.

    Users get a thin generated wrapper: torch's name `input` for self, NumPy's `axis` and `keepdims`, and `out=`.
    With `raw` they get the function itself (for signatures that are anything but ordinary).
    """

    def declare(body: Any) -> Any:
        f = Function(body, name)
        functions[f.key] = f
        call: Any = body if raw else lazily(f.key, lambda: compile_function(f, out), f.doc)
        f.call = call
        call.op = f
        call.__module__ = body.__module__
        call.__name__ = call.__qualname__ = f.name
        publish(f.name, call, Publication(space, method, operator, aliases=aliases))
        return call

    return declare


def compile_function(f: Function, with_out: bool) -> Any:
    """The wrapper of a function: aliases and out= handled, then the body."""
    params, extras = with_aliases(f.params)
    has_axis = any(e.startswith("axis") for e in extras)
    if with_out:
        extras = [*extras, "out=None"]
    positional = ", ".join(public_name(p.name) for p in f.params if not p.keyword_only)
    keywords = "".join(f", {p.name}={p.name}" for p in f.params if p.keyword_only)
    lines = [f"def {f.key}({signature(params, extras)}):"]
    lines += alias_lines([p for p in f.params if has_axis or p.name != "dim"])
    if with_out:
        lines.append(f"    if out is not None: return write_result(NAME, BODY({positional}{keywords}), out)")
    lines.append(f"    return BODY({positional}{keywords})")
    namespace = dict(
        generate.BASE, BODY=f.body, NAME=f.name, MISSING=MISSING, missing_dim=missing_dim, write_result=write_result
    )
    for p in f.params:
        if p.default is not REQUIRED:
            namespace[f"DEFAULT_{p.name}"] = p.default
    namespace.setdefault("DEFAULT_dim", MISSING)
    generate.compiled("\n".join(lines), namespace, f.key)
    return namespace[f.key]
