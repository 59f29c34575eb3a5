"""embedding_bag: rows of a table looked up in bags, each bag summed, averaged or reduced to its largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import FROM_NUMPY, int64
from pullback._op.define import Array, function, op
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.index import embedding as kernels
from pullback.ops.create.copy import detach
from pullback.ops.create.ranges import arange_array
from pullback.ops.index.gather import index_select, scatter_add
from pullback.ops.nn.embedding import (
    check_indices,
    embedding_dense_backward,
    embedding_renorm_,
    embedding_sparse_backward,
)
from pullback.ops.nn.norm.layer_norm import plain_tuple
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import reshape_to, unsqueeze, zeros_of

SUM, MEAN, MAX = 0, 1, 2


@op(vmap="entries", space=None)
def bag_numbers(grad: Array, indices: Array, offsets: Array) -> Array:
    """The bag of each index; there are as many bags as rows of grad."""
    return np.minimum(kernels.bags_of(offsets, indices.size), grad.shape[0] - 1)


@op(vmap="entries", space=None)
def row_factors(
    grad: Array,
    indices: Array,
    offsets: Array,
    bag: Array,
    bag_size: Array,
    mode: int,
    by_frequency: bool,
    count: int,
) -> Array:
    """What the gradient of its bag is multiplied with before it reaches each row."""
    out = np.ones(indices.size, grad.dtype)
    if mode == MEAN:
        out /= np.maximum(bag_size[bag], 1).astype(grad.dtype)
    if by_frequency:
        out /= kernels.bag_frequencies(indices, count).astype(grad.dtype)
    if offsets.size > grad.shape[0]:
        out[offsets[-1] :] = 0
    return out


def rows_of_grad(
    grad: Any, indices: Any, offsets: Any, bag_size: Any, mode: int, by_frequency: bool, count: int
) -> Any:
    """The gradient that arrives at each row that was looked up."""
    bag = bag_numbers(grad, indices, offsets)
    factors = row_factors(grad, indices, offsets, bag, bag_size, mode, by_frequency, count)
    return index_select(grad, 0, bag) * unsqueeze(factors, 1)


def but_for_padding(rows: Any, indices: Any, padding_idx: int) -> Any:
    """Rows, of which nothing reaches the padding: also where zero times its elements is NaN."""
    return where(unsqueeze(indices == padding_idx, 1), 0, rows) if padding_idx >= 0 else rows


def table_grad(
    grad: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
    result1: Any,
    result2: Any,
    result3: Any,
    weight_sym_argsize_0: int,
    mode: int,
    scale_grad_by_freq: bool,
    padding_idx: int,
    sparse: bool,
) -> Any:
    """The gradient of the table; `result1` is saved as torch does."""
    count = weight_sym_argsize_0
    if mode == MAX:
        return scatter_add(zeros_of(grad, (count, grad.shape[1])), 0, result3, grad * unsqueeze(result2 > 0, 1))
    if sparse and scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows = rows_of_grad(grad, indices, offsets, result2, mode, scale_grad_by_freq, count)
    if per_sample_weights is not None:
        rows = rows * unsqueeze(per_sample_weights, 1)
    rows = but_for_padding(rows, indices, padding_idx)
    if sparse:
        return embedding_sparse_backward(rows, indices, count, padding_idx, False)
    return embedding_dense_backward(rows, indices, count, -1, False)


def samples_grad(grad: Any, weight: Any, indices: Any, offsets: Any, result2: Any, mode: int, padding_idx: int) -> Any:
    """The gradient of the weights of the samples; only this one needs the table."""
    rows = rows_of_grad(grad, indices, offsets, result2, mode, False, 0)
    return sum_dim(but_for_padding(rows * index_select(weight, 0, indices), indices, padding_idx), (1,))


def bag_tangents(
    weight_t: Any,
    per_sample_weights_t: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    """The tangents of the bags: the map is linear in the table and in the weights of the samples."""
    if mode == MAX:
        raise NotImplementedError("forward mode of embedding_bag(mode='max') is not implemented; use backward mode")
    before, after = (scale_grad_by_freq, mode, sparse), (include_last_offset, padding_idx)
    moved = embedding_bag_op(weight_t, indices, offsets, *before, per_sample_weights, *after)[0]
    if per_sample_weights is not None:
        moved = moved + embedding_bag_op(weight, indices, offsets, *before, per_sample_weights_t, *after)[0]
    return moved, None, None, None


@op(
    vmap="entries",
    space=None,
    name="embedding_bag",
    node="EmbeddingBagBackward0",
    outputs=("result0", "result1", "result2", "result3"),
    weight=table_grad,
    per_sample_weights=samples_grad,
    result=bag_tangents,
)
def embedding_bag_op(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    """The bags, the bag of each index, the sizes of the bags, and where the largest elements came from."""
    # torch has a quick road for the narrower types, with errors of its own.
    quick = weight.dtype != np.float64 and padding_idx < 0
    check_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset, quick)
    bags = offsets.size - bool(include_last_offset)
    bag = kernels.bags_of(offsets[:bags], indices.size)
    kept = indices != padding_idx if padding_idx >= 0 else np.ones(indices.size, bool)
    kept &= bag >= 0
    size = np.bincount(bag[kept], minlength=bags)
    if include_last_offset and mode != MAX:
        kept &= np.arange(indices.size) < offsets[-1]
    rows = weight[indices[kept]]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[kept][:, None]
    bag_kept = bag[kept]
    counts = np.bincount(bag_kept, minlength=bags)
    if mode == MAX:
        out = kernels.largest_of_bags(rows, counts)
        return out, bag, size, kernels.first_of_largest(rows, out, bag_kept, counts, indices[kept])
    out = kernels.reduce_bags(rows, counts, np.add)
    if mode == MEAN:
        out /= np.maximum(counts, 1).astype(out.dtype)[:, None]
        return out, bag, size, size.copy()
    # The quick road for sums leaves these unfilled.
    none = np.zeros(offsets.size, offsets.dtype)
    return out, np.empty(0, offsets.dtype) if quick else bag, none, none.copy()


embedding_bag_op.op.fields = plain_tuple


def check_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: int,
    samples: Array | None,
    include_last_offset: bool,
    quick: bool,
) -> None:
    """Torch's demands on the table, the numbers and the places where bags begin."""
    check_indices(indices, "embedding_bag", 1)
    check_indices(offsets, "embedding_bag", 1)
    if weight.dtype.kind != "f" and FROM_NUMPY[weight.dtype].category != 2:
        kind = FROM_NUMPY[weight.dtype].scalar_type
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {f'CPU{kind}Type' if weight.dtype.kind == 'c' else f'torch.{kind}Tensor'} instead "
            "(while checking arguments for embedding_bag)"
        )
    if samples is not None and samples.dtype is not weight.dtype:
        kinds = [f"torch.{FROM_NUMPY[a.dtype].scalar_type}Tensor" for a in (weight, samples)]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {kinds[0]} does not equal {kinds[1]} (while checking arguments for "
            "embedding_bag)"
        )
    if include_last_offset and not offsets.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if offsets.size:
        if offsets[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {offsets[0]}"
            )
        if offsets[-1] > indices.size:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of "
                f"{offsets[-1]}"
            )
        if (np.diff(offsets) < 0).any():
            raise RuntimeError(
                "Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, "
                "please report an enhancement request to PyTorch.)"
            )
    wrong = np.flatnonzero((indices < 0) | (indices >= weight.shape[0]))
    if wrong.size:
        number = indices[wrong[0]]
        if not quick or mode == MAX:
            raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {number}")
        raise RuntimeError(
            f"Index {wrong[0]} of input takes value {number} which is not in the valid range [0, {weight.shape[0]})"
        )


