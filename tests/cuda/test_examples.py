"""The programs in examples/ train on the device as they do on the host, and as torch's do on the same device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.cuda import torch_python

ROOT = Path(__file__).parents[2]
NAMES = sorted({p.stem for p in (ROOT / "examples").glob("*.py")} - {"support", "tour"})
DRAWING = {"digits_convnet", "reinforce", "vae"}
"""Examples that draw random numbers on the device, which are not those of the host."""
REAL = os.environ.get("PULLBACK_CUDA") == "1"
theirs = cache(torch_python)


def losses(name: str, device: str, folder: Path, *python: str) -> list[float]:
    """What an example's first steps give, run by a Python of its own."""
    environment = os.environ | {"PULLBACK_CUDA": "1" if REAL else "emulate", "PYTHONPATH": str(ROOT / "src")}
    file = folder / "losses.json"
    words = ["--device", device, "--steps", "6", "--picture", str(folder / "picture.svg"), "--losses", str(file)]
    done = subprocess.run(
        [*python, f"examples/{name}.py", *words], capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_trains_on_the_device_as_on_the_host(name: str, tmp_path: Path) -> None:
    ours = sys.executable, "-m", "pullback", "run"
    there = losses(name, "cuda", tmp_path, *ours)
    assert len(there) == 6
    if name not in DRAWING:
        assert there == pytest.approx(losses(name, "cpu", tmp_path, *ours), rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_trains_on_the_device_as_by_torch(name: str, tmp_path: Path) -> None:
    python = theirs() if REAL else None
    if python is None:
        pytest.skip("this needs a device, and a Python whose torch has one")
    there = losses(name, "cuda", tmp_path, sys.executable, "-m", "pullback", "run")
    assert there == pytest.approx(losses(name, "cuda", tmp_path, python), rel=1e-3)
