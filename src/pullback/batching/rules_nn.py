"""Losses, convolutions, embeddings and normalization of a batch of samples."""

from __future__ import annotations

from typing import Any

from pullback.batching.physical import Call, Results, in_front, invoke, merged, padded, unmerged
from pullback.batching.rules import fronted
from pullback.batching.strategies import entries, one_by_one, rule, way
from pullback.ops.create.like import zeros_like
from pullback.ops.create.ranges import arange
from pullback.ops.pointwise.bounds import where
from pullback.ops.shape.reshape import expand, unsqueeze

# ------------------------------------------------------------------ negative log likelihood


@rule
def likelihood(call: Call) -> Results:
    """The loss of every row; then of each entry the sum, or the weighted mean."""
    weight, how, ignored = call.args[2], call.args[3], call.args[4]
    if call.dims[2] is not None or call.ndim_of(0, None) != 2:
        return entries(call)
    scores, target = (merged(call.whole(call.args[i], call.dims[i])) for i in (0, 1))
    rows = unmerged(invoke(call.op, [scores, target, weight, 0, ignored])[0], call.size)
    counted = target != ignored
    weights = counted.to(scores.dtype) if weight is None else weight[target * counted] * counted
    total = unmerged(weights, call.size).sum(1)
    if how == 0:
        return [(rows, 0), (zeros_like(total), 0)]
    return [(rows.sum(1) / total if how == 1 else rows.sum(1), 0), (total, 0)]


@rule
def likelihood_backward(call: Call) -> Results:
    """The gradient of every row, as if nothing had been summed."""
    weight, how, ignored = call.args[3], call.args[4], call.args[5]
    if call.dims[3] is not None or call.ndim_of(1, None) != 2:
        return entries(call)
    grad, scores, target, total = (call.whole(call.args[i], call.dims[i]) for i in (0, 1, 2, 6))
    if how:
        grad = expand((grad / total if how == 1 else grad).reshape((call.size, 1)), target._array.shape)
    args = [merged(grad), merged(scores), merged(target), weight, 0, ignored, total.reshape((-1,))[0]]
    return [(unmerged(invoke(call.op, args)[0], call.size), 0)]


# ------------------------------------------------------------------ convolution


@rule
def convolved(call: Call) -> Results:
    """One weight for all: the batch joins the samples. One weight each: it joins the groups."""
    input, _ = fronted(call, 0)
    weight, weight_batched = fronted(call, 1)
    bias = call.args[2]
    groups = call.args[9]
    bias_batched = bias is not None and call.dims[2] is not None
    if not weight_batched and not bias_batched:
        out = invoke(call.op, [merged(input), weight, *call.args[2:]])[0]
        return [(unmerged(out, call.size), 0)]
    if bias is not None and (bias.dtype != input.dtype or call.ndim_of(2, None) != 1):
        return one_by_one(call)  # which says what is wrong
    weight = call.whole(call.args[1], call.dims[1])
    grouped = as_groups(call.whole(call.args[0], call.dims[0]))
    settings = [*call.args[4:9], groups * call.size]
    out = invoke(call.op, [grouped, merged(weight), None, call.args[3], *settings])[0]
    out = from_groups(out, call.size)
    if bias is not None:
        bias, _ = fronted(call, 2)
        spatial = (1,) * (out._array.ndim - 3)
        out = out + bias.reshape((call.size, 1, -1, *spatial) if bias_batched else (-1, *spatial))
    return [(out, 0)]


@rule
def convolved_backward(call: Call) -> Results:
    """The gradient of the input as the convolution; that of each entry's weight by groups."""
    grad, input, weight = (call.whole(call.args[i], call.dims[i]) for i in (0, 1, 2))
    settings, groups, mask = call.args[3:8], call.args[8], call.args[9]
    outs: Results = [(None, None)] * 3
    if mask[0] and call.dims[2] is None:
        args = [merged(grad), merged(input), call.args[2], *settings, groups, (True, False, False)]
        outs[0] = (unmerged(invoke(call.op, args)[0], call.size), 0)
    elif mask[0]:
        args = [as_groups(grad), as_groups(input), merged(weight), *settings, groups * call.size, (True, False, False)]
        outs[0] = (from_groups(invoke(call.op, args)[0], call.size), 0)
    if mask[1]:
        args = [as_groups(grad), as_groups(input), merged(weight), *settings, groups * call.size, (False, True, False)]
        outs[1] = (unmerged(invoke(call.op, args)[1], call.size), 0)
    if mask[2]:
        outs[2] = (grad.sum((1, *range(3, grad._array.ndim))), 0)
    return outs


def as_groups(value: Any) -> Any:
    """[B, N, C, ...] as [N, B * C, ...]."""
    size, samples, channels, *spatial = value._array.shape
    return value.transpose(0, 1).reshape((samples, size * channels, *spatial))


