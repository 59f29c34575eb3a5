"""The command `pullback`: run a program written for torch, or say what it would miss."""

from __future__ import annotations

import argparse
import sys

from pullback.cli.check import check
from pullback.cli.run import run


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="pullback", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="run a program whose `import torch` finds pullback")
    runner.add_argument("script")
    runner.add_argument("arguments", nargs=argparse.REMAINDER)
    checker = commands.add_parser("check", help="list the names of torch a program uses, and which are missing")
    checker.add_argument("scripts", nargs="+")
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if given.command == "run":
        run(given.script, given.arguments)
        return 0
    return check(given.scripts)
