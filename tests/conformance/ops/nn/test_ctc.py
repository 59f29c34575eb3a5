"""ctc_loss: the likelihood of labels over all alignments, checked with torch and by adding up every path."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

import pullback
from tests.conformance.ops.expressions import agree

LOSS = "torch.nn.functional.ctc_loss(x(5, 2, 4).log_softmax(2), "
TARGETS = "torch.tensor([[1, 2], [3, 3]])"
EXPRESSIONS = [
    f"{LOSS}{TARGETS}, (5, 5), (2, 2), reduction='none')",
    f"{LOSS}{TARGETS}, (5, 4), (2, 1))",
    f"{LOSS}{TARGETS}, (5, 4), (2, 1), reduction='sum')",
    f"{LOSS}{TARGETS}, torch.tensor([5, 4]), torch.tensor([2, 1]))",
    f"{LOSS}torch.tensor([1, 2, 3]), (5, 3), (2, 1), reduction='none')",
    f"{LOSS}{TARGETS}, (5, 3), (0, 2), reduction='none')",
    f"{LOSS}{TARGETS}, (0, 3), (0, 2), reduction='none')",
    f"{LOSS}{TARGETS}, (2, 2), (2, 2), zero_infinity=True)",
    f"{LOSS}{TARGETS}, (2, 2), (2, 2), reduction='none')",
    f"{LOSS}{TARGETS} - 1, (5, 5), (2, 2), blank=3)",
    "torch.nn.functional.ctc_loss(x(5, 4).log_softmax(1), torch.tensor([1, 2]), (5,), (2,))",
    "torch.nn.functional.ctc_loss(x(5, 4).log_softmax(1), torch.tensor([1, 2]), torch.tensor(5), torch.tensor(2))",
    "torch.ctc_loss(x(5, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 3]]), (5, 5), (2, 2))",
    f"{LOSS}{TARGETS}, (5,), (2, 2))",
    f"{LOSS}{TARGETS}, (5, 5), (2,))",
    f"{LOSS}{TARGETS}, (6, 5), (2, 2))",
    f"{LOSS}{TARGETS}, (5, 5), (3, 2))",
    f"{LOSS}{TARGETS}, (-5, 5), (2, 2))",
    f"{LOSS}{TARGETS}, (5, 5), (-2, 2))",
    f"{LOSS}{TARGETS}, (5, 5), (2, 2), blank=4)",
    f"{LOSS}{TARGETS}.view(-1), (5, 5), (2, 1))",
    f"{LOSS}{TARGETS}[None], (5, 5), (2, 2))",
    f"{LOSS}{TARGETS}, torch.tensor([5.0, 5.0]), torch.tensor([2, 2]))",
    f"{LOSS}{TARGETS}, (5, 5), (2, 2), reduction='foo')",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_loss_is_torchs(expression: str) -> None:
    agree(expression)


def by_every_path(probabilities: Any, labels: list[int]) -> float:
    """Minus the logarithm of the summed probability of every path that reads as the labels."""
    steps, classes = probabilities.shape
    total = 0.0
    for path in product(range(classes), repeat=steps):
        if [label for label, _ in groupby(path) if label] == labels:
            total += float(np.prod(probabilities[np.arange(steps), path]))
    return -float(np.log(total))


@pytest.mark.parametrize("labels", [[1], [1, 2], [2, 2], [1, 2, 1], []])
def test_the_loss_is_the_sum_over_all_alignments(labels: list[int]) -> None:
    logits = np.random.default_rng(len(labels)).standard_normal((5, 3))
    log_probs = pullback.tensor(logits).log_softmax(1)
    targets = pullback.tensor(labels, dtype=pullback.int64)
    loss = pullback.nn.functional.ctc_loss(log_probs, targets, (5,), (len(labels),), reduction="sum")
    assert np.isclose(loss.item(), by_every_path(log_probs.exp().numpy(), labels))
