"""Kullback-Leibler divergences: every pair torch has, and how a pair is found."""

import pytest
import torch

import pullback.distributions
from tests.conformance.distributions.families import COVARIANCE, FACTOR, LOWER, WEIGHTS
from tests.conformance.distributions.sides import Side, agree, with_gradients

# Two of each class, so that both orders of a pair have different parameters.
INSTANCES = {
    "Bernoulli": [lambda d, t: d.Bernoulli(t([0.1, 0.5, 0.0, 1.0])), lambda d, t: d.Bernoulli(t([0.3, 0.0, 0.2, 1.0]))],
    "Beta": [
        lambda d, t: d.Beta(t([0.5, 2.0, 3.0, 1.0]), t([1.5, 2.0, 0.3, 1.0])),
        lambda d, t: d.Beta(t([1.0] * 4), 2.0),
    ],
    "Binomial": [
        lambda d, t: d.Binomial(t([5.0] * 4), t([0.1, 0.2, 0.5, 0.9])),
        lambda d, t: d.Binomial(t([5.0, 4.0, 5.0, 5.0]), 0.4),
    ],
    "Categorical": [
        lambda d, t: d.Categorical(t(WEIGHTS)),
        lambda d, t: d.Categorical(t([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])),
    ],
    "Cauchy": [
        lambda d, t: d.Cauchy(t([0.0, 1.0, 2.0, 3.0]), 2.0),
        lambda d, t: d.Cauchy(t([1.0, 1.0, -2.0, 3.0]), 0.5),
    ],
    "ContinuousBernoulli": [
        lambda d, t: d.ContinuousBernoulli(t([0.1, 0.5, 0.9, 0.3])),
        lambda d, t: d.ContinuousBernoulli(t([0.3] * 4)),
    ],
    "Dirichlet": [lambda d, t: d.Dirichlet(t([[0.5, 2.0], [1.0, 3.0]])), lambda d, t: d.Dirichlet(t([1.0, 4.0]))],
    "Exponential": [lambda d, t: d.Exponential(t([0.5, 1.0, 2.0, 3.0])), lambda d, t: d.Exponential(t([1.5] * 4))],
    "Gamma": [
        lambda d, t: d.Gamma(t([0.5, 1.0, 2.0, 3.0]), 2.0),
        lambda d, t: d.Gamma(t([1.5] * 4), t([0.5, 1.0, 2.0, 3.0])),
    ],
    "Geometric": [lambda d, t: d.Geometric(t([0.1, 0.5, 0.9, 0.3])), lambda d, t: d.Geometric(t([0.3] * 4))],
    "Gumbel": [
        lambda d, t: d.Gumbel(t([0.0, 1.0, 2.0, 3.0]), 2.0),
        lambda d, t: d.Gumbel(t([1.0, 1.0, -2.0, 3.0]), 0.5),
    ],
    "HalfNormal": [lambda d, t: d.HalfNormal(t([0.5, 1.0])), lambda d, t: d.HalfNormal(t([1.5, 0.1]))],
    "Independent": [
        lambda d, t: d.Independent(d.Normal(t([[0.0, 1.0]]), 2.0), 1),
        lambda d, t: d.Independent(d.Normal(t([[1.0, 1.0]]), 0.5), 1),
    ],
    "Laplace": [
        lambda d, t: d.Laplace(t([0.0, 1.0, 2.0, 3.0]), 2.0),
        lambda d, t: d.Laplace(t([1.0, 1.0, -2.0, 3.0]), 0.5),
    ],
    "LowRankMultivariateNormal": [
        lambda d, t: d.LowRankMultivariateNormal(t([0.5, -1.0, 2.0]), t(FACTOR), t([1.0, 0.5, 2.0])),
        lambda d, t: d.LowRankMultivariateNormal(t([[0.5, 0.0, 1.0]] * 2), t(FACTOR) * 2, t([0.3, 0.5, 1.0])),
    ],
    "MultivariateNormal": [
        lambda d, t: d.MultivariateNormal(t([0.5, -1.0, 2.0]), t(COVARIANCE)),
        lambda d, t: d.MultivariateNormal(t([[0.0, 0.0, 1.0]] * 2), scale_tril=t(LOWER)),
    ],
    "Normal": [
        lambda d, t: d.Normal(t([0.0, 1.0, 2.0, 3.0]), 2.0),
        lambda d, t: d.Normal(t([1.0, 1.0, -2.0, 3.0]), 0.5),
    ],
    "OneHotCategorical": [
        lambda d, t: d.OneHotCategorical(t(WEIGHTS)),
        lambda d, t: d.OneHotCategorical(t([0.1, 0.2, 0.7])),
    ],
    "Pareto": [
        lambda d, t: d.Pareto(t([1.0, 0.2, 2.0, 1.0]), t([0.5, 1.5, 2.5, 3.0])),
        lambda d, t: d.Pareto(t([0.5] * 4), 2.0),
    ],
    "Poisson": [lambda d, t: d.Poisson(t([0.5, 1.0, 2.0, 3.0])), lambda d, t: d.Poisson(t([1.5] * 4))],
    "TransformedDistribution": [
        lambda d, t: d.LogNormal(t([0.0, 1.0]), 2.0),
        lambda d, t: d.LogNormal(t([1.0, 1.0]), 0.5),
    ],
    "Uniform": [
        lambda d, t: d.Uniform(t([0.0, -1.0, 0.2, 1.0]), t([1.0, 1.5, 0.7, 3.0])),
        lambda d, t: d.Uniform(t([0.0, -1.0, -3.0, 0.6]), t([1.0, 2.0, 0.5, 4.0])),
    ],
    "ExponentialFamily": [
        lambda d, t: d.Wishart(t([5.0, 6.0]), t(COVARIANCE)),
        lambda d, t: d.Wishart(t([4.0, 7.0]), scale_tril=t(LOWER)),
    ],
}

