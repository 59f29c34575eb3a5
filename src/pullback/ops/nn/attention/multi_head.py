"""multi_head_attention_forward: projections, several heads of attention side by side, and a last projection."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pullback._dtype import bool_, dtype
from pullback._op.define import function
from pullback._runtime.quiet import quiet
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, wrap
from pullback.ops.linalg.matmul import baddbmm, bmm
from pullback.ops.nn.activation.dropout import functional_dropout
from pullback.ops.nn.activation.softmax import softmax
from pullback.ops.nn.attention.dot_product import scaled_dot_product_attention
from pullback.ops.nn.image.pad import pad
from pullback.ops.nn.linear import affine, linear
from pullback.ops.nn.unrecorded import arrays_of, unrecorded, without_history
from pullback.ops.pointwise.arithmetic import add, mul
from pullback.ops.reduce.sums import mean_dim
from pullback.ops.shape.dims import permute_dims, transpose
from pullback.ops.shape.join import cat, chunk, split
from pullback.ops.shape.layout import contiguous
from pullback.ops.shape.rearrange import repeat_dims
from pullback.ops.shape.reshape import expand, reshape_to, squeeze_dim, unflatten, unsqueeze, view_
from pullback.ops.shape.slicing import select_int

# ------------------------------------------------------------------ checks


def check_shapes(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, num_heads: int
) -> bool:
    """Torch's demands on the numbers of dimensions; True if the input is batched."""
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    batched, ndim = query.ndim == 3, query.ndim
    kind = f"For {'batched' if batched else 'unbatched'} ({ndim}-D) `query`, expected"
    if key.ndim != ndim or value.ndim != ndim:
        raise AssertionError(
            f"{kind} `key` and `value` to be {ndim}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != ndim - 1:
        raise AssertionError(
            f"{kind} `key_padding_mask` to be `None` or {ndim - 1}-D but found {padding.ndim}-D tensor instead"
        )
    if mask is None:
        return batched
    if mask.ndim not in (2, 3):
        raise AssertionError(f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead")
    expected = (num_heads, query.shape[0], key.shape[0])
    if not batched and mask.ndim == 3 and tuple(mask.shape) != expected:
        raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return batched


def as_bias(mask: Tensor | None, name: str, kind: dtype, other: Tensor | None = None) -> Tensor | None:
    """A mask as numbers to add to the scores; a bool mask is True where nobody may look."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype is not other.dtype:
        warn(f"Support for mismatched {name} and attn_mask is deprecated. Use same type for both instead.")
    if mask.dtype.is_floating_point:
        return mask
    numbers = kind.numpy.type
    return wrap(np.where(mask._array, numbers(-np.inf), numbers(0)))


def check_sizes(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, separate: bool) -> int:
    """Torch's demands on the sizes; the number of features of a head."""
    features = query.shape[2]
    if features != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {features}")
    if features // num_heads * num_heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    if separate:
        if tuple(key.shape[:2]) != tuple(value.shape[:2]):
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif tuple(key.shape) != tuple(value.shape):
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    return features // num_heads


def check_mask(mask: Tensor, targets: int, sources: int, rows: int) -> Tensor:
    """The mask with a dimension for the heads of all samples."""
    expected = (targets, sources) if mask.ndim == 2 else (rows, targets, sources)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}.")
    return unsqueeze(mask, 0) if mask.ndim == 2 else mask


# ------------------------------------------------------------------ projections


def parts(x: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> list[Tensor]:
    """Several projections of one tensor by a single product."""
    out = unflatten(linear(x, weight, bias), -1, (count, x.shape[-1]))
    out = contiguous(squeeze_dim(transpose(unsqueeze(out, 0), 0, -2), -2))
    return [select_int(out, 0, nr) for nr in range(count)]


def packed_projection(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Queries, keys and values projected by the three parts of one matrix."""
    features = query.shape[-1]
    if key is value and query is key:
        return parts(query, weight, bias, 3)
    if key is value:
        sizes = [features, 2 * features]
        w_query, w_rest = split(weight, sizes)
        b_query, b_rest = (None, None) if bias is None else split(bias, sizes)
        return [linear(query, w_query, b_query), *parts(key, w_rest, b_rest, 2)]
    weights = chunk(weight, 3)
    biases = (None, None, None) if bias is None else chunk(bias, 3)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def separate_projection(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> list[Tensor]:
    """Queries, keys and values projected by three matrices."""
    features = inputs[0].shape[-1]
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None, None, None) if bias is None else chunk(bias, 3)
    names = ("query", "key", "value")
    for name, x, weight in zip(names, inputs, weights, strict=True):
        if tuple(weight.shape) != (features, x.shape[-1]):  # type: ignore[union-attr]
            raise AssertionError(
                f"expecting {name} weights shape of {(features, x.shape[-1])}, but got {weight.shape}"  # type: ignore[union-attr]
            )
    for name, given in zip(names, biases, strict=True):
        if given is not None and tuple(given.shape) != (features,):
            raise AssertionError(f"expecting {name} bias shape of {(features,)}, but got {given.shape}")
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def heads_of(x: Tensor, static: Tensor | None, rows: int, size: int, name: str) -> Tensor:
    """(place, sample, feature) as (head of a sample, place, feature); or what was given in that shape."""
    if static is None:
        return transpose(view_(x, (x.shape[0], rows, size)), 0, 1)
    for dim, expected in ((0, rows), (2, size)):
        if static.shape[dim] != expected:
            raise AssertionError(f"expecting static_{name}.size({dim}) of {expected}, but got {static.shape[dim]}")
    return static


def padded(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which everybody may see."""
    return None if mask is None else pad(mask, (0, 1))


# ------------------------------------------------------------------ public


@function(raw=True, space="nn.functional", method=False)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Apply multi-head attention: project queries, keys and values, attend in each head, and project the results.

    `query` is `(L, N, E)`, `key` and `value` are `(S, N, E)`, or all without `N`. `in_proj_weight` `(3 * E, E)` holds
    the three projections, unless `use_separate_proj_weight` asks for `q_proj_weight`, `k_proj_weight` and
    `v_proj_weight`.
    `attn_mask`, `(L, S)` or `(N * num_heads, L, S)`, and `key_padding_mask`, `(N, S)`, are True where looking is
    forbidden, or added to the scores. `bias_k` and `bias_v` add one key and value, `add_zero_attn` one of zeros.
    Returns the output `(L, N, E)` and, if `need_weights`, the weights: `(N, L, S)`, the averages over the heads, or
    `(N, num_heads, L, S)` unless `average_attn_weights`.
    """
    batched = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    targets, samples, features = query.shape
    kind = query.dtype
    key_padding_mask = as_bias(key_padding_mask, "key_padding_mask", kind, attn_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = as_bias(attn_mask, "attn_mask", kind)
        is_causal = is_causal and key_padding_mask is None
    size = check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    rows = samples * num_heads
    plain = attn_mask is None and key_padding_mask is None and bias_k is None and bias_v is None and static_k is None
    if plain and query is key is value and batched and not need_weights and not add_zero_attn and static_v is None:
        if not use_separate_proj_weight and not (training and dropout_p):
            weights = (in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias)
            made = attended_at_once(query, num_heads, is_causal, *weights)
            if made is not None:
                return made, None
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = separate_projection((query, key, value), weights, in_proj_bias)
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = packed_projection(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = check_mask(attn_mask, targets, key.shape[0], rows)
    if bias_k is not None and bias_v is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k, v = (cat([x, repeat_dims(b, (1, samples, 1))]) for x, b in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = padded(attn_mask), padded(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        given, absent = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {absent} is None")
    q = heads_of(q, None, rows, size, "q")
    k, v = heads_of(k, static_k, rows, size, "k"), heads_of(v, static_v, rows, size, "v")
    if add_zero_attn:
        none = np.zeros((rows, 1, size), k._array.dtype)
        k, v = cat([k, wrap(none)], 1), cat([v, wrap(none.copy())], 1)
        attn_mask, key_padding_mask = padded(attn_mask), padded(key_padding_mask)
    sources = k.shape[1]
    if key_padding_mask is not None:
        hidden = merged_padding(key_padding_mask, samples, num_heads, sources)
        attn_mask = hidden if attn_mask is None else add(attn_mask, hidden)
    dropout_p = dropout_p if training else 0.0
    projection = (out_proj_weight, out_proj_bias)
    if not need_weights:
        return fused_heads(q, k, v, attn_mask, dropout_p, is_causal, (samples, num_heads), projection, batched), None
    if is_causal and attn_mask is None:
        raise AssertionError("FIXME: is_causal not implemented for need_weights")
    scaled = mul(q, sqrt(1.0 / size))
    keys = transpose(k, -2, -1)
    found = softmax(bmm(scaled, keys) if attn_mask is None else baddbmm(attn_mask, scaled, keys), -1)
    if dropout_p > 0.0:
        found = functional_dropout(found, dropout_p)
    answers = reshape_to(transpose(bmm(found, v), 0, 1), (targets * samples, features))
    answers = linear(answers, *projection)
    answers = view_(answers, (targets, samples, answers.shape[1]))
    found = view_(found, (samples, num_heads, targets, sources))
    if average_attn_weights:
        found = mean_dim(found, (1,))
    return (answers, found) if batched else (squeeze_dim(answers, 1), squeeze_dim(found, 0))


def attended_at_once(
    x: Tensor,
    heads: int,
    is_causal: bool,
    weight: Tensor | None,
    bias: Tensor | None,
    out_weight: Tensor,
    out_bias: Tensor | None,
) -> Tensor | None:
    """A tensor's attention to itself where nothing is recorded: what is done below, without a tensor for every view.

    None where that is another function's business.
    """
    arrays = arrays_of(x, weight, bias, out_weight, out_bias)
    if arrays is None or weight is None or bias is None or out_bias is None or not arrays[0].flags.c_contiguous:
        return None
    places, samples, features = arrays[0].shape
    if arrays[1].shape != (3 * features, features) or arrays[2].shape != (3 * features,):
        return None
    if arrays[3].shape != (features, features) or arrays[4].shape != (features,) or not arrays[0].size:
        return None
    found = quiet().run(affine, arrays[0].reshape(places * samples, features), arrays[1], arrays[2])
    found = np.ascontiguousarray(found.reshape(places, samples, 3, features).transpose(2, 0, 1, 3))
    found = found.reshape(3, places, samples, heads, features // heads).transpose(0, 2, 3, 1, 4)
    q, k, v = (without_history(part) for part in found)
    answers = scaled_dot_product_attention(q, k, v, None, 0.0, is_causal)._array
    answers = answers.transpose(2, 0, 1, 3).reshape(places * samples, features)
    return view_(unrecorded(affine, answers, arrays[3], arrays[4]), (places, samples, features))  # type: ignore[no-any-return]


def merged_padding(padding: Tensor, samples: int, num_heads: int, sources: int) -> Tensor:
    """What hides the padding of each sample from all its heads."""
    if padding.shape[0] != samples:
        raise AssertionError(f"Expected key_padded_mask.shape[0] to be {samples}, but got {padding.shape[0]}")
    if padding.shape[1] != sources:
        raise AssertionError(f"Expected key_padded_mask.shape[1] to be {sources}, but got {padding.shape[1]}")
    wide = expand(view_(padding, (samples, 1, 1, sources)), (samples, num_heads, 1, sources))
    return reshape_to(wide, (samples * num_heads, 1, sources))


def fused_heads(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    batch: tuple[int, int],
    projection: tuple[Tensor, Tensor | None],
    batched: bool,
) -> Tensor:
    """The answers of scaled_dot_product_attention, projected."""
    targets, sources, size = q.shape[1], k.shape[1], q.shape[2]
    samples, heads = batch
    if mask is not None:
        rows = mask.shape[1]
        mask = unsqueeze(mask, 0) if mask.shape[0] == 1 and mask.ndim == 3 else view_(mask, (*batch, rows, sources))
    q = view_(q, (*batch, targets, size))
    k, v = (view_(x, (*batch, sources, size)) for x in (k, v))
    answers = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    answers = reshape_to(permute_dims(answers, (2, 0, 1, 3)), (samples * targets, heads * size))
    answers = linear(answers, *projection)
    answers = view_(answers, (targets, samples, answers.shape[1]))
    return answers if batched else squeeze_dim(answers, 1)
