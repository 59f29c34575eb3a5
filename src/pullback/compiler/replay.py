"""Running a program again: straight-line Python that calls what eager code calls, without autograd and dispatch."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from pullback._op.ufuncs import is_pointwise
from pullback.autograd.accumulate import accumulate_array
from pullback.compiler.branches import Missed, is_number
from pullback.compiler.effects import Leaf, arrived_at
from pullback.compiler.program import BRANCH, CALL, EFFECT, FORMULA, METHOD, OP, Program, Slot, Step, slots_in
from pullback.compiler.texts import MOST, function_of
from pullback.kernels.jit.small.choose import Chooser, Variants

numbering = count()
SMALL = 8
"""Numbers that stand in the text of a program: dimensions, flags."""
PURE = {
    "sum_to",
    "column_sums",
    "memory_of",
    "window",
    "grad_of",
    "as_operand",
    "laid_out",
    "ones",
    "zeros",
    "empty",
    "full",
    "real_parts",
    "imaginary_parts",
}
"""Calls whose only trace is their result."""


def is_pure(step: Step) -> bool:
    """Whether nobody misses a step whose results nobody uses."""
    if step.writes or step.random or step.kind in (EFFECT, BRANCH):
        return False
    if step.kind == OP:
        return step.op.view or is_pointwise(step.op)
    if step.kind == CALL:
        if step.outs and step.outs[0] is not None and is_number(step.outs[0]):
            return True
        return isinstance(step.function, np.ufunc) or getattr(step.function, "__name__", "") in PURE
    return True


def without_dead(steps: list[Step], wanted: Iterable[Slot]) -> list[Step]:
    """The steps whose results or effects are needed."""
    needed = {slot.index for slot in wanted}
    kept = []
    for step in reversed(steps):
        outs = [out.index for out in step.outs if out is not None]
        if is_pure(step) and not needed.intersection(outs):
            continue
        # Memory that is written is needed where it is read: those steps name its slots.
        needed.update([slot.index for slot in step.reads()])
        kept.append(step)
    kept.reverse()
    return kept


def source_of(program: Program, steps: list[Step], given: list[Slot], wanted: list[Slot]) -> tuple[str, dict[str, Any]]:
    """A function of the arrays in the slots `given` that runs the steps and returns the arrays in `wanted`."""
    space: dict[str, Any] = {"asarray": np.asarray, "ndarray": np.ndarray, "Missed": Missed}
    names: dict[int, str] = {}

    def constant(value: Any) -> str:
        if value is None or value is True or value is False:
            return repr(value)
        if type(value) is int:
            if -SMALL < value < SMALL:
                return repr(value)
            known = f"n{len(space)}"  # it may be a size: programs for other ones have the same text
            space[known] = value
            return known
        known = names.get(id(value))
        if known is None:
            known = names[id(value)] = f"k{len(names)}"
            space[known] = value
        return known

    def expression(value: Any) -> str:
        kind = type(value)
        if kind is Slot:
            if value.index in program.constants:
                return constant(program.constants[value.index])
            return f"s{value.index}"
        if kind is Leaf and value.slot is not None:
            return f"s{value.slot.index}"
        if kind in (list, tuple) and any(True for _ in slots_in(value)):
            inside = ", ".join([expression(item) for item in value])
            return f"[{inside}]" if kind is list else f"({inside},)"
        if kind is dict and any(True for _ in slots_in(value)):
            return "{" + ", ".join([f"{key!r}: {expression(item)}" for key, item in value.items()]) + "}"
        return constant(value)

    last: dict[int, int] = {}
    for at, step in enumerate(steps):
        for slot in (*step.reads(), *[out for out in step.outs if out is not None]):
            last[slot.index] = at
    for slot in wanted:
        last[slot.index] = len(steps)
    lines = []
    branches = 0
    written = {slot.index for step in steps for slot in step.writes}
    numbers: set[str] = set()
    """What formulas hand to formulas as numbers of NumPy, as in eager, where products of complex ones differ."""
    for at, step in enumerate(steps):
        args = [expression(a) for a in step.args]
        keywords = [f"{key}={expression(value)}" for key, value in step.kwargs.items()]
        if step.function is arrived_at and args[1] == str(step.args[1]) and last[step.args[1].index] == at:
            # A gradient that is read no more is held by nobody else: the leaf may take it over.
            leaf, slot = constant(step.args[0].tensor) if step.args[0].slot is None else f"{args[0]}.tensor", args[1]
            lines.append(f"arriving = {{{leaf}: {slot}}}")
            lines.append(f"del {slot}")
            last[step.args[1].index] = -1
            lines.append(f"accumulate({leaf}, arriving, {leaf})")
            space["accumulate"] = accumulate_array
            dead_now(lines, last, at, program)
            continue
        if step.kind != FORMULA:
            args = [f"asarray({arg})" if arg in numbers else arg for arg in args]
        if step.kind == METHOD:
            call = f"{args[0]}.{step.function}({', '.join([*args[1:], *keywords])})"
        else:
            name = direct(step, space, args) or constant(step.function)
            call = f"{name}({', '.join([*args, *keywords])})"
        outs = [out for out in step.outs if out is not None]
        if step.kind == BRANCH:
            known = constant(step.expected)
            test = f"is not {known}" if type(step.expected) is bool else f"!= {known}"
            lines.append(f"if (found := {call}) {test}: return Missed({branches}, found)")
            branches += 1
        elif step.several and outs:
            lines.append(", ".join(["_" if out is None else str(out) for out in step.outs]) + f", = {call}")
        elif outs:
            lines.append(f"{outs[0]} = {call}")
            if may_be_scalar(step) and step.kind == FORMULA and outs[0].index not in written:
                numbers.add(str(outs[0]))
            elif may_be_scalar(step):
                lines.append(f"if type({outs[0]}) is not ndarray: {outs[0]} = asarray({outs[0]})")
        else:
            lines.append(call)
        dead_now(lines, last, at, program)
    results = [f"asarray({name})" if name in numbers else name for name in map(expression, wanted)]
    lines.append(f"return ({''.join([result + ', ' for result in results])})")
    names = [f"s{slot.index}" for slot in given]
    names = [f"again{i}" if name in names[:i] else name for i, name in enumerate(names)]  # one array of two tensors
    heading = f"def program({', '.join(names)}):"
    return "\n    ".join([heading, *lines]), space


def dead_now(lines: list[str], last: dict[int, int], at: int, program: Program) -> None:
    """Forget what nobody reads after a step."""
    dead = [i for i, end in last.items() if end == at and i not in program.constants]
    if dead:
        lines.append(f"del {', '.join([f's{i}' for i in sorted(dead)])}")


def direct(step: Step, space: dict[str, Any], args: list[str]) -> str:
    """The name of what computes an op without a call in between, builtins as soon as they are made; else nothing."""
    if step.kind != OP or not getattr(step.function, "plain", False):
        return ""
    forward = step.function.forward  # type: ignore[union-attr]
    name = f"f{len(space)}"
    if type(forward) is Chooser:
        space[name] = forward.head
        forward.bind(space, name)
    elif type(forward) is Variants:
        return ""
    else:
        space[name] = forward
    return name


def may_be_scalar(step: Step) -> bool:
    """Whether NumPy may give a number in place of an array without dimensions."""
    return any([out is not None and out.shape == () and not is_number(out) for out in step.outs])


def runner(
    program: Program, steps: list[Step], given: list[Slot], wanted: list[Slot]
) -> tuple[Callable[..., tuple[Any, ...]], str]:
    """The compiled function of a program, and its source."""
    source, space = source_of(program, steps, given, wanted)
    filename = filename_of(source)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return function_of(source, space, "program", filename), source


@lru_cache(MOST)
def filename_of(source: str) -> str:
    """The name under which Python knows a text."""
    return f"<pullback program {next(numbering)}>"
