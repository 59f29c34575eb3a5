"""Ops that deserve a way of their own to run on a batch.

Products of matrices share what is not batched: one large product instead of many. Reductions of everything become
reductions of all but the batch. See rules_index.py and rules_nn.py for more.
"""

from __future__ import annotations

from functools import reduce, wraps
from math import prod
from typing import Any

from pullback._arrays.sizes import check_ints
from pullback._dtype import promote_types
from pullback._op.declare import registry
from pullback._tensor import Tensor
from pullback.autograd.view import wants_grad
from pullback.batching.physical import Call, Results, front, in_front, invoke, merged, padded, unmerged
from pullback.batching.strategies import (
    Rule,
    counted,
    dims,
    entries,
    further,
    matrices,
    one_by_one,
    rule,
    way,
)
from pullback.kernels.numpy.index.strided import span
from pullback.ops.shape.reshape import common_shape, expand, inferred, unsqueeze


def fronted(call: Call, i: int) -> tuple[Any, bool]:
    """One operand with its batch, if it has one, in front."""
    value, dim = call.args[i], call.dims[i]
    return (value, False) if dim is None else (front(value, dim), True)


# ------------------------------------------------------------------ shapes


def shown(call: Call, view: Tensor) -> Results:
    """What a view shows, with the batch in front: for a function that copies, in memory of its own."""
    return [(view.clone() if call.op.name.endswith("_copy") else view, 0)]


@rule
def reshaped(call: Call) -> Results:
    """The batch keeps its place; what lies behind it takes the new shape, moving if it must."""
    value, _ = fronted(call, 0)
    size = call.args[1]
    if not call.size and -1 in size:  # what the batch cannot tell, its entries do
        size = inferred(size, prod(value._array.shape[1:]))
    return shown(call, value.reshape((call.size, *size)))


@rule
def expanded(call: Call) -> Results:
    """New dimensions come between the batch and the old ones."""
    value, _ = fronted(call, 0)
    size, shape = tuple(call.args[1]), value._array.shape
    missing = len(size) + 1 - len(shape)
    if missing > 0:
        value = value.reshape((shape[0], *(1,) * missing, *shape[1:]))
    return shown(call, expand(value, (shape[0], *size)))


@rule
def repeated(call: Call) -> Results:
    """More numbers than dimensions: the new ones come between the batch and the rest."""
    value, counts = call.whole(call.args[0], call.dims[0]), tuple(call.args[1])
    size, *rest = value._array.shape
    value = value.reshape((size, *(1,) * (len(counts) - len(rest)), *rest))
    return in_front(invoke(call.op, [value, (1, *counts)]))


@rule
def squeezed(call: Call) -> Results:
    """A batch of one stays."""
    value, _ = fronted(call, 0)
    shape = value._array.shape
    return shown(call, value.reshape((shape[0], *[n for n in shape[1:] if n != 1])))


@rule
def strided(call: Call) -> Results:
    """Strides are those of an entry, and the offset that of the first; no entry may see another's memory."""
    value, _ = fronted(call, 0)
    step, *steps = value.stride()
    size, stride, offset = call.args[1:4]
    check_ints(call.op.name, {"size": size, "stride": stride, "storage_offset": offset})
    if len(size) != len(stride):
        lengths = f"size and stride must have the same length! Got size {list(size)} and stride {list(stride)}"
        raise RuntimeError(f"Tensor.as_strided(size, stride, ...): {lengths}")
    start = value.storage_offset()
    offset = start if offset is None else offset
    wanted, seen = span(size, stride), span(value._array.shape[1:], steps)
    if wanted and (not seen or offset < start or offset + wanted > start + seen):
        raise RuntimeError(outside(size, stride, offset, offset + wanted, (start, start + seen) if seen else None))
    return shown(call, value.as_strided((call.size, *size), (step, *stride), offset))


def outside(size: Any, stride: Any, offset: int, last: int, seen: tuple[int, int] | None) -> str:
    """What torch says of a window that shows more than an entry does."""
    window = f"{list(size)}, {list(stride)}, {offset}"
    asked = f"result = tensor.as_strided({window}) can access memory outside of `tensor`. "
    if seen is None:
        asked += (
            "`tensor` has no storage but the passed-in (size, stride, storage_offset) imply a result with some storage."
        )
    else:
        asked += (
            f"`result` can access some memory in range [{offset}, {last}], but `tensor` can only access some memory in "
            f"range [{seen[0]}, {seen[1]}]."
        )
    advice = "please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
    return f"{asked} This is not supported inside of vmap, {advice}"


