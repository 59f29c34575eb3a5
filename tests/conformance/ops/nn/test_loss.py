"""Losses: every reduction, weights, the old arguments and their warnings, and what is refused."""

from __future__ import annotations

import pytest

from tests.conformance.ops.expressions import agree

F = "torch.nn.functional"
CLASSES = "torch.tensor([1, 2, 0])"
SIGNS = "torch.tensor([1.0, -1.0, 1.0], dtype=f64)"
LABELS = "torch.tensor([[1, 2, -1, 0], [3, -1, 0, 0], [0, 1, 2, 3]])"

REDUCED = [
    f"{F}.nll_loss(x(3, 4), {CLASSES}, {{}})",
    f"{F}.nll_loss(x(3, 4), {CLASSES}, torch.arange(4).double(), ignore_index=1, {{}})",
    f"{F}.nll_loss(x(2, 4, 3), torch.tensor([[1, 2, 0], [3, 1, 1]]), {{}})",
    f"{F}.nll_loss(x(1, 4, 2, 2), torch.ones(1, 2, 2, dtype=torch.long), {{}})",
    f"{F}.cross_entropy(x(3, 4), {CLASSES}, {{}})",
    f"{F}.cross_entropy(x(3, 4), {CLASSES}, ignore_index=2, label_smoothing=0.2, {{}})",
    f"{F}.cross_entropy(x(3, 4), {CLASSES}, torch.arange(4).double(), label_smoothing=0.1, {{}})",
    f"{F}.cross_entropy(x(3, 4), x(3, 4), {{}})",
    f"{F}.cross_entropy(x(3, 4), x(3, 4, grad=False).softmax(1), x(4, grad=False), label_smoothing=0.3, {{}})",
    f"{F}.linear_cross_entropy(x(3, 4), x(5, 4), {CLASSES}, linear_bias=x(5), {{}})",
    f"{F}.linear_cross_entropy(x(3, 4), x(5, 2, 4), torch.ones(3, 2, dtype=torch.long), {{}})",
    f"{F}.binary_cross_entropy(x(3, 4).sigmoid(), x(3, 4).sigmoid(), {{}})",
    f"{F}.binary_cross_entropy(x(3, 4).sigmoid(), x(3, 4, grad=False).sigmoid(), x(4, grad=False), {{}})",
    f"{F}.binary_cross_entropy_with_logits(x(3, 4), x(3, 4), x(4, grad=False), pos_weight=x(4, grad=False), {{}})",
    f"{F}.mse_loss(x(3, 4), x(3, 4).sin(), {{}})",
    f"{F}.mse_loss(x(3, 4), x(3, 4).sin(), weight=x(3, 4, grad=False).abs(), {{}})",
    f"{F}.l1_loss(x(3, 4), x(3, 4).sin(), {{}})",
    f"{F}.l1_loss(x(3, 4), x(3, 4).sin(), weight=x(3, 4, grad=False).abs(), {{}})",
    f"{F}.smooth_l1_loss(x(3, 4), x(3, 4).sin(), beta=0.5, {{}})",
    f"{F}.smooth_l1_loss(x(3, 4), x(3, 4).sin(), beta=0.0, {{}})",
    f"{F}.huber_loss(x(3, 4), x(3, 4).sin(), delta=0.4, {{}})",
    f"{F}.huber_loss(x(3, 4), x(3, 4).sin(), weight=x(3, 4, grad=False), {{}})",
    f"{F}.kl_div(x(3, 4), x(3, 4).exp(), {{}})",
    f"{F}.kl_div(x(3, 4), x(3, 4), log_target=True, {{}})",
    f"{F}.poisson_nll_loss(x(3, 4), x(3, 4).abs(), full=True, {{}})",
    f"{F}.poisson_nll_loss(x(3, 4).abs(), x(3, 4).abs(), log_input=False, {{}})",
    f"{F}.gaussian_nll_loss(x(3, 4), x(3, 4).sin(), x(3, 4).abs(), full=True, {{}})",
    f"{F}.gaussian_nll_loss(x(3, 4), x(3, 4).sin(), x(3).abs(), {{}})",
    f"{F}.gaussian_nll_loss(x(3, 4), x(3, 4).sin(), 0.5, {{}})",
    f"{F}.soft_margin_loss(x(3), {SIGNS}, {{}})",
    f"{F}.multi_margin_loss(x(3, 4), {CLASSES}, {{}})",
    f"{F}.multi_margin_loss(x(3, 4), {CLASSES}, 2, 0.5, torch.arange(4).double(), {{}})",
    f"{F}.multi_margin_loss(x(4), torch.tensor(1), {{}})",
    f"{F}.multilabel_margin_loss(x(3, 4), {LABELS}, {{}})",
    f"{F}.multilabel_margin_loss(x(4), {LABELS}[0], {{}})",
    f"{F}.multilabel_soft_margin_loss(x(3, 4), x(3, 4).sigmoid(), {{}})",
    f"{F}.multilabel_soft_margin_loss(x(3, 4), x(3, 4).sigmoid(), x(4), {{}})",
    f"{F}.margin_ranking_loss(x(3), x(3).cos(), {SIGNS}, 0.3, {{}})",
    f"{F}.hinge_embedding_loss(x(3), {SIGNS}, 0.3, {{}})",
    f"{F}.cosine_embedding_loss(x(3, 4), x(3, 4).cos(), {SIGNS}, 0.1, {{}})",
    f"{F}.cosine_embedding_loss(x(4), x(4).cos(), {SIGNS}[1], {{}})",
    f"{F}.triplet_margin_loss(x(3, 4), x(3, 4).cos(), x(3, 4).sin(), p=3, swap=True, {{}})",
    f"{F}.triplet_margin_with_distance_loss(x(3, 4), x(3, 4).cos(), x(3, 4).sin(), swap=True, {{}})",
]
CODED = """
torch.kl_div(x(3, 4), x(3, 4).exp())
torch.kl_div(x(3, 4), x(3, 4), reduction=2, log_target=True)
torch.binary_cross_entropy_with_logits(x(3, 4), x(3, 4))
torch.cosine_embedding_loss(x(3, 4), x(3, 4).cos(), torch.ones(3), 0.1, 2)
torch.hinge_embedding_loss(x(3), torch.ones(3), reduction=1)
torch.margin_ranking_loss(x(3), x(3).cos(), torch.ones(3), 0.1)
torch.triplet_margin_loss(x(3, 4), x(3, 4).cos(), x(3, 4).sin())
torch.poisson_nll_loss(x(3, 4), x(3, 4).abs(), True, False, 1e-8, 1)
"""
LEGACY = ["size_average=False", "reduce=False", "size_average=True, reduce=True", "reduction='elementwise_mean'"]
REFUSED = f"""
{F}.nll_loss(x(3, 4), {CLASSES} + 9)
{F}.nll_loss(x(3, 4), {CLASSES}.double())
{F}.nll_loss(x(3, 4), {CLASSES}[:2])
{F}.nll_loss(x(4), {CLASSES})
{F}.nll_loss(x(3, 4), {CLASSES}, x(3, grad=False))
{F}.nll_loss(x(3, 4), {CLASSES}, torch.ones(4))
{F}.nll_loss(x(3, 4, 1), {CLASSES}[:, None, None])
{F}.nll_loss(x(3, 4), {CLASSES}, reduction='foo')
{F}.cross_entropy(x(3, 4), {CLASSES}, label_smoothing=2.0)
{F}.cross_entropy(x(3, 4), x(3, 4), ignore_index=1)
{F}.cross_entropy(torch.ones(3, 4, dtype=torch.long), {CLASSES})
{F}.cross_entropy(torch.tensor(1.0), torch.tensor(0))
{F}.linear_cross_entropy(x(3, 4), x(5, 3), {CLASSES})
{F}.linear_cross_entropy(x(3, 4), x(5), {CLASSES})
{F}.linear_cross_entropy(x(1, 3, 4), x(5, 4), {CLASSES})
{F}.linear_cross_entropy(x(3, 4), x(5, 4), {CLASSES}, linear_bias=x(4))
{F}.linear_cross_entropy(x(3, 4), x(5, 4), x(3, 5), ignore_index=1)
{F}.linear_cross_entropy(x(4), x(5, 2, 4), {CLASSES})
{F}.binary_cross_entropy(x(3, 4), x(3, 4))
{F}.binary_cross_entropy(x(3, 4).sigmoid(), x(4).sigmoid())
{F}.binary_cross_entropy(x(3, 4).sigmoid(), torch.ones(3, 4))
{F}.binary_cross_entropy_with_logits(x(3, 4), x(4))
{F}.binary_cross_entropy_with_logits(x(3, 4), torch.ones(3, 4, dtype=torch.long))
{F}.binary_cross_entropy_with_logits(x(3, 4), x(3, 4), weight=x(3))
{F}.mse_loss(x(3, 4), x(4))
{F}.mse_loss(x(3, 4), x(3, 4), weight=x(4))
{F}.mse_loss(x(3, 4), x(3, 4), weight=x(3, 4), reduction='foo')
{F}.mse_loss(x(3, 4), x(3, 4), reduction='foo')
{F}.huber_loss(x(3, 4), x(3, 4), delta=0.0)
{F}.huber_loss(x(3, 4), x(3, 4), weight=x(4))
{F}.smooth_l1_loss(x(3, 4), x(3, 4), beta=-1.0)
{F}.kl_div(x(3, 4), x(3, 4), reduction='foo')
{F}.poisson_nll_loss(x(3, 4), x(3, 4), reduction='foo')
{F}.gaussian_nll_loss(x(3, 4), x(3, 4), -x(3, 4).abs())
{F}.gaussian_nll_loss(x(3, 4), x(3, 4), x(3, 2).abs())
{F}.gaussian_nll_loss(x(3, 4), x(3, 4), -0.5)
{F}.gaussian_nll_loss(x(3, 4), x(3, 4), x(3, 4).abs(), reduction='foo')
{F}.soft_margin_loss(x(3, 4), x(3, 2))
{F}.soft_margin_loss(torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.long))
{F}.multi_margin_loss(x(3, 4), {CLASSES}, p=3)
{F}.multi_margin_loss(x(3, 4), {CLASSES} + 3)
{F}.multi_margin_loss(x(3, 4), {CLASSES}[:2])
{F}.multi_margin_loss(x(3, 4), {CLASSES}.int())
{F}.multi_margin_loss(x(1, 3, 4), {CLASSES})
{F}.multi_margin_loss(x(3, 4), {CLASSES}, weight=x(3))
{F}.multi_margin_loss(x(3, 4), {CLASSES}, weight=x(2, 2))
{F}.multi_margin_loss(x(3, 4), {CLASSES}, weight=torch.ones(4))
{F}.multilabel_margin_loss(x(3, 4), {LABELS}[:2])
{F}.multilabel_margin_loss(x(3, 4), {LABELS} + 3)
{F}.multilabel_margin_loss(x(3, 4), {LABELS}.int())
{F}.multilabel_soft_margin_loss(x(3, 4), x(3, 4), reduction='foo')
{F}.margin_ranking_loss(x(3, 4), x(3, 4), {SIGNS})
{F}.cosine_embedding_loss(x(3, 4), x(3, 4), {SIGNS}[0])
{F}.cosine_embedding_loss(x(4), x(4), {SIGNS})
{F}.cosine_embedding_loss(x(3, 4), x(3, 4), x(3, 4))
{F}.triplet_margin_loss(x(3, 4), x(3, 4), x(4))
{F}.triplet_margin_loss(x(3, 4), x(3, 4), x(3, 4), margin=0)
{F}.triplet_margin_with_distance_loss(x(3, 4), x(3, 4), x(4))
{F}.triplet_margin_with_distance_loss(x(3, 4), x(3, 4), x(3, 4), margin=-1)
{F}.triplet_margin_with_distance_loss(x(3, 4), x(3, 4), x(3, 4), reduction='foo')
"""


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("expression", REDUCED)
def test_a_loss_is_torchs_under_every_reduction(expression: str, reduction: str) -> None:
    agree(expression.format(f"reduction='{reduction}'"))


@pytest.mark.parametrize("expression", CODED.strip().splitlines())
def test_the_losses_in_torch_itself_take_the_reduction_as_a_number(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("argument", LEGACY)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "soft_margin_loss"])
def test_the_old_arguments_still_work_and_warn(name: str, argument: str) -> None:
    agree(f"{F}.{name}(x(3, 4), x(3, 4).exp(), {argument})")


@pytest.mark.parametrize("expression", REFUSED.strip().splitlines())
def test_what_has_no_loss_is_refused_in_torchs_words(expression: str) -> None:
    agree(expression)