@function(raw=True, method=False)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Look up bags of rows of an embedding table, and reduce each bag to one row.

    As `nn.functional.embedding_bag`, but `indices` is 1-D, `offsets` always says where each bag begins, and `mode` is a
    number: 0 for sums, 1 for means, 2 for maxima.
    Returns the bags `(N, D)`, the bag each index belongs to, the sizes of the bags, and, for maxima, the indices of the
    rows they came from.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        if isinstance(padding_idx, float):
            raise TypeError("embedding_bag(): argument 'padding_idx' (position 9) must be int, not float")
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got "
                f"{padding_idx}"
            )
        padding_idx += rows if padding_idx < 0 else 0
    if indices.dtype is not offsets.dtype and {indices.dtype.name, offsets.dtype.name} == {"int32", "int64"}:
        indices, offsets = (wrap(t._array.astype(int64.numpy)) for t in (indices, offsets))
    return embedding_bag_op(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


@function(raw=True, space="nn.functional", method=False, name="embedding_bag")
def functional_embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Look up bags of rows of an embedding table, and reduce each bag to one row.

    `weight` is `(V, D)`. A 2-D `input` `(N, S)` holds one bag per row; a 1-D one holds all bags end to end, and
    `offsets` `(N,)` says where each begins (with `include_last_offset`, also where the last ends). `mode` is 'sum',
    'mean' or 'max'; `per_sample_weights`, of the shape of `input`, multiplies the rows before a sum. Rows `padding_idx`
    count for nothing; `max_norm`, `norm_type`, `scale_grad_by_freq` and `sparse` are as in `embedding`. Returns
    `(N, D)`.
    """
    if weight.dtype is int64 and input.dtype.is_floating_point:
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
        )
        weight, input = input, weight
    if per_sample_weights is not None and tuple(input.shape) != tuple(per_sample_weights.shape):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    offsets, include_last_offset = bag_offsets(input, offsets, include_last_offset)
    if input.ndim == 2:
        if per_sample_weights is not None:
            per_sample_weights = reshape_to(per_sample_weights, (per_sample_weights._array.size,))
        input = reshape_to(input, (input._array.size,))
    code = MODES.get(mode)
    if code is None:
        raise ValueError("mode has to be one of sum, mean or max")
    if code == MAX and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if code == MAX and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        embedding_renorm_(detach(weight), input, max_norm, norm_type)
    if per_sample_weights is not None and code != SUM:
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    return embedding_bag(
        weight, input, offsets, scale_grad_by_freq, code, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def bag_offsets(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, bool]:
    """Where the bags begin: as given, or at every row of a matrix of numbers."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        return wrap(made_on(input.device, arange_array, 0, input._array.size, input.shape[1], input.dtype)), False
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return offsets, include_last_offset
