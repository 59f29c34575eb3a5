"""scaled_dot_product_attention: as one op where torch fuses it, otherwise made of products and a softmax."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from pullback._arrays.element import convert_number
from pullback._arrays.half import is_half
from pullback._arrays.kinds import laid_out, made_on
from pullback._dtype import bool_, dtype, float32
from pullback._op.define import Array, explain, function, op
from pullback._tensor import Tensor, wrap
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.sequence import attention as kernels
from pullback.ops.create.cast import to
from pullback.ops.linalg.contract import matmul
from pullback.ops.nn.activation.dropout import dropped, kept
from pullback.ops.nn.activation.softmax import check_rows, softmax_backward_data
from pullback.ops.nn.number import times
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import add
from pullback.ops.reduce.sums import sum_all, sum_dim
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.interleave import repeat_interleave
from pullback.ops.shape.reshape import common_shape, reshape_to

# ------------------------------------------------------------------ softmax that forgives

check_softmax = check_rows("softmax")


@op(
    space=None,
    name="_safe_softmax",
    node="SafeSoftmaxBackward0",
    check=check_softmax,
    self=lambda grad, result, dim: softmax_backward_data(grad, result, dim),
    result=lambda self_t, result, dim: softmax_backward_data(self_t, result, dim),
)
def safe_softmax(self: Array, dim: int) -> Array:
    """softmax in which a row of minus infinities gives zeros."""
    check_softmax(self, dim)
    return kernels.safe_softmax(self, dim)


# ------------------------------------------------------------------ fused


def scale_of(query: Any, scale: float | None) -> float:
    """The factor of the scores: one over the root of the number of features, unless given."""
    if scale is not None:
        return scale
    return 1 / sqrt(query.shape[-1]) if query.shape[-1] else inf


def attention_grads(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    output: Any,
    logsumexp: Any,
    attn_mask: Any,
    is_causal: bool,
    scale: float | None,
) -> Any:
    """The gradients of queries, keys and values."""
    factor = scale_of(query, scale)
    if not isinstance(query, Tensor):
        return kernels.attention_backward(grad, query, key, value, output, logsumexp, attn_mask, is_causal, factor)
    heads, own = query.shape[1], key.shape[1]
    keys, values = (x if heads == own else repeat_interleave(x, heads // own, 1) for x in (key, value))
    scores = matmul(query * factor, transpose(keys, -1, -2))
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = scores + causal_mask(query, key)
    weights = safe_softmax(scores, -1)
    d_weights = matmul(grad, transpose(values, -1, -2))
    d_scores = softmax_backward_data(d_weights, weights, -1) * factor
    d_key = matmul(transpose(d_scores, -1, -2), query)
    d_value = matmul(transpose(weights, -1, -2), grad)
    return matmul(d_scores, keys), over_groups(d_key, own), over_groups(d_value, own)


def over_groups(grad: Any, heads: int) -> Any:
    """The gradient of keys or values that several query heads share."""
    batch, have, *rest = grad.shape
    return grad if have == heads else sum_dim(reshape_to(grad, (batch, heads, have // heads, *rest)), (2,))


@op(
    vmap="attended",
    space=None,
    name="_scaled_dot_product_flash_attention_for_cpu",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    outputs=("output", "logsumexp"),
    visible=1,
    query="one formula for all",
    key="one formula for all",
    value="one formula for all",
    # torch saves dropout_p too: it is always zero here.
    backward=lambda grad, query, key, value, output, logsumexp, attn_mask, is_causal, scale, dropout_p: attention_grads(
        grad, query, key, value, output, logsumexp, attn_mask, is_causal, scale
    ),
)
def fused_attention(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None,
    scale: float | None,
) -> Any:
    """Attention of queries, keys and values shaped (batch, head, place, feature)."""
    answers, logsumexp = kernels.attention(query, key, value, attn_mask, is_causal, scale_of(query, scale))
    if answers.strides != query.strides and not query.flags.c_contiguous:
        # In the memory order of the queries, so that heads fold back into features without a copy.
        answers = laid_out(answers, [query])
    return answers, logsumexp


def plainly_fits(query: Array, key: Array, value: Array) -> bool:
    """True for what most calls bring: three tensors of one shape and floating point dtype, in row-major order."""
    return (
        query.ndim == 4
        and query.shape == key.shape == value.shape
        and query.dtype is key.dtype is value.dtype
        and query.dtype.kind == "f"
        and query.size > 0
        and query.flags.c_contiguous
        and key.flags.c_contiguous
        and value.flags.c_contiguous
    )


def can_fuse(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, gqa: bool) -> bool:
    """True if torch's fused kernel takes the call."""
    shapes = [tuple(t.shape) for t in (query, key, value)]
    if dropout_p > 0 or any(len(shape) != 4 for shape in shapes) or not query.dtype.is_floating_point:
        return False
    (batch, heads, length, features), (k_batch, k_heads, keys, k_features), v_shape = shapes
    if v_shape != shapes[1] or k_batch != batch or k_features != features or not keys or not length:
        return False
    if k_heads != heads and not (gqa and k_heads and heads % k_heads == 0):
        return False
    if mask is not None and not (fits(tuple(mask.shape), (batch, heads, length, keys)) and not wants_grad(mask)):
        return False
    return all(t.shape[-1] == 1 or t._array.strides[-1] == t._array.itemsize for t in (query, key, value))


