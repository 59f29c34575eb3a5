"""`python -m pullback.distributed.simulator.recorded FILE script.py`: run it, and leave a recorded step in a file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from pullback.cli.program import execute
from pullback.distributed.simulator.recording import Recorder


def main(words: list[str]) -> int:
    """Run the program; rank 0 writes the file."""
    target = Path(words[0]).absolute()
    with Recorder() as recorder:
        status = execute(argparse.Namespace(script=words[1], arguments=words[2:], module=False), quiet=True)
    if os.environ.get("RANK", "0") == "0" and recorder.best.buckets:
        target.write_text(json.dumps(recorder.best.as_dict() | {"steps": recorder.steps}), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
