"""torch.distributions: probability distributions, their transforms and the divergences between them.

A family of distributions is one module here; torch has a module for each. The names of torch's modules work too.
"""

import sys as _sys
from importlib import import_module as _import_module

from pullback.distributions import kl as kl
from pullback.distributions import transforms as transforms
from pullback.distributions.bernoulli import Bernoulli as Bernoulli
from pullback.distributions.bernoulli import ContinuousBernoulli as ContinuousBernoulli
from pullback.distributions.categorical import Categorical as Categorical
from pullback.distributions.categorical import Multinomial as Multinomial
from pullback.distributions.categorical import OneHotCategorical as OneHotCategorical
from pullback.distributions.categorical import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from pullback.distributions.constraint_registry import biject_to as biject_to
from pullback.distributions.constraint_registry import transform_to as transform_to
from pullback.distributions.counts import Binomial as Binomial
from pullback.distributions.counts import Geometric as Geometric
from pullback.distributions.counts import NegativeBinomial as NegativeBinomial
from pullback.distributions.counts import Poisson as Poisson
from pullback.distributions.dirichlet import Beta as Beta
from pullback.distributions.dirichlet import Dirichlet as Dirichlet
from pullback.distributions.distribution import Distribution as Distribution
from pullback.distributions.exp_family import ExponentialFamily as ExponentialFamily
from pullback.distributions.gamma import Chi2 as Chi2
from pullback.distributions.gamma import Exponential as Exponential
from pullback.distributions.gamma import FisherSnedecor as FisherSnedecor
from pullback.distributions.gamma import Gamma as Gamma
from pullback.distributions.gamma import InverseGamma as InverseGamma
from pullback.distributions.half import HalfCauchy as HalfCauchy
from pullback.distributions.half import HalfNormal as HalfNormal
from pullback.distributions.independent import Independent as Independent
from pullback.distributions.kl import kl_divergence as kl_divergence
from pullback.distributions.kl import register_kl as register_kl
from pullback.distributions.location_scale import Cauchy as Cauchy
from pullback.distributions.location_scale import Gumbel as Gumbel
from pullback.distributions.location_scale import Laplace as Laplace
from pullback.distributions.location_scale import StudentT as StudentT
from pullback.distributions.matrices import LKJCholesky as LKJCholesky
from pullback.distributions.matrices import Wishart as Wishart
from pullback.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from pullback.distributions.multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal
from pullback.distributions.multivariate_normal import MultivariateNormal as MultivariateNormal
from pullback.distributions.normal import LogisticNormal as LogisticNormal
from pullback.distributions.normal import LogNormal as LogNormal
from pullback.distributions.normal import Normal as Normal
from pullback.distributions.pareto import GeneralizedPareto as GeneralizedPareto
from pullback.distributions.pareto import Pareto as Pareto
from pullback.distributions.pareto import Weibull as Weibull
from pullback.distributions.relaxed import RelaxedBernoulli as RelaxedBernoulli
from pullback.distributions.relaxed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from pullback.distributions.transformed_distribution import TransformedDistribution as TransformedDistribution
from pullback.distributions.transforms import *
from pullback.distributions.uniform import Kumaraswamy as Kumaraswamy
from pullback.distributions.uniform import Uniform as Uniform
from pullback.distributions.von_mises import VonMises as VonMises

_HOMES = {
    "bernoulli": ("continuous_bernoulli",),
    "categorical": ("multinomial", "one_hot_categorical"),
    "counts": ("binomial", "geometric", "negative_binomial", "poisson"),
    "dirichlet": ("beta",),
    "gamma": ("chi2", "exponential", "fishersnedecor", "inverse_gamma"),
    "half": ("half_cauchy", "half_normal"),
    "location_scale": ("cauchy", "gumbel", "laplace", "studentT"),
    "matrices": ("lkj_cholesky", "wishart"),
    "multivariate_normal": ("lowrank_multivariate_normal",),
    "normal": ("log_normal", "logistic_normal"),
    "pareto": ("generalized_pareto", "weibull"),
    "relaxed": ("relaxed_bernoulli", "relaxed_categorical"),
    "uniform": ("kumaraswamy",),
}
"""Our modules, and torch's modules whose classes they hold."""

for _home, _names in _HOMES.items():
    for _name in _names:
        # What `import torch.distributions.half_normal` looks for, and what the attribute of that name is.
        globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _import_module(f"{__name__}.{_home}")

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
    "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
    "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip
__all__ += transforms.__all__
