"""Attention: every query answered by the values, weighted by how well their keys match; and its gradients.

Arrays are (batch, head, place, feature). `bias` is added to the scores: minus infinity hides a key from a query.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._arrays.kinds import answered
from pullback.kernels.compiled import room
from pullback.kernels.numpy.norm.rows import number, read_only

Array = Any


@lru_cache(64)
@answered(meta=lambda queries, keys, dtype: np.empty((queries, keys), dtype))
def causal_bias(queries: int, keys: int, dtype: Any) -> Array:
    """Zero where a query may look, at its own place or before, minus infinity elsewhere."""
    return read_only(np.where(np.tri(queries, keys, dtype=bool), dtype.type(0), dtype.type(-np.inf)))


def scores_of(query: Array, key: Array, bias: Array | None, causal: bool, scale: float) -> Array:
    """How well each key matches each query."""
    scores = np.matmul(np.multiply(query, number(scale, query.dtype)), key.swapaxes(-2, -1))
    if bias is not None:
        scores += bias
    if causal:
        scores += causal_bias(*scores.shape[-2:], scores.dtype)
    return scores


def for_each_head(array: Array, heads: int) -> Array:
    """Keys or values that several query heads share, once for each."""
    return array if array.shape[1] == heads else np.repeat(array, heads // array.shape[1], axis=1)


def shared(grad: Array, heads: int) -> Array:
    """The gradient of keys or values that several query heads share."""
    batch, have, *rest = grad.shape
    return grad if have == heads else np.add.reduce(grad.reshape(batch, heads, have // heads, *rest), axis=2)


def attention(
    query: Array, key: Array, value: Array, bias: Array | None, causal: bool, scale: float
) -> tuple[Array, Array]:
    """The answers, and the logarithm of the sum of each query's exponentials (zero for one that may not look)."""
    compiled = room("attention")
    if compiled is not None and (made := compiled.forward(query, key, value, bias, causal, scale)) is not None:
        return made  # type: ignore[no-any-return]
    dtype, heads = query.dtype, query.shape[1]
    query, key, value = widened(query), for_each_head(widened(key), heads), for_each_head(widened(value), heads)
    weights = scores_of(query, key, bias, causal, scale)
    top = np.maximum.reduce(weights, -1, None, None, True)
    if bias is not None:
        # A query that may not look has only minus infinities: its weights shall be zero, not nan.
        top = np.where(np.isneginf(top), weights.dtype.type(0), top)
    weights -= top
    np.exp(weights, weights)
    total = np.add.reduce(weights, -1, None, None, True)
    out = np.matmul(weights, value)
    if bias is None:
        out /= total
        logsumexp = np.log(total)
        logsumexp += top
    else:
        blind = total == 0
        total = np.where(blind, weights.dtype.type(1), total)
        out /= total
        logsumexp = np.where(blind, weights.dtype.type(0), np.log(total) + top)
    return out if out.dtype is dtype else out.astype(dtype), logsumexp[..., 0]


def attention_backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    bias: Array | None,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]:
    """The gradients of queries, keys and values."""
    compiled = room("attention")
    if compiled is not None:
        made = compiled.backward(grad, query, key, value, out, logsumexp, bias, causal, scale)
        if made is not None:
            return made  # type: ignore[no-any-return]
    dtype, heads = query.dtype, query.shape[1]
    own = key.shape[1]
    grad, query, out = widened(grad), widened(query), widened(out)
    key, value = for_each_head(widened(key), heads), for_each_head(widened(value), heads)
    weights = scores_of(query, key, bias, causal, scale)
    weights -= logsumexp[..., None]
    np.exp(weights, out=weights)
    d_value = np.matmul(weights.swapaxes(-2, -1), grad)
    d_scores = np.matmul(grad, value.swapaxes(-2, -1))
    d_scores -= np.add.reduce(grad * out, axis=-1, keepdims=True)
    d_scores *= weights
    d_scores *= number(scale, d_scores.dtype)
    d_query = np.matmul(d_scores, key)
    d_key = np.matmul(d_scores.swapaxes(-2, -1), query)
    found = (d_query, shared(d_key, own), shared(d_value, own))
    return tuple([part.astype(dtype, copy=False) for part in found])  # type: ignore[return-value]


def safe_softmax(x: Array, dim: int) -> Array:
    """softmax in which a row of minus infinities gives zeros."""
    dtype, x = x.dtype, widened(x)
    top = np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf)
    out = np.asarray(np.exp(x - np.where(np.isneginf(top), x.dtype.type(0), top)))
    total = np.add.reduce(out, axis=dim, keepdims=True)
    out /= np.where(total == 0, x.dtype.type(1), total)
    return out.astype(dtype, copy=False)
