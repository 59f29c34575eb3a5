"""The order in memory of the weights of convolutions."""

from __future__ import annotations

from typing import Any

from pullback.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from pullback.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all 2d convolutions below this memory format."""
    return convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all 3d convolutions below this memory format."""
    return convert(module, (Conv3d, ConvTranspose3d), memory_format)


def convert(module: Module, kinds: tuple[type[Any], ...], memory_format: Any) -> Module:
    """Give the weights of all modules of these kinds this memory format."""
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module
