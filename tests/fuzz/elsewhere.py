"""What torch says of a program elsewhere: on a processor with shorter vectors, of leaves that lie otherwise in memory.

    python -m tests.fuzz.elsewhere    # reads programs, as pickled bytes, and writes what torch shows of each

A number that only some of torch's kernels make is not one that a library can be asked for.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.conformance.library import TORCH
from tests.fuzz.program import Observation, Program, Raised, observe

PROCESSORS = ("default", "avx2")
"""What torch can be told to take the processor for; it computes single elements by other functions than vectors."""
PATIENCE = 300
"""So many seconds it may take to start and run a program."""


def otherwise(program: Program) -> list[Program]:
    """The program, and with leaves that lie in rows, or with a gap after each element."""
    dense = replace(program, leaves=tuple((name, leaf.dense()) for name, leaf in program.leaves))
    apart = replace(dense, leaves=tuple((name, replace(leaf, layout="stepped")) for name, leaf in dense.leaves))
    return [program, dense, apart]


def answers(program: Program) -> Iterator[list[Observation]]:
    """What torch shows of a program here with other leaves, and on other processors."""
    programs = otherwise(program)
    yield from (observe(other, TORCH) for other in programs[1:])
    for processor in PROCESSORS:
        yield from on_processor(processor, programs)


def on_processor(processor: str, programs: list[Program]) -> list[list[Observation]]:
    """What another process shows of programs, in which torch takes the processor for another; nothing if it dies."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.elsewhere"],
        env={**os.environ, "ATEN_CPU_CAPABILITY": processor, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        input=pickle.dumps(programs),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    return [] if child.returncode else pickle.loads(child.stdout)


def bare(seen: Any) -> Any:
    """Of an observation what does not depend on where things lie: no strides, versions or nodes."""
    if isinstance(seen, dict):
        return {aspect: seen[aspect] for aspect in ("dtype", "shape", "value")}
    if isinstance(seen, (list, tuple)):
        return [bare(part) for part in seen if not (isinstance(part, tuple) and part[:1] == ("version",))]
    return seen


def of_lines(program: Program, seen: list[Observation]) -> list[Observation]:
    """What the lines have made, and not what has become of leaves, which may have been one memory before."""
    return [(where, bare(what)) for where, what in seen[: len(program.lines)]]


def refuses(seen: list[Observation], kind: str) -> bool:
    """Whether a program ends in an error of a class."""
    return bool(seen) and isinstance(seen[-1][1], Raised) and seen[-1][1].kind == kind


def main() -> None:
    """Run the programs that are read."""
    TORCH.module.set_num_threads(1)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # MKL complains there
    pickle.dump([observe(program, TORCH) for program in pickle.load(sys.stdin.buffer)], answer)
    answer.flush()
    os._exit(0)  # torch may abort at the exit of a process in which it wrote beyond its memory


if __name__ == "__main__":
    main()
