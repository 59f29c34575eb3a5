"""Steps that are alike become pieces once: layers of one shape and all turns of a loop differ in their memory alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.kind import NodeFacts
from pullback.compiler.native.pieces import Base, Dot, Piece, Point, Reduce, Window
from pullback.compiler.program import FORMULA, Slot, Step

PLAIN = (int, float, bool, str, complex, bytes, type(None), type(Ellipsis), np.dtype, np.generic, type)
MOST = 4096
"""Steps that are remembered."""


class Unlike(Exception):
    """A step that is compared with no other."""


def key_of(step: Step, inputs: dict[int, Window], outs: tuple[Any, ...]) -> Any:
    """What steps have in common that become the same pieces on other memory; None if nobody can tell."""
    order = {index: nr for nr, index in enumerate(inputs)}
    aliases: dict[Any, int] = {}
    bases: dict[Base, tuple[int, int]] = {}
    facts = []
    for nr, window in enumerate(inputs.values()):
        alias = aliases.setdefault(window.base.alias, nr)
        first, offset = bases.setdefault(window.base, (nr, window.offset))
        facts.append((window.shape, window.strides, window.dtype, alias, first, window.offset - offset))

    def described(value: Any) -> Any:
        kind = type(value)
        if kind is Slot:
            return Slot, order[value.index], value.shape, value.strides
        if kind in (list, tuple):
            return kind, *[described(item) for item in value]
        if kind is slice:
            return slice, described(value.start), described(value.stop), described(value.step)
        if kind is NodeFacts:
            return NodeFacts, value.dtype
        if isinstance(value, PLAIN):
            return kind, value.tobytes() if isinstance(value, np.generic) else repr(value)
        if callable(value):
            return value
        raise Unlike

    try:
        function = (step.op, step.part) if step.kind == FORMULA else (step.op, step.function)
        args = tuple([described(value) for value in step.args])
        kwargs = tuple([(name, described(value)) for name, value in step.kwargs.items()])
        key = (step.kind, function, args, kwargs, step.several, tuple(facts), outs)
        hash(key)
    except (Unlike, TypeError):
        return None
    return key


class Template:
    """The pieces of a step, and where its results are."""

    def __init__(self, inputs: dict[int, Window], pieces: list[Piece], outs: list[Window | None]) -> None:
        self.inputs, self.pieces, self.outs = list(inputs.values()), pieces, outs

    def on(self, inputs: dict[int, Window]) -> tuple[list[Piece], list[Window | None]]:
        """The same on other memory."""
        moved: dict[Base, tuple[Base, int]] = {}
        for before, now in zip(self.inputs, inputs.values(), strict=True):
            moved[before.base] = now.base, now.offset - before.offset

        def window(value: Any) -> Any:
            if type(value) is not Window:
                return value
            base, added = moved.get(value.base, (None, 0))
            if base is None:
                base, added = moved[value.base] = Base(value.base.dtype, value.base.size), 0
            return Window(base, value.offset + added, value.shape, value.strides)

        pieces: list[Piece] = []
        for piece in self.pieces:
            if type(piece) is Point:
                pieces.append(Point(piece.op, [window(a) for a in piece.args], piece.dtypes, window(piece.out)))
            elif type(piece) is Dot:
                dot = Dot(window(piece.a), window(piece.b), window(piece.out), window(piece.panels))
                dot.added = window(piece.added)
                pieces.append(dot)
            else:
                assert type(piece) is Reduce
                pieces.append(Reduce(piece.how, window(piece.x), piece.axes, window(piece.out)))
        return pieces, [window(out) for out in self.outs]
