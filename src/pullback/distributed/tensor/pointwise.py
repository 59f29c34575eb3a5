"""What DTensors do element by element, and what they do with functions nobody has a rule for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.tensor.dtensor import DTensor, Placements, around, locals_of, made, rules
from pullback.distributed.tensor.moves import Spread, moved
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.nested.tensor import word_of

SUMS = {"add", "sub", "rsub", "add_", "sub_"}
"""Sums of sums."""
SCALED = {"mul", "div", "true_divide", "mul_", "div_"}
"""A sum times a factor."""
UNARY = {"neg", "clone", "positive", "contiguous", "to", "float", "double", "half", "bfloat16", "cpu", "neg_", "alias"}
"""A sum, element by element, as it is."""
OF_TWO = {"add", "sub", "rsub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "floor_divide"}
"""Ops whose first form takes two tensors."""
ALSO = {"dropout", "contiguous", "to", "float", "double", "half", "bfloat16", "cpu", "type_as", "where", "clone",
        "masked_fill", "masked_fill_", "relu_", "dropout_", "zero_", "fill_", "rdiv", "type", "bool", "int",
        "long"}  # fmt: skip
"""What is done element by element though no declaration says so."""


def rule(*names: str) -> Callable[[Any], Any]:
    """What DTensors do with functions of these names."""

    def keep(function: Any) -> Any:
        for name in names:
            rules[name] = function
        return function

    return keep


def tensors_of(args: Any, kwargs: Any) -> list[Any]:
    """The tensors among arguments."""
    given = [*args, *kwargs.values()]
    flat = [one for arg in given for one in (arg if isinstance(arg, (list, tuple)) else (arg,))]
    return [one for one in flat if isinstance(one, Tensor)]


def checked(name: str, args: Any, kwargs: Any) -> list[DTensor]:
    """The DTensors among arguments, on one mesh; plain tensors may be there only as numbers."""
    tensors = tensors_of(args, kwargs)
    placed = [one for one in tensors if isinstance(one, DTensor)]
    if any(not isinstance(one, DTensor) and one.ndim for one in tensors):
        form = "Tensor" if name.removesuffix("_") in OF_TWO else "default"
        raise RuntimeError(
            f"aten.{name}.{form} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor "
            "before calling distributed operators!"
        )
    mesh = placed[0].device_mesh
    for one in placed[1:]:
        if one.device_mesh != mesh:
            raise RuntimeError(
                f"aten.{name}.default got DTensors on different meshes, {mesh} and {one.device_mesh}: bring them to "
                "one by full_tensor() and distribute_tensor"
            )
    return placed


def local_for(tensor: Any, wanted: Any, out: Any) -> Any:
    """What this rank holds once placed so. What is whole, where the result is not, gets the sum of all gradients."""
    mesh = tensor.device_mesh
    local = moved(tensor._local_tensor, mesh, tensor.shape, tensor.placements, tuple(wanted))
    if local.requires_grad and torch.is_grad_enabled():
        for dim, (here, there) in enumerate(zip(wanted, out)):
            if isinstance(here, Replicate) and not isinstance(there, Replicate):
                local = Spread.apply(local, mesh.get_group(dim))
    return local


def without_partial(placements: Any) -> tuple[Placement, ...]:
    """Placements with whole tensors in the place of sums."""
    return tuple([Replicate() if isinstance(one, Partial) else one for one in placements])


def is_elementwise(name: str, func: Any) -> bool:
    """Whether a function works element by element."""
    declared = getattr(func, "op", None)
    found = word_of(name) or (declared is not None and word_of(declared.name))
    return name in ALSO or found in ("jagged", "strided")


def shards_of(tensor: Any) -> int:
    """Along how many dimensions of the mesh a tensor is cut."""
    return sum([isinstance(one, Shard) for one in tensor.placements])


@rule("*")
def others(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Functions without a rule: element by element, or on whole tensors."""
    if is_elementwise(name, func):
        return elementwise(func, name, args, kwargs)
    placed = checked(name, args, kwargs)
    if not all(isinstance(one, Replicate) for tensor in placed for one in tensor.placements):
        raise NotImplementedError(
            f"Operator aten.{name}.default does not have a sharding strategy registered. Its arguments must be "
            "Replicate(): call redistribute(placements=[Replicate()]) or to_local() first."
        )
    return whole(func, args, kwargs, placed[0])


def whole(func: Any, args: Any, kwargs: Any, like: Any) -> Any:
    """A call on whole tensors gives whole tensors."""
    out = func(*locals_of(args), **{key: locals_of(value) for key, value in kwargs.items()})
    return wrapped(out, like.device_mesh, [Replicate()] * like.device_mesh.ndim)


def wrapped(out: Any, mesh: Any, placements: Any) -> Any:
    """Results as DTensors that are not cut."""
    if isinstance(out, Tensor):
        return made(out, mesh, placements, out.shape)
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return type(out)(*[wrapped(one, mesh, placements) for one in out])
    if isinstance(out, (list, tuple)):
        return type(out)([wrapped(one, mesh, placements) for one in out])
    return out


# ------------------------------------------------------------------ element by element


def on_partial(name: str, placed: list[Any], dim: int, args: Any) -> Placement:
    """What a result is along a dimension of the mesh along which an operand is Partial."""
    kinds = [one.placements[dim] for one in placed]
    sums = [one for one in kinds if isinstance(one, Partial) and type(one) is Partial]
    if not sums or any(type(one) not in (Partial, Replicate) for one in kinds) or len(set(sums)) > 1:
        return Replicate()
    if sums[0].reduce_op not in ("sum", "avg"):
        return Replicate()
    if name in UNARY or name == "zero_":
        return sums[0]
    tensors_only = all(isinstance(one, DTensor) for one in args[:2])
    if name in SUMS and tensors_only and len(args) > 1 and sums[0].reduce_op == "sum":
        return sums[0]
    if name in SCALED and isinstance(args[0], DTensor) and isinstance(args[0].placements[dim], Partial):
        return sums[0]
    if name in ("mul", "mul_") and len(sums) == 1:
        return sums[0]
    return Replicate()


def elementwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A call element by element: all operands are cut as the one that is cut most."""
    tensors = tensors_of(args, kwargs)
    placed = checked(name, args, kwargs)
    mesh, shape = placed[0].device_mesh, torch.broadcast_shapes(*[tuple(one.shape) for one in tensors])
    inplace = name[-1] == "_" and isinstance(args[0], DTensor)
    lead = args[0] if inplace else max(placed, key=shards_of)
    order = [lead, *[one for one in placed if one is not lead]]
    out: list[Placement] = []
    for dim in range(mesh.ndim):
        cut = next((one for one in order if isinstance(one.placements[dim], Shard)), None)
        if cut is not None:
            out.append(Shard(cut.placements[dim].dim + len(shape) - cut.ndim))
        else:
            out.append(on_partial(name, placed, dim, args))
    if inplace and tuple(out) != lead.placements:
        raise RuntimeError(
            f"{name}: in-place operations that require placement changes are not supported: the tensor is placed "
            f"{lead.placements}, the result {tuple(out)}. Use the operation that is not in place, or redistribute."
        )
    first_sum = next((one for one in placed if any(isinstance(p, Partial) for p in one.placements)), None)

    def fit(given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return type(given)([fit(one) for one in given])
        if not isinstance(given, DTensor):
            return given
        wanted: list[Placement] = []
        for there in out:
            if isinstance(there, Shard):
                at = there.dim - (len(shape) - given.ndim)
                stretched = at < 0 or (given.shape[at] == 1 and shape[there.dim] != 1)
                wanted.append(Replicate() if stretched else Shard(at))
            elif isinstance(there, Partial):
                keeps = name in SUMS or name in UNARY or given is first_sum or (inplace and given is lead)
                wanted.append(there if keeps else Replicate())
            else:
                wanted.append(there)
        if inplace and given is lead:
            return given._local_tensor
        return local_for(given, wanted, out)

    result = func(*[fit(one) for one in args], **{key: fit(value) for key, value in kwargs.items()})
    if inplace:
        return args[0]
    if tuple(out) == lead.placements and shape == tuple(lead.shape) and isinstance(result, Tensor):
        return around(result, lead._spec._replace(tensor_meta=lead._spec.tensor_meta._replace(dtype=result.dtype)))
    return made(result, mesh, out, shape) if isinstance(result, Tensor) else result


@rule("copy_")
def copy_into(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`copy_`: the source is placed as the target first."""
    target, source = args[0], args[1]
    if not isinstance(target, DTensor) or (isinstance(source, Tensor) and not isinstance(source, DTensor)):
        checked(name, [one if isinstance(one, DTensor) or one.ndim else one.reshape(1) for one in (target, source)], {})
    if isinstance(source, DTensor):
        if source.shape != target.shape:
            source = source.expand(target.shape)
        checked(name, (target, source), {})
        source = moved(source._local_tensor, source.device_mesh, source.shape, source.placements, target.placements)
    func(target._local_tensor, source, *args[2:], **kwargs)
    return target


@rule("zeros_like", "ones_like", "empty_like", "full_like")
def filled_like(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A tensor placed as another; a sum of zeros is zero, of which each rank holds all."""
    like = args[0]
    placements: Placements = (
        like.placements if name in ("zeros_like", "empty_like") else without_partial(like.placements)
    )
    out = func(like._local_tensor, *args[1:], **kwargs)
    return made(out, like.device_mesh, placements, like.shape)


@rule("rand_like", "randn_like", "randint_like", "normal_", "uniform_", "bernoulli_", "trunc_normal_", "exponential_")
def drawn(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Random numbers: those of the whole are drawn on each rank, so that they are the same on any number of ranks."""
    like = args[0]
    base = torch.empty(like.shape, dtype=like.dtype)
    with torch.no_grad():
        numbers = func(base, *args[1:], **kwargs)
        whole_one = [Replicate()] * like.device_mesh.ndim
        local = moved(numbers, like.device_mesh, like.shape, whole_one, without_partial(like.placements))
        if name[-1] == "_":
            like._local_tensor.copy_(local)
            return like
    return made(local, like.device_mesh, without_partial(like.placements), like.shape)


# ------------------------------------------------------------------ gradients


@rule("backward")
def backward(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`torch.autograd.backward`, of tensors made whole."""
    return func(*[roots(one) for one in args], **{key: roots(value) for key, value in kwargs.items()})


@rule("grad")
def gradients(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`torch.autograd.grad`: gradients lie as what they belong to."""
    inputs = kwargs["inputs"] if "inputs" in kwargs else args[1]
    several = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    rest = {key: locals_of(value) for key, value in kwargs.items()}
    found = func(roots(args[0]), *locals_of(args[1:]), **rest)
    return tuple(
        [
            around(grad, one._spec) if isinstance(one, DTensor) and grad is not None else grad
            for one, grad in zip(several, found, strict=True)
        ]
    )


def roots(given: Any) -> Any:
    """Local tensors of DTensors that were made whole."""
    if isinstance(given, (list, tuple)):
        return type(given)([roots(one) for one in given])
    if not isinstance(given, DTensor):
        return given
    return given.redistribute(placements=[Replicate()] * given.device_mesh.ndim)._local_tensor
