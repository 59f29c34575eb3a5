"""Collectives with gradients: each gives new tensors, and its derivative is the collective that goes the other way."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.autograd import Function
from pullback.distributed import collectives
from pullback.distributed.reduce_op import ReduceOp
from pullback.distributed.world import get_rank, get_world_size, group_or_default


def copied(tensor: Tensor) -> Tensor:
    """The elements in memory of their own, in one piece."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


class Broadcast(Function):
    """Everywhere what one has; back come the sums, to it."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        """The tensor of one rank."""
        ctx.src, ctx.group = src, group
        out = copied(tensor)
        collectives.broadcast(out, src, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The sum of the gradients, at that rank."""
        total = copied(grad)
        collectives.reduce(total, ctx.src, group=ctx.group)
        return None, None, total if get_rank() == ctx.src else torch.zeros_like(total)


class Reduce(Function):
    """At one what all have, combined; back comes its gradient, to all."""

    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        """The combined tensor at one rank, this rank's elsewhere."""
        ctx.dst, ctx.group = dst, group
        out = copied(tensor)
        collectives.reduce(out, dst, op=op, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient of that rank."""
        return None, None, None, Broadcast.apply(ctx.dst, ctx.group, grad)


class AllReduce(Function):
    """Everywhere what all have, combined; so do the gradients."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        """The combined tensor."""
        ctx.op, ctx.group = op, group
        out = copied(tensor)
        collectives.all_reduce(out, op=op, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The combined gradients."""
        return None, None, AllReduce.apply(ctx.op, ctx.group, grad)


class AllGather(Function):
    """Everywhere the tensors of all; back come the sums, to each its own."""

    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Any:
        """A tensor for each rank."""
        ctx.group = group
        outs = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(get_world_size(group))]
        collectives.all_gather(outs, copied(tensor), group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The sum of what all ranks have for this one."""
        out = torch.empty_like(grads[0], memory_format=torch.contiguous_format)
        collectives.reduce_scatter(out, [copied(grad) for grad in grads], group=ctx.group)
        return None, out


class ReduceScatter(Function):
    """To each its part of what all have, combined; back come the parts of all."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        """This rank's part."""
        ctx.group = group
        out = torch.empty_like(output, memory_format=torch.contiguous_format)
        collectives.reduce_scatter(out, [copied(one) for one in tensors], op=op, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradients of all ranks' parts."""
        return None, None, None, *AllGather.apply(ctx.group, grad)


class AllToAll(Function):
    """To every rank its tensor; gradients go the same way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Any, *tensors: Tensor) -> Any:
        """What the others have for this rank."""
        ctx.group, ctx.shapes = group, [one.shape for one in tensors]
        outs = [tensors[0].new_empty(shape) for shape in shapes]
        collectives.all_to_all(outs, [copied(one) for one in tensors], group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """The gradients of what was sent."""
        return None, None, *AllToAll.apply(ctx.group, ctx.shapes, *grads)


class AllToAllSingle(Function):
    """To every rank its rows; gradients go the same way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, out_sizes: Any, in_sizes: Any, input: Tensor) -> Tensor:
        """The rows the others have for this rank."""
        ctx.group, ctx.shape, ctx.sizes = group, input.shape, (out_sizes, in_sizes)
        out = torch.empty_like(output, memory_format=torch.contiguous_format)
        collectives.all_to_all_single(out, copied(input), out_sizes, in_sizes, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradients of the rows that were sent."""
        out_sizes, in_sizes = ctx.sizes
        like = grad.new_empty(ctx.shape)
        return None, None, None, None, AllToAllSingle.apply(ctx.group, like, in_sizes, out_sizes, grad)


class Gather(Function):
    """At one the tensors of all; back goes to each its gradient."""

    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Any:
        """A tensor for each rank, at one of them; zeros elsewhere."""
        ctx.dst, ctx.group = dst, group
        outs = [torch.zeros_like(tensor, memory_format=torch.contiguous_format) for _ in range(get_world_size(group))]
        at_root = group_or_default(group).rank() == collectives.group_rank(group_or_default(group), dst, None)
        collectives.gather(copied(tensor), outs if at_root else None, dst, group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """This rank's gradient, from there."""
        return None, None, Scatter.apply(ctx.dst, ctx.group, *grads)


class Scatter(Function):
    """To each what one has for it; back come the gradients, to it."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        """This rank's tensor."""
        ctx.src, ctx.group = src, group
        out = torch.zeros_like(tensors[0], memory_format=torch.contiguous_format)
        at_root = group_or_default(group).rank() == collectives.group_rank(group_or_default(group), src, None)
        collectives.scatter(out, [copied(one) for one in tensors] if at_root else None, src, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradients of all, there."""
        return None, None, *Gather.apply(ctx.src, ctx.group, grad)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of one rank, everywhere."""
    return Broadcast.apply(src, group, tensor)  # type: ignore[no-any-return]


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, at one."""
    return Gather.apply(dst, group, tensor)  # type: ignore[no-any-return]


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Tensor:
    """To every rank the tensor one has for it."""
    return Scatter.apply(src, group, *tensors)  # type: ignore[no-any-return]


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Combine the tensors of all ranks, at one."""
    return Reduce.apply(dst, op, group, tensor)  # type: ignore[no-any-return]


def reduce_scatter(output: Tensor, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Combine the tensors all ranks have for each; each gets its own."""
    return ReduceScatter.apply(op, group, output, *input_list)  # type: ignore[no-any-return]


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, everywhere."""
    return AllGather.apply(group, tensor)  # type: ignore[no-any-return]


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> tuple[Tensor, ...]:
    """To every rank the tensor this one has for it."""
    return AllToAll.apply(group, [one.shape for one in output_tensor_list], *input_tensor_list)  # type: ignore[no-any-return]


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Tensor:
    """To every rank its rows."""
    return AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)  # type: ignore[no-any-return]


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Combine the tensors of all ranks, everywhere."""
    return AllReduce.apply(op, group, tensor)  # type: ignore[no-any-return]
