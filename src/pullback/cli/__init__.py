"""The command `pullback`: run programs written for torch, look into them, and measure them."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import Any

import pullback
from pullback.cli.output import DASHES, Mistake, say

COMMANDS = {
    "run": "run a program whose `import torch` finds pullback",
    "launch": "run a program on several ranks, here or on several machines",
    "simulate-cluster": "say what a program would take on a cluster",
    "check": "list the names of torch a program uses, and which are missing",
    "graph": "run a program and draw the graph of one of its backward passes",
    "profile": "run a program and say which ops took the time",
    "shim": "let `import torch` find pullback in this environment, for packages that need torch",
    "bench": "measure this machine, beside torch where it is installed",
    "info": "say what computes here: versions, processor, BLAS, threads",
}
ELSEWHERE = {"simulate-cluster": "pullback.distributed.simulator.command"}
"""Modules of commands that need more than this layer has."""
EXAMPLES = """
examples:
  pullback check train.py                   what would be missing?
  pullback run train.py --epochs 3          the program as it is, on pullback
  pullback launch -n 4 train.py             on four ranks, as torchrun would
  pullback graph --output g.html train.py   its graph, as a page to click through
  pullback profile train.py                 where the time goes
  pullback shim install                     packages that need torch find pullback
  pullback info --json                      for a bug report

exit status:
  0    done
  1    the answer is no: something is missing, there was no backward pass, or the program failed
  2    the command was not understood, or a file it names cannot be used
  130  interrupted
run, launch, graph and profile end with the status of the program if that is not 0.
Colour is for terminals only, and never where NO_COLOR is set.
"""


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    words = sys.argv[1:] if arguments is None else arguments
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="pullback", description=__doc__, epilog=EXAMPLES, formatter_class=layout)
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    parsers: dict[str, tuple[argparse.ArgumentParser, Any]] = {}
    for name, text in COMMANDS.items():
        one = commands.add_parser(name, help=text, formatter_class=layout)
        if words[:1] == [name]:  # only the command that runs is loaded
            module = import_module(ELSEWHERE.get(name) or f"{__name__}.{name}")
            one.description, one.epilog = module.__doc__, module.EXAMPLES
            module.add_arguments(one)
            parsers[name] = one, module
    if words[:1] in (["run"], ["launch"], ["graph"], ["profile"], ["simulate-cluster"]):
        words = [DASHES if word == "--" else word for word in words]
    given = parser.parse_args(words)
    if given.version:
        print(f"pullback {pullback.__version__}")
        return 0
    if given.command is None:
        parser.print_help()
        return 2
    return guarded(*parsers[given.command], given)


def guarded(parser: argparse.ArgumentParser, module: Any, given: argparse.Namespace) -> int:
    """Run a command; a mistake of the user is one line on stderr."""
    try:
        status: int = module.main(parser, given)
        sys.stdout.flush()
        return status
    except Mistake as mistake:
        say(str(mistake))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
