"""How many threads kernels may use, and NumPy's BLAS where kernels are not compiled; and SciPy's functions on them."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pullback._runtime.quiet import quiet


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


LEAST_SHARE = 10_000
"""The elements for which a thread is worth its start, of functions that take some 50 ns for each."""


def shared(function: Callable[..., Any], *args: Any) -> Any:
    """What an elementwise function of another library makes of arrays: each thread takes a part of them.

    Numbers may stand beside arrays. Such functions let go of the interpreter while they compute.
    """
    arrays = [a for a in args if not isinstance(a, (float, np.generic))]
    count = min(threads(), arrays[0].size // LEAST_SHARE) if arrays and type(arrays[0]) is np.ndarray else 1
    if count < 2 or not all([a.shape == arrays[0].shape and a.flags.c_contiguous for a in arrays]):
        return function(*args)
    cuts = [arrays[0].size * i // count for i in range(count + 1)]
    parts: list[Any] = [None] * count
    failures: list[BaseException] = []

    def compute(i: int) -> None:
        try:
            mine = [a.reshape(-1)[cuts[i] : cuts[i + 1]] if type(a) is np.ndarray else a for a in args]
            parts[i] = quiet().run(function, *mine)
        except BaseException as error:
            failures.append(error)

    others = [threading.Thread(target=compute, args=(i,)) for i in range(1, count)]
    for thread in others:
        thread.start()
    compute(0)
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
    return np.concatenate(parts).reshape(arrays[0].shape)


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
