"""Upsampling, shuffles, Fold and Unfold, distances."""

import pytest

import pullback
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.Upsample(scale_factor=2)", "x(1, 2, 3)"),
    ("nn.Upsample(size=(5, 4), mode='bilinear')", "x(1, 2, 3, 3)"),
    ("nn.Upsample(scale_factor=(2, 3), mode='bicubic', align_corners=True)", "x(1, 2, 3, 3)"),
    ("nn.Upsample(size=4, mode='linear', align_corners=False)", "x(1, 2, 3)"),
    ("nn.Upsample(scale_factor=2.0, mode='trilinear')", "x(1, 1, 2, 2, 2)"),
    ("nn.Upsample(scale_factor=1.5, recompute_scale_factor=True, mode='nearest-exact')", "x(1, 2, 4, 3)"),
    ("nn.UpsamplingNearest2d(scale_factor=2)", "x(1, 2, 3, 3)"),
    ("nn.UpsamplingBilinear2d(size=(5, 6))", "x(1, 2, 3, 3)"),
    ("nn.PixelShuffle(2)", "x(1, 8, 2, 3)"),
    ("nn.PixelUnshuffle(2)", "x(1, 2, 4, 6)"),
    ("nn.ChannelShuffle(2)", "x(1, 4, 2, 2)"),
    ("nn.Unfold((2, 3))", "x(2, 2, 4, 5)"),
    ("nn.Unfold(2, dilation=2, padding=1, stride=2)", "x(1, 2, 5, 5)"),
    ("nn.Fold((4, 5), (2, 2))", "x(1, 12, 12)"),
    ("nn.Fold((5, 5), 2, dilation=2, padding=1, stride=2)", "x(1, 8, 9)"),
    ("nn.CosineSimilarity()", "x(3, 4), x(3, 4)"),
    ("nn.CosineSimilarity(dim=0, eps=0.1)", "x(3, 4), x(3, 4)"),
    ("nn.PairwiseDistance()", "x(3, 4), x(3, 4)"),
    ("nn.PairwiseDistance(p=1, keepdim=True)", "x(3, 4), x(3, 4)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_the_layer_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_layer_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)
