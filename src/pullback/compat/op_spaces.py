"""`torch.ops` under torch's own name: the namespaces of ops, see pullback.library.overloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pullback.compat.vision import detection, images
from pullback.library import ops

loaded_libraries: set[str] = ops.loaded_libraries
REPLACED = {"torchvision/_C": detection.LIBRARY, "torchvision/image": images.LIBRARY}
"""Libraries compiled for torch's C++ interface that are written in Python here."""


def load_library(path: Any) -> None:
    """Register the ops of a compiled library that has been written in Python; others cannot be loaded."""
    place = Path(path)
    library = REPLACED.get(f"{place.parent.name}/{place.name.partition('.')[0]}")
    if library is None:
        ops.load_library(path)
    else:
        library.load()
        loaded_libraries.add(os.path.realpath(path))


def __getattr__(name: str) -> Any:
    return getattr(ops, name)
