"""The source that notes locations: where a node is made, and where a result without history lost that of its inputs."""

from __future__ import annotations

from collections.abc import Iterator

from pullback._op.declare import Op, Parameter
from pullback._op.signatures import public_name


def detached(op: Op) -> str:
    """Where a result without history lost the one its inputs had, as source: here, or where they did."""
    inherited = []
    for t in op.tensors:
        name, kind = public_name(t), op.fast_kind(t)
        if kind == "tensor":
            inherited.append(f"{name}._detached_at")
        elif kind == "list":
            inherited.append(f"detached_among({name})")
        elif t in op.differentiable:
            inherited.append(f"({name}._detached_at if {t}_wants is not None else None)")
    if op.differentiable:
        return f"here().block if {' or '.join(f'{t}_wants' for t in op.differentiable)} else {' or '.join(inherited)}"
    wants = " or ".join(f"{public_name(t)}._requires_grad" for t in op.tensors if op.fast_kind(t) == "tensor")
    if not wants:
        return " or ".join(inherited) or "None"
    return f"detached_here(NAME) if ({wants}) and is_grad_enabled() else {' or '.join(inherited)}"


def location_lines(op: Op) -> Iterator[str]:
    """Lines that note where the node is made: see autograd/locations.py."""
    yield "scope = node._scope = here().scope"
    yield "if scope is not None and scope[4]: node._code = None; node._offset = 0"
    if op.private:
        yield "else: locate(node)"
        return
    yield "else:"
    yield "    try: frame = getframe(1)"
    yield "    except ValueError: frame = NOBODY"
    yield "    code = frame.f_code"
    yield "    if code is CALLER: node._code = code; node._offset = frame.f_lasti"
    yield "    elif code.co_filename in USER: node._code = CALLER = code; node._offset = frame.f_lasti"
    yield "    else: find(node, frame)"


def notes_caller(params: list[Parameter]) -> bool:
    """Whether a function notes who called it: its first tensor makes it likely to record ops."""
    return bool(params) and params[0].kind == "tensor"


def scope_lines(params: list[Parameter], call: str) -> Iterator[str]:
    """Lines that call the body of a function, inside a scope if it is likely to record ops."""
    failed = f"FAILED(error, ({', '.join(public_name(p.name) for p in params)},)); raise translated(error)"
    # Python's own types of numbers stand for dtypes: that is looked at after a call has failed, and costs no other.
    named = any([public_name(p.name) == "dtype" for p in params])
    unless_named = "if named_dtype(dtype) is dtype: " if named else ""
    if notes_caller(params):
        first = public_name(params[0].name)
        is_tensor = f"(type({first}) is Tensor or type({first}) is Parameter)"
        yield f"    if {is_tensor} and {first}._requires_grad and is_grad_enabled():"
        yield "        stack = here()"
        yield "        if stack is NOWHERE: stack = own_stack()"
        yield "        scope = stack.scope"
        yield "        if scope is None or not scope[4]:"
        yield "            try: frame = getframe(1)"
        yield "            except ValueError: frame = NOBODY"
        yield "            code = frame.f_code"
        yield "            if code is not CALLER and code.co_filename in USER: CALLER = code"
        yield "            if code is CALLER:"
        yield "                stack.scope = (code, frame.f_lasti, None, scope, True)"
        yield f"                try: return {call}"
        yield "                except Exception as error:"
        yield f"                    {unless_named}{failed}"
        yield "                finally: stack.scope = scope"
    yield f"    try: return {call}"
    yield "    except Exception as error:"
    yield f"        {unless_named}{failed}"
    if named:
        yield "    dtype = named_dtype(dtype)"
        yield f"    try: return {call}"
        yield f"    except Exception as error: {failed}"
