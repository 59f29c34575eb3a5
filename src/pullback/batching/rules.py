"""Ops that deserve a better way to run on a batch than the strategies find.

Products of matrices share what is not batched: one large product instead of many. Reductions of everything become
reductions of all but the batch. Convolutions put the batch among the samples, or among the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from pullback._memory import is_non_overlapping_and_dense
from pullback._op.declare import registry
from pullback.autograd.view import wants_grad
from pullback.batching.physical import Call, Results, front, in_front, invoke, merged, unmerged
from pullback.batching.strategies import FILE_AN_ISSUE
from pullback.ops.create_like import zeros_like
from pullback.ops.ranges import arange
from pullback.ops.shape import common_shape, expand, unsqueeze
from pullback.ops.slicing import select_int

Rule = Callable[[Call], "Results | None"]
rules: dict[str, Rule] = {}
"""By key of the op. A rule returns None for a call it has no better way for."""


def rule(*keys: str) -> Callable[[Rule], Rule]:
    """Use a function for these ops."""

    def declare(function: Rule) -> Rule:
        for key in keys:
            rules[key] = function
        return function

    return declare


def fronted(call: Call, i: int) -> tuple[Any, bool]:
    """One operand with its batch, if it has one, in front."""
    value, dim = call.args[i], call.dims[i]
    return (value, False) if dim is None else (front(value, dim), True)


# ------------------------------------------------------------------ shapes


@rule("view_", "reshape_alias", "unsafe_view", "view_copy")
def reshaped(call: Call) -> Results:
    """The batch keeps its place; what lies behind it takes the new shape, moving if it must."""
    value, _ = fronted(call, 0)
    return [(value.reshape((call.size, *call.args[1])), 0)]


@rule("expand", "expand_copy")
def expanded(call: Call) -> Results:
    """New dimensions come between the batch and the old ones."""
    value, _ = fronted(call, 0)
    size, shape = tuple(call.args[1]), value._array.shape
    missing = len(size) + 1 - len(shape)
    if missing > 0:
        value = value.reshape((shape[0], *(1,) * missing, *shape[1:]))
    return [(expand(value, (shape[0], *size)), 0)]


@rule("squeeze_all", "squeeze_all_copy")
def squeezed(call: Call) -> Results:
    """A batch of one stays."""
    value, _ = fronted(call, 0)
    shape = value._array.shape
    return [(value.reshape((shape[0], *[n for n in shape[1:] if n != 1])), 0)]


@rule("as_strided_view", "as_strided_copy")
def strided(call: Call) -> Results:
    """Strides and offset are those of an entry."""
    value, _ = fronted(call, 0)
    if call.size and not is_non_overlapping_and_dense(select_int(value, 0, 0)._array):
        value = value.contiguous()
    size, stride, offset = call.args[1:4]
    out = value.as_strided((call.size, *size), (value.stride(0), *stride), value.storage_offset() + (offset or 0))
    return [(out, 0)]


@rule("scatter_window")
def not_strided(call: Call) -> Results:
    """What it does depends on memory an entry does not have."""
    raise NotImplementedError(f"vmap over aten::{call.op.name}: use slices, or gather and scatter, instead of strides")


@rule("zeros_of")
def zeros(call: Call) -> Results:
    """Zeros are the same for all entries."""
    value, _ = fronted(call, 0)
    return [(invoke(call.op, [value, call.args[1]])[0], None)]


@rule("t", "t_copy")
def transposed_matrix(call: Call) -> Results:
    """The last two dimensions change places."""
    value, _ = fronted(call, 0)
    return [(value.transpose(1, 2) if value._array.ndim == 3 else value, 0)]


# ------------------------------------------------------------------ reducing everything

SIBLINGS = {
    "sum_all": ("sum_dim", True), "mean_all": ("mean_dim", True), "prod_all": ("prod_dim", True),
    "max_all": ("amax_dim", False), "min_all": ("amin_dim", False),
    "median_all": ("median_dim", False), "nanmedian_all": ("nanmedian_dim", False),
}  # fmt: skip
"""The op that reduces some dimensions, for one that reduces all; and whether it takes a dtype."""
TAKES_ONE_DIM = {"prod_dim", "median_dim", "nanmedian_dim"}


@rule(*SIBLINGS)
def reduced(call: Call) -> Results:
    """Everything but the batch."""
    key, with_dtype = SIBLINGS[call.op.key]
    value, _ = fronted(call, 0)
    flat = value.reshape((call.size, prod(value._array.shape[1:])))
    dim: Any = 1 if key in TAKES_ONE_DIM else (1,)
    args = [flat, dim, False, *([call.args[1]] if with_dtype else [])]
    return [(invoke(registry[key], args)[0], 0)]


@rule("argmax", "argmin")
def arg_reduced(call: Call) -> Results | None:
    """The place among all elements of an entry."""
    if call.args[1] is not None:
        return None
    value, _ = fronted(call, 0)
    flat = value.reshape((call.size, prod(value._array.shape[1:])))
    (out,) = invoke(call.op, [flat, 1, False])
    if call.args[2]:
        out = out.reshape((call.size, *(1,) * (value._array.ndim - 1)))
    return [(out, 0)]


# ------------------------------------------------------------------ products


def product(left: Any, left_batched: bool, right: Any, right_batched: bool) -> Any:
    """A product of matrices of which one or both are batched, the batch in front."""
    if left_batched and not right_batched:
        # One product of all rows with the one matrix.
        size, rows, inner = left._array.shape
        out = invoke(registry["mm"], [left.reshape((size * rows, inner)), right])[0]
        return out.reshape((size, rows, out._array.shape[1]))
    if right_batched and not left_batched:
        # One product of the one matrix with all columns.
        size, inner, columns = right._array.shape
        side = right.transpose(0, 1).reshape((inner, size * columns))
        out = invoke(registry["mm"], [left, side])[0]
        return out.reshape((out._array.shape[0], size, columns)).transpose(0, 1)
    if left._array.shape[2] == 1:
        return left * right  # columns times rows: a broadcast, which is faster than a product for each
    return invoke(registry["bmm"], [left, right])[0]


@rule("mm")
def matrix_matrix(call: Call) -> Results:
    """mm."""
    return [(product(*fronted(call, 0), *fronted(call, 1)), 0)]


@rule("mv")
def matrix_vector(call: Call) -> Results:
    """mv."""
    matrix, matrix_batched = fronted(call, 0)
    vector, vector_batched = fronted(call, 1)
    if vector_batched and not matrix_batched:
        return [(invoke(registry["mm"], [vector, matrix.t()])[0], 0)]
    if not vector_batched:
        size, rows, inner = matrix._array.shape
        out = invoke(registry["mv"], [matrix.reshape((size * rows, inner)), vector])[0]
        return [(out.reshape((size, rows)), 0)]
    out = invoke(registry["bmm"], [matrix, unsqueeze(vector, 2)])[0]
    return [(out.squeeze(2), 0)]


@rule("dot", "vdot")
def vector_vector(call: Call) -> Results:
    """dot."""
    a, a_batched = fronted(call, 0)
    b, b_batched = fronted(call, 1)
    if call.op.key == "vdot":
        a = a.conj()
    if a_batched and b_batched:
        return [(invoke(registry["bmm"], [unsqueeze(a, 1), unsqueeze(b, 2)])[0].reshape((call.size,)), 0)]
    return [(invoke(registry["mv"], [a, b] if a_batched else [b, a])[0], 0)]


@rule("addmm")
def plus_matrix_matrix(call: Call) -> Results:
    """addmm: with one bias and one matrix for all, one product."""
    bias, bias_batched = fronted(call, 0)
    left, left_batched = fronted(call, 1)
    right, right_batched = fronted(call, 2)
    beta, alpha = call.args[3], call.args[4]
    if left_batched and not right_batched and not bias_batched and bias._array.ndim <= 1:
        size, rows, inner = left._array.shape
        out = invoke(call.op, [bias, left.reshape((size * rows, inner)), right, beta, alpha])[0]
        return [(out.reshape((size, rows, out._array.shape[1])), 0)]
    if not left_batched and not right_batched:
        out = invoke(registry["mm"], [left, right])[0]
    else:
        out = product(left, left_batched, right, right_batched)
    return [(combined(padded(bias, bias_batched, 3), beta, out, alpha), 0)]


@rule("addmv")
def plus_matrix_vector(call: Call) -> Results:
    """addmv."""
    bias, bias_batched = fronted(call, 0)
    inner = Call(registry["mv"], call.args[1:3], call.dims[1:3], call.size)
    if call.dims[1] is None and call.dims[2] is None:
        out = invoke(registry["mv"], call.args[1:3])[0]
    else:
        out = matrix_vector(inner)[0][0]
    return [(combined(padded(bias, bias_batched, 2), call.args[3], out, call.args[4]), 0)]


def padded(value: Any, batched: bool, ndim: int) -> Any:
    """A batched operand with dimensions of size one after the batch, so that it broadcasts."""
    shape = value._array.shape
    if not batched or len(shape) >= ndim:
        return value
    return value.reshape((shape[0], *(1,) * (ndim - len(shape)), *shape[1:]))


def combined(bias: Any, beta: Any, out: Any, alpha: Any) -> Any:
    """beta * bias + alpha * out."""
    out = out if alpha == 1 else out * alpha
    if beta == 0:
        return out
    return out + (bias if beta == 1 else bias * beta)


@rule("bmm")
def batches_of_matrices(call: Call) -> Results:
    """bmm: two batches become one."""
    left, right = (merged(call.whole(call.args[i], call.dims[i])) for i in (0, 1))
    return [(unmerged(invoke(call.op, [left, right])[0], call.size), 0)]


@rule("baddbmm")
def plus_batches_of_matrices(call: Call) -> Results:
    """baddbmm."""
    left, right = (merged(call.whole(call.args[i], call.dims[i])) for i in (1, 2))
    out = unmerged(invoke(registry["bmm"], [left, right])[0], call.size)
    bias = padded(*fronted(call, 0), 4)
    return [(combined(bias, call.args[3], out, call.args[4]), 0)]


@rule("svd_parts")
def singular_values(call: Call) -> None:
    """Who asked for singular values alone saw no wish for a gradient; one level down there may be one."""
    call.args[2] = call.args[2] or wants_grad(call.args[0])


@rule("euclidean_distance", "cdist_forward")
def distances(call: Call) -> Results:
    """Distances of rows, of which three dimensions are the most."""
    left, right = (call.whole(call.args[i], call.dims[i]) for i in (0, 1))
    if left._array.ndim == 3:
        return in_front(invoke(call.op, [left, right, *call.args[2:]]))
    return in_front([unmerged(invoke(call.op, [merged(left), merged(right), *call.args[2:]])[0], call.size)])


# ------------------------------------------------------------------ indexing


@rule("index")
def indexed(call: Call) -> Results | None:
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
        return None
    out = invoke(call.op, [value, [None, *call.args[1]]])[0]
    return [(out, 0)]


def indexed_each(call: Call) -> Results | None:
    """Every entry has its own indices."""
    indices = call.args[1]
    if between(indices) or any(is_mask(index) for index in indices):
        return None
    places = [i for i, index in enumerate(indices) if index is not None]
    width = max(call.ndim_of(1, i) for i in places)
    whole = [
        None if index is None else padded(index if dim is None else front(index, dim), dim is not None, width + 1)
        for index, dim in zip(indices, call.dims[1], strict=True)
    ]
    value = call.whole(call.args[0], call.dims[0])
    entries = arange(call.size).view((call.size, *(1,) * width))
    out = invoke(call.op, [value, [entries, *whole]])[0]
    before = places[0]
    if before:
        # The dimensions before the indices come behind them: NumPy's way where indices are apart.
        order = [0, *range(1 + width, 1 + width + before), *range(1, 1 + width)]
        out = out.permute(*order, *range(len(order), out._array.ndim))
    return [(out, 0)]


@rule("index_put_values", "index_put_impl")
def index_written(call: Call) -> Results | None:
    """The same, for writing: the values are stretched to the batch."""
    if any(dim is not None for dim in call.dims[1]) or any(is_mask(i) for i in call.args[1]) or between(call.args[1]):
        return None
    target = call.whole(call.args[0], call.dims[0])
    values, batched = fronted(call, 2)
    if batched:
        picked = picked_ndim(target._array.ndim - 1, call.args[1])
        shape = values._array.shape
        values = values.reshape((shape[0], *(1,) * (picked + 1 - len(shape)), *shape[1:]))
    return in_front(invoke(call.op, [target, [None, *call.args[1]], values, call.args[3]]))


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


@rule("nonzero_places", "unique_elements", "unique_slices", "unique_runs", "masked_select")
def of_unknown_size(call: Call) -> Results:
    """Each entry would have a shape of its own."""
    if call.op.key == "masked_select":
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


# ------------------------------------------------------------------ negative log likelihood


@rule("nll_loss_rows")
def likelihood(call: Call) -> Results | None:
    """The loss of every row; then of each entry the sum, or the weighted mean."""
    weight, how, ignored = call.args[2], call.args[3], call.args[4]
    if call.dims[2] is not None or call.ndim_of(0, None) != 2:
        return None
    scores, target = (merged(call.whole(call.args[i], call.dims[i])) for i in (0, 1))
    rows = unmerged(invoke(call.op, [scores, target, weight, 0, ignored])[0], call.size)
    counted = target != ignored
    weights = counted.to(scores.dtype) if weight is None else weight[target * counted] * counted
    total = unmerged(weights, call.size).sum(1)
    if how == 0:
        return [(rows, 0), (zeros_like(total), 0)]
    return [(rows.sum(1) / total if how == 1 else rows.sum(1), 0), (total, 0)]


@rule("nll_loss_backward")
def likelihood_backward(call: Call) -> Results | None:
    """The gradient of every row, as if nothing had been summed."""
    weight, how, ignored = call.args[3], call.args[4], call.args[5]
    if call.dims[3] is not None or call.ndim_of(1, None) != 2:
        return None
    grad, scores, target, total = (call.whole(call.args[i], call.dims[i]) for i in (0, 1, 2, 6))
    if how:
        grad = expand((grad / total if how == 1 else grad).reshape((call.size, 1)), target._array.shape)
    args = [merged(grad), merged(scores), merged(target), weight, 0, ignored, total.reshape((-1,))[0]]
    return [(unmerged(invoke(call.op, args)[0], call.size), 0)]


# ------------------------------------------------------------------ convolution


@rule("convolution_op")
def convolved(call: Call) -> Results | None:
    """One weight for all: the batch joins the samples. One weight each: it joins the groups."""
    input, _ = fronted(call, 0)
    weight, weight_batched = fronted(call, 1)
    bias = call.args[2]
    transposed, groups = call.args[7], call.args[9]
    bias_batched = bias is not None and call.dims[2] is not None
    if not weight_batched and not bias_batched:
        out = invoke(call.op, [merged(input), weight, *call.args[2:]])[0]
        return [(unmerged(out, call.size), 0)]
    if transposed:
        return None
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


@rule("convolution_backward")
def convolved_backward(call: Call) -> Results | None:
    """The gradient of the input as the convolution; that of each entry's weight by groups."""
    if call.args[6] or call.dims[2] is not None:
        return None
    grad, input, weight = (call.whole(call.args[i], call.dims[i]) for i in (0, 1, 2))
    settings, groups, mask = call.args[3:8], call.args[8], call.args[9]
    outs: Results = [(None, None)] * 3
    if mask[0]:
        args = [merged(grad), merged(input), call.args[2], *settings, groups, (True, False, False)]
        outs[0] = (unmerged(invoke(call.op, args)[0], call.size), 0)
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
