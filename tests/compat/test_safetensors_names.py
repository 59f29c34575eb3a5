"""Programs that import safetensors.torch, run on pullback: its functions are found without the package."""

import subprocess
import sys
from pathlib import Path

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


def test_a_program_for_safetensors_runs_without_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, SRC, str(tmp_path / "model.safetensors")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.splitlines() == [
        "['x'] {'format': 'pt'} [1.0, 2.0]",
        "['bias', 'weight'] (set(), [])",
        "False pullback.serialization.safetensors",
    ], done.stderr
