"""What a program can ask the array API standard's namespace about itself."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.array_api.dtypes import isdtype

MAX_DIMS = 64
NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
"""The dtypes of the standard; float16 and bfloat16 are not among them."""


class NamespaceInfo:
    """Answers about the devices, the dtypes and the abilities of this library."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What not every library can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_DIMS}

    def default_device(self) -> torch.device:
        """Where new arrays are."""
        return torch.get_default_device()

    def devices(self) -> tuple[torch.device, ...]:
        """Where arrays can be."""
        return (torch.device("cpu"),)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind."""
        check_device(device)
        real = torch.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard, or those of a kind, or of one of several."""
        check_device(device)
        found = {name: getattr(torch, name) for name in NAMES}
        return {name: dtype for name, dtype in found.items() if kind is None or isdtype(dtype, kind)}


def check_device(device: Any) -> None:
    """Only what exists can be asked about."""
    if device is not None and torch.device(device).type != "cpu":
        raise ValueError(f"there is no device {device} here")


def __array_namespace_info__() -> NamespaceInfo:
    """Answers about the devices, the dtypes and the abilities of this library."""
    return NamespaceInfo()
