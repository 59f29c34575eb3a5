"""Every example, on torch and on pullback: the same losses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.py") if p.stem not in ("support", "tour"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


def losses_of(example, runner, folder):
    folder.mkdir()
    options = ["--steps", "50", "--picture", str(folder / "picture.svg"), "--losses", str(folder / "losses.json")]
    command = [sys.executable, *runner, str(ROOT / "examples" / f"{example}.py"), *options]
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "picture.svg").read_text().rstrip().endswith("</svg>"), "drawn by matplotlib, or without it"
    assert "50/50" in result.stderr, "a long-running command shows how far it is"
    return np.array(json.loads((folder / "losses.json").read_text()))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_gives_the_losses_of_torch(example, tmp_path):
    expected = losses_of(example, [], tmp_path / "torch")
    got = losses_of(example, ["-m", "pullback", "run"], tmp_path / "pullback")
    assert len(got) == 50
    assert np.allclose(got, expected, rtol=1e-4, atol=1e-6), np.abs(got / expected - 1).max()
