"""`pullback run script.py`: the script as it is, on pullback."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from pullback.compat import install


def run(script: str, arguments: list[str]) -> None:
    """Run a script as Python would, with torch's names meaning pullback's."""
    if not Path(script).exists():
        raise SystemExit(f"pullback: there is no file {script}")
    install()
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")
