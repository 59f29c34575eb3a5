"""The recipes of CONTRIBUTING.md run as they stand there, in a process of their own, with and without the compiler."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_the_recipes_run(kernels):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = page[page.index("## Recipes") : page.index("## Rules of the house")]
    program = "\n".join(BLOCK.findall(recipes))
    settings = dict(os.environ, PULLBACK_KERNELS=kernels, PYTHONPATH=str(ROOT / "src"))
    ran = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
