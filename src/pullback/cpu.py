"""torch.cpu: the one device there is, and `get_device_module`, which finds this module."""

from __future__ import annotations

import os
import sys
import warnings
from types import ModuleType
from typing import Any

from pullback._device import check_device


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """One: all cores together."""
    return 1


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to choose from."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for: every op is done when it returns."""


def get_capabilities() -> dict[str, Any]:
    """What is known of the processor: the number of cores."""
    return {"num_cores": os.cpu_count() or 1}


class _Amp:
    """The old place of autocast."""

    @staticmethod
    def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Any:
        """`torch.autocast("cpu")`."""
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return sys.modules["pullback"].autocast("cpu", dtype, enabled, cache_enabled)


amp = _Amp()
"""Stands for the module of that name."""


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device: this one."""
    check_device(device)
    return sys.modules[__name__]
