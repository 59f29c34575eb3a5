"""Distances, similarities and one_hot."""

from __future__ import annotations

import pytest

from tests.conformance.ops.expressions import agree

F = "torch.nn.functional"
EXPRESSIONS = f"""
{F}.cosine_similarity(x(3, 4), x(3, 4).sin())
{F}.cosine_similarity(x(3, 4), x(4), dim=-1)
{F}.cosine_similarity(x(3, 4), x(3, 4) * 0.0, eps=0.1)
{F}.cosine_similarity(x(3, 4), torch.ones(3, 4, dtype=torch.long))
{F}.cosine_similarity(x(3, 4, dtype=torch.float32), x(3, 4))
{F}.pairwise_distance(x(3, 4), x(3, 4).sin())
{F}.pairwise_distance(x(3, 4), x(4), 1.0, keepdim=True)
{F}.pairwise_distance(x(3, 4), x(3, 4), float('inf'), 0.1)
{F}.pairwise_distance(torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long))
{F}.pdist(x(4, 3))
{F}.pdist(x(4, 3), 0.0)
{F}.pdist(x(4, 3), 0.5)
{F}.pdist(x(4, 3), 1.0)
{F}.pdist(x(4, 3), 3.0)
{F}.pdist(x(4, 3), float('inf'))
{F}.pdist(x(1, 3))
{F}.pdist(x(3, 0))
torch.pdist(x(4, 3) * 0.0)
{F}.one_hot(torch.tensor([[0, 2], [1, 1]]))
{F}.one_hot(torch.tensor(1), 4)
{F}.one_hot(torch.tensor([], dtype=torch.long), 3)
{F}.cosine_similarity(x(3, 4), x(3, 3))
{F}.cosine_similarity(torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.long), 0)
{F}.pairwise_distance(x(3, 4), x(3))
{F}.pdist(x(3))
{F}.pdist(x(3, 4), -1.0)
{F}.pdist(torch.ones(3, 4, dtype=torch.long))
{F}.one_hot(torch.tensor([1, 2]).int())
{F}.one_hot(torch.tensor([1, -2]))
{F}.one_hot(torch.tensor([1, 2]), 2)
{F}.one_hot(torch.tensor([], dtype=torch.long))
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_a_distance_is_torchs(expression: str) -> None:
    agree(expression)
