"""Activations."""

import pytest

import pullback
from tests.conformance.both import on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    *[(f"nn.{name}()", "x(3, 4)") for name in (
        "Sigmoid", "Tanh", "LogSigmoid", "Softsign", "Tanhshrink", "ReLU", "SiLU", "Mish", "SELU", "Hardsigmoid",
        "Hardswish", "RReLU", "Hardtanh", "ReLU6", "ELU", "CELU", "LeakyReLU", "GELU", "Hardshrink", "Softshrink",
        "Softplus", "PReLU", "GLU",
    )],
    ("nn.Threshold(0.1, 20)", "x(3, 4)"),
    ("nn.RReLU(0.1, 0.3)", "x(3, 4)"),
    ("nn.Hardtanh(-2.0, 0.5)", "x(3, 4)"),
    ("nn.ELU(2.0)", "x(3, 4)"),
    ("nn.CELU(alpha=0.5)", "x(3, 4)"),
    ("nn.LeakyReLU(0.2)", "x(3, 4)"),
    ("nn.GELU('tanh')", "x(3, 4)"),
    ("nn.Hardshrink(0.25)", "x(3, 4)"),
    ("nn.Softshrink(0.25)", "x(3, 4)"),
    ("nn.Softplus(2.0, 1.0)", "x(3, 4)"),
    ("nn.PReLU(4, 0.1)", "x(3, 4)"),
    ("nn.GLU(dim=0)", "x(4, 3)"),
    ("nn.Softmin(dim=1)", "x(3, 4)"),
    ("nn.Softmax(dim=0)", "x(3, 4)"),
    ("nn.LogSoftmax(dim=-1)", "x(3, 4)"),
    ("nn.Softmax2d()", "x(2, 3, 2, 2)"),
]  # fmt: skip

IN_PLACE = (
    "ReLU",
    "SiLU",
    "Mish",
    "SELU",
    "Hardsigmoid",
    "Hardswish",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "ELU",
    "CELU",
    "LeakyReLU",
)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_an_activation_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_activation_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_activation_can_overwrite_its_input(name):
    same_layer(f"nn.{name}(inplace=True)", "x(3, 4) * 1")


def test_rrelu_has_one_slope_in_evaluation():
    same_layer("nn.RReLU()", "x(3, 4)", train=False)


@on_both
def test_bounds_in_the_wrong_order_are_refused(torch):
    torch.nn.Hardtanh(1.0, -1.0)


@on_both
def test_old_names_of_bounds_are_accepted_with_a_warning(torch):
    return repr(torch.nn.Hardtanh(min_value=-2.0, max_value=2.0))


@on_both
def test_a_softmax_of_channels_needs_images(torch):
    torch.nn.Softmax2d()(torch.ones(2, 2))


@on_both
def test_a_softmax_without_a_dimension_warns(torch):
    return torch.nn.Softmax()(torch.ones(2, 2))