PAIRS = sorted((p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY)


def test_the_pairs_are_those_of_torch():
    assert sorted((p.__name__, q.__name__) for p, q in pullback.distributions.kl._KL_REGISTRY) == PAIRS


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["there", "back"])
@pytest.mark.parametrize("pair", PAIRS, ids=" to ".join)
def test_the_divergence_and_its_gradients_are_torchs(pair: tuple[str, str], order: tuple[int, int]):
    def program(side: Side):
        p, q = (side.make(INSTANCES[name][which]) for name, which in zip(pair, order, strict=True))
        return with_gradients(side, side.d.kl_divergence(p, q))

    agree(program, leaves=True)


OTHERS = {
    "no pair": lambda d, t: (d.Normal(0.0, 1.0), d.Cauchy(0.0, 1.0)),
    "different exponential families": lambda d, t: (d.Poisson(1.0), d.Normal(0.0, 1.0)),
    "a subclass": lambda d, t: (d.Chi2(t([3.0])), d.Gamma(1.0, t([2.0]))),
    "half normal and normal": lambda d, t: (d.HalfNormal(t([3.0])), d.HalfNormal(t([1.0]))),
    "different transforms": lambda d, t: (d.LogNormal(0.0, 1.0), d.LogisticNormal(0.0, 1.0)),
    "different events": lambda d, t: (
        d.Independent(d.Normal(t([0.0]), 1.0), 0),
        d.Independent(d.Normal(t([0.0]), 1.0), 1),
    ),
    "more trials": lambda d, t: (d.Binomial(3, t([0.5])), d.Binomial(4, t([0.5]))),
    "vectors of different sizes": lambda d, t: (
        d.MultivariateNormal(t([0.0]), t([[1.0]])),
        d.MultivariateNormal(t([0.0, 1.0]), t([[1.0, 0.0], [0.0, 1.0]])),
    ),
    "vectors of different sizes, of low rank": lambda d, t: (
        d.LowRankMultivariateNormal(t([0.0]), t([[1.0]]), t([1.0])),
        d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [0.0]]), t([1.0, 1.0])),
    ),
    "vectors of different sizes, one of low rank": lambda d, t: (
        d.MultivariateNormal(t([0.0]), t([[1.0]])),
        d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [0.0]]), t([1.0, 1.0])),
    ),
    "vectors of different sizes, the other of low rank": lambda d, t: (
        d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [0.0]]), t([1.0, 1.0])),
        d.MultivariateNormal(t([0.0]), t([[1.0]])),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_pairs_answer_as_torchs(name: str):
    agree(lambda side: side.d.kl_divergence(*side.make(OTHERS[name])))


def test_the_nearest_classes_count_and_ambiguity_warns():
    def program(side: Side):
        d = side.d
        kinds = [type(name, (d.Distribution,), {"arg_constraints": {}}) for name in ("A", "B")]
        below = [type(kind.__name__ + "1", (kind,), {}) for kind in kinds]
        d.register_kl(kinds[0], kinds[1])(lambda p, q: "far")
        said = [d.kl_divergence(below[0](), below[1]())]
        d.register_kl(below[0], kinds[1])(lambda p, q: "p near")
        said.append(d.kl_divergence(below[0](), below[1]()))
        d.register_kl(kinds[0], below[1])(lambda p, q: "q near")
        said.append(d.kl_divergence(below[0](), below[1]()))
        for pair in [(kinds[0], kinds[1]), (below[0], kinds[1]), (kinds[0], below[1])]:
            del d.kl._KL_REGISTRY[pair]
        return said

    agree(program)
