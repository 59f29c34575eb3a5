"""`pullback run script.py`: the script as it is, on pullback."""

from __future__ import annotations

import argparse

from pullback.cli.program import add_program, execute

EXAMPLES = """
examples:
  pullback run train.py --epochs 3     `import torch` in train.py finds pullback
  pullback run -m project.train        a module, as `python -m` would run it

The program's arguments, output and exit status are its own. What pullback lacks can be imported and says its name
when it is used; `pullback check train.py` lists it beforehand.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_program(parser)


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Run a program whose torch is pullback."""
    return execute(given)
