"""Pooling."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.MaxPool1d(2)", "x(2, 3, 6)"),
    ("nn.MaxPool1d(3, stride=2, padding=1, dilation=2)", "x(3, 8)"),
    ("nn.MaxPool2d(2)", "x(2, 3, 6, 5)"),
    ("nn.MaxPool2d((2, 3), stride=(1, 2), padding=1, ceil_mode=True)", "x(2, 3, 6, 5)"),
    ("nn.MaxPool2d(2, return_indices=True)", "x(2, 3, 6, 5)"),
    ("nn.MaxPool3d(2)", "x(2, 3, 4, 4, 4)"),
    ("nn.AvgPool1d(2)", "x(2, 3, 6)"),
    ("nn.AvgPool2d(2)", "x(2, 3, 6, 5)"),
    ("nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)", "x(2, 3, 6, 5)"),
    ("nn.AvgPool2d((2, 3), divisor_override=4)", "x(2, 3, 6, 5)"),
    ("nn.AvgPool3d(2, stride=1)", "x(1, 2, 3, 4, 3)"),
    ("nn.LPPool1d(2, 3, stride=2)", "p(2, 3, 8)"),
    ("nn.LPPool2d(1.5, 2)", "p(2, 3, 6, 5)"),
    ("nn.LPPool3d(2, 2)", "p(1, 2, 4, 4, 4)"),
    ("nn.AdaptiveAvgPool1d(3)", "x(2, 3, 8)"),
    ("nn.AdaptiveAvgPool2d((3, None))", "x(2, 3, 6, 5)"),
    ("nn.AdaptiveAvgPool2d(1)", "x(2, 3, 6, 5)"),
    ("nn.AdaptiveAvgPool3d(2)", "x(1, 2, 3, 4, 5)"),
    ("nn.AdaptiveMaxPool1d(3)", "x(2, 3, 8)"),
    ("nn.AdaptiveMaxPool2d((3, 2), return_indices=True)", "x(2, 3, 6, 5)"),
    ("nn.AdaptiveMaxPool3d(2)", "x(1, 2, 3, 4, 5)"),
    ("nn.FractionalMaxPool2d(2, output_size=3)", "x(2, 3, 7, 7)"),
    ("nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)", "x(2, 3, 7, 7)"),
    ("nn.FractionalMaxPool3d(2, output_size=(2, 2, 3))", "x(1, 2, 5, 5, 6)"),
    ("nn.MaxUnpool1d(2)", "x(1, 1, 2), torch.tensor([[[1, 2]]])"),
    ("nn.MaxUnpool2d(2, stride=2)", "x(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, 14]]]])"),
    ("nn.MaxUnpool2d(2)", "x(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, 14]]]]), [5, 5]"),
    ("nn.MaxUnpool3d(2)", "x(1, 1, 1, 1, 2), torch.tensor([[[[[1, 6]]]]])"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_pooling_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_pooling_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_fractional_pooling_needs_one_of_size_and_ratio(torch):
    nn = torch.nn
    return [
        attempt(lambda: nn.FractionalMaxPool2d(2)),
        attempt(lambda: nn.FractionalMaxPool3d(2)),
        attempt(lambda: nn.FractionalMaxPool2d(2, output_size=3, output_ratio=0.5)),
        attempt(lambda: nn.FractionalMaxPool2d(2, output_ratio=1.5)),
        attempt(lambda: nn.FractionalMaxPool3d(0, output_size=3)),
    ]