def fits(mask: tuple[int, ...], scores: tuple[int, ...]) -> bool:
    """True if a mask of 2 or 4 dimensions stretches to the scores."""
    if len(mask) not in (2, 4):
        return False
    return all(n in (1, m) for n, m in zip(mask, scores[-len(mask) :], strict=True))


# ------------------------------------------------------------------ composed


def causal_mask(query: Tensor, key: Tensor) -> Tensor:
    """What hides later keys from earlier queries."""
    shape = query.shape[-2], key.shape[-2]
    return wrap(made_on(query.device, kernels.causal_bias, *shape, query._array.dtype))


def composed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """Attention as products, a softmax and a dropout, each recorded; half precision in float32, as in torch."""
    if is_half(query._array.dtype):
        wide = [to(given, float32) for given in (query, key, value)]
        return to(composed_attention(*wide, attn_mask, dropout_p, is_causal, scale, enable_gqa), query.dtype)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        attn_mask = causal_mask(query, key)
    factor = scale_of(query, scale)
    root = sqrt(abs(factor))
    if enable_gqa:
        key, value = for_all_heads(query, key), for_all_heads(query, value)
    scores = matmul(times(query, -root if factor < 0 else root), times(transpose(key, -2, -1), root))
    if attn_mask is not None:
        common_shape(tuple(scores.shape), tuple(attn_mask.shape))
        scores = add(scores, attn_mask if attn_mask.dtype is scores.dtype else to(attn_mask, scores.dtype))
    weights = safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = dropped("dropout", weights, dropout_p, True, kept, False, False)
    return matmul(weights, value)


def for_all_heads(query: Tensor, shared: Tensor) -> Tensor:
    """Keys or values repeated for the query heads that share them."""
    heads, own = query.shape[-3], shared.shape[-3]
    if not own or heads % own:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return shared if heads == own else repeat_interleave(shared, heads // own, -3)


def nothing_to_see(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The answers where there are no queries or no keys: zeros, recorded so that all inputs get a gradient."""
    zeros = wrap(made_on(query.device, np.zeros, (*query.shape[:-1], value.shape[-1]), query._array.dtype))
    return add(zeros, times(add(add(sum_all(query), sum_all(key)), sum_all(value)), 0.0))


# ------------------------------------------------------------------ public


def check_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    """Torch's demands on the dtypes and dimensions."""
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.cpp_name} "
            f"key.dtype: {key.dtype.cpp_name} and value.dtype: {value.dtype.cpp_name} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} "
            f"key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is not None and attn_mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype.cpp_name} and  query.dtype: {query.dtype.cpp_name} instead."
        )


def refuse_masks_of_integers(kind: dtype, attn_mask: Tensor | None, is_causal: bool) -> None:
    """Raise for a mask that would have to hold infinities in a dtype of integers."""
    if attn_mask is not None and attn_mask.dtype is bool_:
        convert_number(-np.inf, kind)  # which says that it does not fit
    if is_causal:
        raise RuntimeError(f"expected scalar type Float but found {kind.scalar_type}")


@function(raw=True, explained=False, space="nn.functional", method=False, autocast="lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute scaled dot-product attention: `softmax(query @ key.T * scale + mask) @ value`.

    `query` is `(..., L, E)`, `key` is `(..., S, E)` and `value` is `(..., S, Ev)`, usually with `(N, heads)` in front.
    `attn_mask` broadcasts to `(..., L, S)`: a bool one is True where a query may look, a float one is added to the
    scores.
    `is_causal` lets query `i` look at keys 0 to `i` only, instead of a mask. `scale` is `1 / sqrt(E)` unless given.
    `dropout_p` is the probability with which weights are dropped, always: pass 0 when not training.
    With `enable_gqa`, `key` and `value` may have fewer heads, each shared by a group of query heads.
    Returns `(..., L, Ev)`.
    """
    try:
        if attn_mask is None and dropout_p == 0 and plainly_fits(query._array, key._array, value._array):
            arrays = arrays_of(query, key, value)
            if arrays is not None:
                return unrecorded(kernels.attention, *arrays, None, is_causal, scale_of(arrays[0], scale))  # type: ignore[no-any-return]
            return fused_attention(query, key, value, 0.0, is_causal, None, scale)
        check_attention(query, key, value, attn_mask)
        if query.dtype.category < 2:
            refuse_masks_of_integers(query.dtype, attn_mask, is_causal)
        if attn_mask is not None and attn_mask.dtype is bool_:
            kind = query._array.dtype
            attn_mask = wrap(np.where(attn_mask._array, kind.type(0), kind.type(-np.inf)))
        unseen = not key._array.size and key.shape[-2] == value.shape[-2]
        if (unseen or not query._array.size) and query.shape[-1]:
            common_shape(tuple(query.shape)[:-2], tuple(key.shape)[:-2])
            return nothing_to_see(query, key, value)
        if can_fuse(query, key, value, attn_mask, dropout_p, enable_gqa):
            return fused_attention(query, key, value, 0.0, is_causal, attn_mask, scale)
        return composed_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    except Exception as error:
        explain(
            error, scaled_dot_product_attention, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        )
        raise
