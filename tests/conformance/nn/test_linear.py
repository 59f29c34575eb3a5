"""Linear, Bilinear, Identity, Flatten and Unflatten."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.Linear(3, 4)", "x(2, 3)"),
    ("nn.Linear(3, 4)", "x(3)"),
    ("nn.Linear(3, 4, bias=False)", "x(2, 5, 3)"),
    ("nn.Linear(3, 4, dtype=torch.float64)", "x(2, 3).double()"),
    ("nn.Bilinear(3, 4, 5)", "x(2, 3), x(2, 4)"),
    ("nn.Bilinear(3, 4, 5, bias=False)", "x(2, 3), x(2, 4)"),
    ("nn.Identity(54, unused=True)", "x(2, 3)"),
    ("nn.LazyLinear(4)", "x(2, 3)"),
    ("nn.LazyLinear(4, bias=False)", "x(2, 3)"),
    ("nn.Flatten()", "x(2, 3, 4)"),
    ("nn.Flatten(0, 1)", "x(2, 3, 4)"),
    ("nn.Unflatten(1, (2, 3))", "x(2, 6)"),
    ("nn.Unflatten(-1, [3, -1])", "x(2, 6)"),
    ("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", "x(2, 3)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_the_layer_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), [pair for pair in LAYERS if "Lazy" not in pair[0]])
def test_a_copied_or_pickled_layer_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_the_sizes_of_unflatten_are_ints(torch):
    nn = torch.nn
    return [attempt(lambda s=sizes: nn.Unflatten(1, s)) for sizes in (3, (2.0, 3), "23", [2, "3"])]


@on_both
def test_a_linear_without_inputs_warns_and_adds_its_bias(torch):
    torch.manual_seed(0)
    return torch.nn.Linear(0, 2)(torch.ones(3, 0))


@on_both
def test_a_linear_refuses_an_input_of_another_width(torch):
    torch.nn.Linear(3, 2)(torch.ones(2, 4))
