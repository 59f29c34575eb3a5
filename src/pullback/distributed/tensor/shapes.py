"""DTensors in other shapes: dimensions that are cut are followed to where they go."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import pullback as torch
from pullback import Tensor
from pullback.distributed.tensor.dtensor import made
from pullback.distributed.tensor.moves import moved, sizes_inside
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.pointwise import checked, local_for, rule
from pullback.distributed.tensor.reductions import option


def sizes(args: Any) -> list[int]:
    """Sizes given one by one, or in a list."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple, torch.Size)) else list(args)


def permuted(tensor: Any, order: list[int]) -> Any:
    """The dimensions in another order."""
    out = [Shard(order.index(one.dim)) if isinstance(one, Shard) else one for one in tensor.placements]
    return made(tensor._local_tensor.permute(order), tensor.device_mesh, out, [tensor.shape[dim] for dim in order])


@rule("permute", "transpose", "t", "movedim", "swapaxes", "swapdims", "moveaxis", "adjoint")
def permute(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The dimensions in another order, as the function orders them."""
    tensor = args[0]
    count = tensor.ndim
    marks = func(torch.empty([dim + 2 for dim in range(count)], device="meta"), *args[1:], **kwargs)
    return permuted(tensor, [n - 2 for n in marks.shape])


def wanted_shape(tensor: Any, given: list[int]) -> list[int]:
    """A shape with the size that follows from the others."""
    if -1 not in given:
        return given
    rest = math.prod([n for n in given if n != -1])
    return [tensor.numel() // max(rest, 1) if n == -1 else n for n in given]


def refuse(tensor: Any, shape: list[int]) -> NoReturn:
    """A cut that cannot be followed."""
    spots = ", ".join([str(one) for one in tensor.placements])
    raise RuntimeError(
        f"Cannot view a tensor of shape {tuple(tensor.shape)} placed ({spots}) as {tuple(shape)}: the dimension that "
        "is cut is not the first of those it is joined with, or does not divide evenly. Please redistribute the tensor "
        "before this operation."
    )


def followed(tensor: Any, shape: list[int], dim: int) -> int | None:
    """Where the dimension `dim` begins in another shape: the first of what it became. None if it is in the middle."""
    before = math.prod(tensor.shape[:dim])
    for at in range(len(shape)):
        if math.prod(shape[:at]) == before and (shape[at] != 1 or tensor.shape[dim] == 1):
            return at
    return None


def reshaped(func: Any, tensor: Any, shape: list[int]) -> Any:
    """A tensor in another shape."""
    shape = wanted_shape(tensor, shape)
    if math.prod(shape) != tensor.numel():
        raise RuntimeError(f"shape '{shape}' is invalid for input of size {tensor.numel()}")
    out: list[Placement] = []
    for index, placement in enumerate(tensor.placements):
        if not isinstance(placement, Shard):
            out.append(placement)
            continue
        at, n, parts = (
            followed(tensor, shape, placement.dim),
            tensor.shape[placement.dim],
            tensor.device_mesh.size(index),
        )
        unchanged = at is not None and shape[at] == n and shape[at + 1 :] == list(tensor.shape[placement.dim + 1 :])
        if not unchanged and n % parts:
            raise RuntimeError(
                f"Cannot flatten unevenly sharded tensor: dimension {placement.dim} (size {n}) is not evenly divisible "
                f"by mesh dimension {index} (size {parts}). Please redistribute the tensor before this operation."
            )
        if at is None or (not unchanged and shape[at] % parts):
            refuse(tensor, shape)
        out.append(Shard(at))
    local_shape = sizes_inside(shape, tensor.device_mesh, out, len(out))
    return made(tensor._local_tensor.reshape(local_shape), tensor.device_mesh, out, shape)


@rule("view", "reshape", "_unsafe_view")
def view(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Another shape."""
    given = args[1:] if len(args) > 1 else (kwargs.get("shape") or kwargs.get("size"),)
    if len(given) == 1 and isinstance(given[0], torch.dtype):
        return made(args[0]._local_tensor.view(given[0]), args[0].device_mesh, args[0].placements, args[0].shape)
    return reshaped(func, args[0], sizes(given))


@rule("view_as", "reshape_as")
def view_as(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The shape of another."""
    return reshaped(func, args[0], list(args[1].shape))


@rule("flatten", "unflatten", "ravel")
def flatten(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Dimensions joined, or one divided."""
    shape = func(torch.empty(args[0].shape, device="meta"), *args[1:], **kwargs).shape
    return reshaped(func, args[0], list(shape))


@rule("unsqueeze", "squeeze")
def squeeze(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A dimension of one element more, or less."""
    tensor = args[0]
    shape = func(torch.empty(tensor.shape, device="meta"), *args[1:], **kwargs).shape
    given = option(args, kwargs, 1, ("dim",), None)
    out: list[Placement] = []
    for placement in tensor.placements:
        if isinstance(placement, Shard):
            dim = placement.dim
            if name == "unsqueeze":
                dim += given % (tensor.ndim + 1) <= dim
            else:
                gone = range(tensor.ndim) if given is None else [given] if isinstance(given, int) else given
                gone = [one % tensor.ndim for one in gone]
                gone = [one for one in gone if tensor.shape[one] == 1]
                if dim in gone:
                    raise RuntimeError("squeeze of a dimension that is cut: redistribute the tensor first")
                dim -= sum([one < dim for one in gone])
            placement = Shard(dim)
        out.append(placement)
    local = tensor._local_tensor.reshape(sizes_inside(shape, tensor.device_mesh, out, len(out)))
    return made(local, tensor.device_mesh, out, shape)


@rule("expand", "expand_as", "broadcast_to")
def expand(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Dimensions of one element stretched."""
    tensor = args[0]
    given = list(args[1].shape) if name == "expand_as" else sizes(args[1:])
    more = len(given) - tensor.ndim
    shape = [tensor.shape[dim - more] if n == -1 else n for dim, n in enumerate(given)]
    wanted = [
        Replicate() if isinstance(one, Shard) and tensor.shape[one.dim] != shape[one.dim + more] else one
        for one in tensor.placements
    ]
    out = [Shard(one.dim + more) if isinstance(one, Shard) else one for one in wanted]
    local = local_for(tensor, wanted, wanted).expand(sizes_inside(shape, tensor.device_mesh, out, len(out)))
    return made(local, tensor.device_mesh, out, shape)


# ------------------------------------------------------------------ parts and wholes


@rule("chunk", "split", "unbind", "tensor_split", "split_with_sizes")
def parts(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Parts along a dimension, which must not be cut."""
    tensor = args[0]
    dim = option(args, kwargs, 1 if name == "unbind" else 2, ("dim",), 0) % tensor.ndim
    if name == "unbind" and any(isinstance(one, Shard) and one.dim == dim for one in tensor.placements):
        raise RuntimeError(
            f"Attempted to unbind along the sharded dimension {dim}. ",
            "It cannot be performed without redistribution, which is disallowed by the current operator.",
        )
    wanted = [Replicate() if isinstance(one, Shard) and one.dim == dim else one for one in tensor.placements]
    results = func(local_for(tensor, wanted, wanted), *args[1:], **kwargs)
    out = wanted
    if name == "unbind":
        out = [Shard(one.dim - (one.dim > dim)) if isinstance(one, Shard) else one for one in wanted]
    shapes = [(*tensor.shape[:dim], *([] if name == "unbind" else [one.shape[dim]]), *tensor.shape[dim + 1 :])
              for one in results]  # fmt: skip
    return tuple([made(one, tensor.device_mesh, out, shape) for one, shape in zip(results, shapes)])


@rule("__getitem__", "select", "narrow", "index_select", "gather", "take_along_dim")
def index(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Some of the elements: along dimensions that are cut, of the whole."""
    tensor = args[0]
    checked(name, args, kwargs)
    keys = args[1] if isinstance(args[1], tuple) else (args[1],)
    simple = name == "__getitem__" and all(
        isinstance(one, (int, slice)) or one is None or one is Ellipsis for one in keys
    )
    meta = torch.empty(tensor.shape, device="meta")
    if name in ("select", "narrow"):
        touched, gone = {args[1] % tensor.ndim}, [args[1] % tensor.ndim] if name == "select" else []
        new: list[int] = []
    elif simple:
        touched, gone, new = looked_at(keys, tensor.ndim)
    else:
        touched, gone, new = set(range(tensor.ndim)), [], []
    wanted = [Replicate() if isinstance(one, Shard) and one.dim in touched else one for one in tensor.placements]
    if not simple and name not in ("select", "narrow"):
        wanted = [Replicate() for _ in wanted]
        given = [
            local_for(one, wanted, wanted) if isinstance(one, Tensor) and hasattr(one, "_spec") else one for one in args
        ]
        result = func(*given, **kwargs)
        return made(result, tensor.device_mesh, wanted, result.shape)
    shape = func(meta, *args[1:], **kwargs).shape
    out: list[Placement] = []
    for one in wanted:
        if isinstance(one, Shard):
            dim = one.dim - sum([other < one.dim for other in gone])
            for place in new:
                dim += place <= dim
            one = Shard(dim)
        out.append(one)
    return made(func(local_for(tensor, wanted, wanted), *args[1:], **kwargs), tensor.device_mesh, out, shape)


def looked_at(keys: Any, ndim: int) -> tuple[set[int], list[int], list[int]]:
    """The dimensions that an index looks into, those it takes away, and where it adds some."""
    used = sum([one is not None and one is not Ellipsis for one in keys])
    touched: set[int] = set()
    gone: list[int] = []
    new: list[int] = []
    dim = place = 0
    for key in keys:
        if key is None:
            new.append(place)
            place += 1
        elif key is Ellipsis:
            dim += ndim - used
            place += ndim - used
        else:
            if key != slice(None):
                touched.add(dim)
            if isinstance(key, int):
                gone.append(dim)
            else:
                place += 1
            dim += 1
    return touched, gone, new


@rule("cat", "stack", "concat", "concatenate")
def joined(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Several tensors in one, all cut as the first."""
    tensors = list(args[0])
    checked(name, args, kwargs)
    lead = tensors[0]
    count = lead.ndim + (name == "stack")
    dim = option(args, kwargs, 1, ("dim", "axis"), 0) % max(count, 1)
    wanted: list[Placement] = []
    for index, one in enumerate(lead.placements):
        same = all(other.placements[index] == one for other in tensors)
        sums = isinstance(one, Partial) and same and one.reduce_op in ("sum", "avg", "max", "min")
        cut = isinstance(one, Shard) and (name == "stack" or one.dim != dim)
        wanted.append(one if sums or cut else Replicate())
    result = func([local_for(one, wanted, wanted) for one in tensors], *args[1:], **kwargs)
    if name == "stack":
        out = [Shard(one.dim + (dim <= one.dim)) if isinstance(one, Shard) else one for one in wanted]
        shape = [*lead.shape[:dim], len(tensors), *lead.shape[dim:]]
    else:
        out = wanted
        shape = [*lead.shape[:dim], sum([one.shape[dim] for one in tensors]), *lead.shape[dim + 1 :]]
    return made(result, lead.device_mesh, out, shape)


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
def new_like(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A new tensor, whole on every rank."""
    tensor = args[0]
    out = func(tensor._local_tensor, *args[1:], **kwargs)
    return made(out, tensor.device_mesh, [Replicate()] * tensor.device_mesh.ndim, out.shape)


@rule("tril", "triu", "diagonal", "repeat_interleave", "repeat", "kron", "nonzero", "masked_select")
def on_wholes(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """What needs whole tensors."""
    tensor = checked(name, args, kwargs)[0]
    wanted = [Replicate()] * tensor.device_mesh.ndim
    given = [
        moved(one._local_tensor, one.device_mesh, one.shape, one.placements, wanted) if hasattr(one, "_spec") else one
        for one in args
    ]
    out = func(*given, **kwargs)
    return made(out, tensor.device_mesh, wanted, out.shape)
