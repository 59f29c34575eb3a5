"""`python -m pullback.distributed.simulator.recorded FILE COPIES TURNS script.py`: leave what was recorded in a file.

COPIES of a program that compute side by side begin to count when all of them have warmed up. If there are fewer TURNS
than copies, these take turns: after each step a copy waits until another one has made its own, as ranks do that share
cores and wait for each other. With copies, the gradients of a program that knows nothing of ranks are averaged as
DistributedDataParallel would.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from pullback.cli.program import execute
from pullback.distributed.simulator.recording import Recorder

PATIENCE = 60.0
"""Seconds that a copy waits for the others."""


class Copies:
    """Those that run side by side. FILE names this one: 0.json, 1.json and so on."""

    def __init__(self, target: Path, copies: int, turns: int) -> None:
        self.target, self.copies, self.turns, self.met = target, copies, turns, False
        self.pipes: list[int] = []
        """What each reads its turn from; whoever has made a step writes it to the one `turns` behind him."""

    def between(self) -> None:
        """After a step."""
        if not self.met:
            self.meet()
        if self.pipes:
            own = int(self.target.stem)
            if self.turn:
                os.write(self.pipes[(own + self.turns) % self.copies], b".")
            os.read(self.pipes[own], 1)
            self.turn = True

    def meet(self) -> None:
        """Wait until all have warmed up. The first ones have a turn to begin with."""
        self.met, self.turn = True, False
        here = [self.target.with_name(f"{number}.here") for number in range(self.copies)]
        own = self.target.with_suffix(".here")
        if self.turns < self.copies:
            os.mkfifo(own.with_suffix(".turn"))
        own.touch()
        end = time.monotonic() + PATIENCE
        while not all(one.exists() for one in here) and time.monotonic() < end:
            time.sleep(0.001)
        if self.turns < self.copies:
            self.pipes = [os.open(one.with_suffix(".turn"), os.O_RDWR) for one in here]
            if int(own.stem) < self.turns:
                os.write(self.pipes[int(own.stem)], b".")

    def over(self) -> None:
        """The program has ended: its turn is another's, for ever."""
        if self.pipes:
            os.write(self.pipes[(int(self.target.stem) + self.turns) % self.copies], b"." * 4096)


def main(words: list[str]) -> int:
    """Run the program; rank 0 writes the file."""
    copies = Copies(Path(words[0]).absolute(), int(words[1]), int(words[2]))
    with Recorder(copies.between if copies.copies > 1 else None, copies.copies > 0) as recorder:
        status = execute(argparse.Namespace(script=words[3], arguments=words[4:], module=False), quiet=True)
    copies.over()
    if os.environ.get("RANK", "0") == "0" and recorder.found:
        copies.target.write_text(json.dumps(recorder.best.as_dict()), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
