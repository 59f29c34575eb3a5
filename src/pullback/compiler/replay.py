"""Running a program again: straight-line Python that calls what eager code calls, without autograd and dispatch."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import numpy as np

from pullback._op.ufuncs import is_pointwise
from pullback.compiler.program import CALL, EFFECT, METHOD, OP, Program, Slot, Step, slots_in

numbering = count()
PURE = {
    "sum_to",
    "column_sums",
    "memory_of",
    "window",
    "grad_of",
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
    if step.writes or step.random or step.kind == EFFECT:
        return False
    if step.kind == OP:
        return step.op.view or is_pointwise(step.op)
    if step.kind == CALL:
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
    space: dict[str, Any] = {"asarray": np.asarray, "ndarray": np.ndarray}
    names: dict[int, str] = {}

    def constant(value: Any) -> str:
        if value is None or value is True or value is False or type(value) is int:
            return repr(value)
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
    for at, step in enumerate(steps):
        args = [expression(a) for a in step.args]
        keywords = [f"{key}={expression(value)}" for key, value in step.kwargs.items()]
        if step.kind == METHOD:
            call = f"{args[0]}.{step.function}({', '.join([*args[1:], *keywords])})"
        else:
            call = f"{constant(step.function)}({', '.join([*args, *keywords])})"
        outs = [out for out in step.outs if out is not None]
        if step.several and outs:
            lines.append(", ".join(["_" if out is None else str(out) for out in step.outs]) + f", = {call}")
        elif outs:
            lines.append(f"{outs[0]} = {call}")
            if may_be_scalar(step):
                lines.append(f"if type({outs[0]}) is not ndarray: {outs[0]} = asarray({outs[0]})")
        else:
            lines.append(call)
        dead = {i for i, end in last.items() if end == at and i not in program.constants}
        if dead:
            lines.append(f"del {', '.join([f's{i}' for i in sorted(dead)])}")
    lines.append(f"return ({''.join([expression(slot) + ', ' for slot in wanted])})")
    heading = f"def program({', '.join([f's{slot.index}' for slot in given])}):"
    return "\n    ".join([heading, *lines]), space


def may_be_scalar(step: Step) -> bool:
    """Whether NumPy may give a number in place of an array without dimensions."""
    return step.kind != OP and any([out is not None and out.shape == () for out in step.outs])


def runner(
    program: Program, steps: list[Step], given: list[Slot], wanted: list[Slot]
) -> tuple[Callable[..., tuple[Any, ...]], str]:
    """The compiled function of a program, and its source."""
    source, space = source_of(program, steps, given, wanted)
    filename = f"<pullback program {next(numbering)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), space)
    return space["program"], source
