"""The settings of convolutions: which make sense, and the padding of each side."""

from __future__ import annotations

from typing import Any

from pullback.nn.modules.utils import _reverse_repeat_tuple

PADDINGS = {"same", "valid"}
PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


def check_settings(
    in_channels: int, out_channels: int, stride: tuple[int, ...], padding: Any, groups: int, padding_mode: str
) -> None:
    """Refuse settings that no convolution has."""
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in PADDINGS:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {PADDINGS}")
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{padding_mode}'")


def padding_of_each_side(padding: Any, kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> Any:
    """The padding as F.pad wants it: both sides of the last dimension, of the one before it, and so on."""
    if padding == "valid":
        return [0, 0] * len(kernel_size)
    if padding == "same":
        sides = []
        for steps, size in zip(reversed(dilation), reversed(kernel_size), strict=True):
            total = steps * (size - 1)
            sides += [total // 2, total - total // 2]
        return sides
    return _reverse_repeat_tuple(padding, 2)
