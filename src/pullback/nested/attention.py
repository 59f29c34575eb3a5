"""Attention over sequences of different lengths: each looks at itself, and nothing is padded."""

from __future__ import annotations

from typing import Any

from pullback.nested.jagged import NestedTensor, gathered
from pullback.nested.strided import StridedNested
from pullback.nested.tensor import refuse
from pullback.nn import functional


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """scaled_dot_product_attention of each sequence with its own keys."""
    given = (query, key, value)
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if not all([type(one) is type(query) for one in given]):
        refuse("scaled_dot_product_attention: Either all of query, key, value are nested tensors, or none is")
    if any([one.dim() != 4 for one in given]):
        refuse("No viable backend for scaled_dot_product_attention was found.")
    options = dict(dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    rows = zip(*[one.parts() for one in given], strict=True)
    parts = [functional.scaled_dot_product_attention(q, k, v, **options) for q, k, v in rows]
    if isinstance(query, NestedTensor):
        return gathered(parts, query._ragged_idx - 1, query.ragged)
    return StridedNested.of(parts)


for kind in (NestedTensor, StridedNested):
    kind.rules["scaled_dot_product_attention"] = attention
