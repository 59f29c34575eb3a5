"""Padding."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

SHAPES = {1: "x(2, 3, 5)", 2: "x(2, 3, 4, 5)", 3: "x(1, 2, 4, 3, 5)"}
LAYERS = [
    (f"nn.{kind}Pad{n}d({padding}{value})", SHAPES[n])
    for kind, value in (("Constant", ", 3.5"), ("Zero", ""), ("Reflection", ""), ("Replication", ""), ("Circular", ""))
    for n in (1, 2, 3)
    for padding in (1, tuple(range(1, 2 * n + 1))[: 2 * n] if n == 1 else (1, 2, 0, 1, 2, 1)[: 2 * n])
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_padding_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_padding_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_circular_padding_wants_a_known_number_of_dimensions(torch):
    nn = torch.nn
    one = torch.ones(1)
    return [
        attempt(lambda layer=layer: layer(one))
        for layer in (nn.CircularPad1d(1), nn.CircularPad2d(1), nn.CircularPad3d(1))
    ]
