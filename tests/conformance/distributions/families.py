"""The distributions the tests run through: each one with parameters that are numbers, and with batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

D = Any
"""torch.distributions or pullback.distributions."""
Leaf = Callable[..., Any]
"""Makes a parameter of numbers; the tests of gradients make it a leaf."""

Make = Callable[[D, Leaf], Any]

LOWER = [[1.5, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.2]]
COVARIANCE = [[2.0, 0.6, 0.1], [0.6, 1.5, -0.2], [0.1, -0.2, 1.0]]
FACTOR = [[0.5, 0.1], [-0.2, 0.4], [0.3, 0.9]]
WEIGHTS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]

NORMAL: dict[str, Make] = {
    "Normal of numbers": lambda d, t: d.Normal(0.5, 2.0),
    "Normal of tensors": lambda d, t: d.Normal(t([0.5, -1.0]), t([1.0, 2.0])),
    "Normal broadcast": lambda d, t: d.Normal(t([[0.5], [-1.0]]), t([1.0, 2.0, 0.1])),
    "LogNormal of numbers": lambda d, t: d.LogNormal(0.1, 0.5),
    "LogNormal of tensors": lambda d, t: d.LogNormal(t([0.5, -1.0]), t([1.0, 0.2])),
    "LogisticNormal of tensors": lambda d, t: d.LogisticNormal(t([[0.5, -1.0], [0.0, 0.3]]), t([1.0, 0.2])),
    "LogisticNormal of numbers": lambda d, t: d.LogisticNormal(0.5, 1.0),
    "HalfNormal of numbers": lambda d, t: d.HalfNormal(2.0),
    "HalfNormal of tensors": lambda d, t: d.HalfNormal(t([1.0, 0.2])),
    "HalfCauchy of numbers": lambda d, t: d.HalfCauchy(2.0),
    "HalfCauchy of tensors": lambda d, t: d.HalfCauchy(t([1.0, 0.2])),
}
LINE: dict[str, Make] = {
    "Cauchy of numbers": lambda d, t: d.Cauchy(0.5, 2.0),
    "Cauchy of tensors": lambda d, t: d.Cauchy(t([0.5, -1.0]), t([1.0, 2.0])),
    "Laplace of numbers": lambda d, t: d.Laplace(0.5, 2.0),
    "Laplace of tensors": lambda d, t: d.Laplace(t([0.5, -1.0]), t([1.0, 2.0])),
    "StudentT of numbers": lambda d, t: d.StudentT(3.5),
    "StudentT of tensors": lambda d, t: d.StudentT(
        t([0.5, 1.5, 2.0, 9.0]), t([0.0, 1.0, 2.0, 0.5]), t([1.0, 2.0, 0.5, 1.0])
    ),
    "Gumbel of numbers": lambda d, t: d.Gumbel(0.5, 2.0),
    "Gumbel of tensors": lambda d, t: d.Gumbel(t([0.5, -1.0]), t([1.0, 2.0])),
    "VonMises of numbers": lambda d, t: d.VonMises(0.5, 2.0),
    "VonMises of tensors": lambda d, t: d.VonMises(t([0.5, -1.0, 3.0]), t([1.0, 20.0, 1e-7])),
}
GAMMA: dict[str, Make] = {
    "Gamma of numbers": lambda d, t: d.Gamma(2.0, 3.0),
    "Gamma of tensors": lambda d, t: d.Gamma(t([0.3, 1.0, 20.0]), t([1.0, 2.0, 0.5])),
    "Chi2 of numbers": lambda d, t: d.Chi2(3.0),
    "Chi2 of tensors": lambda d, t: d.Chi2(t([0.5, 4.0])),
    "Exponential of numbers": lambda d, t: d.Exponential(2.0),
    "Exponential of tensors": lambda d, t: d.Exponential(t([0.5, 4.0])),
    "InverseGamma of numbers": lambda d, t: d.InverseGamma(3.0, 2.0),
    "InverseGamma of tensors": lambda d, t: d.InverseGamma(t([0.5, 1.5, 5.0]), t([1.0, 2.0, 0.5])),
    "FisherSnedecor of numbers": lambda d, t: d.FisherSnedecor(3.0, 5.0),
    "FisherSnedecor of tensors": lambda d, t: d.FisherSnedecor(t([1.5, 4.0, 8.0]), t([1.0, 3.0, 9.0])),
    "Beta of numbers": lambda d, t: d.Beta(2.0, 3.0),
    "Beta of tensors": lambda d, t: d.Beta(t([0.3, 1.0, 20.0]), t([0.9, 2.0, 9.0])),
    "Dirichlet of a vector": lambda d, t: d.Dirichlet(t([0.5, 2.0, 3.0])),
    "Dirichlet of tensors": lambda d, t: d.Dirichlet(t([[0.5, 2.0, 3.0], [0.1, 0.3, 0.9]])),
}
INTERVAL: dict[str, Make] = {
    "Uniform of numbers": lambda d, t: d.Uniform(-1.0, 2.0),
    "Uniform of tensors": lambda d, t: d.Uniform(t([0.0, -3.0]), t([1.0, 2.0])),
    "Kumaraswamy of numbers": lambda d, t: d.Kumaraswamy(2.0, 3.0),
    "Kumaraswamy of tensors": lambda d, t: d.Kumaraswamy(t([0.5, 2.0]), t([1.5, 3.0])),
    "Pareto of numbers": lambda d, t: d.Pareto(1.0, 3.0),
    "Pareto of tensors": lambda d, t: d.Pareto(t([1.0, 2.0, 0.5]), t([0.5, 1.5, 3.0])),
    "GeneralizedPareto of numbers": lambda d, t: d.GeneralizedPareto(0.5, 2.0, 0.3),
    "GeneralizedPareto of tensors": lambda d, t: d.GeneralizedPareto(
        t([0.0, 1.0, 2.0, 0.0]), t([1.0, 2.0, 0.5, 1.0]), t([0.0, 0.4, -0.5, 1.5])
    ),
    "Weibull of numbers": lambda d, t: d.Weibull(1.0, 2.0),
    "Weibull of tensors": lambda d, t: d.Weibull(t([1.0, 2.0]), t([1.5, 3.0])),
    "ContinuousBernoulli of a number": lambda d, t: d.ContinuousBernoulli(0.3),
    "ContinuousBernoulli of tensors": lambda d, t: d.ContinuousBernoulli(t([0.1, 0.5, 0.9, 0.5005])),
    "ContinuousBernoulli of logits": lambda d, t: d.ContinuousBernoulli(logits=t([-1.0, 0.0, 3.0])),
}
DISCRETE: dict[str, Make] = {
    "Bernoulli of a number": lambda d, t: d.Bernoulli(0.3),
    "Bernoulli of tensors": lambda d, t: d.Bernoulli(t([0.1, 0.5, 0.9])),
    "Bernoulli of logits": lambda d, t: d.Bernoulli(logits=t([-1.0, 0.0, 3.0])),
    "Binomial of tensors": lambda d, t: d.Binomial(5, t([0.1, 0.5, 0.9])),
    "Binomial of different counts": lambda d, t: d.Binomial(t([3.0, 40.0], leaf=False), t([0.1, 0.6])),
    "Binomial of logits": lambda d, t: d.Binomial(4, logits=t([-1.0, 0.0, 3.0])),
    "NegativeBinomial of tensors": lambda d, t: d.NegativeBinomial(5, t([0.1, 0.5, 0.9])),
    "NegativeBinomial of logits": lambda d, t: d.NegativeBinomial(t([1.5, 4.0], leaf=False), logits=t([-1.0, 0.5])),
    "Geometric of a number": lambda d, t: d.Geometric(0.3),
    "Geometric of tensors": lambda d, t: d.Geometric(t([0.1, 0.5, 1.0])),
    "Geometric of logits": lambda d, t: d.Geometric(logits=t([-1.0, 0.0, 2.0])),
    "Poisson of a number": lambda d, t: d.Poisson(2.5),
    "Poisson of tensors": lambda d, t: d.Poisson(t([0.1, 2.5, 30.0])),
    "Categorical of a vector": lambda d, t: d.Categorical(t([0.2, 0.3, 0.5])),
    "Categorical of weights": lambda d, t: d.Categorical(t([[2.0, 3.0, 5.0], [1.0, 0.0, 1.0]])),
    "Categorical of logits": lambda d, t: d.Categorical(logits=t([[0.2, -1.0, 3.0], [0.0, 0.0, 0.0]])),
    "OneHotCategorical of a vector": lambda d, t: d.OneHotCategorical(t([0.2, 0.3, 0.5])),
    "OneHotCategorical of logits": lambda d, t: d.OneHotCategorical(logits=t([[0.2, -1.0, 3.0], [0.0, 0.0, 0.0]])),
    "OneHotCategoricalStraightThrough": lambda d, t: d.OneHotCategoricalStraightThrough(t(WEIGHTS)),
    "Multinomial of a vector": lambda d, t: d.Multinomial(7, t([0.2, 0.3, 0.5])),
    "Multinomial of logits": lambda d, t: d.Multinomial(4, logits=t([[0.2, -1.0, 3.0], [0.0, 0.0, 0.0]])),
}
RELAXED: dict[str, Make] = {
    "RelaxedBernoulli of tensors": lambda d, t: d.RelaxedBernoulli(t(0.7), t([0.1, 0.5, 0.9])),
    "RelaxedBernoulli of logits": lambda d, t: d.RelaxedBernoulli(t([2.0]), logits=t([-1.0, 0.0, 3.0])),
    "RelaxedOneHotCategorical of a vector": lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([0.2, 0.3, 0.5])),
    "RelaxedOneHotCategorical of logits": lambda d, t: d.RelaxedOneHotCategorical(
        t([2.0]), logits=t([[0.2, -1.0, 3.0], [0.0, 0.0, 0.0]])
    ),
}
MULTIVARIATE: dict[str, Make] = {
    "MultivariateNormal of a covariance": lambda d, t: d.MultivariateNormal(t([0.5, -1.0, 2.0]), t(COVARIANCE)),
    "MultivariateNormal of a precision": lambda d, t: d.MultivariateNormal(
        t([0.5, -1.0, 2.0]), precision_matrix=t(COVARIANCE)
    ),
    "MultivariateNormal of a factor": lambda d, t: d.MultivariateNormal(
        t([[0.5, -1.0, 2.0], [0.0, 0.0, 1.0]]), scale_tril=t(LOWER)
    ),
    "MultivariateNormal of two factors": lambda d, t: d.MultivariateNormal(
        t([0.5, -1.0, 2.0]), scale_tril=t([LOWER, LOWER])
    ),
    "LowRankMultivariateNormal": lambda d, t: d.LowRankMultivariateNormal(
        t([0.5, -1.0, 2.0]), t(FACTOR), t([1.0, 0.5, 2.0])
    ),
    "LowRankMultivariateNormal in batches": lambda d, t: d.LowRankMultivariateNormal(
        t([[0.5, -1.0, 2.0], [0.0, 0.0, 1.0]]), t(FACTOR), t([1.0, 0.5, 2.0])
    ),
    "LKJCholesky of a number": lambda d, t: d.LKJCholesky(3, 0.7),
    "LKJCholesky of tensors": lambda d, t: d.LKJCholesky(4, t([0.5, 3.0])),
}
WISHART: dict[str, Make] = {
    "Wishart of a covariance": lambda d, t: d.Wishart(5.0, t(COVARIANCE)),
    "Wishart of a precision": lambda d, t: d.Wishart(t(5.5), precision_matrix=t(COVARIANCE)),
    "Wishart of a factor": lambda d, t: d.Wishart(t([4.5, 6.0]), scale_tril=t(LOWER)),
}
COMPOUND: dict[str, Make] = {
    "Independent": lambda d, t: d.Independent(d.Normal(t([[0.5], [-1.0]]), t([1.0, 2.0, 0.1])), 1),
    "Independent of nothing": lambda d, t: d.Independent(d.Bernoulli(t([0.1, 0.5, 0.9])), 0),
    "MixtureSameFamily": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.2, 0.3, 0.5])), d.Normal(t([0.5, -1.0, 2.0]), t([1.0, 2.0, 0.1]))
    ),
    "MixtureSameFamily of vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t(WEIGHTS)), d.Independent(d.Normal(t([[[0.5, -1.0]] * 3] * 2), t([1.0, 2.0])), 1)
    ),
    "TransformedDistribution": lambda d, t: d.TransformedDistribution(
        d.Normal(t([0.5, -1.0]), t([1.0, 2.0])), [d.AffineTransform(t(1.0), t([-2.0, 3.0])), d.SigmoidTransform()]
    ),
    "TransformedDistribution of a vector": lambda d, t: d.TransformedDistribution(
        d.Normal(t([[0.5, -1.0]]), t([1.0, 2.0])), d.StickBreakingTransform()
    ),
    "TransformedDistribution of nothing": lambda d, t: d.TransformedDistribution(d.Exponential(t([1.0, 2.0])), []),
}

ALL: dict[str, Make] = NORMAL | LINE | GAMMA | INTERVAL | DISCRETE | RELAXED | MULTIVARIATE | WISHART | COMPOUND
