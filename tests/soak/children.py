"""Running programs in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource: Any = None  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"


def environment(**settings: str) -> dict[str, str]:
    """The environment of a child that imports this copy of the library."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **settings}


def start(program: str, *args: object, **settings: str) -> subprocess.Popen[str]:
    """A program of `programs/`, started."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / f"{program}.py"), *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**settings),
    )  # fmt: skip


def run(program: str, *args: object, **settings: str) -> tuple[int, str]:
    """Run a program: how many things it did, and what went wrong, or ''.

    It prints what it did as a number on its last line. Any other end, a signal included, is a failure.
    """
    child = start(program, *args, **settings)
    out, err = child.communicate()
    last = out.strip().rpartition("\n")[2]
    if child.returncode == 0 and last.isdecimal():
        return int(last), ""
    call = " ".join([program, *map(str, args), *(f"{name}={value!r}" for name, value in settings.items())])
    return 0, f"{call}: status {child.returncode}\n{out[-2000:]}{err[-3000:]}"


def limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it has, where the system says how many that are."""
    statistics = Path("/proc/self/statm")
    if resource is not None and statistics.exists():
        have = int(statistics.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (have + more, have + more))
