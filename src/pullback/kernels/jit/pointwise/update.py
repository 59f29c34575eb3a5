"""Updates of several arrays of one size in one pass: an expression for each array that changes, in one loop.

What depends on no array is a number that each call is given. Every step is rounded as NumPy rounds it, so the result
is that of the same steps done array by array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from pullback._thresholds import UPDATE_SHARE
from pullback.kernels.jit.compiler.target import ELEMENTS, lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.emit import emit_step
from pullback.kernels.jit.language.expression import Node, order_of
from pullback.kernels.jit.rows.programs import spread, vector_of
from pullback.kernels.jit.runtime import calls

SHARE = UPDATE_SHARE
"""What callers pass for the smallest share of a thread."""


def parts_of(roots: Iterable[Node]) -> tuple[list[Node], list[Node]]:
    """The steps that are done for each element, and the numbers they use: what depends on no array, constants aside."""
    steps: dict[int, Node] = {}
    numbers: dict[int, Node] = {}
    for node in order_of(*roots):
        if node.op == "input" or any([id(arg) in steps for arg in node.args]):
            steps[id(node)] = node
            numbers |= {id(arg): arg for arg in node.args if id(arg) not in steps and arg.op != "constant"}
    return list(steps.values()), list(numbers.values())


def update(dtype: str, arrays: int, results: dict[int, Node]) -> Callable[..., bool]:
    """The kernel that gives arrays, by their positions, the values of expressions; numbers come as in `parts_of`."""
    element = ELEMENTS[dtype]
    type, width = vector_of(element), lanes(element)
    steps, numbers = parts_of(results.values())
    names = {id(node): f"n{i}" for i, node in enumerate(numbers)}
    lines = []
    for node in steps:
        names[id(node)] = f"x{node.value}" if node.op == "input" else f"v{len(names)}"
        if node.args:
            args = [names.get(id(arg), str(arg.value)) for arg in node.args]
            lines.append(f"{names[id(node)]} = {node.op}({', '.join(args)})")
    note = "\n".join([*lines, *[f"x{place} <- {names[id(root)]}" for place, root in results.items()]])
    name = "update_" + hashlib.sha256(f"{dtype} {arrays} {note}".encode()).hexdigest()[:16]
    if name in known:
        return known[name]

    def describe(code: Code, *given: Value) -> None:
        places = given[:arrays]
        passed = {id(node): spread(code, s) for node, s in zip(numbers, given[arrays + 1 :], strict=True)}

        def body(i: Value) -> None:
            values = dict(passed)
            for node in steps:
                if node.op == "input":
                    values[id(node)] = code.load(places[node.value], i, type)
                    continue
                args = [values.get(id(arg)) or code.const(arg.value, type) for arg in node.args]
                values[id(node)] = emit_step(code, node, args, type)
            for place, root in results.items():
                code.store(values[id(root)], places[place], i)

        code.vectors(code.begin, code.end, width, body, 2)

    params = [calls.array(dtype, "n", write=i in results) for i in range(arrays)]
    params += [calls.integer("n"), *[calls.number()] * len(numbers)]
    return known.setdefault(name, calls.kernel(name, params, describe, note, element))


known: dict[str, Callable[..., bool]] = {}
