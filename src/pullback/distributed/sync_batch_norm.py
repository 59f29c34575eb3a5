"""Batch normalization by the statistics of all ranks, and its derivative."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.autograd import Function
from pullback.distributed.reduce_op import ReduceOp


def over_channels(tensor: Tensor) -> list[int]:
    """All dimensions but that of the channels."""
    return [dim for dim in range(tensor.ndim) if dim != 1]


def beside(values: Tensor, like: Tensor) -> Tensor:
    """A value for each channel, so that it can be combined with the input."""
    return values.reshape([1, -1] + [1] * (like.ndim - 2))


class SyncBatchNorm(Function):
    """Normalize by the mean and the variance over the inputs of all ranks."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, eps: float, momentum: float, group: Any
    ) -> Tensor:
        """Ranks send the sums of their channels and what their squares differ by from the mean; one reduction each."""
        dims, channels = over_channels(input), input.shape[1]
        wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        sums = torch.cat([wide.sum(dims), wide.new_full((1,), float(input.numel() // channels))])
        group.all_reduce([sums], ReduceOp.SUM)
        count = float(sums[-1].item())
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        center = sums[:-1] / count
        squares = ((wide - beside(center, wide)) ** 2).sum(dims)
        group.all_reduce([squares], ReduceOp.SUM)
        scale = torch.rsqrt(squares / count + eps)
        if mean is not None:
            mean.mul_(1 - momentum).add_(center, alpha=momentum)
            var.mul_(1 - momentum).add_(squares / (count - 1), alpha=momentum)
        normal = (wide - beside(center, wide)) * beside(scale, wide)
        ctx.save_for_backward(normal, weight, scale)
        ctx.group, ctx.count, ctx.has_bias, ctx.dtype = group, count, bias is not None, input.dtype
        out = normal if weight is None else normal * beside(weight, wide)
        return (out if bias is None else out + beside(bias, wide)).to(input.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The sums of the gradients are those of all ranks, too; the parameters' gradients are this rank's."""
        normal, weight, scale = ctx.saved_tensors
        dims, wide = over_channels(grad), grad.to(normal.dtype)
        total, along = wide.sum(dims), (wide * normal).sum(dims)
        sums = torch.cat([total, along])
        ctx.group.all_reduce([sums], ReduceOp.SUM)
        everywhere, along_everywhere = sums.chunk(2)
        d_input = None
        if ctx.needs_input_grad[0]:
            factor = scale if weight is None else scale * weight
            common = beside(everywhere, wide) + normal * beside(along_everywhere, wide)
            d_input = ((wide - common / ctx.count) * beside(factor, wide)).to(ctx.dtype)
        d_weight = None if weight is None else along.to(weight.dtype)
        return d_input, d_weight, total if ctx.has_bias else None, None, None, None, None, None
