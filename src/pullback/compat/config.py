"""`torch.__config__`: how the library was built, in words."""

from __future__ import annotations

import os
import sys

import numpy

import pullback


def show() -> str:
    """What computes."""
    return (
        f"pullback {pullback.__version__} built with:\n  - Python {sys.version.split()[0]}\n"
        f"  - NumPy {numpy.__version__}\n  - CUDA: not available\n"
    )


def parallel_info() -> str:
    """How many threads compute."""
    return f"pullback parallel info:\n\tget_num_threads() : {pullback.get_num_threads()}\n\tcores : {os.cpu_count()}\n"
