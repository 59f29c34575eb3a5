"""Measure pullback beside torch and print a table: `python -m benchmarks --help`."""

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import (
    compiled,
    cuda,
    derivatives,
    distributed,
    kernels_others,
    kernels_pointwise,
    kernels_products,
    kernels_rows,
    kernels_special,
    nn_overhead,
    op_overhead,
    overhead,
    processes,
    simulator,
    startup,
    steps,
)
from benchmarks.table import Printer, Row, summary

SECTIONS: dict[str, Callable[[Any, ModuleType, bool], Iterator[Row]]] = {
    "overhead": overhead.rows,
    "derivatives": derivatives.rows,
    "ops": op_overhead.rows,
    "composites": nn_overhead.rows,
    "pointwise": kernels_pointwise.rows,
    "special": kernels_special.rows,
    "products": kernels_products.rows,
    "rows": kernels_rows.rows,
    "others": kernels_others.rows,
    "steps": steps.rows,
    "compiled": compiled.rows,
    "import": processes.import_rows,
    "start-up": startup.rows,
    "scaling": processes.scaling_rows,
    "memory": processes.memory_rows,
    "step-memory": processes.step_memory_rows,
    "distributed": distributed.rows,
    "simulator": simulator.rows,
    "cuda": cuda.rows,
}
USUAL = [name for name in SECTIONS if name not in ("simulator", "cuda")]
"""What is measured unless something else is asked for: `simulator` takes minutes, `cuda` needs a GPU."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pullback beside torch.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and smaller graphs")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(SECTIONS), help="one of: %(choices)s")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to FILE")
    parser.add_argument(
        "--check", action="store_true", help="exit with status 1 when a budget is missed or a measurement fails"
    )
    parser.add_argument("--peer", metavar="MODULE", default="pullback", help="what to measure beside torch")
    return parser.parse_args(arguments)


def import_from_src(name: str) -> ModuleType:
    """Import a module, also from this checkout when it is not installed."""
    sys.path.append(str(Path(__file__).resolve().parent.parent / "src"))
    return importlib.import_module(name)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.only == ["cuda"]:  # whose processes look for torch themselves
        return show(options, None, import_from_src(options.peer))
    import torch

    torch.set_num_threads(2)
    peer = import_from_src(options.peer)
    print(f"torch {torch.__version__}, {platform.python_implementation()} {platform.python_version()}, 2 threads")
    return show(options, torch, peer)


def show(options: argparse.Namespace, torch: ModuleType | None, peer: ModuleType) -> int:
    """Measure and print; the exit status."""
    print("measured: ratio to torch where no unit is given; lower is better")
    printer = Printer(options.peer)
    rows: list[Row] = []
    for name in options.only or USUAL:
        for row in SECTIONS[name](torch, peer, options.quick):
            rows.append(row)
            printer.row(row)
    print("\n" + summary(rows))
    if options.json:
        figures = {
            "torch": "".join(cuda.ABOUT) if torch is None else torch.__version__,
            "python": platform.python_version(),
            "quick": options.quick,
        }
        options.json.write_text(json.dumps(figures | {"rows": [row.as_dict() for row in rows]}, indent=2) + "\n")
    return 1 if options.check and any(row.within is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
