"""Half precision: the functions of neural networks take and refuse float16 and bfloat16 as torch does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as TORCH

import pullback

CALLS = """
F.layer_norm(x(3, 4), (4,), x(4), x(4))
F.group_norm(x(2, 4, 3), 2, x(4), x(4))
F.batch_norm(x(5, 3), None, None, x(3), x(3), True)
F.batch_norm(x(5, 3), x(3).detach(), x(3).detach().abs() + 1, x(3), x(3))
F.instance_norm(x(2, 3, 4))
F.rms_norm(x(3, 4), (4,), x(4))
F.normalize(x(3, 4))
F.dropout(x(3, 4), 0.3)
F.alpha_dropout(x(3, 4), 0.5, True)
F.embedding(torch.tensor([1, 2, 1]), x(4, 3))
F.embedding_bag(torch.tensor([[1, 2, 1]]), x(4, 3))
F.embedding_bag(torch.tensor([[1, 2, 1]]), x(4, 3), mode='max')
F.cross_entropy(x(3, 4), torch.tensor([1, 2, 0]))
F.cross_entropy(x(3, 4), torch.tensor([1, 2, 0]), label_smoothing=0.1)
F.binary_cross_entropy(x(3, 4).sigmoid(), x(3, 4).sigmoid().detach())
F.binary_cross_entropy_with_logits(x(3, 4), x(3, 4))
F.mse_loss(x(3, 4), x(3, 4) * 2)
F.smooth_l1_loss(x(3, 4), x(3, 4) * 2)
F.huber_loss(x(3, 4), x(3, 4) * 2)
F.kl_div(x(3, 4), x(3, 4).exp(), reduction='sum')
F.gaussian_nll_loss(x(3, 4), x(3, 4) * 2, x(3, 4).abs() + 1)
F.multi_margin_loss(x(3, 4), torch.tensor([1, 2, 0]))
F.multilabel_margin_loss(x(3, 4), torch.tensor([[1, 2, -1, 0]] * 3))
F.multilabel_soft_margin_loss(x(3, 4), x(3, 4))
F.cosine_similarity(x(3, 4), x(3, 4) * 2)
F.pairwise_distance(x(3, 4), x(3, 4) * 2)
F.pdist(x(3, 4))
F.ctc_loss(x(5, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 3]]), (5, 5), (2, 2))
F.scaled_dot_product_attention(x(1, 2, 3, 8), x(1, 2, 3, 8), x(1, 2, 3, 8))
F.scaled_dot_product_attention(x(2, 3, 8), x(2, 3, 8), x(2, 3, 8))
F.rrelu(x(3, 4))
F.rrelu(x(3, 4), training=True)
F.bilinear(x(3, 4), x(3, 2), x(5, 4, 2), x(5))
F.gumbel_softmax(x(3, 4))
torch.gru(x(5, 2, 6), x(1, 2, 4), [x(12, 6), x(12, 4), x(12), x(12)], True, 1, 0.0, True, False, False)[0]
"""


def outcome(torch: Any, call: str, dtype: str) -> Any:
    """The result and the gradients of a call on fixed numbers of half precision, or its error."""
    numbers, leaves, kind = np.random.default_rng(0), [], getattr(torch, dtype)

    def x(*shape: int) -> Any:
        leaves.append(torch.tensor(numbers.standard_normal(shape), dtype=torch.float32).to(kind).requires_grad_())
        return leaves[-1]

    torch.manual_seed(0)
    try:
        out = eval(call, {"torch": torch, "F": torch.nn.functional, "x": x})
        parts = [out, *torch.autograd.grad(out.float().sum(), leaves, allow_unused=True)]
    except NotImplementedError as error:
        return str(error)
    return [None if part is None else (str(part.dtype), part.detach().float().numpy()) for part in parts]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.006), ("bfloat16", 0.03)])
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_half_precision_is_computed_or_refused_as_torch_does(call: str, dtype: str, tolerance: float) -> None:
    expected, actual = outcome(TORCH, call, dtype), outcome(pullback, call, dtype)
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
        return
    for wanted, got in zip(expected, actual, strict=True):
        assert (wanted is None) == (got is None)
        if wanted is not None:
            assert got[0] == wanted[0]
            assert np.allclose(got[1], wanted[1], rtol=tolerance, atol=tolerance, equal_nan=True)
