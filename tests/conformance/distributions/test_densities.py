"""log_prob, cdf and icdf, with their gradients."""

import numpy as np
import pytest

from tests.conformance.distributions.families import ALL
from tests.conformance.distributions.sides import Side, agree, drawn, with_gradients

# torch compares its concentration with a float32 zero there, and raises.
SINGLE = [name for name in ALL if name.startswith("GeneralizedPareto")]


def dtype_of(name: str) -> str:
    return "float32" if name in SINGLE else "float64"


def values(name: str, sample_shape: tuple[int, ...] = (5,)) -> np.ndarray:
    return drawn(ALL[name], sample_shape).astype(dtype_of(name)) if name in SINGLE else drawn(ALL[name], sample_shape)


@pytest.mark.parametrize("name", ALL)
def test_log_prob_and_its_gradients_are_torchs(name: str):
    def program(side: Side):
        return with_gradients(side, side.make(ALL[name]).log_prob(side.given(values(name))))

    agree(program, leaves=True, dtype=dtype_of(name))


@pytest.mark.parametrize("name", ALL)
def test_log_prob_is_differentiable_by_the_value(name: str):
    def program(side: Side):
        value = side.given(values(name)).requires_grad_()
        return side.library.autograd.grad(side.make(ALL[name]).log_prob(value).sum(), value)

    agree(program, dtype=dtype_of(name))


@pytest.mark.parametrize("name", ALL)
def test_cdf_is_torchs(name: str):
    agree(lambda side: side.make(ALL[name]).cdf(side.given(values(name))), dtype=dtype_of(name))


@pytest.mark.parametrize("name", ALL)
def test_icdf_is_torchs(name: str):
    shape = values(name).shape
    levels = np.linspace(0.05, 0.95, int(np.prod(shape))).reshape(shape)
    agree(lambda side: side.make(ALL[name]).icdf(side.given(levels)))


@pytest.mark.parametrize("name", ALL)
def test_the_support_holds_what_is_drawn(name: str):
    agree(lambda side: side.make(ALL[name]).support.check(side.given(values(name))))
