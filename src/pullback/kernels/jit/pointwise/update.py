"""Updates of several arrays of one size in one pass: an expression for each array that changes, in one loop.

What depends on no array is a number that each call is given. Every step is rounded as NumPy rounds it, so the result
is that of the same steps done array by array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

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
        update_loop(code, results, element, given[:arrays], given[arrays + 1 :])

    params = [calls.array(dtype, "n", write=i in results) for i in range(arrays)]
    params += [calls.integer("n"), *[calls.number()] * len(numbers)]
    return known.setdefault(name, calls.kernel(name, params, describe, note, element))


def update_loop(
    code: Code, results: dict[int, Node], element: str, places: Sequence[Value], passed: Sequence[Value]
) -> None:
    """The loop over the elements of one tuple of arrays."""
    type, width = vector_of(element), lanes(element)
    steps, numbers = parts_of(results.values())
    known = {id(node): spread(code, s) for node, s in zip(numbers, passed, strict=True)}

    def body(i: Value) -> None:
        values = dict(known)
        for node in steps:
            if node.op == "input":
                values[id(node)] = code.load(places[node.value], i, type)
                continue
            args = [values.get(id(arg)) or code.const(arg.value, type) for arg in node.args]
            values[id(node)] = emit_step(code, node, args, type)
        for place, root in results.items():
            code.store(values[id(root)], places[place], i)

    code.vectors(code.begin, code.end, width, body, 2)


Many = tuple[dict[int, Node], str, int, list[int], list[str], int]
"""An update of several tuples of arrays: the results by position, the dtype, how many arrays are in a tuple, the sizes
of the tuples, the dtypes of the counters that come with each, and how many numbers are passed for the expressions."""


def together(updates: list[Many]) -> Callable[..., bool]:
    """The kernel that does many updates in one call. Counters are given the last numbers of their update."""
    loops = []
    for results, dtype, arrays, _, _, passed in updates:
        loops.append(loop := Code(f"loop_{len(loops)}"))
        places = [loop.argument(i, "ptr") for i in range(arrays)]
        update_loop(
            loop, results, ELEMENTS[dtype], places, [loop.argument(arrays + i, ELEMENTS[dtype]) for i in range(passed)]
        )

    def describe(code: Code, *given: Value) -> None:
        left = list(given)
        many = [[left.pop(0) for _ in range((update[2] + len(update[4])) * len(update[3]))] for update in updates]
        for nr, (_, _, arrays, sizes, counters, passed) in enumerate(updates):
            code.function(loops[nr])
            numbers = [left.pop(0) for _ in range(passed + len(counters))]
            slots = code.stack(arrays + passed, "i64")
            for i in range(passed):
                code.store(numbers[i], slots, arrays + i)
            for size in sizes:
                for i in range(arrays):
                    code.store(code.address(many[nr].pop(0)), slots, i)
                if size <= SHARE:
                    code.do(f"call void @{code.name}_{loops[nr].name}({slots}, i64 0, i64 {size}, i64 0)")
                else:
                    shared = f"ptr @{code.name}_{loops[nr].name}, {slots}, i64 {size}, i64 {SHARE}"
                    code.do(f"call void @pullback_parallel_for({shared})")
                for i, kind in enumerate(counters):
                    code.store(code.convert(numbers[passed + i], ELEMENTS[kind]), many[nr].pop(0), 0)

    params = []
    for results, dtype, arrays, sizes, counters, _ in updates:
        for size in sizes:
            params += [calls.array(dtype, str(size), write=i in results) for i in range(arrays)]
            params += [calls.array(kind, "1", write=True) for kind in counters]
    params += [calls.number()] * sum([passed + len(counters) for *_, counters, passed in updates])
    facts = [[loop.text() for loop in loops], [update[1:] for update in updates]]
    name = f"updates_{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    if name not in known:
        known[name] = calls.kernel(name, params, describe, f"{len(params)} arrays and numbers", "double")
    return known[name]


known: dict[str, Callable[..., bool]] = {}
