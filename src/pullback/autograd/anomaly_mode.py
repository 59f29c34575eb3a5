"""Anomaly mode: errors in backward name the forward call, and NaN gradients are errors."""

from __future__ import annotations

import warnings
from typing import Any

from pullback._modes import modes
from pullback._runtime.interrupts import Block
from pullback.autograd.numbering import evaluating, note_locations


def switch(mode: bool, check_nan: bool = True) -> None:
    """Set anomaly mode; while it is on, every node knows where it was made."""
    note_locations(bool(mode))
    modes.anomaly, modes.check_nan = mode, check_nan
    if not mode:
        evaluating.clear()  # an interrupt may have left one


class detect_anomaly(Block):
    """Inside, backward errors print the traceback of the forward call, and NaN gradients raise."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def _before(self) -> Any:
        """The mode around."""
        return modes.anomaly, modes.check_nan

    def _begin(self, before: Any) -> None:
        """On."""
        switch(True, self.check_nan)

    def _end(self, before: Any) -> None:
        """As it was."""
        switch(*before)


class set_detect_anomaly(Block):
    """Switch anomaly mode on or off: at once when called, or for a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.around = modes.anomaly, modes.check_nan
        try:
            switch(mode, check_nan)
        except BaseException:
            switch(*self.around)
            raise

    def _begin(self, before: Any) -> None:
        """It is on, or off, already."""

    def _end(self, before: Any) -> None:
        """As it was."""
        switch(*self.around)


def is_anomaly_enabled() -> bool:
    """True while anomaly mode is on."""
    return modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """True while anomaly mode also looks for NaNs."""
    return modes.check_nan
