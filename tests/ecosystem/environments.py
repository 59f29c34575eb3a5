"""Environments for programs written for torch: with torch itself, or with pullback under its name."""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "ecosystem"
TORCH = "torch==2.13.0"


class NotInstalled(Exception):
    """The packages could not be fetched or installed, or not in the time there was."""


class Refused(Exception):
    """A package does not take the torch that is there."""


def environment(
    folder: Path,
    packages: Iterable[str],
    *,
    reference: bool = False,
    editable: bool = True,
    seconds: float | None = None,
) -> Path:
    """A Python with the packages, and with pullback under torch's name or, for a reference, with torch itself.

    Whatever a package asks for, torch has the one version: a constraint says so. What was installed is remembered, so
    a second run starts at once; remove the folder to install anew.
    """
    packages = list(packages)
    end = None if seconds is None else time.monotonic() + seconds

    def install(*words: object) -> None:
        left = None if end is None else max(1.0, end - time.monotonic())
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            done = subprocess.run([*pip, *map(str, words)], stderr=subprocess.PIPE, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"it took longer than {seconds:.0f} s") from None
        if done.returncode:
            sys.stderr.write(done.stderr)
            told = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            # A package that asks for another torch is a failure of the shim; one that cannot be fetched is not.
            raise (Refused if "ResolutionImpossible" in done.stderr else NotInstalled)(told[-1])

    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text().split() == packages:
        return python
    if not python.exists():
        venv.create(folder, with_pip=True)
    if reference:
        install(TORCH)
    else:
        install(*(["--editable"] if editable else []), f"{ROOT}[fast]")
        subprocess.run([python, "-m", "pullback", "shim", "install"], check=True)
    limits = folder / "constraints.txt"
    limits.write_text(TORCH + ("\n" if reference else "+pullback\n"))
    install("--constraint", limits, *packages)
    stamp.write_text("\n".join(packages) + "\n")
    return python
