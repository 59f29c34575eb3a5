"""Dropout."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.Dropout()", "x(4, 5)"),
    ("nn.Dropout(0.1)", "x(4, 5)"),
    ("nn.Dropout(1.0)", "x(4, 5)"),
    ("nn.Dropout(0)", "x(4, 5)"),
    ("nn.Dropout1d()", "x(2, 3, 4)"),
    ("nn.Dropout2d(0.3)", "x(2, 3, 2, 2)"),
    ("nn.Dropout3d()", "x(2, 3, 2, 2, 2)"),
    ("nn.AlphaDropout(0.4)", "x(4, 5)"),
    ("nn.FeatureAlphaDropout()", "x(2, 3, 4)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
@pytest.mark.parametrize("train", [True, False])
def test_a_dropout_is_the_same_as_torchs(layer, inputs, train):
    same_layer(layer, inputs, train)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_dropout_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


def test_dropout_can_overwrite_its_input():
    same_layer("nn.Dropout(0.5, inplace=True)", "x(4, 5) * 1")


@on_both
def test_a_dropout_that_is_no_probability_is_refused(torch):
    return [attempt(lambda p=p: torch.nn.Dropout(p)) for p in (-0.1, 1.5)]
