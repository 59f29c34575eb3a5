"""What modules call with DTensors: embedding, normalization, losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.tensor.dtensor import DTensor, made
from pullback.distributed.tensor.moves import Summed, offsets_inside, reduced
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.pointwise import checked, local_for, rule, whole, without_partial
from pullback.distributed.tensor.reductions import option

in_parallel: ContextVar[bool] = ContextVar("loss_parallel", default=False)


SPECIAL = ("scale_grad_by_freq", "sparse")


@rule("embedding")
def embedding(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Rows of a matrix that is cut along rows, columns or not at all."""
    checked(name, args, kwargs)
    index, weight = args[0], args[1]
    if not isinstance(index, DTensor):
        index = made(index, weight.device_mesh, [Replicate()] * weight.device_mesh.ndim, index.shape)
    mesh = weight.device_mesh
    index_wanted: list[Placement] = []
    weight_wanted: list[Placement] = []
    out: list[Placement] = []
    for dim in range(mesh.ndim):
        here, there = without_partial(index.placements)[dim], without_partial(weight.placements)[dim]
        if isinstance(there, Shard):
            index_wanted.append(Replicate())
            weight_wanted.append(there)
            out.append(Partial() if there.dim == 0 else Shard(index.ndim))
        else:
            index_wanted.append(here)
            weight_wanted.append(there)
            out.append(here)
    local = local_for(weight, weight_wanted, out)
    rows = local_for(index, index_wanted, index_wanted)
    shape = (*index.shape, weight.shape[1])
    if not any(one == Shard(0) for one in weight_wanted):
        return made(func(rows, local, *args[2:], **kwargs), mesh, out, shape)
    options = {
        **dict(zip(("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"), args[2:])),
        **kwargs,
    }
    if options.get("padding_idx") not in (None, -1) or any(options.get(key) for key in ("max_norm", *SPECIAL)):
        raise NotImplementedError(
            "embedding cut along its rows with padding_idx, max_norm, scale_grad_by_freq or sparse: cut it along its "
            "columns (Shard(1)), or redistribute it to Replicate()"
        )
    length, start = (one[0] for one in offsets_inside(weight.shape, mesh, weight_wanted))
    inside = (rows >= start) & (rows < start + length)
    found = func((rows - start).masked_fill(~inside, 0), local) if length else local.new_zeros((*rows.shape, shape[-1]))
    return made(found * inside.unsqueeze(-1).to(local.dtype), mesh, out, shape)


@rule("layer_norm", "rms_norm")
def layer_norm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Normalization of the last dimensions, which may not be cut."""
    tensor, normalized = args[0], option(args, kwargs, 1, ("normalized_shape",), None)
    count = len(normalized) if isinstance(normalized, (tuple, list)) else 1
    checked(name, args, kwargs)
    out = [
        Replicate() if isinstance(one, Shard) and one.dim >= tensor.ndim - count else one
        for one in without_partial(tensor.placements)
    ]

    def local(given: Any) -> Any:
        if not isinstance(given, DTensor):
            return given
        return local_for(given, out if given is tensor else [Replicate()] * len(out), out)

    result = func(*[local(one) for one in args], **{key: local(value) for key, value in kwargs.items()})
    return made(result, tensor.device_mesh, out, tensor.shape)


@rule("nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy")
def loss(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A loss of whole tensors."""
    placed = checked(name, args[:2], {})
    every = [Replicate()] * placed[0].device_mesh.ndim
    given = [one.redistribute(placements=every) if isinstance(one, DTensor) else one for one in args]
    return whole(func, given, kwargs, placed[0])


@rule("cross_entropy")
def cross_entropy(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The cross entropy; inside `loss_parallel` of logits that stay cut along the classes."""
    logits, target = args[0], args[1] if len(args) > 1 else kwargs["target"]
    if not in_parallel.get():
        return loss(func, name, args, kwargs)
    classes = 1 if logits.ndim > 1 else 0
    if logits.placements != (Shard(classes),):
        raise ValueError(
            f"loss_parallel() should be enabled only when the input tensor is sharded on the class dimension; it is "
            f"placed {logits.placements}"
        )
    reduction = kwargs.get("reduction", "mean")
    rest = {key: value for key, value in kwargs.items() if key not in ("reduction", "target", "ignore_index")}
    if len(args) > 2 or any(value not in (None, 0.0) for value in rest.values()):
        raise NotImplementedError("cross_entropy inside loss_parallel with weight or label_smoothing")
    labels = target.full_tensor() if isinstance(target, DTensor) else target
    losses = of_parts(logits, labels, classes, kwargs.get("ignore_index", -100))
    mesh = logits.device_mesh
    if reduction == "none":
        return made(losses, mesh, [Replicate()], losses.shape)
    total = losses.sum()
    if reduction == "mean":
        total = total / (labels != kwargs.get("ignore_index", -100)).sum()
    return made(total, mesh, [Replicate()], ())


def of_parts(logits: Any, labels: Tensor, classes: int, ignored: int) -> Tensor:
    """The loss of each sample, where every rank has the logits of some classes."""
    mesh, local = logits.device_mesh, logits._local_tensor
    group = mesh.get_group()
    sizes, starts = offsets_inside(logits.shape, mesh, logits.placements)
    length, start = sizes[classes], starts[classes]
    lowest = local.detach().amax(classes, keepdim=True) if length else None
    if lowest is None:
        shape = [1 if dim == classes else n for dim, n in enumerate(local.shape)]
        lowest = torch.full(shape, -math.inf, dtype=local.dtype)
    largest = reduced(lowest, group, "max")
    shifted = local - largest
    total = Summed.apply(shifted.exp().sum(classes), group, "sum").log()
    inside = (labels >= start) & (labels < start + length)
    rows = (labels - start).masked_fill(~inside, 0).unsqueeze(classes)
    picked = shifted.gather(classes, rows).squeeze(classes) if length else shifted.sum(classes)
    own = Summed.apply(picked.masked_fill(~inside, 0.0), group, "sum")
    return (total - own).masked_fill(labels == ignored, 0.0)


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which the cross entropy is computed of logits cut along the classes, without gathering them."""
    token = in_parallel.set(True)
    try:
        yield
    finally:
        in_parallel.reset(token)
