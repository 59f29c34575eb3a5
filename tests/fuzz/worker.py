"""What a child process does: write programs, compare them, reduce what differs."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from multiprocessing.connection import Connection

from tests.fuzz.compare import Difference
from tests.fuzz.program import Program


def op_of(program: Program, found: Difference) -> str:
    """The function or method a difference is counted under: that of the line, or of the last line of a transform."""
    line = found.where if program.mode == "eager" else program.lines[-1]
    text = line.partition(" = ")[2] or line
    name = text.partition("(")[0].strip() if "(" in text else text[:40]
    return name if program.mode == "eager" else f"{name} under {program.mode}"


THEME = 250
"""So many programs are written with the same ops: making torch's samples of them takes longest."""


MEMORY = 12 << 30
"""A line may ask for more than there is; it is refused, and nobody else is killed for it."""

FULL = ("can't allocate memory", "got MemoryError: ")
"""What a library says of a line also where the lines before have left it no memory: a fresh child is asked again."""


def batch(
    seed: int,
    number: int,
    size: int,
    settings: dict[str, str],
    pipe: Connection,
    only: int | None,
    modes: list[str],
    wild: bool,
    show_known: bool,
    begin: int = 0,
) -> None:
    """Run a batch of programs from one on, in a child; say what is about to run, so that a crash can be told."""
    os.environ.update(settings)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import torch

    import pullback
    from tests.conformance.library import Library
    from tests.fuzz.compare import compare
    from tests.fuzz.generate import MODES, ORDINARY, WILD, Theme, write
    from tests.fuzz.known import reason
    from tests.fuzz.reduce import reduced

    torch.set_num_threads(1)
    pullback.set_num_threads(1)
    peer, chosen = Library(pullback), tuple(mode for mode in MODES if mode in (modes or MODES))

    def programs() -> Iterator[tuple[int, Program]]:
        for first in range(number * size, (number + 1) * size, THEME):
            wanted = [i for i in range(first, first + THEME) if i >= begin and only in (None, i)]
            theme = Theme((seed, first)) if wanted else None
            for i in wanted:
                pipe.send(("writing", i, ""))  # torch tries each line, and may die of it
                yield i, write((seed, i), theme, chosen, WILD if wild else ORDINARY)

    for i, program in programs():
        pipe.send(("program", i, str(program)))
        if not program.lines:
            continue
        found = compare(program, peer)
        if found is None:
            pipe.send(("same", program.mode, len(program.lines)))
            continue
        if any(said in found.text for said in FULL) and i != begin:
            pipe.send(("full", i, None))
            os._exit(0)
        why = reason(program, found)
        if why is None or show_known:
            program, found = reduced(program, found, peer)
            why = reason(program, found, smallest=True)
        said = (op_of(program, found), found.aspect, found.text)
        pipe.send(("known", why, (str(program), said)) if why else ("different", str(program), said))
    pipe.send(("done", number, None))
    os._exit(0)  # torch may abort at the exit of a process in which it wrote beyond its memory


def alone(seed: int, number: int, modes: list[str], wild: bool) -> None:
    """Run one program on torch and on nothing else, in a child that may die of it."""
    import torch

    from tests.conformance.library import TORCH
    from tests.fuzz.generate import MODES, ORDINARY, WILD, Theme, write
    from tests.fuzz.program import observe

    torch.set_num_threads(1)
    chosen = tuple(mode for mode in MODES if mode in (modes or MODES))
    odds = WILD if wild else ORDINARY
    for _ in range(AGAIN):
        observe(write((seed, number), Theme((seed, number - number % THEME)), chosen, odds), TORCH)


AGAIN = 5
"""A write beyond the memory of a tensor is not fatal every time."""
