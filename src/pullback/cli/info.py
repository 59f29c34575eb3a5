"""`pullback info`: what computes here."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.cli.output import BOLD, paint, print_json

OPTIONAL = {
    "llvmlite": "compiled kernels",
    "torch": "comparing with torch: pullback bench, make conformance",
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
EXAMPLES = """
examples:
  pullback info            to read
  pullback info --json     to put into a bug report
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def installed(name: str) -> str | None:
    """The version of a package, without importing it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def collect() -> dict[str, dict[str, Any]]:
    """Everything worth knowing, by topic."""
    built: Any = np.show_config(mode="dicts")
    parts = built.get("SIMD Extensions", {})
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "versions": {
            "pullback": pullback.__version__,
            "follows torch": "2.13",
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "numpy": np.__version__,
            "scipy": installed("scipy"),
            "ml_dtypes": installed("ml_dtypes"),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "at": str(Path(pullback.__file__).parent),
        },
        "processor": {
            "name": processor(),
            "cores": os.cpu_count(),
            "usable": len(affinity(0)) if affinity else os.cpu_count(),
            "features": " ".join([*parts.get("baseline", []), *parts.get("found", [])]),
        },
        "arithmetic": {
            **{name: value for name, value in pullback.config().items() if name not in ("numpy", "python")},
            "default dtype": str(pullback.get_default_dtype()),
            **{
                name: os.environ[name] for name in sorted(os.environ) if name in THREADS or name.startswith("PULLBACK_")
            },
        },
        "optional": {name: installed(name) for name in OPTIONAL},
    }


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print it."""
    facts = collect()
    if given.json:
        print_json(facts)
        return 0
    for topic, entries in facts.items():
        print(paint(topic, BOLD))
        for name, value in entries.items():
            if topic == "optional":
                value = value or f"not installed ({OPTIONAL[name]})"
            if isinstance(value, dict):
                value = ", ".join(f"{key} {inner}" for key, inner in value.items())
            if value not in (None, ""):
                print(f"  {name:<16} {value}")
    return 0
