"""The older local response normalization of images as an autograd function."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback.autograd import Function


class CrossMapLRN2d(Function):
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


def over_channels(matrix: list[list[float]], images: Tensor) -> Tensor:
    """For each channel, the sum of the channels its row of the matrix names."""
    weights = pullback.tensor(matrix, dtype=images.dtype)
    return pullback.einsum("ij,njhw->nihw", weights, images)
