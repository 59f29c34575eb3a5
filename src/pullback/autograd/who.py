"""What errors say after torch's own text: who saved, who wrote, who freed, who cut, and on which line.

Every function returns lines that begin with a line break, or nothing where nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import CodeType
from typing import Any

from pullback._dtype import FROM_NUMPY
from pullback._runtime import messages
from pullback._tensor import DETACHED, Tensor
from pullback.autograd.locations import (
    Detached,
    Location,
    getframe,
    here,
    is_library,
    location_of,
    place_text,
    resolve,
    variables_of,
)
from pullback.autograd.node import Node, parts
from pullback.autograd.tracebacks import is_ours

WORDS = {"_to_copy": "a cast to a dtype without derivatives"}
"""What some ops are called here that cut a history."""
SHAPES = re.compile("size|shape|dimension|broadcast|expand|element|channel|subscript")
"""What the text of an error mentions that shapes explain."""
BLOCKS = ("detach", ".", "torch.", "a ", "an ", "set_")


def line(text: str, place: Location | None) -> str:
    """One line of an explanation: what happened, and where."""
    if place is None:
        return ""
    inside = "" if place.module is None else f" [{place.module}]"
    return f"\n  {text} at {place}{inside}"


def made(node: Node | None) -> str:
    """Where a node was made."""
    return "" if node is None else line(f"{node.name()} was made", location_of(node))


def overwritten(node: Node | None, tensor: Tensor, version: int) -> str:
    """Who saved a tensor, and who wrote over it since."""
    counter: Any = tensor._counter
    notes: Any = counter if type(counter) is list else getattr(counter, "shared", ())
    count = tensor._counter[0] % DETACHED - version % DETACHED
    which = "written over" if count == 1 else f"written over {count} times since, last"
    write = line(which, resolve(notes[1], notes[2], None)) if len(notes) == 3 else ""
    return ("" if node is None else line(f"saved by {node.name()}", location_of(node))) + write


def freed(node: Node | None, by: Any) -> str:
    """Where a node was made, and which backward freed what it had saved."""
    return made(node) + line("what it had saved was freed by the backward", resolve(by.code, by.offset, None))


def what(cut: Detached) -> str:
    """What cut a history, in words."""
    kind = cut[0]
    return kind if kind.startswith(BLOCKS) else WORDS.get(kind, f"{kind}, which has no derivative,")


def detached_at(tensor: Tensor) -> tuple[str, Location | None] | None:
    """What cut the history of a tensor (or of what it was computed from), and where; None if nothing did."""
    cut = tensor._detached_at
    return None if cut is None else (what(cut), resolve(*cut[1:]))


def lost(tensor: Any) -> str:
    """Where a tensor without history lost it."""
    if not isinstance(tensor, Tensor):
        return ""
    if tensor._detached_at is not None:
        return line(f"its history was cut by {what(tensor._detached_at)}", resolve(*tensor._detached_at[1:]))
    left, frozen = here().left, frozen_nearby(tensor)
    if left is None:
        return frozen
    return frozen + line(f"perhaps its value comes out of the graph through {left[0]}", resolve(*left[1:]))


def lost_in(nodes: Iterable[Node]) -> str:
    """Which nodes took a tensor whose history had been cut."""
    found: dict[str, None] = {}
    for node in nodes:
        for tensor in saved_by(node):
            if tensor._detached_at is not None:
                text = f"{node.name()} takes a tensor whose history was cut by {what(tensor._detached_at)}"
                found[line(text, resolve(*tensor._detached_at[1:]))] = None
    return "".join(list(found)[:3])


def frozen_nearby(result: Tensor) -> str:
    """Which variables of the calling function cannot have given a result a history: tensors, or modules, of which
    none requires grad."""
    frozen = []
    for name, value in variables_nearby():
        if isinstance(value, Tensor):
            if value is not result and not value._requires_grad and value._array.dtype.kind in "fcV":
                frozen.append(f"`{name}`")
        elif "_parameters" in getattr(value, "__dict__", ()) and callable(getattr(value, "parameters", None)):
            parameters = list(value.parameters())
            if parameters and not any(p.requires_grad for p in parameters):
                frozen.append(f"the parameters of `{name}`")
    names = ", ".join(frozen[:4])
    return f"\n  nothing it was computed from requires grad; here these do not: {names}" if frozen else ""


def variables_nearby() -> list[tuple[str, Any]]:
    """The variables of the user's function that is running, and their values."""
    frame: Any = getframe(1)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return [] if frame is None else variables_of(frame.f_locals)


def lost_nearby() -> str:
    """Which variables of the calling function hold a tensor whose history was cut."""
    texts = [
        line(f"`{name}` has no history: cut by {what(value._detached_at)}", resolve(*value._detached_at[1:]))
        for name, value in variables_nearby()
        if isinstance(value, Tensor) and value._detached_at is not None and not value._requires_grad
    ]
    return "".join(texts[:3])


def saved_by(node: Any) -> list[Tensor]:
    """The tensors a node keeps as they are."""
    values = [getattr(node, f"{name}_", None) for name in getattr(getattr(node, "op", None), "saved", ())]
    values += [keeper.value for keeper in getattr(node, "kept", ()) if hasattr(keeper, "value")]
    flat = [item for value in values for item in (value if type(value) is list else (value,))]
    return [value for value in flat if isinstance(value, Tensor)]


def explain(error: BaseException, named: dict[str, Any]) -> None:
    """Add to an error of this library about shapes the tensors that were given, once."""
    if not isinstance(error, (RuntimeError, ValueError)):
        return
    explained = error.__dict__.setdefault("explained", False)
    if explained or len(error.args) != 1 or not isinstance(error.args[0], str) or not SHAPES.search(error.args[0]):
        return
    if is_ours(error) and (text := operands(named)):
        error.args = (error.args[0] + text,)
        error.explained = True  # type: ignore[union-attr]


def operands(named: dict[str, Any]) -> str:
    """The shapes and dtypes of the tensors an op was given, and where they were made."""
    lines, known = [], False
    for name, value in named.items():
        for nr, tensor in enumerate(value if isinstance(value, (list, tuple)) else (value,)):
            if isinstance(tensor, Tensor):
                label = f"{name}[{nr}]" if isinstance(value, (list, tuple)) else "input" if name == "self" else name
                kind = FROM_NUMPY[tensor._array.dtype]
                text = f"\n  {label}: {messages.shape_text(tensor._array.shape)} {kind!r}"
                place = None if tensor._edge is None else location_of(parts(tensor._edge)[0])
                known = known or place is not None
                lines.append(text if place is None else f"{text}, made at {place}")
    place = resolve(None, 0, here().scope)
    if place is None or place.module is None:
        return "".join(lines[:4]) if known or len(lines) > 1 else ""
    return "".join(lines[:4]) + line(f"in {place.module}, called", place._replace(module=None))


def defined(function: Any, text: str) -> str:
    """Where a function of the user's is defined."""
    function = getattr(function, "__func__", function)
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is None:
        code = getattr(type(function).__call__, "__code__", None)
    if not isinstance(code, CodeType) or is_library(code.co_filename):
        return ""
    return f"\n  {text} is defined at {place_text(code.co_filename, code.co_firstlineno)}"