def from_groups(value: Any, size: int) -> Any:
    """[N, B * C, ...] as [B, N, C, ...]."""
    samples, channels, *spatial = value._array.shape
    return value.reshape((samples, size, channels // size, *spatial)).transpose(0, 1)


# ------------------------------------------------------------------ pooling


@way
def pooled_at_random(call: Call) -> Results:
    """The batch joins the images, each of which has random numbers of its own."""
    images, places = (call.whole(call.args[i], call.dims[i]) for i in (0, 3))
    alone = images._array.ndim == len(call.args[1]) + 2  # one image, for which no dimension counts them
    count = 1 if alone else images._array.shape[1]
    images = images if alone else merged(images)
    outs = invoke(call.op, [images, *call.args[1:3], merged(places[:, :count])])
    return in_front(outs if alone else [unmerged(out, call.size) for out in outs])


# ------------------------------------------------------------------ embeddings


@rule
def looked_up(call: Call) -> Results:
    """One large table, in which each entry has rows of its own; or one table for all."""
    table, table_batched = fronted(call, 0)
    indices, _ = fronted(call, 1)
    if not table_batched:
        return in_front(invoke(call.op, [table, indices, *call.args[2:]]))
    indices = call.whole(call.args[1], call.dims[1])
    count = table._array.shape[1]
    places = indices + count * arange(call.size).view((call.size, *(1,) * (indices._array.ndim - 1)))
    out = invoke(call.op, [merged(table), places, -1, *call.args[3:]])[0]
    padding = call.args[2]
    if padding >= 0:
        out = where(unsqueeze(indices == padding, -1), out.detach(), out)  # the row of the padding has no gradient
    return in_front([out])


@rule
def table_gradient(call: Call) -> Results:
    """One table for all entries, each with rows of its own."""
    count, padding, by_frequency = call.args[2:5]
    grad, indices = (call.whole(call.args[i], call.dims[i]) for i in (0, 1))
    if padding >= 0:
        grad = grad * unsqueeze(indices != padding, -1)
    places = indices + count * arange(call.size).view((call.size, *(1,) * (indices._array.ndim - 1)))
    out = invoke(call.op, [merged_all(grad, 1), places.reshape((-1,)), count * call.size, -1, by_frequency])[0]
    return [(unmerged(out, call.size), 0)]


def merged_all(value: Any, kept: int) -> Any:
    """All dimensions but the last as one."""
    return value.reshape((-1, *value._array.shape[-kept:]))


# ------------------------------------------------------------------ normalization

RUNNING = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap"
)


@rule
def batch_normalized(call: Call) -> Results:
    """The batch joins the channels: each entry has its own statistics."""
    training = call.args[5]
    if training and any(a is not None and d is None for a, d in zip(call.args[3:5], call.dims[3:5], strict=True)):
        raise RuntimeError(RUNNING)
    if training and call.args[3] is not None:
        return entries(call)
    grouped = as_groups(call.whole(call.args[0], call.dims[0]))
    vectors = [
        None if value is None else call.whole(value, dim).reshape((-1,))
        for value, dim in zip(call.args[1:5], call.dims[1:5], strict=True)
    ]
    out, mean, deviation = invoke(call.op, [grouped, *vectors, *call.args[5:]])
    if not training:
        return [(from_groups(out, call.size), 0), (mean, None), (deviation, None)]
    return [(from_groups(out, call.size), 0), (unmerged(mean, call.size), 0), (unmerged(deviation, call.size), 0)]


@rule
def layer_normalized(call: Call) -> Results:
    """Normalized together; scaled and shifted by each entry's own weight and bias."""
    value = call.whole(call.args[0], call.dims[0])
    shape, weight, bias, eps = call.args[1:5]
    own = [i for i in (2, 3) if call.dims[i] is not None]
    if not own:
        return in_front(invoke(call.op, [value, shape, weight, bias, eps]))
    if any(call.args[i] is not None and call.shape_of(i, None) != tuple(shape) for i in (2, 3)):
        return one_by_one(call)  # which says what is wrong
    out, mean, deviation = invoke(call.op, [value, shape, None, None, eps])
    for i, combine in ((2, "mul"), (3, "add")):
        if call.args[i] is not None:
            out = getattr(out, combine)(padded(*fronted(call, i), value._array.ndim))
    return in_front([out, mean, deviation])


@rule
def group_normalized(call: Call) -> Results:
    """The batch joins the samples."""
    if call.dims[1] is not None or call.dims[2] is not None:
        return entries(call)
    value = merged(call.whole(call.args[0], call.dims[0]))
    outs = invoke(call.op, [value, *call.args[1:3], call.args[3] * call.size, *call.args[4:]])
    return in_front([unmerged(out, call.size) for out in outs])


# ------------------------------------------------------------------ attention


@way
def attended(call: Call) -> Results:
    """A mask broadcasts against the scores."""
    args = call.with_tensors(call.whole)
    mask = call.op.param_names.index("attn_mask")
    if args[mask] is not None:
        args[mask] = padded(args[mask], True, args[0]._array.ndim)
    return in_front(invoke(call.op, args))
