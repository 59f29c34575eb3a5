"""Reductions of DTensors: over a dimension that is cut they leave a Partial."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.tensor.dtensor import made
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, _NormPartial, share
from pullback.distributed.tensor.pointwise import checked, local_for, rule, without_partial

ADDED = ("sum", "avg", "norm1.0", "norm2.0")
"""What may be combined of nothing, too."""
COMBINED = {"sum": "sum", "amax": "max", "amin": "min", "max": "max", "min": "min", "mean": "avg"}


def dims_of(tensor: Any, given: Any) -> list[int]:
    """The dimensions that are reduced; all without any."""
    if given is None or (isinstance(given, (tuple, list)) and not given):
        return list(range(tensor.ndim))
    return [dim % max(tensor.ndim, 1) for dim in (given if isinstance(given, (tuple, list)) else (given,))]


def left_of(shape: Any, dims: list[int], keepdim: bool) -> list[int]:
    """What is left of a shape."""
    if keepdim:
        return [1 if dim in dims else n for dim, n in enumerate(shape)]
    return [n for dim, n in enumerate(shape) if dim not in dims]


def moved_cut(placement: Placement, dims: list[int], keepdim: bool) -> Placement:
    """Where a cut is once dimensions before it are gone."""
    if not isinstance(placement, Shard) or keepdim:
        return placement
    return Shard(placement.dim - sum([dim < placement.dim for dim in dims]))


def reduction(
    func: Any, name: str, tensor: Any, dims: list[int], keepdim: bool, kind: str, args: Any, kwargs: Any
) -> Any:
    """A reduction whose parts are combined so, or not at all: then nothing along the dimensions may be cut."""
    wanted: list[Placement] = []
    out: list[Placement] = []
    for dim, placement in enumerate(tensor.placements):
        if isinstance(placement, Partial):
            keeps = placement.reduce_op in ("sum", "avg") and kind in ("sum", "avg") and type(placement) is Partial
            wanted.append(placement if keeps else Replicate())
            out.append(wanted[-1])
        elif isinstance(placement, Shard) and placement.dim in dims:
            size, ranks = tensor.shape[placement.dim], tensor.device_mesh.size(dim)
            even = not size % ranks
            filled = share(size, ranks, ranks - 1)[1] > 0  # nothing has no largest element
            smooth = kind in ("sum", "avg") or not tensor.requires_grad or not torch.is_grad_enabled()
            if kind and smooth and (kind != "avg" or even) and (filled or kind in ADDED):
                wanted.append(placement)
                order = kind.removeprefix("norm")
                out.append(_NormPartial(float(order)) if order != kind else Partial(kind))
            else:
                wanted.append(Replicate())
                out.append(Replicate())
        else:
            wanted.append(placement)
            out.append(moved_cut(placement, dims, keepdim))
    result = func(local_for(tensor, wanted, wanted), *args, **kwargs)
    shape = left_of(tensor.shape, dims, keepdim)
    if isinstance(result, Tensor):
        return made(result, tensor.device_mesh, out, shape)
    return type(result)(*[made(one, tensor.device_mesh, out, shape) for one in result])


def option(args: Any, kwargs: Any, place: int, names: tuple[str, ...], default: Any) -> Any:
    """An argument, by place or by name."""
    if len(args) > place:
        return args[place]
    return next((kwargs[name] for name in names if name in kwargs), default)


@rule("sum", "mean", "amax", "amin", "prod", "all", "any", "nansum", "logsumexp", "var", "std", "argmax", "argmin")
def reduced(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The sum, and its relatives."""
    tensor, rest = args[0], args[1:]
    checked(name, args, kwargs)
    given = option(args, kwargs, 1, ("dim", "axis"), None)
    dims = dims_of(tensor, given)
    keepdim = bool(option(args, kwargs, 2, ("keepdim", "keepdims"), False))
    return reduction(func, name, tensor, dims, keepdim, COMBINED.get(name, ""), rest, kwargs)


@rule("max", "min")
def extreme(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The largest element, or along a dimension, or of two tensors."""
    given = option(args, kwargs, 1, ("dim", "other"), None)
    if isinstance(given, Tensor):
        function = torch.maximum if name == "max" else torch.minimum
        return function(*args, **kwargs)
    keepdim = bool(option(args, kwargs, 2, ("keepdim",), False))
    kind = COMBINED[name] if given is None else ""
    return reduction(func, name, args[0], dims_of(args[0], given), keepdim, kind, args[1:], kwargs)


@rule("linalg_vector_norm", "vector_norm", "norm")
def norm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The norm: that of the norms of parts."""
    tensor = args[0]
    order = option(args, kwargs, 1, ("ord", "p"), 2)
    given = option(args, kwargs, 2, ("dim",), None)
    keepdim = bool(option(args, kwargs, 3, ("keepdim",), False))
    order = 2.0 if order is None or order == "fro" else float(order)
    kind = f"norm{order}" if not math.isnan(order) else ""
    return reduction(func, name, tensor, dims_of(tensor, given), keepdim, kind, args[1:], kwargs)


@rule("softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort", "flip", "topk", "softmin", "roll", "glu")
def along(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """What works along a dimension, which may not be cut."""
    tensor = args[0]
    checked(name, args, kwargs)
    place = 2 if name in ("topk", "roll") else 1
    given = option(args, kwargs, place, ("dim", "dims", "axis"), -1)
    dims = dims_of(tensor, given)
    wanted = [
        Replicate() if isinstance(one, Shard) and one.dim in dims else one for one in without_partial(tensor.placements)
    ]
    result = func(local_for(tensor, wanted, wanted), *args[1:], **kwargs)

    def whole(one: Tensor) -> Any:
        shape = [one.shape[dim] if dim in dims else n for dim, n in enumerate(tensor.shape)]
        return made(one, tensor.device_mesh, wanted, shape)

    return whole(result) if isinstance(result, Tensor) else type(result)(*[whole(one) for one in result])


@rule("equal", "allclose")
def compared(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Whether two tensors are the same, everywhere."""
    checked(name, args[:2], {})
    whole = [Replicate()] * args[0].device_mesh.ndim
    return func(*[local_for(one, whole, whole) for one in args[:2]], *args[2:], **kwargs)
