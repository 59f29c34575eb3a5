"""Programs in which Python looked at values: the order of such steps, and the way back where a value is another one.

A branch is a step that gave something Python acted upon. A program is for one path: what its branches gave. Where one
gives something else, everything the program did so far is undone, and a program for the other path runs, or the
function is recorded once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback._arrays.memory import memory_of
from pullback._tensor import INFERENCE
from pullback.compiler.effects import arrived_at, forget_grad, grad_of, stepped_by, taken_by, updated_by
from pullback.compiler.program import BRANCH, CALL, EFFECT, NUMBER, Program, Slot, Step

LEAVES = (arrived_at, taken_by, forget_grad)
LASTING = (updated_by, stepped_by)
"""Effects that cannot be undone."""


class Missed:
    """What a program gives back where a branch gives something it is not for."""

    __slots__ = ("entry", "number", "path", "value")

    def __init__(self, number: int, value: Any) -> None:
        self.number, self.value = number, value
        self.entry: Any = None
        self.path: tuple[Any, ...] = ()
        """What branches gave up to here."""

    def told(self) -> str:
        """Where, in words."""
        return f"what was read at {self.entry.lines[self.number]} is {self.value!r}"


def is_number(slot: Slot) -> bool:
    """Whether a slot holds a number of Python."""
    return slot.dtype is NUMBER.dtype


def in_order(program: Program, steps: list[Step]) -> list[Step]:
    """What depends on numbers among the arguments alone comes first; numbers that are only returned come last.

    So nothing is to be undone because of an argument, and a loss that is returned as a number does not cut a program
    in two.
    """
    free = {slot.index for slot, _ in program.numbers}
    first, rest = [], []
    for step in steps:
        if step.kind in (CALL, BRANCH) and not step.random and not step.writes:
            reads = [slot.index for slot in step.reads()]
            if reads and free.issuperset(reads):
                first.append(step)
                free |= {out.index for out in step.outs if out is not None}
                continue
        rest.append(step)
    needed: set[int] = set()
    written: set[int] = set()
    """Memory that steps further on may change."""
    beyond = {external.slot.memory for external in program.externals}
    beyond |= {slot.memory for step in steps if step.kind == EFFECT for slot in step.reads()}
    beyond |= {out.memory for step in steps if step.function is grad_of for out in step.outs if out is not None}
    middle, last = [], []
    for step in reversed(rest):
        outs = [out for out in step.outs if out is not None]
        if step.kind == CALL and outs and is_number(outs[0]) and outs[0].index not in needed:
            if not written.intersection([slot.memory for slot in step.reads()]):
                last.append(step)
                continue
        needed.update([slot.index for slot in step.reads() if is_number(slot)])
        written.update([slot.memory for slot in step.writes])
        if step.kind == EFFECT:
            written |= beyond
        middle.append(step)
    return [*first, *reversed(middle), *reversed(last)]


def irreversible(steps: list[Step]) -> tuple[str, str]:
    """What comes before a branch and cannot be undone, in words, and the line of the branch."""
    changed = ""
    for step in steps:
        if step.kind == EFFECT and step.function in LASTING:
            changed = step.name
        elif step.kind == BRANCH and changed:
            return f"a value is read by {step.name}() after an optimizer or a scheduler changed something", step.line
    return "", ""


def keeper(program: Program, steps: list[Step], engines: Iterable[Any]) -> Callable[[Any], Callable[[], None]] | None:
    """A function that notes what a program changes before its last branch, and gives one that undoes it."""
    last = max([at for at, step in enumerate(steps) if step.kind == BRANCH], default=0)
    before = steps[:last]
    written = {slot.memory for step in before for slot in step.writes}
    places = [at for at, external in enumerate(program.externals) if external.slot.memory in written]
    leaves = {id(step.args[0].tensor): step.args[0] for step in before if step.function in LEAVES}
    standing = {slot.index: len(program.externals) + at for at, (slot, _) in enumerate(program.numbers)}
    sources = list(engines) if any([step.random for step in before]) else []
    if not (places or leaves or sources):
        return None

    def keep(arrays: Any) -> Callable[[], None]:
        owners = [memory_of(arrays[at]) for at in places]
        memory = [(owner, owner.copy("K")) for owner in owners]
        grads = []
        for known in leaves.values():
            leaf = known.tensor if known.slot is None else arrays[standing[known.slot.index]].tensor
            grad = leaf._grad
            kept = None
            if grad is not None:
                counter = grad._counter
                kept = grad._array, grad._array.copy("K"), counter, None if counter is INFERENCE else counter[0]
            grads.append((leaf, grad, kept))
        states = [(engine, engine.get_state()) for engine in sources]

        def undo() -> None:
            for owner, copy in memory:
                owner[...] = copy
            for leaf, grad, kept in grads:
                leaf._grad = grad
                if kept is not None:
                    array, copy, counter, version = kept
                    array[...] = copy
                    grad._counter = counter
                    if version is not None and counter[0] != version:
                        counter[0] = version
            for engine, state in states:
                engine.set_state(state)

        return undo

    return keep
