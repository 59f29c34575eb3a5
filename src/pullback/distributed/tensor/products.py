"""Products of DTensors: a dimension both have, or one of them, may be cut; what is summed over leaves a Partial."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.distributed.tensor.dtensor import made, placed
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.pointwise import checked, local_for, rule


def cut(tensor: Any, labels: str, dim: int) -> str | None:
    """The label of the dimension along which a tensor is cut."""
    placement = tensor.placements[dim]
    return labels[placement.dim] if isinstance(placement, Shard) else None


def at(label: str | None, labels: str) -> Placement:
    """The placement of an operand where a label is cut."""
    return Shard(labels.index(label)) if label is not None and label in labels else Replicate()


def planned(x: Any, x_labels: str, w: Any, w_labels: str, out_labels: str) -> tuple[list[Placement], ...]:
    """How both operands of a product must lie, and how the product lies then."""
    x_wanted: list[Placement] = []
    w_wanted: list[Placement] = []
    out: list[Placement] = []
    for dim in range(x.device_mesh.ndim):
        own, other = cut(x, x_labels, dim), cut(w, w_labels, dim)
        if own is not None and other is not None and own != other:
            # one of them must be moved: the smaller
            own, other = (own, None) if x.numel() >= w.numel() else (None, other)
        label = own if own is not None else other
        here, there = x.placements[dim], w.placements[dim]
        if label is not None:
            x_wanted.append(at(label, x_labels))
            w_wanted.append(at(label, w_labels))
            out.append(Shard(out_labels.index(label)) if label in out_labels else Partial())
        elif here == Partial():
            x_wanted.append(here)
            w_wanted.append(Replicate())
            out.append(here)
        elif there == Partial():
            x_wanted.append(Replicate())
            w_wanted.append(there)
            out.append(there)
        else:
            x_wanted.append(Replicate())
            w_wanted.append(Replicate())
            out.append(Replicate())
    return x_wanted, w_wanted, out


def product(func: Any, name: str, x: Any, x_labels: str, w: Any, w_labels: str, out_labels: str) -> Any:
    """A product of two tensors, whose dimensions have these labels."""
    checked(name, (x, w), {})
    x_wanted, w_wanted, out = planned(x, x_labels, w, w_labels, out_labels)
    sizes = {**dict(zip(x_labels, x.shape)), **dict(zip(w_labels, w.shape))}
    sizes |= {label: n for label, n in zip(x_labels, x.shape) if sizes[label] == 1}
    result = func(local_for(x, x_wanted, out), local_for(w, w_wanted, out))
    return made(result, x.device_mesh, out, [sizes[label] for label in out_labels])


LETTERS = "abcdefghijklmnopqrst"


@rule("linear")
def linear(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`x W' + b`."""
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    checked(name, [one for one in (x, weight, bias) if one is not None], {})
    batch = LETTERS[: x.ndim - 1]
    out = product(func, name, x, f"{batch}y", weight, "zy", f"{batch}z")
    return out if bias is None else out + bias


@rule("mm", "bmm", "matmul", "__matmul__", "mv", "dot")
def matmul(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`x @ w`, with batches."""
    x, w = args[0], args[1]
    checked(name, (x, w), {})
    if w.ndim == 1:
        batch = LETTERS[: x.ndim - 1]
        return product(func, name, x, f"{batch}y", w, "y", batch)
    if x.ndim == 1:
        return matmul(torch.matmul, name, (x.unsqueeze(0), w), {}).squeeze(-2)
    count = max(x.ndim, w.ndim) - 2
    batch = LETTERS[:count]
    x_labels, w_labels = batch[count - (x.ndim - 2) :] + "xy", batch[count - (w.ndim - 2) :] + "yz"
    for label in batch:  # a dimension of one element that is stretched is no dimension that both have
        if label in x_labels and label in w_labels:
            a, b = x.shape[x_labels.index(label)], w.shape[w_labels.index(label)]
            if a == 1 and b != 1:
                x_labels = x_labels.replace(label, label.upper())
            elif b == 1 and a != 1:
                w_labels = w_labels.replace(label, label.upper())
    return product(func, name, x, x_labels, w, w_labels, batch + "xz")


@rule("addmm")
def addmm(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """`beta bias + alpha x @ w`."""
    bias, x, w = args[:3]
    out = matmul(torch.mm, "mm", (x, w), {})
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    return (out if alpha == 1 else out * alpha) + (bias if beta == 1 else bias * beta)


@rule("scaled_dot_product_attention")
def attention(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Attention, cut along dimensions of the batch: samples and heads."""
    operands = list(args[:3])
    checked(name, operands, {})
    like = operands[0]
    for one in (*args[3:], *kwargs.values()):
        if isinstance(one, torch.Tensor):
            raise NotImplementedError("attn_mask with DTensors: use is_causal=True, or call to_local() first")
    out: list[Placement] = []
    for dim in range(like.device_mesh.ndim):
        cuts = {one.placements[dim] for one in operands}
        same = len(cuts) == 1 and isinstance(like.placements[dim], Shard) and like.placements[dim].dim < like.ndim - 2
        out.append(like.placements[dim] if same else Replicate())
    result = func(*[local_for(placed(one, tuple(out)), out, out) for one in operands], *args[3:], **kwargs)
    return made(result, like.device_mesh, out, (*like.shape[:-1], operands[2].shape[-1]))
