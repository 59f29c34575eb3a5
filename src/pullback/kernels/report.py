"""What computes here: `config()` says which kernels, BLAS and CPU are in use, `memory_stats()` where memory is."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from pullback.kernels import jit, workers
from pullback.kernels.compiled import room


def config() -> dict[str, Any]:
    """Which kernels, BLAS and CPU features are in use, and how many threads.

    >>> import pullback
    >>> sorted(pullback.config())
    ['blas', 'cache', 'cpu', 'kernels', 'numpy', 'python', 'reason', 'threads', 'vector_bits']
    """
    built: Any = np.show_config(mode="dicts")
    blas = built.get("Build Dependencies", {}).get("blas", {})
    found: dict[str, Any] = {
        "kernels": "numpy",
        "reason": jit.reason(),
        "cpu": platform.machine(),
        "vector_bits": None,
        "cache": None,
    }
    target = room("compiler.target")
    if target is not None:
        version = ".".join(map(str, target.LLVM_VERSION))
        found |= {"kernels": f"llvm {version}", "cpu": target.CPU, "vector_bits": 8 * target.VECTOR_BYTES}
        folder, counts = room("compiler.cache").folder(), room("compiler.engine").counts
        found["cache"] = {"folder": None if folder is None else str(folder), **counts}
    return found | {
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "threads": workers.threads(),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def memory_stats() -> dict[str, int]:
    """Where the memory of large arrays is.

    Bytes in use (`live`), at most so far (`peak`), kept for the next arrays (`kept`, up to `limit`); how many blocks
    were found ready (`hits`) or had to be asked for (`misses`), and bytes given back to the system (`returned`).

    All are zero where kernels are not compiled: then NumPy's own allocator is in use, which does not count.
    """
    buffers = room("runtime.buffers")
    names = ("live", "kept", "limit", "hits", "misses", "returned", "peak")
    return dict.fromkeys(names, 0) if buffers is None else buffers.buffers.stats()


def empty_cache() -> None:
    """Give kept memory back to the system."""
    buffers = room("runtime.buffers")
    if buffers is not None:
        buffers.buffers.empty()
