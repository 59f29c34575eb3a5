"""Normalization without running statistics: over a layer, over groups of channels, over neighbours."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import pullback
from pullback import Tensor
from pullback.autograd import Function
from pullback.nn import functional as F
from pullback.nn import init
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _AffineNorm(Module):
    """A normalization that may multiply by a weight and add a bias of its own."""

    def _make(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            values = pullback.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)


def as_shape(normalized_shape: Any) -> tuple[int, ...]:
    """One size or several, as a tuple."""
    return (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)


class LayerNorm(_AffineNorm):
    """Mean 0 and variance 1 over the last dimensions of each example."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """F.layer_norm."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_AffineNorm):
    """Root mean square 1 over the last dimensions of each example."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, False, device, dtype)
        del self.bias

    def forward(self, x: Tensor) -> Tensor:
        """F.rms_norm."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_AffineNorm):
    """Mean 0 and variance 1 over each group of channels of each example."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """F.group_norm."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


# ------------------------------------------------------------------ over neighbouring channels


class LocalResponseNorm(Module):
    """Divide by what the neighbouring channels have at the same place."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """F.local_response_norm."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """The older local response normalization of images, with its own treatment of the first channel."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """Divide by (k + alpha / size * sum of squares of the neighbours) ** beta."""
        return _CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)


class _CrossMapLRN2d(Function):
    """Torch's sums over neighbours, forward and backward, as products with matrices of zeros and ones."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
        """input / scale ** beta."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.size(1)
        reach = int((size - 1) / 2 + 1)
        # Torch's running sum never lets go of the first channel.
        near = [
            [float(j == 0 or abs(i - j) < reach) if j < i + reach else 0.0 for j in range(channels)]
            for i in range(channels)
        ]
        ctx.scale = over_channels(near, input * input) * (alpha / size) + k
        ctx.settings = size, alpha, beta
        output = ctx.scale.pow(-beta) * input
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The gradient torch gives, whose window of neighbours is the mirrored one."""
        (grad,) = grads
        input, output = ctx.saved_tensors
        size, alpha, beta = ctx.settings
        channels = input.size(1)
        first = int(size - (size - 1) / 2)
        near = [[float(0 <= j + first - i < size) for j in range(channels)] for i in range(channels)]
        share = over_channels(near, grad * output / ctx.scale)
        return ctx.scale.pow(-beta) * grad - (2 * alpha * beta / size) * input * share, None, None, None, None


_CrossMapLRN2d.__name__ = "CrossMapLRN2d"


def over_channels(matrix: list[list[float]], images: Tensor) -> Tensor:
    """For each channel, the sum of the channels its row of the matrix names."""
    weights = pullback.tensor(matrix, dtype=images.dtype)
    return pullback.einsum("ij,njhw->nihw", weights, images)
