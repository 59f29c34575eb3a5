"""How long a short program takes from the start of its process to the end of it, compiling included or not."""

import compileall
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType

from benchmarks.processes import measured
from benchmarks.table import Row

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
PROGRAM = HERE / "startup_program.py"
STAGES = {
    "import": ("the import", 0.3, 0.3),
    "layer": ("a first layer", 0.45, 1.0),
    "backward": ("the first backward of a small convnet", 0.6, 4.0),
    "step": ("its first step, with AdamW", 0.6, 4.0),
    "script": ("a script of 20 steps", 0.8, 4.5),
}
"""What is done, and the seconds it may take with the kernels of an earlier run, and with none."""


def whole_process(module: str, stage: str, cache: str) -> float:
    """Seconds of a process that goes as far as this stage."""
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "PULLBACK_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), module, stage], env=environment, capture_output=True, text=True, check=False
    )
    seconds = perf_counter() - start
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return seconds


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Whole processes up to each stage: first with an empty cache of kernels, then with what the first left there.

    Bytecode is there from the start, as it is after an installation.
    """
    compileall.compile_dir(SOURCE, quiet=2)
    for stage, (what, cached, cold) in STAGES.items():
        with TemporaryDirectory() as folder:

            def fill(row: Row, repeats: int = 1, stage: str = stage, folder: str = folder) -> None:
                turns = [
                    [whole_process(side.__name__, stage, folder) for side in (torch, peer)] for _ in range(repeats)
                ]
                row.torch, row.peer = (min(figures) for figures in zip(*turns, strict=True))
                row.value = row.peer

            name = f"{what}, whole process"
            yield measured(
                Row("start-up", f"{name}, nothing compiled yet", "s", budget=cold, value_unit="s"),
                fill,
            )
            yield measured(
                Row("start-up", f"{name}, kernels cached", "s", budget=cached, value_unit="s"),
                lambda row, fill=fill: fill(row, 3 if quick else 7),
            )
