"""Pooling over fixed windows and into a fixed number of places."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Layer, Module
from pullback.nn.modules.utils import _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip

Sizes = int | tuple[int, ...]


def shown(module: Any, *names: str) -> str:
    """'kernel_size=2, stride=2'."""
    return ", ".join([f"{name}={getattr(module, name)}" for name in names])


# ------------------------------------------------------------------ the largest of each window


class _MaxPoolNd(Module):
    """What max pooling has in common, whatever the number of dimensions."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pooled(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The settings."""
        return shown(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """The largest of each window of a signal."""

    def forward(self, input: Tensor) -> Any:
        """F.max_pool1d."""
        return self._pooled(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The largest of each window of an image."""

    def forward(self, input: Tensor) -> Any:
        """F.max_pool2d."""
        return self._pooled(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The largest of each window of a volume."""

    def forward(self, input: Tensor) -> Any:
        """F.max_pool3d."""
        return self._pooled(F.max_pool3d, input)


class _MaxUnpoolNd(Layer):
    """What the partial inverse of max pooling has in common."""

    def _set(self, sizes: Any, kernel_size: Sizes, stride: Sizes | None, padding: Sizes) -> None:
        self.kernel_size = sizes(kernel_size)
        self.stride = sizes(kernel_size if stride is None else stride)
        self.padding = sizes(padding)

    def extra_repr(self) -> str:
        """The settings."""
        return shown(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts what MaxPool1d found back to its place, zeros elsewhere."""

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self._set(_single, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """F.max_unpool1d."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts what MaxPool2d found back to its place, zeros elsewhere."""

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self._set(_pair, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """F.max_unpool2d."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts what MaxPool3d found back to its place, zeros elsewhere."""

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self._set(_triple, kernel_size, stride, padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """F.max_unpool3d."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


# ------------------------------------------------------------------ the mean of each window


class _AvgPoolNd(Layer):
    """What average pooling of images and volumes has in common."""

    _shared_init = True

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pooled(self, function: Any, input: Tensor) -> Tensor:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """The settings."""
        return shown(self, "kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a signal."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        stride = kernel_size if stride is None else stride
        super().__init__(_single(kernel_size), _single(stride), _single(padding), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """F.avg_pool1d."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """F.avg_pool2d."""
        return self._pooled(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        """F.avg_pool3d."""
        return self._pooled(F.avg_pool3d, input)


# ------------------------------------------------------------------ the norm of each window


class _LPPoolNd(Layer):
    """What power-average pooling has in common."""

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """The settings."""
        return shown(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of a signal."""

    def forward(self, input: Tensor) -> Tensor:
        """F.lp_pool1d."""
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """F.lp_pool2d."""
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        """F.lp_pool3d."""
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


# ------------------------------------------------------------------ windows of random size


class _FractionalMaxPoolNd(Module):
    """What fractional max pooling has in common."""

    def _set(
        self, sizes: Any, kernel_size: Sizes, output_size: Any, output_ratio: Any, return_indices: bool, samples: Any
    ) -> None:
        self.kernel_size = sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", samples)
        self.output_size = None if output_size is None else sizes(output_size)
        self.output_ratio = None if output_ratio is None else sizes(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pooled(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The largest of each window of an image, where the windows are drawn at random."""

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self._set(_pair, kernel_size, output_size, output_ratio, return_indices, _random_samples)

    def forward(self, input: Tensor) -> Any:
        """F.fractional_max_pool2d."""
        return self._pooled(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The largest of each window of a volume, where the windows are drawn at random."""

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if not all(k > 0 for k in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self._set(_triple, kernel_size, output_size, output_ratio, return_indices, _random_samples)

    def forward(self, input: Tensor) -> Any:
        """F.fractional_max_pool3d."""
        return self._pooled(F.fractional_max_pool3d, input)


# ------------------------------------------------------------------ into a fixed number of places


class _AdaptivePoolNd(Module):
    """What adaptive pooling has in common: the size of the output."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    __init__.__qualname__ = "_AdaptiveAvgPoolNd.__init__"  # as torch calls it in errors

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    """Adaptive max pooling, which may also tell where the largest were."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest of each of output_size windows of a signal."""

    def forward(self, input: Tensor) -> Any:
        """F.adaptive_max_pool1d."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest of each of output_size windows of an image."""

    def forward(self, input: Tensor) -> Any:
        """F.adaptive_max_pool2d."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest of each of output_size windows of a volume."""

    def forward(self, input: Tensor) -> Any:
        """F.adaptive_max_pool3d."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptivePoolNd):
    """The mean of each of output_size windows of a signal."""

    def forward(self, input: Tensor) -> Tensor:
        """F.adaptive_avg_pool1d."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePoolNd):
    """The mean of each of output_size windows of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """F.adaptive_avg_pool2d."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePoolNd):
    """The mean of each of output_size windows of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        """F.adaptive_avg_pool3d."""
        return F.adaptive_avg_pool3d(input, self.output_size)
