"""The decorators `@op` and `@function`: from a declaration to everything users can call."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from functools import wraps
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any

from pullback._dtype import named_dtype
from pullback._op import generate
from pullback._op.apply import apply_operator
from pullback._op.arguments import caller, refuse_call, refuse_wrong_types
from pullback._op.asked import in_python
from pullback._op.declare import (
    KINDS,
    REQUIRED,
    Array,
    Function,
    Number,
    Op,
    Publication,
    declaring,
    elementwise,
    functions,
    linear,
    not_implemented,
    publish,
    registry,
    spaces,
)
from pullback._op.inplace import make_inplace
from pullback._op.locations import notes_caller, scope_lines
from pullback._op.missing import MISSING, refuse_missing
from pullback._op.out import decided, write_result
from pullback._op.patch import fill_stub, stub, unpatched
from pullback._op.shown import Shown
from pullback._op.signatures import Rare, public_name, renamed, signature
from pullback._runtime.building import made
from pullback._tensor import Tensor
from pullback.autograd import numbering, who
from pullback.autograd.tracebacks import trim

__all__ = ["Array", "Number", "elementwise", "explain", "function", "linear", "not_implemented", "op"]


def lazily(key: str, compile: Callable[[], Any], doc: str | None) -> FunctionType:
    """A function whose code is generated on its first call."""
    namespace: dict[str, Any] = {"__name__": "pullback", "trim": trim}
    function = FunctionType(stub.__code__, namespace, key)
    function.__doc__ = doc
    function.__signature__ = Shown(function)  # type: ignore[attr-defined]

    real: list[FunctionType] = []

    def generated() -> FunctionType:
        """What was generated, by the first thread that asks; the function itself still has the code it had."""
        if not real:
            new = compile()
            namespace.update(new.__globals__)
            numbering.hold(namespace)
            if "CHOOSERS" in namespace:
                generate.bind_choosers(namespace)
            function.__defaults__ = new.__defaults__
            function.__kwdefaults__ = new.__kwdefaults__
            real.append(new)
        return real[0]

    def put_code() -> FunctionType:
        new = real[0] if real else made(generated)
        # It comes last: another thread may call the function at any moment, and the stub takes any arguments.
        fill_stub(function, new.__code__)
        return new

    namespace["COMPILE"] = put_code
    return function


def op(
    *,
    space: str | None = "torch",
    method: bool = True,
    operator: str | None = None,
    reflected: bool = False,
    aliases: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    out: bool = True,
    **declaration: Any,
) -> Callable[[Any], Any]:
    """Declare an op. See _op/declare.py for what a declaration says.

    Args:
        space: the namespace it is published in; None for an op that only other functions and formulas call.
        method: whether it is also a method of Tensor.
        operator: the Python operator it implements, and with `reflected` also its reflected form.
        aliases: further public names.
        also: further names in other namespaces, as `special.psi`.
        out: whether it takes `out=`.
    """

    def declare(forward: Any) -> Any:
        o = Op(forward, **declaration)
        if o.key in registry:
            raise TypeError(f"op {o.key} is declared twice")
        registry[o.key] = o
        declaring.add(forward.__module__)
        o.private = operator is None
        with_out = out and not o.view and space is not None
        o.compile = lambda: generate.compile_op(o, with_out, space is not None)  # type: ignore[attr-defined]
        call = o.call = lazily(o.key, o.compile, o.doc)  # type: ignore[attr-defined]
        call.op = o  # type: ignore[attr-defined]
        call.__module__ = forward.__module__
        call.__name__ = call.__qualname__ = torch_name(o.name, space)
        publish(o.name, call, Publication(space, method and space is not None, aliases=aliases, also=also))
        if operator:
            publish_operator(o, operator, reflected)
        if o.inplace:
            twin = make_inplace(o)
            operands = sum(annotation in KINDS for annotation in o.annotations.values()) - 1
            for name in (o.name, *aliases):
                setattr(Tensor, f"{name}_", twin)
                if operands == 1 and space == "torch":
                    spaces["torch"][f"{name}_"] = twin
            if operator and operands == 2 and hasattr(operators, f"i{operator}"):  # comparisons have none
                setattr(Tensor, f"__i{operator}__", make_inplace(o, operator=True))
        return call

    return declare


def torch_name(name: str, space: str | None) -> str:
    """The name torch knows a function by, in errors too: those of some modules carry the module's."""
    prefix = f"{space}_"
    return prefix + name if space in ("fft", "linalg", "special") and not name.startswith(prefix) else name