@rule
def through_windows(call: Call) -> Results:
    """Every entry has memory of its own, so far apart that no window reaches into the next."""
    value, _ = fronted(call, 0)
    base, window = (call.args[1:4], call.args[4]) if call.op.name == "as_strided_backward" else call.args[1:]
    reach = max(
        offset + sum(n * step for n, step in zip(size, stride, strict=True)) for size, stride, offset in (base, window)
    )
    base, window = (((call.size, *size), (1 + reach, *stride), offset) for size, stride, offset in (base, window))
    rest = [*base, window] if call.op.name == "as_strided_backward" else [base, window]
    return in_front(invoke(call.op, [value, *rest]))


@rule
def not_strided(call: Call) -> Results:
    """What it does depends on memory an entry does not have."""
    raise NotImplementedError(f"vmap over aten::{call.op.name}: use slices, or gather and scatter, instead of strides")


@rule
def zeros(call: Call) -> Results:
    """Zeros are the same for all entries."""
    value, _ = fronted(call, 0)
    return [(invoke(call.op, [value, call.args[1]])[0], None)]


@rule
def transposed_matrix(call: Call) -> Results:
    """The last two dimensions change places."""
    value, _ = fronted(call, 0)
    if value._array.ndim > 3:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {value._array.ndim - 1}D")
    return shown(call, value.transpose(1, 2) if value._array.ndim == 3 else value)


@way
def joined(call: Call) -> Results:
    """Of tensors of one shape but for one dimension, and of vectors without elements, which torch overlooks."""
    kept = [j for _, j in call.tensors() if call.at(0, j)[0]._array.size or call.ndim_of(0, j) != 1]
    if not kept:
        return one_by_one(call)
    tensors, places = ([given[0][j] for j in kept] for given in (call.args, call.dims))
    if len(kept) < len(call.args[0]):  # those overlooked have a say in the dtype
        common = reduce(promote_types, [tensor.dtype for tensor in call.args[0]])
        tensors = [tensor if tensor.dtype is common else tensor.to(common) for tensor in tensors]
    if not any(dim is not None for dim in places):
        return [(invoke(call.op, [tensors, call.args[1]])[0], None)]
    return counted(Call(call.op, [tensors, call.args[1]], [places, None], call.size))


# ------------------------------------------------------------------ reducing everything


@rule
def reduced(call: Call) -> Results:
    """Everything but the batch."""
    along = registry[call.op.along]
    value, _ = fronted(call, 0)
    flat = value.reshape((call.size, prod(value._array.shape[1:])))
    dim: Any = 1 if along.annotations["dim"] == "int" else (1,)
    args = [flat, dim, False, *([call.args[1]] if "dtype" in along.kinds else [])]
    return [(invoke(along, args)[0], 0)]


@rule
def arg_reduced(call: Call) -> Results:
    """The place among all elements of an entry."""
    if call.args[1] is not None:
        return dims(call)
    value, _ = fronted(call, 0)
    flat = value.reshape((call.size, prod(value._array.shape[1:])))
    (out,) = invoke(call.op, [flat, 1, False])
    if call.args[2]:
        out = out.reshape((call.size, *(1,) * (value._array.ndim - 1)))
    return [(out, 0)]


@way
def compared(call: Call) -> Results:
    """Elements and what they were reduced to, which broadcasts."""
    value, result = (call.whole(call.args[i], call.dims[i]) for i in (0, 1))
    ndim = max(value._array.ndim, 2)  # numbers count as vectors
    args = [padded(value, True, ndim), padded(result, True, ndim), *call.args[2:]]
    args[2] = tuple(range(1, ndim)) if args[2] in (None, ()) else further(args[2], ndim - 1)
    return in_front([invoke(call.op, args)[0].reshape(value._array.shape)])


# ------------------------------------------------------------------ products


def demanding(function: Rule) -> Rule:
    """A rule of a product: what the op demands is asked of the first entry, since batches would broadcast."""

    @wraps(function)
    def run(call: Call) -> Results:
        op = call.op
        if op.check is not None and call.size:
            arrays = [value._array if isinstance(value, Tensor) else value for value in call.entry(0)]
            given = list(zip(op.params, arrays, strict=True))
            op.check(
                *[array for p, array in given if not p.keyword_only],
                **{p.name: array for p, array in given if p.keyword_only},
            )
        return function(call)

    return run


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


@rule
@demanding
def matrix_matrix(call: Call) -> Results:
    """mm."""
    return [(product(*fronted(call, 0), *fronted(call, 1)), 0)]


@rule
@demanding
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


