"""From a step of a program to pieces of native work.

The forward of an op and the formula of a derivative are functions of arrays. They are run once more, on arrays that
tell what is done to them (see `capture`): what comes out are the calls of NumPy they consist of, and a handful of
those is all that native code needs to know. A step in which another one occurs is left to Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.sizes import allocated
from pullback.compiler.native.parts import Parts, Unlowered, is_dense, is_taken
from pullback.compiler.native.pieces import Base, Dot, Piece, Point, Window, fresh
from pullback.compiler.native.templates import MOST, Template, key_of
from pullback.compiler.program import CALL, FORMULA, METHOD, OP, Program, Slot, Step

FILLED: dict[Any, Any] = {np.ones: 1, np.zeros: 0, np.full: None}
MOST_HELD = 1 << 20
"""Bytes of products in the middle of a step; where eager code needs less for the same, more are left to it."""


class Lowering:
    """The windows of a program's slots, as far as native code knows them, and the pieces of each step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.windows: dict[int, Window] = {}

    def window_of(self, slot: Slot) -> Window:
        """The window of a slot; memory that no native code made is given."""
        known = self.windows.get(slot.index)
        if known is None:
            if not is_taken(slot.dtype):
                raise Unlowered(f"dtype {slot.dtype}")
            known = self.windows[slot.index] = given(slot)
        return known

    def pieces(self, step: Step) -> list[Piece]:
        """What a step does; its outs have windows then. Raises Unlowered if native code cannot do it."""
        if step.random or step.kind not in (OP, FORMULA, CALL, METHOD):
            raise Unlowered(step.name)
        if step.kind == CALL and step.function is allocated and step.args[0] in FILLED:
            return self.filled(step, *step.args)
        if step.kind == CALL and step.function in FILLED:
            return self.filled(step, step.function, *step.args)
        inputs = {slot.index: self.window_of(slot) for slot in step.reads()}
        if step.kind == OP and step.op.view:
            self.show(step)
            return []
        memory = {self.program.slots[i].memory for i in inputs}
        wanted = tuple([None if slot is None or slot.index in self.windows  # a step may give back what it was given
                        else (slot.shape, slot.strides, slot.dtype, slot.memory in memory)
                        for slot in step.outs])  # fmt: skip
        key = key_of(step, inputs, wanted)
        template = templates.get(key)
        if template is None:
            try:
                template = template_of(step, inputs, wanted)
            except Unlowered as error:
                template = str(error)  # the error itself holds the arrays of all that led there
            if key is not None:
                if len(templates) >= MOST:  # sizes of long ago
                    templates.clear()
                templates[key] = template
        if isinstance(template, str):
            raise Unlowered(template)
        pieces, outs = template.on(inputs)
        self.windows |= {slot.index: out for slot, out in zip(step.outs, outs, strict=True) if out is not None}
        return pieces

    def show(self, step: Step) -> None:
        """Another window on memory that is there."""
        for slot in step.outs:
            if slot is None or slot.index in self.windows:
                continue
            source = next((s for s in step.reads() if s.memory == slot.memory), None)
            if source is None or slot.dtype != source.dtype or min(slot.strides, default=0) < 0:
                raise Unlowered(f"{step.name} copies")
            before, size = self.windows[source.index], slot.dtype.itemsize
            moved, steps = slot.offset - source.offset, slot.strides
            if moved % size or any([s % size for s in steps]):
                raise Unlowered("elements that are not whole steps apart")
            strides = tuple([s // size for s in steps])
            self.windows[slot.index] = Window(before.base, before.offset + moved // size, slot.shape, strides)

    def filled(self, step: Step, make: Any, shape: Any, *rest: Any) -> list[Piece]:
        """A new array of one number."""
        (out,) = step.outs
        value = FILLED[make] if make is not np.full else rest[0]
        if (
            out is None
            or not is_taken(out.dtype)
            or not isinstance(value, (bool, int, float))
            or not out.shape == tuple(shape if type(shape) in (tuple, list) else (shape,))
        ):
            raise Unlowered(step.name)
        window = self.windows[out.index] = fresh(out.dtype, out.shape)
        return [Point("positive", [value], [out.dtype] * 2, window)]


templates: dict[Any, Any] = {}
"""What steps became, or why they did not, by what they have in common with others."""


def template_of(step: Step, inputs: dict[int, Window], wanted: tuple[Any, ...]) -> Template:
    """The pieces of a step; `wanted` are its results as the program knows them."""
    parts = Parts(inputs)
    outs: list[Window | None] = []
    for facts, found in zip(wanted, parts.run(step), strict=True):
        if facts is None:
            outs.append(None)
            continue
        shape, strides, dtype, shares = facts
        if found is None or found.dtype != dtype or found.shape != shape:
            raise Unlowered(f"{step.name} gave something else")
        if shares != (found.base in parts.bases):
            raise Unlowered(f"{step.name} shares memory otherwise")
        steps = tuple([0 if n == 1 else s // dtype.itemsize for n, s in zip(shape, strides, strict=True)])
        if found.strides != steps:
            if found.base in parts.bases or not is_dense(shape, steps):
                raise Unlowered(f"{step.name} lies otherwise")
            target = fresh(found.dtype, found.shape, steps)
            parts.pieces.append(Point("positive", [found], [found.dtype] * 2, target))
            found = target
        outs.append(found)
    written = set(parts.bases)
    for piece in parts.pieces:
        if any([window.base not in written for window in piece.reads()]):
            raise Unlowered(f"{step.name} reads what nobody wrote")
        written.add(piece.out.base)
    if any([out is not None and out.base not in written for out in outs]):
        raise Unlowered(f"{step.name} gives what nobody wrote")
    held = sum(
        [
            piece.out.size * piece.out.dtype.itemsize
            for piece in parts.pieces
            if type(piece) is Dot and not any([out is not None and out.base is piece.out.base for out in outs])
        ]
    )
    if held > MOST_HELD and held > 2 * sum(
        [w.size * w.dtype.itemsize for w in (*inputs.values(), *outs) if w is not None]
    ):
        raise Unlowered(f"{step.name} would take more memory")
    return Template(inputs, parts.pieces, outs)


def given(slot: Slot) -> Window:
    """The window of an array that is there."""
    size = slot.dtype.itemsize
    if any([s % size for s in slot.strides]):
        raise Unlowered("elements that are not whole steps apart")
    strides = tuple([s // size for s in slot.strides])
    span = 1 + sum([(n - 1) * abs(s) for n, s in zip(slot.shape, strides, strict=True)])
    return Window(Base(slot.dtype, span, slot, ("slot", slot.memory)), 0, slot.shape, strides)
