"""`pullback profile script.py`: run a program and say which ops took the time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pullback.autograd.profiler import profile
from pullback.cli.output import Mistake, print_json, say, working
from pullback.cli.program import add_program, execute, own_options

COLUMNS = ("self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cpu_memory_usage")
EXAMPLES = """
examples:
  pullback profile train.py --epochs 1              the table of torch.profiler, slowest ops first
  pullback profile --sort count --rows 10 train.py  the ten ops called most often
  pullback profile --shapes --memory train.py       one row for each shape, with bytes
  pullback profile --trace trace.json train.py      a timeline for chrome://tracing or ui.perfetto.dev
  pullback profile --json train.py                  for machines; the program prints to stderr

Options may also stand right behind the script; write `--` before an option of the program that has the same name.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.options = [  # type: ignore[attr-defined]
        parser.add_argument("--sort", default=COLUMNS[0], choices=COLUMNS, metavar="KEY", help="one of: %(choices)s"),
        parser.add_argument("--rows", type=int, default=30, help="how many rows (%(default)s)"),
        parser.add_argument("--shapes", action="store_true", help="tell calls with different shapes apart"),
        parser.add_argument("--memory", action="store_true", help="count the bytes of results"),
        parser.add_argument("--trace", metavar="FILE", help="write a timeline as well"),
        parser.add_argument("--json", action="store_true", help="the table as JSON"),
    ]
    add_program(parser)


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Run a program under the profiler and print the table."""
    own_options(parser, given, parser.options)  # type: ignore[attr-defined]
    if given.trace and not Path(given.trace).absolute().parent.is_dir():
        raise Mistake(f"--trace {given.trace}: there is no such folder")
    trace = given.trace and Path(given.trace).absolute()  # the program may change the working directory
    with profile(record_shapes=given.shapes, profile_memory=given.memory) as measured:
        status = execute(given, quiet=given.json)
    assert measured is not None
    if not measured.function_events:
        say("the program called no op")
        return status or 1
    with working(f"adding up {len(measured.function_events)} calls"):
        averages = measured.key_averages(group_by_input_shape=given.shapes)
    if given.json:
        print_json(
            [row(entry, given) for entry in sorted(averages, key=lambda e: -getattr(e, given.sort))[: given.rows]]
        )
    else:
        print(averages.table(sort_by=given.sort, row_limit=given.rows))
    if trace:
        with working(f"writing {given.trace}"):
            measured.export_chrome_trace(str(trace))
        say(f"the timeline is in {given.trace}; open it in chrome://tracing or ui.perfetto.dev")
    return status


def row(entry: Any, given: argparse.Namespace) -> dict[str, Any]:
    """One line of the table; times in microseconds."""
    out = {
        "name": entry.key,
        "count": entry.count,
        "self_us": entry.self_cpu_time_total,
        "total_us": entry.cpu_time_total,
    }
    if given.shapes:
        out["shapes"] = entry.input_shapes
    if given.memory:
        out["bytes"] = entry.cpu_memory_usage
    return out
