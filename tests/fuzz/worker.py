"""What a child process does: write programs, compare them, reduce what differs."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from tests.fuzz.compare import Difference
from tests.fuzz.program import Program


def op_of(program: Program, found: Difference) -> str:
    """The function or method a difference is counted under: that of the line, or of the last line of a transform."""
    line = found.where if program.mode == "eager" else program.lines[-1]
    text = line.partition(" = ")[2] or line
    name = text.partition("(")[0].strip() if "(" in text else text[:40]
    return name if program.mode == "eager" else f"{name} under {program.mode}"


def batch(
    seed: int,
    number: int,
    size: int,
    settings: dict[str, str],
    pipe: Connection,
    only: int | None,
    modes: list[str],
    show_known: bool,
) -> None:
    """Run a batch of programs, in a child; say what is about to run, so that a crash can be told."""
    os.environ.update(settings)
    import torch

    import pullback
    from tests.conformance.library import Library
    from tests.fuzz.compare import compare
    from tests.fuzz.generate import MODES, Theme, write
    from tests.fuzz.known import reason
    from tests.fuzz.reduce import reduced

    torch.set_num_threads(1)
    pullback.set_num_threads(1)
    peer, theme = Library(pullback), Theme(seed * 1000 + number)
    for i in range(size):
        if only is not None and number * size + i != only:
            continue
        program = write((seed * 1000 + number) * 1000 + i, theme, tuple(m for m in MODES if m in (modes or MODES)))
        pipe.send(("program", number * size + i, str(program)))
        if not program.lines:
            continue
        found = compare(program, peer)
        if found is None:
            pipe.send(("same", program.mode, len(program.lines)))
            continue
        why = reason(program, found)
        if why is None or show_known:
            program, found = reduced(program, found, peer)
            why = reason(program, found, smallest=True)
        said = (op_of(program, found), found.aspect, found.text)
        pipe.send(("known", why, (str(program), said)) if why else ("different", str(program), said))
    pipe.send(("done", number, None))