@rule
@demanding
def vector_vector(call: Call) -> Results:
    """dot."""
    a, a_batched = fronted(call, 0)
    b, b_batched = fronted(call, 1)
    if call.op.key == "vdot":
        a = a.conj()
    if a_batched and b_batched:
        return [(invoke(registry["bmm"], [unsqueeze(a, 1), unsqueeze(b, 2)])[0].reshape((call.size,)), 0)]
    return [(invoke(registry["mv"], [a, b] if a_batched else [b, a])[0], 0)]


@rule
@demanding
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
        if beta == 0:
            return [(combined(bias, beta, out, alpha), None)]
    else:
        out = product(left, left_batched, right, right_batched)
    return [(combined(padded(bias, bias_batched, 3), beta, out, alpha), 0)]


@rule
@demanding
def plus_matrix_vector(call: Call) -> Results:
    """addmv."""
    bias, bias_batched = fronted(call, 0)
    inner = Call(registry["mv"], call.args[1:3], call.dims[1:3], call.size)
    if call.dims[1] is None and call.dims[2] is None:
        out = invoke(registry["mv"], call.args[1:3])[0]
        if call.args[3] == 0:
            return [(combined(bias, 0, out, call.args[4]), None)]
    else:
        out = matrix_vector(inner)[0][0]
    return [(combined(padded(bias, bias_batched, 2), call.args[3], out, call.args[4]), 0)]


def combined(bias: Any, beta: Any, out: Any, alpha: Any) -> Any:
    """beta * bias + alpha * out."""
    out = out if alpha == 1 else out * alpha
    if beta == 0:
        return out
    return out + (bias if beta == 1 else bias * beta)


@rule
@demanding
def batches_of_matrices(call: Call) -> Results:
    """bmm: two batches become one."""
    left, right = (merged(call.whole(call.args[i], call.dims[i])) for i in (0, 1))
    return [(unmerged(invoke(call.op, [left, right])[0], call.size), 0)]


@rule
@demanding
def plus_batches_of_matrices(call: Call) -> Results:
    """baddbmm."""
    left, right = (merged(call.whole(call.args[i], call.dims[i])) for i in (1, 2))
    out = unmerged(invoke(registry["bmm"], [left, right])[0], call.size)
    bias = padded(*fronted(call, 0), 4)
    return [(combined(bias, call.args[3], out, call.args[4]), 0)]


@rule
def trace_of_each(call: Call) -> Results:
    """The sum of the diagonal of each matrix."""
    given = call.whole(call.args[0], call.dims[0])
    if given._array.ndim != 3:
        return entries(call)  # which says what is wrong
    return [(given.diagonal(0, 1, 2).sum(1), 0)]


@rule
def singular_values(call: Call) -> Results:
    """Who asked for values alone, not vectors, saw no wish for a derivative; one level down there may be one."""
    vectors = call.op.param_names.index("compute_uv" if call.op.key == "svd_parts" else "compute_v")
    matrix = call.args[0]
    call.args[vectors] = call.args[vectors] or wants_grad(matrix) or matrix._tangent is not None
    return matrices(call)


@rule
def pseudoinverse(call: Call) -> Results:
    """Tolerances may be tensors, one for each matrix."""
    given = call.whole(call.args[0], call.dims[0])
    width = given._array.ndim - 2
    if width < 1:
        return one_by_one(call)  # which says what is wrong
    if not given._array.size:  # there is nothing to tolerate
        return in_front(invoke(call.op, [given, None, None, *call.args[3:]]))
    seen = [call.ndim_of(i, None) for i in (1, 2) if isinstance(call.args[i], Tensor)]
    width = max([width, *(1 + ndim for ndim in seen)])
    given = padded(given, True, width + 2)
    args = [given, *call.args[1:]]
    for i in (1, 2):
        if call.dims[i] is not None:
            tolerance = front(call.args[i], call.dims[i])
            size, *rest = tolerance._array.shape
            args[i] = tolerance.reshape((size, *(1,) * (width - 1 - len(rest)), *rest))
    return in_front(invoke(call.op, args))


@rule
def distances(call: Call) -> Results:
    """Distances of rows, of which three dimensions are the most."""
    left, right = (call.whole(call.args[i], call.dims[i]) for i in (0, 1))
    (*a, rows, width), (*b, columns, _) = left._array.shape, right._array.shape
    left, right = (padded(t, True, max(len(a), len(b)) + 2) for t in (left, right))
    batch = common_shape(left._array.shape[:-2], right._array.shape[:-2])
    left = expand(left, (*batch, rows, width)).reshape((prod(batch), rows, width))
    right = expand(right, (*batch, columns, width)).reshape((prod(batch), columns, width))
    out = invoke(call.op, [left, right, *call.args[2:]])[0]
    return in_front([out.reshape((*batch, rows, columns))])
