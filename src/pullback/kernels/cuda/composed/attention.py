"""Attention on the device: by kernels that keep no scores, or as two products and a softmax of rows between them.

The second way is for heads of more features than the kernels hold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.composed import attention_tiles as kernels
from pullback.kernels.cuda.native import backward, copied, native
from pullback.kernels.cuda.pointwise import made_for
from pullback.kernels.cuda.products import ELEMENTS, product
from pullback.kernels.cuda.rows import are_rows, run


def matrices(array: Any) -> Any:
    """(batch, head, place, feature) as a stack of matrices."""
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


def weights_of(query: Any, key: Any, mask: Any, is_causal: bool, factor: float) -> Any:
    """How much every query takes of every value, and the logarithms of their sums; None if no kernels can do it."""
    if not all([type(a) is DeviceArray and a.ndim == 4 and a.size and a.dtype == query.dtype for a in (query, key)]):
        return None
    if query.dtype.name not in ELEMENTS or query.shape[:2] != key.shape[:2] or query.shape[-1] != key.shape[-1]:
        return None
    batch, heads, length = query.shape[:3]
    scores = product(matrices(query), matrices(key).transpose(0, 2, 1))
    if scores is None:
        return None
    if mask is not None:
        if type(mask) is not DeviceArray:
            return None
        wide = mask if mask.dtype == scores.dtype else copied(mask, scores.dtype)
        shape = (batch, heads, length, key.shape[2])
        scores = (scores.reshape(shape) * scores.dtype.type(factor) + np.broadcast_to(wide, shape)).reshape(
            scores.shape
        )
        factor = 1.0
    if not are_rows(scores.shape[-1], scores, held=True):
        return None
    kind = SINGLE if is_half(query.dtype) else query.dtype
    sums = empty((batch, heads, length), kind, None, query.device)
    return run(
        "attention", scores.shape[-1], [scores], None, None, (None, sums), factor, length if is_causal else 0
    ), sums


@native("fused_attention")
def attention(query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any, scale: Any) -> Any:
    """The values, weighted, and the logarithms of the sums of the weights."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    whole = kernels.forward(query, key, value, attn_mask, bool(is_causal), factor)
    if whole is not None:
        return whole
    if type(value) is not DeviceArray or value.dtype != query.dtype or value.shape[:3] != key.shape[:3]:
        return None
    found = weights_of(query, key, attn_mask, is_causal, factor)
    made = None if found is None else product(found[0], matrices(value))
    if made is None:
        return None
    out = made.reshape(*query.shape[:3], value.shape[3])
    if not query.flags.c_contiguous and out.shape == query.shape:
        ordered = made_for([query], query.shape, query.dtype)  # so that heads fold back into features without a copy
        ordered[...] = out
        out = ordered
    return [out, found[1]]


@backward("fused_attention")
def attention_backward(
    grad: Any, query: Any, key: Any, value: Any, output: Any, logsumexp: Any, attn_mask: Any, is_causal: bool,
    scale: Any, dropout_p: float,
) -> Any:  # fmt: skip
    """The gradients of queries, keys and values; the weights are computed again."""
    grad = grad[0] if isinstance(grad, (list, tuple)) else grad
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    if grad is None:
        return None
    made = kernels.gradients(grad, query, key, value, output, logsumexp, attn_mask, bool(is_causal), factor)
    if made is not None:
        return made
    found = weights_of(query, key, attn_mask, is_causal, factor)
    if found is None:
        return None
    weights, q, k, v, g = found[0], *[matrices(a) for a in (query, key, value, grad)]
    d_weights = product(g, v.transpose(0, 2, 1))
    d_scores = run("softmax_backward", weights.shape[-1], [d_weights, weights])
    turned = d_scores.transpose(0, 2, 1)
    d_query = product(d_scores, k, None, 0.0, factor)
    d_key = product(turned, q, None, 0.0, factor)
    d_value = product(weights.transpose(0, 2, 1), g)
    return d_query.reshape(query.shape), d_key.reshape(key.shape), d_value.reshape(value.shape)
