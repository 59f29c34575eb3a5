"""Padding at both ends of the last one, two or three dimensions."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Layer
from pullback.nn.modules.utils import ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

Sizes = int | tuple[int, ...]


class _PadNd(Layer):
    """Padding of `_dims` dimensions in one of the modes of F.pad."""

    _shared_init = True
    _dims: int
    _mode: str

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """F.pad."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The padding of each side."""
        return str(self.padding)


# ------------------------------------------------------------------ with one value


class _ConstantPadNd(_PadNd):
    """Padding with one value."""

    _shared_init = True

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """F.pad with the value."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The padding of each side, and with what."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with one value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last two dimensions with one value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last three dimensions with one value."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pad the last dimension with zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Pad the last two dimensions with zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Pad the last three dimensions with zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


# ------------------------------------------------------------------ with what is there


class ReflectionPad1d(_PadNd):
    """Pad the last dimension with its mirror image."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pad the last two dimensions with their mirror image."""

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Pad the last three dimensions with their mirror image."""

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Pad the last dimension with its outermost values."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pad the last two dimensions with their outermost values."""

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Pad the last three dimensions with their outermost values."""

    _dims, _mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    """Padding with the values of the other end."""

    _shared_init = True
    _mode = "circular"

    def _check_input_dim(self, input: Any) -> None:
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """F.pad."""
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pad the last dimension with the values of its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pad the last two dimensions with the values of their other end."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pad the last three dimensions with the values of their other end."""

    _dims = 3
