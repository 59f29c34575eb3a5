"""Indexing a batch: by the same indices for all entries, by each entry's own, and by what has no fixed size."""

from __future__ import annotations

from math import prod
from typing import Any

from pullback._op.declare import registry
from pullback.batching.physical import Call, Results, front, in_front, invoke, padded
from pullback.batching.rules import fronted
from pullback.batching.strategies import FILE_AN_ISSUE, along, entries, one_by_one, rule, way
from pullback.batching.tensor import BatchedTensor
from pullback.ops.create.copy import check_fill_value
from pullback.ops.create.ranges import arange
from pullback.ops.index.gather import index_copy
from pullback.ops.pointwise.bounds import where
from pullback.ops.shape.reshape import common_shape, expand


@rule
def indexed(call: Call) -> Results:
    """Index tensors that are the same for all entries leave the batch alone; others get one more, for the batch."""
    if any(dim is not None for dim in call.dims[1]):
        if any(is_mask(index) and dim is not None for index, dim in zip(call.args[1], call.dims[1], strict=True)):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                "indexing with a boolean mask."
            )
        return indexed_each(call)
    value, _ = fronted(call, 0)
    if between(call.args[1]):
        return entries(call)
    out = invoke(call.op, [value, [None, *call.args[1]]])[0]
    return [(out, 0)]


def indexed_each(call: Call) -> Results:
    """Every entry has its own indices."""
    indices = call.args[1]
    if between(indices) or any(is_mask(index) for index in indices):
        return entries(call)
    batch, whole = own_indices(call)
    value = call.whole(call.args[0], call.dims[0])
    out = invoke(call.op, [value, [batch, *whole]])[0]
    before = next(i for i, index in enumerate(indices) if index is not None)
    width = batch._array.ndim - 1
    if before:
        # The dimensions before the indices come behind them: NumPy's way where indices are apart.
        order = [0, *range(1 + width, 1 + width + before), *range(1, 1 + width)]
        out = out.permute(*order, *range(len(order), out._array.ndim))
    return [(out, 0)]


def own_indices(call: Call) -> tuple[Any, list[Any]]:
    """An index for the batch, and those of every entry, all broadcasting together."""
    width = max(call.ndim_of(1, i) for i, index in enumerate(call.args[1]) if index is not None)
    whole = [
        None if index is None else padded(index if dim is None else front(index, dim), dim is not None, width + 1)
        for index, dim in zip(call.args[1], call.dims[1], strict=True)
    ]
    return arange(call.size).view((call.size, *(1,) * width)), whole


@rule
def index_written(call: Call) -> Results:
    """The same, for writing: the values are stretched to the batch."""
    if any(is_mask(i) for i in call.args[1]) or between(call.args[1]):
        return entries(call)
    if any(dim is not None for dim in call.dims[1]):
        return written_each(call)
    target = call.whole(call.args[0], call.dims[0])
    values, batched = fronted(call, 2)
    if batched:
        picked = picked_ndim(target._array.ndim - 1, call.args[1])
        shape = values._array.shape
        values = values.reshape((shape[0], *(1,) * (picked + 1 - len(shape)), *shape[1:]))
    return in_front(invoke(call.op, [target, [None, *call.args[1]], values, call.args[3]]))


def written_each(call: Call) -> Results:
    """Every entry has its own indices, which come first."""
    indices = call.args[1]
    if indices[0] is None:
        return entries(call)
    batch, whole = own_indices(call)
    target = call.whole(call.args[0], call.dims[0])
    values, batched = fronted(call, 2)
    picked = target._array.ndim - len([i for i in whole if i is not None]) + batch._array.ndim - 1
    values = padded(values, batched, picked)
    return in_front(invoke(call.op, [target, [batch, *whole], values, call.args[3]]))


@rule
def selected(call: Call) -> Results:
    """Every entry has its own indices: a gather."""
    dim, ndim = call.args[1], call.ndim_of(0, None)
    if call.dims[2] is None or not ndim or call.ndim_of(2, None) != 1:
        return along(call)
    value, index = call.whole(call.args[0], call.dims[0]), front(call.args[2], call.dims[2])
    at, shape = dim % ndim + 1, list(value._array.shape)
    count = index._array.shape[1]
    shape[at] = count
    index = index.reshape((call.size, *(1,) * (at - 1), count, *(1,) * (ndim - at)))
    return in_front(invoke(registry["gather"], [value, at, expand(index, tuple(shape)), False]))


