"""Losses."""

from functools import partial

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

PAIRS = [
    ("L1Loss", "", "x(3, 4), plain(3, 4)"),
    ("MSELoss", "", "x(3, 4), x(3, 4)"),
    ("SmoothL1Loss", "beta=0.5, ", "x(3, 4), plain(3, 4)"),
    ("HuberLoss", "delta=0.5, ", "x(3, 4), plain(3, 4)"),
    ("NLLLoss", "weight=torch.tensor([1.0, 2.0, 3.0]), ignore_index=1, ", "x(4, 3), torch.tensor([0, 1, 2, 2])"),
    ("CrossEntropyLoss", "", "x(4, 3), i(3, 4)"),
    ("CrossEntropyLoss", "label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 3.0]), ", "x(4, 3), i(3, 4)"),
    ("CrossEntropyLoss", "", "x(4, 3), p(4, 3).detach()"),
    ("BCELoss", "weight=torch.tensor([1.0, 2.0, 3.0]), ", "p(4, 3), p(4, 3).detach()"),
    ("BCEWithLogitsLoss", "pos_weight=torch.tensor([1.0, 2.0, 3.0]), ", "x(4, 3), p(4, 3).detach()"),
    ("KLDivLoss", "log_target=True, ", "x(4, 3), plain(4, 3)"),
    ("PoissonNLLLoss", "full=True, ", "x(4, 3), p(4, 3).detach() * 5"),
    ("PoissonNLLLoss", "log_input=False, ", "p(4, 3), p(4, 3).detach()"),
    ("GaussianNLLLoss", "full=True, ", "x(4, 3), plain(4, 3), p(4, 3)"),
    ("CTCLoss", "", "x(6, 2, 4).log_softmax(2), i(3, 2, 3) + 1, torch.tensor([6, 5]), torch.tensor([3, 2])"),
    ("SoftMarginLoss", "", "x(4, 3), plain(4, 3).sign()"),
    ("MultiLabelMarginLoss", "", "x(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])"),
    ("MultiLabelSoftMarginLoss", "weight=torch.tensor([1.0, 2.0, 3.0]), ", "x(4, 3), plain(4, 3).gt(0).float()"),
    ("MultiMarginLoss", "p=2, margin=0.5, ", "x(4, 3), i(3, 4)"),
    ("HingeEmbeddingLoss", "margin=0.7, ", "x(4, 3), plain(4, 3).sign()"),
    ("CosineEmbeddingLoss", "margin=0.2, ", "x(4, 3), x(4, 3), plain(4).sign()"),
    ("MarginRankingLoss", "margin=0.3, ", "x(4), x(4), plain(4).sign()"),
    ("TripletMarginLoss", "margin=0.5, swap=True, ", "x(4, 3), x(4, 3), x(4, 3)"),
    ("TripletMarginWithDistanceLoss", "", "x(4, 3), x(4, 3), x(4, 3)"),
]
LAYERS = [
    (f"nn.{name}({settings}reduction='{reduction}')", inputs)
    for name, settings, inputs in PAIRS
    for reduction in ("mean", "sum", "none")
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_loss_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), [pair for pair in LAYERS if "sum" in pair[0]])
def test_a_copied_or_pickled_loss_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_the_old_arguments_still_say_the_reduction_with_a_warning(torch):
    nn = torch.nn
    losses = [nn.MSELoss(size_average=False), nn.L1Loss(reduce=False), nn.NLLLoss(size_average=True, reduce=True)]
    return [loss.reduction for loss in losses]


@on_both
def test_nll_loss_2d_warns_that_it_is_old(torch):
    return repr(torch.nn.NLLLoss2d(ignore_index=3))


@on_both
def test_classes_of_wrong_shapes_are_refused_with_and_without_gradients(torch):
    shapes = [((3, 2), (3, 1)), ((3, 2), (1, 3)), ((3, 2), (2,)), ((3, 2), ()), ((2,), (2,)), ((3, 2, 4), (3, 1, 4))]

    def computed(loss, scores, classes, wanted):
        return loss(torch.ones(scores, requires_grad=wanted), torch.zeros(classes, dtype=torch.long)).item()

    return [
        attempt(partial(computed, loss, scores, classes, wanted))
        for loss in (torch.nn.functional.cross_entropy, torch.nn.functional.nll_loss)
        for scores, classes in shapes
        for wanted in (False, True)
    ]


@on_both
def test_losses_refuse_settings_that_make_no_sense(torch):
    nn = torch.nn
    return [
        attempt(lambda: nn.HuberLoss(delta="1")),
        attempt(lambda: nn.MultiMarginLoss(p=3)),
        attempt(lambda: nn.MultiMarginLoss(weight=torch.ones(2, 2))),
        attempt(lambda: nn.TripletMarginLoss(margin=0.0)),
        attempt(lambda: nn.TripletMarginWithDistanceLoss(margin=-1)),
        attempt(lambda: nn.MSELoss(reduction="average")(torch.ones(2), torch.ones(2))),
    ]


ADAPTIVE = [
    ("nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6])", "x(5, 8), torch.tensor([0, 2, 4, 9, 7])"),
    (
        "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0, head_bias=True)",
        "x(5, 8), torch.tensor([9, 9, 5, 1, 0])",
    ),
    ("nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4])", "x(8), torch.tensor(7)"),
]


@pytest.mark.parametrize(("layer", "inputs"), ADAPTIVE)
def test_the_adaptive_softmax_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@on_both
def test_the_adaptive_softmax_tells_all_probabilities_and_the_best_class(torch):
    torch.manual_seed(0)
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6])
    inputs = [torch.randn(5, 8), torch.zeros(2, 8), torch.randn(30, 8) * 5]
    return [(layer.log_prob(x), layer.predict(x)) for x in inputs]


@on_both
def test_the_adaptive_softmax_refuses_wrong_cutoffs_and_targets(torch):
    nn = torch.nn
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6])
    wrong = [[], [6, 3], [0, 3], [3, 3], [3, 10], [3.5]]
    return [
        [attempt(lambda c=c: nn.AdaptiveLogSoftmaxWithLoss(8, 10, c)) for c in wrong],
        attempt(lambda: layer(torch.ones(2, 8), torch.tensor([1, 10]))),
        attempt(lambda: layer(torch.ones(2, 8), torch.tensor([1]))),
        attempt(lambda: layer(torch.ones(8), torch.tensor([1] * 8))),
        attempt(lambda: layer(torch.ones(2, 8), torch.tensor(1))),
        attempt(lambda: layer(torch.ones(2, 8), torch.ones(2, 2).long())),
    ]
