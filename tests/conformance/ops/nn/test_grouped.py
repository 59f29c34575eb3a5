"""grouped_mm: products of matrices that lie side by side in larger ones."""

from __future__ import annotations

import pytest

import pullback
from tests.conformance.ops.expressions import agree

G = "torch.nn.functional.grouped_mm"
F32 = "dtype=torch.float32"
OFFSETS = "offs=torch.tensor([4, 8], dtype=torch.int32)"
EXPRESSIONS = f"""
{G}(x(2, 3, 4, {F32}), x(2, 4, 8, {F32}))
{G}(x(8, 4, {F32}), x(2, 4, 8, {F32}), {OFFSETS})
{G}(x(2, 5, 4, {F32}), x(4, 8, {F32}), {OFFSETS})
{G}(x(5, 8, {F32}), x(8, 4, {F32}), {OFFSETS})
{G}(x(2, 3, 4), x(2, 4, 8))
{G}(x(8, 4, {F32}), x(2, 4, 8, {F32}))
{G}(x(2, 3, 4, {F32}), x(2, 4, 8, {F32}), {OFFSETS})
{G}(x(8, 4, {F32}), x(2, 4, 8, {F32}), offs=torch.tensor([4, 8]))
{G}(x(2, 3, 4, {F32}), x(2, 8, 8, {F32}))
{G}(x(2, 3, 4, {F32}), x(2, 4, 8, {F32}), bias=x(8))
{G}(x(2, 3, 4, {F32}), x(2, 4, 8, {F32}), out_dtype=torch.float16)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_a_grouped_product_is_torchs(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("name", ["scaled_mm", "scaled_grouped_mm"])
def test_products_of_8_bit_floats_say_what_is_missing(name: str) -> None:
    with pytest.raises(NotImplementedError, match="8-bit floats"):
        getattr(pullback.nn.functional, name)(pullback.ones(2, 2), pullback.ones(2, 2))
