"""Anomaly mode: errors in backward name the forward call, and NaN gradients are errors."""

from __future__ import annotations

import warnings
from typing import Any

from pullback._modes import modes
from pullback.autograd.numbering import note_places


def switch(mode: bool, check_nan: bool = True) -> None:
    """Set anomaly mode; while it is on, every node knows where it was made."""
    if bool(mode) != modes.anomaly:
        note_places(bool(mode))
    modes.anomaly, modes.check_nan = mode, check_nan


class detect_anomaly:
    """Inside, backward errors print the traceback of the forward call, and NaN gradients raise."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.before: Any = (modes.anomaly, modes.check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (modes.anomaly, modes.check_nan)
        switch(True, self.check_nan)

    def __exit__(self, *error: object) -> None:
        switch(*self.before)


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once when called, or for a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (modes.anomaly, modes.check_nan)
        switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        switch(*self.before)


def is_anomaly_enabled() -> bool:
    """True while anomaly mode is on."""
    return modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """True while anomaly mode also looks for NaNs."""
    return modes.check_nan
