"""Tables of vectors looked up by number: embedding, and the renorm that keeps their rows short."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, explain, function, op
from pullback._op.inplace import inplace
from pullback._sparse.array import SparseArray
from pullback._sparse.tensor import SparseTensor
from pullback._tensor import Tensor
from pullback.kernels.numpy.index import embedding as kernels
from pullback.ops.create.copy import detach
from pullback.ops.pointwise.arithmetic import where_tensors as where
from pullback.ops.shape.reshape import unsqueeze
from pullback.ops.supported import no_derivative


def check_indices(indices: Array, where_from: str, position: int) -> None:
    """Rows are numbered by int64 or int32."""
    if indices.dtype != np.int64 and indices.dtype != np.int32:
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got torch.{FROM_NUMPY[indices.dtype].scalar_type}Tensor instead (while checking arguments for "
            f"{where_from})"
        )


# ------------------------------------------------------------------ embedding


def check_embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Torch's demands on the table and the numbers."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(indices, "embedding", 1)


@op(
    space=None,
    name="embedding",
    check=check_embedding,
    vmap="looked_up",
    weight=lambda grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq, sparse: (
        embedding_sparse_backward(grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)
        if sparse
        else embedding_dense_backward(grad, indices, weight_sym_argsize_0, padding_idx, scale_grad_by_freq)
    ),
    result=lambda weight_t, indices, padding_idx, scale_grad_by_freq, sparse: embedding_op(
        weight_t, indices, padding_idx, scale_grad_by_freq, sparse
    ),
)
def embedding_op(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Array:
    """The rows of the table with these numbers."""
    check_embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    return kernels.lookup(weight, indices)


@op(
    space=None,
    vmap="table_gradient",
    grad_output=lambda grad, indices, padding_idx: rows_but_padding(grad, indices, padding_idx),
    result=lambda grad_output_t, indices, num_weights, padding_idx, scale_grad_by_freq: embedding_dense_backward(
        grad_output_t, indices, num_weights, padding_idx, scale_grad_by_freq
    ),
)
def embedding_dense_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """The gradient of the table."""
    return kernels.dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)


@op(
    vmap="entries",
    space=None,
    layout="sparse",
    grad_output=lambda grad, indices, padding_idx: rows_but_padding(dense_rows(grad), indices, padding_idx),
)
def embedding_sparse_backward(
    grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    """The gradient of the table as a sparse tensor: an entry for each row that was looked up."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    numbers = indices.reshape(-1).astype(np.int64)
    if padding_idx != -1:
        kept = numbers != padding_idx
        rows, numbers = rows[kept], numbers[kept]
    return SparseArray(numbers[None], rows, (num_weights, grad_output.shape[-1]))


def dense_rows(grad: Any) -> Any:
    """A gradient of the gradient, dense so that rows can be looked up in it."""
    return grad.to_dense() if isinstance(grad, SparseTensor) else grad


def rows_but_padding(grad: Any, indices: Any, padding_idx: int) -> Any:
    """The rows of grad that were looked up, zeros for the padding row, which had no gradient."""
    rows = embedding_op(grad, indices, -1, False, False)
    return where(unsqueeze(indices == padding_idx, -1), 0, rows) if padding_idx >= 0 else rows


@function(raw=True, explained=False, method=False)
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Look up rows of an embedding table: `weight[indices]`.

    `weight` is `(V, D)` and `indices` holds integers of any shape; returns `(*indices.shape, D)`.
    The row `padding_idx` gets no gradient; with `scale_grad_by_freq` the gradient of a row is divided by how often it
    was looked up; with `sparse` the gradient of `weight` is a sparse tensor.
    """
    try:
        return embedding_op(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    except Exception as error:
        explain(error, embedding, weight, indices, padding_idx, scale_grad_by_freq, sparse)
        raise


@function(raw=True, explained=False, space="nn.functional", method=False, name="embedding")
def functional_embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of an embedding table: `weight[input]`.

    `weight` is `(V, D)` and `input` holds integers of any shape; returns `(*input.shape, D)`.
    The row `padding_idx` gets no gradient. With `max_norm`, rows that are looked up and whose `norm_type`-norm is
    larger are first shortened to it, in place. With `scale_grad_by_freq` the gradient of a row is divided by how often
    it was looked up; with `sparse` the gradient of `weight` is a sparse tensor.
    """
    if isinstance(padding_idx, float) and isinstance(weight, Tensor):
        rows = weight.shape[0]
        if padding_idx < -rows or padding_idx > max(rows - 1, 0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        raise TypeError("embedding(): argument 'padding_idx' (position 3) must be int, not float")
    try:
        kept = -1
        if padding_idx is not None:
            rows = weight.shape[0]
            if not -rows <= padding_idx <= max(rows - 1, 0):
                raise AssertionError("Padding_idx must be within num_embeddings")
            kept = padding_idx + rows if padding_idx < 0 else padding_idx
        if max_norm is not None:
            embedding_renorm_(detach(weight), input, max_norm, norm_type)
        return embedding(weight, input, kept, scale_grad_by_freq, sparse)
    except Exception as error:
        explain(
            error, functional_embedding, input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        )
        raise


# ------------------------------------------------------------------ embedding_renorm_


def check_renorm(self: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    """Torch's demands on the table and the numbers."""
    if self.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self.ndim}-dimensional tensor for argument #1 'self' (while "
            "checking arguments for embedding_renorm_)"
        )
    check_indices(indices, "embedding_renorm_", 2)
    if self.dtype.kind in "biu" and indices.size:
        kind = FROM_NUMPY[self.dtype].scalar_type
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {kind} instead.")


@op(
    vmap="entries",
    space=None,
    name="embedding_renorm",
    check=check_renorm,
    self=lambda grad: no_derivative("embedding_renorm"),
)
def renorm_rows(self: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """The table with the named rows shortened."""
    return kernels.renormed(self, indices, max_norm, norm_type)


@function(raw=True, method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten, in place, those of the rows named by `indices` whose norm exceeds `max_norm`.

    `input` is `(V, D)`; `norm_type` is the order of the norm. Rows that are too long are scaled down to `max_norm`.
    """
    for position, (name, given) in enumerate((("max_norm", max_norm), ("norm_type", norm_type)), 3):
        if isinstance(given, complex):
            raise TypeError(f"embedding_renorm_(): argument '{name}' (position {position}) must be float, not complex")
    return inplace(renorm_rows.op, input, (indices, max_norm, norm_type))
