"""`torch.ops`: the spaces of ops compiled elsewhere. None can be loaded here; `torch.ops.aten` has torch's own."""

from __future__ import annotations

from typing import Any, NoReturn

import pullback

loaded_libraries: set[str] = set()


def load_library(path: str) -> NoReturn:
    """Refuse, as a file that cannot be loaded does: programs catch that and do without."""
    raise OSError(f"{path}: compiled for torch's C++ interface, which pullback has not; it runs on NumPy")


class OpSpace:
    """The ops of one library: `torch.ops.aten.relu(x)`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(pullback, name, None) if self.name == "aten" and not name.startswith("__") else None
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __repr__(self) -> str:
        return f"<torch.ops.{self.name}>"


def __getattr__(name: str) -> OpSpace:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    globals()[name] = space = OpSpace(name)
    return space
