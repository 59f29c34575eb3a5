"""What a distribution says of itself: moments, entropy, shapes, support, its text."""

import pytest

from tests.conformance.distributions.families import ALL
from tests.conformance.distributions.sides import Side, agree, with_gradients


@pytest.mark.parametrize("fact", ["mean", "mode", "variance", "stddev"])
@pytest.mark.parametrize("name", ALL)
def test_moments_and_their_gradients_are_torchs(name: str, fact: str):
    agree(lambda side: with_gradients(side, getattr(side.make(ALL[name]), fact)), leaves=True)


@pytest.mark.parametrize("name", ALL)
def test_the_shapes_and_flags_are_torchs(name: str):
    def program(side: Side):
        d = side.make(ALL[name])
        return [tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample, d.has_enumerate_support]

    agree(program)


@pytest.mark.parametrize("fact", ["entropy", "perplexity"])
@pytest.mark.parametrize("name", ALL)
def test_the_entropy_and_its_gradients_are_torchs(name: str, fact: str):
    agree(lambda side: with_gradients(side, getattr(side.make(ALL[name]), fact)()), leaves=True)


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_enumerate_support_is_torchs(name: str, expand: bool):
    agree(lambda side: side.make(ALL[name]).enumerate_support(expand))


@pytest.mark.parametrize("name", ALL)
def test_the_text_is_torchs(name: str):
    agree(lambda side: repr(side.make(ALL[name])))


@pytest.mark.parametrize("name", ALL)
def test_the_text_of_the_support_is_torchs(name: str):
    agree(lambda side: repr(side.make(ALL[name]).support))


@pytest.mark.parametrize("name", ALL)
def test_the_support_of_the_class_says_what_is_known_without_parameters(name: str):
    def program(side: Side):
        support = type(side.make(ALL[name])).support
        answers = []
        for fact in ("is_discrete", "event_dim"):
            try:
                answers.append(getattr(support, fact))
            except NotImplementedError as error:
                answers.append(str(error))
        return answers

    agree(program)
