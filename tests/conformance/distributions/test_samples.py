"""The same seed draws the same numbers, and their gradients are the same."""

import numpy as np
import pytest

from tests.conformance.distributions.families import ALL, GAMMA, WISHART
from tests.conformance.distributions.sides import Side, agree, array, both, outcome, seeded, with_gradients

# What is drawn without a function whose last digit depends on the library.
EXACT = [
    "Normal of tensors",
    "Uniform of tensors",
    "Gamma of tensors",
    "Chi2 of tensors",
    "Dirichlet of tensors",
    "Bernoulli of tensors",
    "Binomial of tensors",
    "NegativeBinomial of tensors",
    "Poisson of tensors",
    "Categorical of weights",
    "OneHotCategorical of a vector",
    "Multinomial of a vector",
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ALL)
def test_samples_follow_from_the_seed(name: str, dtype: str):
    agree(lambda side: seeded(side, lambda: side.make(ALL[name]).sample((3, 2))), dtype=dtype)


@pytest.mark.parametrize("name", EXACT)
def test_samples_are_equal_bit_for_bit(name: str):
    theirs, ours = (array(seeded(side, lambda side=side: side.make(ALL[name]).sample((50,)))) for side in both())
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ALL)
def test_one_event_has_the_shape_of_the_batch(name: str):
    agree(lambda side: seeded(side, lambda: side.make(ALL[name]).sample()))


@pytest.mark.parametrize("name", [name for name in ALL if name not in WISHART])
def test_draws_carry_gradients_to_the_parameters(name: str):
    agree(lambda side: with_gradients(side, seeded(side, lambda: side.make(ALL[name]).rsample((4,)))), leaves=True)


@pytest.mark.parametrize("name", ALL)
def test_samples_carry_no_gradients(name: str):
    agree(lambda side: seeded(side, lambda: side.make(ALL[name]).sample((2,)).requires_grad), leaves=True)


@pytest.mark.parametrize("name", GAMMA)
def test_the_nodes_of_draws_have_torchs_names(name: str):
    def program(side: Side):
        draw, nodes = side.make(ALL[name]).rsample(), []
        node = draw.grad_fn
        while node is not None:
            nodes.append(node.name())
            node = node.next_functions[0][0] if node.next_functions else None
        return nodes

    agree(program, leaves=True)


def test_the_draws_of_wishart_have_the_gradient_of_their_differences():
    # torch's own backward fails here: it changes the mask that its graph has saved.
    side, step = both(leaves=True)[1], 1e-6

    def total(moved: float):
        return (seeded(side, lambda: side.d.Wishart(5.0, base + moved * bump).rsample((3,))) * weights).sum()

    library = side.library
    base = side.t([[2.0, 0.6], [0.6, 1.5]])
    bump = library.tensor([[0.5, 0.2], [0.2, 1.0]], dtype=side.dtype)
    weights = library.arange(12, dtype=side.dtype).reshape(3, 2, 2)

    def program():
        (grad,) = library.autograd.grad(total(0.0), base)
        difference = (total(step) - total(-step)).detach() / (2 * step)
        return float((grad * bump).sum()), float(difference)

    (slope, difference), said = outcome(program)
    assert said == ["Singular sample detected."] * 3
    assert slope == pytest.approx(difference, rel=1e-5)


def test_sample_n_warns_and_draws():
    agree(lambda side: seeded(side, lambda: side.d.Normal(side.t([0.0, 1.0]), 1.0).sample_n(3)))
