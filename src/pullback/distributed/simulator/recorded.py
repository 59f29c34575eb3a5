"""`python -m pullback.distributed.simulator.recorded FILE COPIES script.py`: leave what was recorded in a file.

Several copies of a program that compute side by side begin to count when all of them have warmed up.
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


def main(words: list[str]) -> int:
    """Run the program; rank 0 writes the file."""
    target, copies = Path(words[0]).absolute(), int(words[1])

    def meet() -> None:
        target.with_suffix(".here").touch()
        end = time.monotonic() + PATIENCE
        while len(list(target.parent.glob("*.here"))) < copies and time.monotonic() < end:
            time.sleep(0.001)

    with Recorder(meet if copies > 1 else None) as recorder:
        status = execute(argparse.Namespace(script=words[2], arguments=words[3:], module=False), quiet=True)
    if os.environ.get("RANK", "0") == "0" and recorder.found:
        both = {"best": recorder.best.as_dict(), "usual": recorder.usual.as_dict()}
        target.write_text(json.dumps(both), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
