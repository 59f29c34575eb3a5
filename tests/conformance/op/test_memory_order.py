"""The order of dimensions in memory: results lie as their operands do, as in torch.

Operands that all lie in one order are compared; of dimensions of size one nobody can tell where they lie.
"""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback

POINTWISE = {
    "neg": lambda t, a, b, c: -a,
    "exp": lambda t, a, b, c: t.exp(a),
    "add": lambda t, a, b, c: a + b,
    "add a number": lambda t, a, b, c: a + 2.0,
    "compare": lambda t, a, b, c: a > b,
    "where": lambda t, a, b, c: t.where(a > 2, b, c),
    "addcmul": lambda t, a, b, c: t.addcmul(a, b, c),
    "lerp": lambda t, a, b, c: t.lerp(a, b, c),
    "clamp": lambda t, a, b, c: t.clamp(a, b, c),
    "relu": lambda t, a, b, c: t.relu(a),
    "gelu": lambda t, a, b, c: t.nn.functional.gelu(a),
    "hardswish": lambda t, a, b, c: t.nn.functional.hardswish(a),
    "softplus": lambda t, a, b, c: t.nn.functional.softplus(a),
    "mse_loss": lambda t, a, b, c: t.nn.functional.mse_loss(a, b, reduction="none"),
    "convert": lambda t, a, b, c: a.double(),
    "mixed dtypes": lambda t, a, b, c: a.double() + b,
    "integers": lambda t, a, b, c: a.long() & b.long(),
    "masked_fill": lambda t, a, b, c: a.masked_fill(b > 3, 0.0),
    "in place": lambda t, a, b, c: a.clone().mul_(b),
    "lgamma": lambda t, a, b, c: t.lgamma(a),
    "complex": lambda t, a, b, c: t.complex(a, b),
}
COPIES = {
    "clone": lambda t, a, b, c: a.clone(),
    "contiguous": lambda t, a, b, c: a.contiguous(),
    "empty_like": lambda t, a, b, c: t.empty_like(a),
    "zeros_like": lambda t, a, b, c: t.zeros_like(a),
    "rand_like": lambda t, a, b, c: t.rand_like(a),
    "flip": lambda t, a, b, c: a.flip(0),
    "roll": lambda t, a, b, c: a.roll(1, 0),
    "sort": lambda t, a, b, c: a.sort(0)[1],
    "argsort": lambda t, a, b, c: a.argsort(-1, descending=True),
    "stack": lambda t, a, b, c: t.stack([a, b]),
    "tril": lambda t, a, b, c: a.tril(),
    "index": lambda t, a, b, c: a[t.tensor([0, 0])],
    "scatter": lambda t, a, b, c: a.scatter(0, t.zeros_like(a).long(), 1.0),
}
REDUCTIONS = {
    "sum": lambda t, a, b, c: a.sum(0),
    "sum of the last, kept": lambda t, a, b, c: a.sum(-1, keepdim=True),
    "amax": lambda t, a, b, c: a.amax(0),
    "mean": lambda t, a, b, c: a.mean(-1),
    "var": lambda t, a, b, c: a.var(0),
    "argmax": lambda t, a, b, c: a.argmax(0),
    "cumsum": lambda t, a, b, c: a.cumsum(0),
    "softmax": lambda t, a, b, c: a.softmax(-1),
    "logsumexp": lambda t, a, b, c: a.logsumexp(0),
    "layer_norm": lambda t, a, b, c: t.nn.functional.layer_norm(a, a.shape[-1:]),
}
EXAMPLES = POINTWISE | COPIES | REDUCTIONS

SHAPES = st.lists(st.integers(2, 4), min_size=2, max_size=4)


def laid_out(library: Any, shape: list[int], order: list[int]) -> Any:
    """A tensor of a shape whose dimensions lie in memory in an order, the outermost first."""
    numbers = library.arange(prod(shape), dtype=library.float32).reshape([shape[d] for d in order])
    return numbers.permute([order.index(d) for d in range(len(shape))])


def strides(tensor: Any) -> list[int]:
    return [step for step, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


@settings(max_examples=12, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", EXAMPLES)
def test_results_lie_in_memory_as_operands_do(name: str, data: Any) -> None:
    shape = data.draw(SHAPES)
    order = data.draw(st.permutations(range(len(shape))))
    found = [EXAMPLES[name](t, *[laid_out(t, shape, order) for _ in range(3)]) for t in (torch, pullback)]
    assert strides(found[1]) == strides(found[0])


@pytest.mark.parametrize("name", POINTWISE)
def test_channels_last_stays(name: str) -> None:
    found = []
    for t in (torch, pullback):
        image = t.ones(2, 3, 4, 5).contiguous(memory_format=t.channels_last)
        found.append(EXAMPLES[name](t, image, image, image).is_contiguous(memory_format=t.channels_last))
    assert found[1] is found[0]
