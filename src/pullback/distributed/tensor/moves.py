"""From one placement to another along one dimension of a mesh, with gradients.

The gradient of a tensor lies on the ranks as the tensor does, and where it is Partial it is whole on each: what is
summed over ranks has the gradient of the sum. So the way back is always the opposite move.
"""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.autograd import Function
from pullback.distributed import collectives
from pullback.distributed.reduce_op import ReduceOp
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, _NormPartial, share

OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.SUM, "max": ReduceOp.MAX, "min": ReduceOp.MIN, "product": ReduceOp.PRODUCT}


def padded(part: Tensor, dim: int, length: int) -> Tensor:
    """A part with zeros behind it, in one piece."""
    missing = length - part.shape[dim]
    if not missing:
        return part.contiguous()
    shape = list(part.shape)
    shape[dim] = missing
    return torch.cat([part, part.new_zeros(shape)], dim)


def whole_of(part: Tensor, group: Any, dim: int, size: int) -> Tensor:
    """The parts of all ranks, one behind the other along a dimension."""
    ranks = group.size()
    each = -(-size // ranks)
    own = padded(part.detach(), dim, each)
    outs = [torch.empty_like(own) for _ in range(ranks)]
    collectives.all_gather(outs, own, group=group)
    return torch.cat([out.narrow(dim, 0, share(size, ranks, i)[1]) for i, out in enumerate(outs)], dim)


def own_part(whole: Tensor, group: Any, dim: int) -> Tensor:
    """The part of this rank."""
    start, length = share(whole.shape[dim], group.size(), group.rank())
    return whole.detach().narrow(dim, start, length).clone(memory_format=torch.contiguous_format)


def reduced(local: Tensor, group: Any, op: str) -> Tensor:
    """What all ranks hold, combined."""
    total = local.detach().clone(memory_format=torch.contiguous_format)
    collectives.all_reduce(total, OPS[op], group=group)
    return total / group.size() if op == "avg" else total


class Gathered(Function):
    """Shard to Replicate."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any, dim: int, size: int) -> Tensor:
        """The whole."""
        ctx.group, ctx.dim = group, dim
        return whole_of(local, group, dim, size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The part of this rank."""
        return Taken.apply(grad, ctx.group, ctx.dim), None, None, None


class Taken(Function):
    """Replicate to Shard."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any, dim: int) -> Tensor:
        """The part of this rank."""
        ctx.group, ctx.dim, ctx.size = group, dim, local.shape[dim]
        return own_part(local, group, dim)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradients of all parts."""
        return Gathered.apply(grad, ctx.group, ctx.dim, ctx.size), None, None


class Summed(Function):
    """Partial to Replicate."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any, op: str) -> Tensor:
        """What all ranks hold, combined."""
        ctx.group, ctx.op = group, op
        return reduced(local, group, op)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Each summand has the gradient of the sum."""
        if ctx.op not in ("sum", "avg"):
            raise NotImplementedError(
                f"the gradient of Partial({ctx.op}): redistribute the tensor to Replicate() before the reduction"
            )
        return grad / ctx.group.size() if ctx.op == "avg" else grad, None, None


class Scattered(Function):
    """Partial to Shard."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any, dim: int, op: str) -> Tensor:
        """The part of this rank of what all hold, combined."""
        ctx.group, ctx.dim, ctx.size, ctx.op = group, dim, local.shape[dim], op
        ranks, size = group.size(), local.shape[dim]
        each = -(-size // ranks)
        cuts = [share(size, ranks, i) for i in range(ranks)]
        parts = [padded(local.detach().narrow(dim, start, length), dim, each) for start, length in cuts]
        out = torch.empty_like(parts[0])
        collectives.reduce_scatter(out, parts, OPS[op], group=group)
        out = out.narrow(dim, 0, cuts[group.rank()][1]).contiguous()
        return out / ranks if op == "avg" else out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradients of all parts."""
        if ctx.op not in ("sum", "avg"):
            raise NotImplementedError(f"the gradient of Partial({ctx.op}): redistribute to Replicate() first")
        whole = Gathered.apply(grad, ctx.group, ctx.dim, ctx.size)
        return whole / ctx.group.size() if ctx.op == "avg" else whole, None, None, None


class Divided(Function):
    """Replicate to Partial: each holds an equal share of the value."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any) -> Tensor:
        """A share."""
        return local / group.size()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The value has the gradient of its shares' sum."""
        return grad, None


class Spread(Function):
    """The whole, of which each rank uses something else: what they use has gradients that must be added."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: Any) -> Tensor:
        """The tensor."""
        ctx.group = group
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The sum of all ranks' gradients."""
        return Summed.apply(grad, ctx.group, "sum"), None


def combined(local: Tensor, group: Any, placement: Partial) -> Tensor:
    """Partial to Replicate, by whatever combines it."""
    if isinstance(placement, _NormPartial):
        order = placement.norm_type
        if order in (0, 1, float("inf"), float("-inf")):
            return Summed.apply(local, group, placement.reduce_op)  # type: ignore[no-any-return]
        return Summed.apply(local**order, group, "sum") ** (1 / order)  # type: ignore[no-any-return]
    if placement.reduce_op not in OPS:
        raise NotImplementedError(f"redistributing {placement}: combine what to_local() gives by all_reduce")
    return Summed.apply(local, group, placement.reduce_op)  # type: ignore[no-any-return]


def sizes_inside(shape: Any, mesh: Any, placements: Any, upto: int) -> list[int]:
    """The shape of what this rank holds after the placements of the first mesh dimensions."""
    sizes = list(shape)
    for dim in range(upto):
        placement = placements[dim]
        if isinstance(placement, Shard):
            sizes[placement.dim] = share(sizes[placement.dim], mesh.size(dim), mesh.get_coordinate()[dim])[1]
    return sizes


def offsets_inside(shape: Any, mesh: Any, placements: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of what this rank holds, and where in the whole it begins."""
    sizes, starts = list(shape), [0] * len(shape)
    for dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            at = placement.dim
            start, sizes[at] = share(sizes[at], mesh.size(dim), mesh.get_coordinate()[dim])
            starts[at] = min(starts[at] + start, shape[at])
    return tuple(sizes), tuple(starts)


def moved(local: Tensor, mesh: Any, shape: Any, before: Any, after: Any) -> Tensor:
    """What this rank holds of a tensor of this shape, from one list of placements to another."""
    now: list[Placement] = list(before)
    changing = {dim for dim in range(len(now)) if now[dim] != after[dim]}
    for dim in reversed(range(len(now))):  # what was cut last is put together first
        here = now[dim]
        if not isinstance(here, Shard):
            continue
        outer = [one for one in changing if one < dim and here.dim in (cut_of(before[one]), cut_of(after[one]))]
        if dim in changing or outer:
            size = sizes_inside(shape, mesh, now, dim)[here.dim]
            local = Gathered.apply(local, mesh.get_group(dim), here.dim, size)
            now[dim] = Replicate()
    for dim in range(len(now)):
        here, there, group = now[dim], after[dim], mesh.get_group(dim)
        if here == there:
            continue
        if isinstance(here, Partial):
            if isinstance(there, Shard) and not isinstance(here, _NormPartial):
                local = Scattered.apply(local, group, there.dim, here.reduce_op)
            else:
                local = combined(local, group, here)
                here = Replicate()
        if isinstance(here, Replicate) and isinstance(there, Shard):
            local = Taken.apply(local, group, there.dim)
        elif isinstance(here, Replicate) and isinstance(there, Partial):
            if there.reduce_op == "sum":
                local = Divided.apply(local, group)
            elif there.reduce_op not in ("avg", "max", "min"):
                raise NotImplementedError(f"redistributing from {here} to {there}")
        now[dim] = there
    return local


def cut_of(placement: Placement) -> int | None:
    """The dimension that a placement cuts."""
    return placement.dim if isinstance(placement, Shard) else None
