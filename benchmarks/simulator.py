"""How far `pullback simulate-cluster` is off: steps of examples on ranks of this machine, foretold and measured."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from benchmarks.table import Row

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"MLP": ("digits_mlp.py", 800), "convnet": ("digits_convnet.py", 250), "GPT": ("char_gpt.py", 60)}
"""Examples, and steps enough for a good second."""
BUDGET = 20.0
"""Percent."""


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Each program on one, two and four ranks; `quick` is for one of them."""
    for name, (script, steps) in list(PROGRAMS.items())[: 1 if quick else None]:
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pullback", "simulate-cluster", "--measure", "1,2,4", "--json"]
            command += [str(ROOT / "examples" / script), "--steps", str(steps)]
            environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            yield Row("simulated steps", name, "ms", error=done.stderr.strip().splitlines()[-1])
            continue
        for found in json.loads(done.stdout):
            times = f"{found['simulated'] * 1e3:.2f} ms for {found['measured'] * 1e3:.2f}"
            title = f"{name}, {found['ranks']} ranks: {times}, {found['error']:+.0%}"
            value = abs(found["error"]) * 100
            yield Row("simulated steps", title, "ms", value=value, value_unit="%", budget=BUDGET)
