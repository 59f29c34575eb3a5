"""Programs written for torch as people write them, run on torch and on pullback: the same lines, the same numbers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith(("test_", "__")))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
RUNNER = """
import contextlib, io, json, runpy, sys, traceback
if sys.argv[1] == "pullback":
    import pullback.compat
    pullback.compat.install()
import torch
torch.set_num_threads(1)
printed = {}
for path in sys.argv[2:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            print(traceback.format_exc())
    printed[path] = out.getvalue()
print(json.dumps(printed))
"""
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|\bnan\b|-?\binf\b")


def lines_of(library, names):
    paths = [str(FOLDER / f"{name}.py") for name in names]
    command = [sys.executable, "-W", "ignore", "-c", RUNNER, library, *paths]
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=FOLDER)
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout.splitlines()[-1])
    return {name: printed[path].splitlines() for name, path in zip(names, paths)}


@pytest.fixture(scope="module")
def printed():
    return lines_of("torch", PROGRAMS), lines_of("pullback", PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_on_torch(name, printed):
    expected, got = (lines[name] for lines in printed)
    assert not any("Traceback" in line for line in expected), "\n".join(expected)
    assert not any("Traceback" in line for line in got), "\n".join(got)
    assert len(got) == len(expected) >= 5
    for line, own in zip(expected, got):
        assert NUMBER.sub("#", own) == NUMBER.sub("#", line)
        for number, own_number in zip(NUMBER.findall(line), NUMBER.findall(own)):
            assert float(own_number) == pytest.approx(float(number), rel=1e-4, abs=2e-6, nan_ok=True), (
                f"{own} != {line}"
            )
