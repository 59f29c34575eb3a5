"""Updates of several arrays of one size in one pass: a short program per element, compiled once.

A program is a tuple of instructions. Values are numbered: first the arrays, then the result of each instruction. An
operand n >= 0 is value n; an operand n < 0 is number -1 - n, given with each call. Every step is rounded as NumPy
rounds it, so the result is that of the same steps done array by array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache

from pullback.kernels.jit.compiler.target import ELEMENTS, lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import WORK, spread, vector_of
from pullback.kernels.jit.runtime import calls

Program = tuple[tuple[str, tuple[int, ...]], ...]
Results = tuple[tuple[int, int], ...]
ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
GRAIN = WORK // 2
"""Each element is read and written several times, so shares may be smaller than those of a plain loop."""


@cache
def update(dtype: str, arrays: int, numbers: int, program: Program, results: Results) -> Callable[..., bool]:
    """The kernel that runs a program and writes values back: `results` pairs an array with the value it becomes."""
    element = ELEMENTS[dtype]
    type, width = vector_of(element), lanes(element)
    written = {array for array, _ in results}

    def describe(code: Code, *given: Value) -> None:
        places, scalars = given[:arrays], [spread(code, s) for s in given[arrays + 1 :]]

        def body(i: Value) -> None:
            values = [code.load(place, i, type) for place in places]
            for name, operands in program:
                values.append(step(code, name, [values[n] if n >= 0 else scalars[-1 - n] for n in operands]))
            for array, value in results:
                code.store(values[value], places[array], i)

        code.vectors(code.begin, code.end, width, body, 2)

    params = [calls.array(dtype, "n", write=i in written) for i in range(arrays)]
    params += [calls.integer("n"), *[calls.number()] * numbers]
    name = "update_" + hashlib.sha256(repr((dtype, program, results)).encode()).hexdigest()[:16]
    note = "\n".join(f"v{arrays + i} = {op}{operands}" for i, (op, operands) in enumerate(program))
    return calls.kernel(name, params, describe, note, element)


def step(code: Code, name: str, operands: list[Value]) -> Value:
    """One instruction."""
    first = operands[0]
    if name in ARITHMETIC:
        return code.emit(f"{ARITHMETIC[name]} {first}, {operands[1].name}", first.type)
    if name == "maximum":
        return code.maximum(first, operands[1])
    return {"sqrt": code.sqrt, "abs": code.abs, "neg": lambda v: -v}[name](first)
