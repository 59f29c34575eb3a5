"""Errors of the device, with what to do about them."""

from __future__ import annotations

HINTS = {
    700: "\nA kernel read or wrote outside of its memory; the device can be used again after a restart of the program.",
    719: "\nA kernel failed; the device can be used again after a restart of the program.",
    218: "\nThe driver is older than the programs made for it: install a newer one.",
    222: "\nThe driver is older than the programs made for it: install a newer one.",
    46: "\nAnother program has the device: end it, or choose another one by CUDA_VISIBLE_DEVICES.",
    100: "\nThere is no device: use device='cpu'.",
    999: "\nThe driver lost the device; restart the program, or the machine.",
}
"""What to do, by the number of the driver's error."""


def hint(status: int) -> str:
    """What to do about an error of the driver."""
    return HINTS.get(status, "")


class AcceleratorError(RuntimeError):
    """The device, or its driver, refused or failed."""

    def __init__(self, text: str, error_code: int = 0, function: str = "") -> None:
        super().__init__(text)
        self.error_code, self.function = error_code, function


class OutOfMemoryError(RuntimeError):
    """The memory of a device is full."""