def publish_operator(o: Op, operator: str, reflected: bool) -> None:
    """The same generated code as an operator, which leaves operands of foreign types to them."""

    def compile() -> Any:
        shown = o.eager_source
        real = generate.compile_op(o)
        o.eager_source = shown  # `show` prints the function, which knows more keywords
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
    also: tuple[str, ...] = (),
    out: bool = False,
    raw: bool = False,
    explained: bool | None = None,
    numpy_names: bool = True,
    **facts: Any,
) -> Callable[[Any], Any]:
    """Declare a public function written in terms of ops. See `Declaration` for the facts it may state.

    Users get a thin generated wrapper: torch's name `input` for self, `out=`, and unless `numpy_names` is false
    NumPy's names, which torch knows in all functions but those it writes in Python.
    With `raw` they get the function itself (for signatures that are anything but ordinary). If it is also `explained`,
    they get it inside another call, which says what is wrong with arguments as the generated wrappers do; so are those
    that take tensors and are no methods, unless they say that they are not: what is called often ends with `explain`.
    """

    def declare(body: Any) -> Any:
        f = Function(body, name, facts)
        functions[f.key] = f
        inside = raw and not method and space and takes_tensors(body) if explained is None else explained
        call: Any = (
            explaining(f)
            if inside
            else body
            if raw
            else lazily(f.key, lambda: compile_function(f, out, numpy_names), f.doc)
        )
        f.call = call
        call.op = f
        call.__module__ = body.__module__
        call.__name__ = call.__qualname__ = torch_name(f.name, space)
        publish(f.name, call, Publication(space, method, operator, aliases=aliases, also=also))
        return call

    return declare


def takes_tensors(body: FunctionType) -> bool:
    """Whether a parameter of a function is annotated as a tensor, an array or several of them."""
    return any(["Tensor" in kind or "Array" in kind for name, kind in body.__annotations__.items() if name != "return"])


def explaining(f: Function) -> Any:
    """A function that torch's errors about arguments are raised for once it has failed."""
    body = f.body

    @wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return body(*args, **kwargs)
            except Exception:
                refuse_call(call.__name__, args, kwargs, f.path, body)
                raise
        except Exception as error:
            trim(error)
            raise

    return call


def compile_function(f: Function, with_out: bool, numpy_names: bool) -> Any:
    """The wrapper of a function: NumPy's names and out= handled, then the body."""
    names = [public_name(p.name) for p in f.params]
    call = f"BODY({', '.join(f'{n}={n}' if p.keyword_only else n for n, p in zip(names, f.params, strict=True))})"
    known = Rare(f.name, f.params, with_out) if with_out or (numpy_names and renamed(f.params)) else None
    required = [n for n, p in zip(names, f.params, strict=True) if p.default is REQUIRED and not p.keyword_only]
    lines = []
    if known is not None:
        if not numpy_names:
            known.names = ()
        lines += ["    if rare:", f"        {known.source()}"]
        if with_out:
            given, decision = "".join(f"{n}, " for n in names), "dtype = decided(BODY_OF, dtype, out)"
            lines += [
                "        if out is not None:",
                *(["            dtype = named_dtype(dtype)"] if "dtype" in names else []),
                *([f"            {decision}"] if f.out_decides == "computed" else []),
                "            try:",
                f"                made = {call}",
                *([f"                {decision}"] if f.out_decides == "checked" else []),
                "            except Exception as error:",
                f"                FAILED(error, ({given}))",
                "                raise",
                f"            return write_result(NAME, made, out, ({given}))",
            ]
        if required:
            given = ", ".join(f"{n}={n}" for n in required)
            absent = " or ".join(f"{n} is MISSING" for n in required)
            everything = "".join(f"{n}, " for n in names)
            lines.append(f"    if {absent}: FAILED(None, ({everything})); refuse_missing(NAME, dict({given}))")
    lines += scope_lines(f.params, call)
    head = [f"def {f.key}({signature(f.params, known is not None)}):"]
    if notes_caller(f.params):
        head.append("    global CALLER")
    namespace = dict(generate.BASE, BODY=f.body, NAME=f.name, MISSING=MISSING, RARE=known, write_result=write_result)
    namespace.update(refuse_missing=refuse_missing, decided=decided, BODY_OF=f, named_dtype=named_dtype)
    namespace["FAILED"] = failed(f, numpy_names)
    for p in f.params:
        if p.default is not REQUIRED:
            namespace[f"DEFAULT_{p.name}"] = p.default
    generate.compiled("\n".join([*head, *generate.trimmed(lines)]), namespace, f.key)
    return namespace[f.key]


def explain(error: Exception, call: Any, *values: Any) -> None:
    """The same at the end of a function that is called too often to be inside of another: what its parameters are, or
    its arguments if it takes any number of them."""
    try:
        if unpatched(call.op.body).__code__.co_flags & CO_VARARGS:
            refuse_call(call.__name__, values, {}, frame=caller(2))
        else:
            refuse_wrong_types(call.op, values, frame=caller(2))
    except Exception as better:
        trim(better)
        raise
    trim(error)


def failed(f: Function, typed: bool) -> Callable[[Exception | None, tuple[Any, ...]], None]:
    """What happens after a function has raised: arguments of wrong types are the reason torch gives before all others,
    except in the functions it writes in Python."""

    def explain(error: Exception | None, values: tuple[Any, ...]) -> None:
        if typed or in_python(f.path):
            refuse_wrong_types(f, values)
        if isinstance(error, (RuntimeError, ValueError)):
            given = zip(f.params, values, strict=True)
            who.explain(error, {public_name(p.name): value for p, value in given if p.kind != "plain"})

    return explain