@way
def mask_written(call: Call) -> Results:
    """One mask for all: the first elements of each entry's source go to the same places."""
    mask = call.args[1]
    if call.dims[1] is not None or type(mask) is BatchedTensor or mask._array.dtype.kind != "b":
        return entries(call)
    value, source = (call.whole(call.args[i], call.dims[i]) for i in (0, 2))
    shape = common_shape(value._array.shape[1:], mask._array.shape)
    places = expand(mask, shape).reshape((prod(shape),)).nonzero().reshape((-1,))
    value = expand(padded(value, True, len(shape) + 1), (call.size, *shape)).reshape((call.size, prod(shape)))
    source = source.reshape((call.size, prod(source._array.shape[1:])))[:, : places._array.size]
    return in_front([index_copy(value, 1, places, source).reshape((call.size, *shape))])


@rule
def filled(call: Call) -> Results:
    """Each entry with its own number."""
    if call.ndim_of(2, None) or call.args[2].dtype is not call.args[0].dtype:
        return one_by_one(call)  # which says what is wrong, or does not fit
    value, mask, number = (padded(*fronted(call, i), width_of(call) + 1) for i in (0, 1, 2))
    return in_front([where(mask, number.to(value.dtype), value)])


@way
def filled_with_one(call: Call) -> Results:
    """One element for all entries, or one for each."""
    target, value = call.whole(call.args[0], call.dims[0]), call.args[1]
    if call.dims[1] is None:
        return in_front(invoke(call.op, [target, value]))
    check_fill_value(target, call.entry(0)[1])
    value = padded(front(value, call.dims[1]), True, target._array.ndim)
    return in_front([expand(value, target._array.shape).to(target.dtype).contiguous()])


def width_of(call: Call) -> int:
    """The most dimensions the program sees of a tensor."""
    return max(call.ndim_of(i, j) for i, j in call.tensors())


def is_mask(index: Any) -> bool:
    """True for index tensors that are masks."""
    return index is not None and index._array.dtype.kind == "b"


def between(indices: list[Any]) -> bool:
    """True if whole dimensions lie between or behind a gap of indices: their result comes first, before the batch."""
    places = [i for i, index in enumerate(indices) if index is not None]
    return bool(places) and places != list(range(places[0], places[-1] + 1))


def picked_ndim(ndim: int, indices: list[Any]) -> int:
    """How many dimensions a selection has."""
    given = [index for index in indices if index is not None]
    return ndim - len(given) + max([index._array.ndim for index in given], default=0)


@rule
def of_unknown_size(call: Call) -> Results:
    """Each entry would have a shape of its own."""
    if call.op.key == "masked_select":
        if call.dims[1] is None and not is_mask(call.args[1]):
            return one_by_one(call)  # which says what is wrong
        if call.dims[1] is None:
            value, _ = fronted(call, 0)
            shape = common_shape(value._array.shape[1:], call.args[1]._array.shape)
            value = expand(padded(value, True, len(shape) + 1), (call.size, *shape))
            return [(value[(slice(None), expand(call.args[1], shape))], 0)]
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
            f"each batch this would return a differently shaped Tensor. {FILE_AN_ISSUE}"
        )
    name = "_unique2" if call.op.key == "unique_elements" else call.op.name
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. {FILE_AN_ISSUE}"
    )


@way
def among(call: Call) -> Results:
    """The elements that are looked for are a set: the same for all entries, or each has its own."""
    if call.dims[1] is not None:
        return entries(call)
    value, _ = fronted(call, 0)
    return in_front(invoke(call.op, [value, *call.args[1:]]))


@way
def searched(call: Call) -> Results:
    """One row to search for all; or each entry has a row, or rows, of its own."""
    rows, values, *rest = call.args
    if call.dims[0] is None and call.ndim_of(0, None) == 1 and (rest[3] is None or call.dims[5] is None):
        return in_front(invoke(call.op, [rows, front(values, call.dims[1]), *rest]))
    whole: list[Any] = [None if call.args[i] is None else call.whole(call.args[i], call.dims[i]) for i in (0, 1, 5)]
    rows, values, sorter = whole
    shape = values._array.shape
    if rows._array.ndim == 2:
        values = values.reshape((call.size, prod(shape[1:])))
    return in_front([out.reshape(shape) for out in invoke(call.op, [rows, values, *rest[:3], sorter])])
