"""Attention: the fused op and the composed form, each where torch uses it, with masks, groups of heads and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree

S = "torch.nn.functional.scaled_dot_product_attention"
QKV = "x(2, 3, 4, 8), x(2, 3, 5, 8).sin(), x(2, 3, 5, 8).cos()"
FLAT = "x(3, 4, 8), x(3, 5, 8).sin(), x(3, 5, 8).cos()"
MASK = "torch.tensor([[1, 1, 0, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]])"
EXPRESSIONS = f"""
{S}({QKV})
{S}({QKV}, is_causal=True)
{S}({QKV}, scale=0.3)
{S}({QKV}, scale=-0.3)
{S}({QKV}, {MASK}.bool())
{S}({QKV}, {MASK}.double())
{S}({QKV}, {MASK}.float())
{S}({QKV}, {MASK}.double()[None, None])
{S}({QKV}, {MASK}.bool(), 0.0, True)
{S}({QKV}, x(4, 5))
{S}({QKV}, x(3, 4, 5, grad=False))
{S}(x(2, 3, 4, 8), x(1, 3, 5, 8), x(1, 3, 5, 8))
{S}(x(2, 3, 4, 8), x(2, 3, 5, 8), x(2, 3, 5, 6))
{S}(x(2, 3, 4, 8).transpose(1, 2), x(2, 3, 4, 8).transpose(1, 2), x(2, 3, 4, 8).transpose(1, 2))
{S}(x(2, 3, 4, 8).transpose(2, 3), x(2, 3, 4, 8).transpose(2, 3), x(2, 3, 4, 8).transpose(2, 3))
{S}(x(2, 1, 4, 8).expand(2, 3, 4, 8), x(2, 3, 5, 8).sin(), x(2, 3, 5, 8).cos())
{S}(x(1, 3, 4, 8).expand(2, 3, 4, 8), x(2, 3, 5, 8).sin(), x(2, 3, 5, 8).cos(), {MASK}.bool())
{S}(x(2, 3, 1, 8).expand(2, 3, 4, 8), x(1, 3, 5, 8).expand(2, 3, 5, 8), x(2, 1, 5, 8).expand(2, 3, 5, 8))
{S}({FLAT})
{S}({FLAT}, is_causal=True)
{S}({FLAT}, {MASK}.bool(), scale=-0.3)
{S}(x(4, 8), x(5, 8), x(5, 8))
{S}(x(2, 6, 4, 8), x(2, 2, 5, 8), x(2, 2, 5, 8), enable_gqa=True)
{S}(x(6, 4, 8), x(2, 5, 8), x(2, 5, 8), enable_gqa=True)
{S}(x(2, 3, 0, 8), x(2, 3, 5, 8), x(2, 3, 5, 8))
{S}(x(2, 3, 4, 8), x(2, 3, 0, 8), x(2, 3, 0, 8))
{S}({QKV}, dropout_p=1.0)
"""
REFUSED = f"""
{S}(x(2, 3, 4, 8), x(2, 3, 5, 8, dtype=torch.float32), x(2, 3, 5, 8))
{S}(x(8), x(5, 8), x(5, 8))
{S}({QKV}, torch.ones(4, 5, dtype=torch.long))
{S}({QKV}, torch.ones(4, 6).bool())
{S}({FLAT}, {MASK}.bool(), 0.0, True)
{S}({QKV}, dropout_p=2.0)
{S}(x(2, 3, 4, 8), x(2, 3, 5, 6), x(2, 3, 5, 8))
{S}(x(2, 6, 4, 8), x(2, 2, 5, 8), x(2, 2, 5, 8))
{S}(x(2, 5, 4, 8), x(2, 2, 5, 8), x(2, 2, 5, 8), enable_gqa=True)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_attention_is_torchs_in_value_graph_and_gradients(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", REFUSED.strip().splitlines())
def test_attention_that_cannot_be_is_refused_in_torchs_words(expression: str) -> None:
    agree(expression)


@on_both
def test_dropped_attention_draws_torchs_numbers(torch: Any) -> Any:
    torch.manual_seed(5)
    q = torch.arange(48.0).reshape(1, 2, 3, 8).sin().requires_grad_()
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.4)
    return [out, out.grad_fn, torch.autograd.grad(out.sum(), q)]


