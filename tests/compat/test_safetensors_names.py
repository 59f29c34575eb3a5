"""Programs that import safetensors.torch, run on pullback: its functions are found without the package."""

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

SRC = str(Path(__file__).parents[2] / "src")

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import pullback.compat
pullback.compat.install()
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
save_file({"x": torch.arange(3.0)}, sys.argv[2], metadata={"format": "pt"})
with safe_open(sys.argv[2], framework="pt", device="cpu") as file:
    print(file.keys(), file.metadata(), file.get_slice("x")[1:].tolist())
model = torch.nn.Linear(2, 1)
save_model(model, sys.argv[2])
print(sorted(load_file(sys.argv[2])), load_model(model, sys.argv[2]))
pullback.compat.uninstall()
print("safetensors" in sys.modules, save_file.__module__)
"""


def run(path, packages):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += [{str(packages)!r}]\n{PROGRAM}", SRC, str(path)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["['x'] {'format': 'pt'} [1.0, 2.0]", "['bias', 'weight'] (set(), [])"], done.stderr
    return lines[2]


PACKAGES = Path(numpy.__file__).parents[1]


def test_a_program_for_safetensors_runs_without_it(tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("numpy", "numpy.libs", "scipy", "scipy.libs", "ml_dtypes"):
        if (PACKAGES / name).exists():
            (packages / name).symlink_to(PACKAGES / name)
    assert run(tmp_path / "model.safetensors", packages) == "False pullback.serialization.safetensors"


def test_an_installed_safetensors_is_used(tmp_path):
    if not (PACKAGES / "safetensors").exists():
        pytest.skip("safetensors is not installed")
    assert run(tmp_path / "model.safetensors", PACKAGES) == "True safetensors.torch"
