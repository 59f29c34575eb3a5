"""`torch.ops` under torch's own name: the namespaces of ops, see pullback.library.overloads."""

from __future__ import annotations

from typing import Any

from pullback.library import ops

loaded_libraries: set[str] = ops.loaded_libraries
load_library = ops.load_library


def __getattr__(name: str) -> Any:
    return getattr(ops, name)