def test_the_fused_op_has_the_second_derivative_of_the_composed_form() -> None:
    numbers = np.random.default_rng(0).standard_normal((3, 1, 2, 4, 8))

    def second(attention: Any) -> list[np.ndarray]:
        inputs = [pullback.tensor(part, requires_grad=True) for part in numbers]
        first = pullback.autograd.grad((attention(*inputs) ** 2).sum(), inputs, create_graph=True)
        found = pullback.autograd.grad(sum((part**2).sum() for part in first), inputs)
        return [part.numpy() for part in found]

    fused = second(pullback.nn.functional.scaled_dot_product_attention)
    plain = second(lambda q, k, v: (q @ k.mT / 8**0.5).softmax(-1) @ v)
    assert all(np.allclose(a, b) for a, b in zip(fused, plain, strict=True))


MASKS = [
    {},
    {"attn_mask": "bool"},
    {"attn_mask": "heads", "key_padding_mask": "bool"},
    {"key_padding_mask": "float"},
    {"attn_mask": "float", "is_causal": True},
]


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shared", ["query", "key", "none"])
@pytest.mark.parametrize("options", [{}, {"bias": True, "add_zero_attn": True}, {"dropout_p": 0.3}, {"separate": True}])
def test_multi_head_attention_is_torchs(masks: dict, need_weights: bool, shared: str, options: dict) -> None:
    @on_both
    def program(torch: Any) -> Any:
        torch.manual_seed(1)
        made: list[Any] = []

        def x(*shape: int) -> Any:
            numbers = torch.arange(int(np.prod(shape)), dtype=torch.float64).mul(len(made) + 1.3).sin()
            made.append(numbers.reshape(shape).requires_grad_())
            return made[-1]

        targets, sources = 4, 4 if shared == "query" else 5
        query = x(targets, 2, 6)
        key = query if shared == "query" else x(sources, 2, 6)
        value = key if shared != "none" else x(sources, 2, 6)
        numbers = torch.arange(6 * targets * sources, dtype=torch.float64).reshape(6, targets, sources).cos()
        kinds = {
            "attn_mask": {"bool": numbers[0] > 0.8, "float": numbers[0], "heads": numbers > 0.9},
            "key_padding_mask": {"bool": numbers[0, :2] > 0.9, "float": numbers[0, :2]},
        }
        given = {name: kinds[name][kind] if name in kinds else kind for name, kind in masks.items()}
        separate = options.get("separate", False)
        if separate:
            given |= {f"{name}_proj_weight": x(6, 6) for name in "qkv"} | {"use_separate_proj_weight": True}
        bias = options.get("bias", False)
        out, weights = torch.nn.functional.multi_head_attention_forward(
            query, key, value, 6, 3, None if separate else x(18, 6), x(18), x(1, 1, 6) if bias else None,
            x(1, 1, 6) if bias else None, options.get("add_zero_attn", False), options.get("dropout_p", 0.0), x(6, 6),
            x(6), need_weights=need_weights, **given,
        )  # fmt: skip
        return [out, weights, torch.autograd.grad(out.sum(), made[:1])]

    program()


@pytest.mark.parametrize(
    ("shapes", "masks"),
    [
        ([(4, 6), (5, 6), (5, 6)], {}),
        ([(4, 6), (5, 6), (5, 6)], {"attn_mask": (3, 4, 5), "key_padding_mask": (5,)}),
        ([(4,), (5, 6), (5, 6)], {}),
        ([(4, 2, 6), (5, 6), (5, 6)], {}),
        ([(4, 6), (5, 2, 6), (5, 6)], {}),
        ([(4, 2, 6), (5, 2, 6), (5, 2, 6)], {"attn_mask": (5, 5)}),
        ([(4, 2, 6), (5, 2, 6), (5, 2, 6)], {"attn_mask": (5, 4, 5)}),
        ([(4, 2, 6), (5, 2, 6), (5, 2, 6)], {"attn_mask": (5,)}),
        ([(4, 2, 6), (5, 2, 6), (5, 2, 6)], {"key_padding_mask": (5,)}),
        ([(4, 6), (5, 6), (5, 6)], {"key_padding_mask": (2, 5)}),
        ([(4, 6), (5, 6), (5, 6)], {"attn_mask": (2, 4, 5)}),
        ([(4, 2, 6), (5, 2, 6), (4, 2, 6)], {}),
        ([(4, 2, 8), (5, 2, 8), (5, 2, 8)], {}),
    ],
)
def test_multi_head_attention_takes_and_refuses_torchs_shapes(shapes: list, masks: dict) -> None:
    @on_both
    def program(torch: Any) -> Any:
        query, key, value = (torch.ones(shape) for shape in shapes)
        given = {name: torch.zeros(shape) for name, shape in masks.items()}
        return torch.nn.functional.multi_head_attention_forward(
            query, key, value, 6, 3, torch.ones(18, 6), None, None, None, False, 0.0, torch.ones(6, 6), None, **given
        )

    program()
