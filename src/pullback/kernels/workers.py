"""How many threads kernels may use, and NumPy's BLAS where kernels are not compiled."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


def usable_cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


state = {"threads": usable_cores()}
listeners: list[Callable[[int], None]] = []
"""What is told when the number changes: the pool of the compiled kernels, once it exists."""


def threads() -> int:
    """How many threads one operation may use."""
    return state["threads"]


def set_threads(count: int) -> None:
    """Set how many threads one operation may use."""
    state["threads"] = count
    for listener in listeners:
        listener(count)
    # OpenBLAS's threads spin for some 25 ms after work, on the cores that ours need: one thread where we have our own.
    set_blas_threads(1 if listeners else count)


SETTERS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@cache
def blas_setter() -> Any:
    """OpenBLAS's own function for it, from the library that NumPy brought; None if there is none."""
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            for name in SETTERS:
                if hasattr(library, name):
                    return getattr(library, name)
    return None


def set_blas_threads(count: int) -> None:
    """Tell NumPy's BLAS."""
    setter = blas_setter()
    if setter is not None:
        setter(ctypes.c_int(count))
