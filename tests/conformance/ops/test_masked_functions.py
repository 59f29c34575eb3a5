"""torch.masked: reductions and normalizations under a mask."""

import pytest

import pullback
from tests.conformance.ops.expressions import agree

M = "mask=torch.tensor([[True, False, True], [False, False, True]])"
REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "logsumexp", "norm", "var", "std"]
EXPRESSIONS = [
    *[f"torch.masked.{name}(x(2, 3), {M})" for name in REDUCTIONS],
    *[f"torch.masked.{name}(x(2, 3), dim=1, keepdim=True, {M})" for name in REDUCTIONS],
    *[f"torch.masked.{name}(x(2, 3), dim=0)" for name in REDUCTIONS],
    *[f"torch.masked.{name}(x(2, 3), 1, {M})" for name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin")],
    f"torch.masked.argmax(x(2, 3), 1, {M})", f"torch.masked.argmin(x(2, 3), {M})",
    f"torch.masked.median(x(2, 3), 1, {M})", f"torch.masked.median(torch.arange(6).reshape(2, 3), 0, {M})",
    f"torch.masked.normalize(x(2, 3), 2.0, 1, {M})", f"torch.masked.norm(x(2, 3), float('-inf'), 1, {M})",
    "torch.masked.logaddexp(x(3), x(3) + 1, input_mask=torch.tensor([True, False, True]))",
    f"torch.masked.sum(torch.ones(2, 3).int(), {M})", "torch.masked.sum(x(2, 3), mask=torch.tensor([1, 0, 1]))",
    f"torch.masked.var(x(2, 3), 1, correction=0, {M})", f"torch.masked.var(x(2, 3), 1, False, {M})",
    f"torch.masked.var(x(2, 3, dtype=c128), 1, {M})", f"torch.masked.mean(x(2, 3), dtype=torch.float32, {M})",
    f"torch.masked.sum(x(3), {M})", f"torch.masked.sum(x(2, 3), dim=2, {M})",
    f"torch.masked.sum(x(2, 3), dim=(0, 0), {M})",
    f"torch.masked.mean(torch.ones(2, 3).long(), {M})", f"torch.masked.amax(x(2, 3, dtype=c128), {M})",
    f"torch.masked.var(x(2, 3), 1, True, correction=0, {M})", f"torch.masked.amax(torch.ones(2, 3).long(), 1, {M})",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_means_what_it_means_to_torch(expression):
    agree(expression)


def test_tensors_that_carry_a_mask_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="MaskedTensor is not implemented; pass mask="):
        pullback.masked.masked_tensor(pullback.ones(2), pullback.ones(2).bool())
    assert not pullback.masked.is_masked_tensor(pullback.ones(2))
