"""MultiheadAttention: each head attends to its own projection of the input."""

from __future__ import annotations

import warnings
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.init import constant_, xavier_normal_, xavier_uniform_
from pullback.nn.modules.linear import NonDynamicallyQuantizableLinear
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention of num_heads heads, with projections in front and behind."""

    __module__ = "pullback.nn.modules.activation"  # where checkpoints look for it, as torch has it there

    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def weight(*shape: int) -> Parameter:
            return Parameter(pullback.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = weight(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim)
            self.k_proj_weight = weight(embed_dim, self.kdim)
            self.v_proj_weight = weight(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", weight(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = weight(1, 1, embed_dim)
            self.bias_v = weight(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the projections as Glorot does; the biases of the projections are 0."""
        if self._qkv_same_embed_dim:
            xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What the queries find in the values, and (if wanted) how much they looked at each key."""
        masks = as_numbers(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = batch_second(query, key, value)
        separate: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=masks[0],
            need_weights=need_weights,
            attn_mask=masks[1],
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (output.transpose(1, 0) if turned else output), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind: 1 hides keys of each example, 2 pairs of queries and keys."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2


def batch_second(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three with the batch in the second dimension; what was one tensor stays one."""
    turned: dict[int, Tensor] = {}
    for tensor in (query, key, value):
        if id(tensor) not in turned:
            turned[id(tensor)] = tensor.transpose(1, 0)
    return turned[id(query)], turned[id(key)], turned[id(value)]


def as_numbers(
    padding_mask: Tensor | None, padding_name: str, mask: Tensor | None, mask_name: str, dtype: Any
) -> tuple[Tensor | None, Tensor | None]:
    """Both masks as numbers to add: True becomes -inf, False 0."""
    for each, name in ((padding_mask, padding_name), (mask, mask_name)):
        if each is not None and each.dtype != pullback.bool and not each.is_floating_point():
            raise AssertionError(f"only bool and floating types of {name} are supported")
        if each is padding_mask and each is not None and mask is not None and each.dtype != mask.dtype:
            warnings.warn(
                f"Support for mismatched {padding_name} and {mask_name} is deprecated. Use same type for both instead.",
                stacklevel=4,
            )
    return numbers(padding_mask, dtype), numbers(mask, dtype)


def numbers(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A bool mask as 0 and -inf; one of numbers as it is."""
    if mask is None or mask.is_floating_point():
        return mask
    return pullback.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))
