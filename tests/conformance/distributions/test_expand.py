"""expand: the same distributions in a larger batch."""

import pytest

from tests.conformance.distributions.families import ALL
from tests.conformance.distributions.sides import Side, agree, drawn, seeded


def expanded(side: Side, name: str):
    d = side.make(ALL[name])
    return d.expand((3, *d.batch_shape))


@pytest.mark.parametrize("name", ALL)
def test_an_expanded_distribution_draws_what_torchs_draws(name: str):
    agree(lambda side: seeded(side, lambda: expanded(side, name).sample((2,))))


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("GeneralizedPareto")])
def test_an_expanded_distribution_has_torchs_densities(name: str):
    values = drawn(ALL[name], (2, 3))
    agree(lambda side: expanded(side, name).log_prob(side.given(values)))


@pytest.mark.parametrize("name", ALL)
def test_an_expanded_distribution_says_what_torchs_says(name: str):
    def program(side: Side):
        d = expanded(side, name)
        return [tuple(d.batch_shape), tuple(d.event_shape), repr(d), type(d).__name__, d._validate_args]

    agree(program)


@pytest.mark.parametrize("name", ALL)
def test_expanding_keeps_that_nothing_is_validated(name: str):
    def program(side: Side):
        d = side.make(ALL[name])
        d._validate_args = False
        return d.expand((3, *d.batch_shape))._validate_args

    agree(program)


def test_a_subclass_with_its_own_init_must_define_expand():
    def program(side: Side):
        class Standard(side.d.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        return Standard().expand((2,))

    agree(program)


def test_a_subclass_without_its_own_init_expands():
    def program(side: Side):
        class Mine(side.d.Normal):
            pass

        return type(Mine(side.t([1.0]), 1.0).expand((2, 1))).__name__

    agree(program)


def test_a_distribution_that_defines_nothing_does_not_expand():
    agree(lambda side: side.d.Distribution(validate_args=False).expand((2,)))
