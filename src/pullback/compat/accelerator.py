"""`torch.accelerator`: the device beside the CPU, of which there is none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """None at all."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None."""


def synchronize(device: Any = None, /) -> None:
    """Refuse."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_index = current_device_idx = set_device_index = set_device_idx = current_stream = synchronize
