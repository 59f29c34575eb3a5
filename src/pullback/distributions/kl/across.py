"""Divergences between distributions of different families; infinite where p has events that q has not."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions.bernoulli import Bernoulli, ContinuousBernoulli
from pullback.distributions.counts import Binomial, Poisson
from pullback.distributions.dirichlet import Beta
from pullback.distributions.gamma import Exponential, Gamma
from pullback.distributions.kl.registry import register_kl
from pullback.distributions.location_scale import Gumbel, Laplace
from pullback.distributions.normal import Normal
from pullback.distributions.pareto import Pareto
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import euler_constant

# ------------------------------------------------------------------ infinite

_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_INFINITE: list[tuple[type, str, tuple[type, ...]]] = [
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", _BOUNDED),
    (Gamma, "concentration", _BOUNDED),
    (Gumbel, "loc", (*_BOUNDED, Exponential, Gamma)),
    (Laplace, "loc", (*_BOUNDED, Exponential, Gamma)),
    (Normal, "loc", (*_BOUNDED, Exponential, Gamma)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
]
"""p, the parameter of p whose shape the answer has, and the q that lack some of its events."""


def register_infinite(type_p: type, name: str, types_q: tuple[type, ...]) -> None:
    """One formula for all these q, so that subclasses of several are not ambiguous."""

    def kl_infinite(p: Any, q: Any) -> Tensor:
        return torch.full_like(getattr(p, name), math.inf)

    for type_q in types_q:
        register_kl(type_p, type_q)(kl_infinite)


for entry in _INFINITE:
    register_infinite(*entry)

# ------------------------------------------------------------------ from Bernoulli, Beta and ContinuousBernoulli


def _gamma_normalizer(q: Gamma) -> Tensor:
    """log Γ(a) - a log rate."""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    """From p's entropy; log x! is zero for both events."""
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def kl_beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    """From p's entropy and mean."""
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def kl_beta_exponential(p: Beta, q: Exponential) -> Tensor:
    """From p's entropy and mean."""
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def kl_beta_gamma(p: Beta, q: Gamma) -> Tensor:
    """From p's entropy, mean and mean logarithm."""
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _gamma_normalizer(q) - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Normal)
def kl_beta_normal(p: Beta, q: Normal) -> Tensor:
    """From p's entropy and first two moments."""
    mean, variance = p.mean, q.scale.pow(2)
    squares = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    spread = squares * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + spread / variance


@register_kl(Beta, Uniform)
def kl_beta_uniform(p: Beta, q: Uniform) -> Tensor:
    """Infinite unless q covers [0, 1]."""
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Exponential)
def kl_continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    """From p's entropy and mean."""
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def kl_continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    """From p's entropy and first two moments."""
    normalizer = 0.5 * (math.log(2.0 * math.pi) + torch.square(q.loc / q.scale)) + torch.log(q.scale)
    moments = p.variance + torch.square(p.mean) - 2.0 * q.loc * p.mean
    return -p.entropy() + normalizer + moments / (2.0 * torch.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def kl_continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    """Infinite where torch says so: if q lies within [0, 1] on one side."""
    result = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low >= 0.0) | (q.high <= 1.0), torch.ones_like(result) * math.inf, result)


# ------------------------------------------------------------------ from Exponential and Gamma


@register_kl(Exponential, Gamma)
def kl_exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    """From the ratio of the rates."""
    ratio = q.rate / p.rate
    of_shape = q.concentration.lgamma() + q.concentration * euler_constant
    return -q.concentration * torch.log(ratio) + ratio + of_shape - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def kl_exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    """From the product of rate and scale."""
    product, place = p.rate * q.scale, q.loc / q.scale
    grown = torch.exp(place) * product / (product + 1)
    return product.log() - 1 - place + grown + product.reciprocal()


@register_kl(Exponential, Normal)
def kl_exponential_normal(p: Exponential, q: Normal) -> Tensor:
    """From p's first two moments."""
    variance, squared_rate = q.scale.pow(2), p.rate.pow(2)
    spread = squared_rate.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * torch.log(squared_rate * variance * 2 * math.pi) - 1 + spread / variance


@register_kl(Gamma, Exponential)
def kl_gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    """From p's entropy and mean."""
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def kl_gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    """From the product of rate and scale."""
    a, product, place = p.concentration, p.rate * q.scale, q.loc / q.scale
    of_shape = (a - 1) * a.digamma() - a.lgamma() - a
    grown = torch.exp(place) * (1 + product.reciprocal()).pow(-a)
    return of_shape + product.log() + a / product + grown - place


@register_kl(Gamma, Normal)
def kl_gamma_normal(p: Gamma, q: Normal) -> Tensor:
    """From p's first two moments."""
    a, variance, squared_rate = p.concentration, q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * torch.log(squared_rate * variance * 2 * math.pi) - a - a.lgamma() + (a - 1) * a.digamma()
    spread = 0.5 * (a.pow(2) + a) / squared_rate - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return normalizer + spread / variance


# ------------------------------------------------------------------ between distributions on the line


@register_kl(Gumbel, Normal)
def kl_gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    """From p's mean and variance."""
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def kl_laplace_normal(p: Laplace, q: Normal) -> Tensor:
    """From p's mean and variance."""
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * torch.log(2 * ratio / math.pi) + ratio + distance / variance - 1


@register_kl(Normal, Gumbel)
def kl_normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    """From p's mean and the mean of its exponential."""
    of_p, of_q, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    grown = torch.exp(-of_p + 0.5 * ratio + of_q)
    return -ratio.log() * 0.5 + of_p - of_q + grown - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """From the mean distance of p from q's location."""
    distance = p.loc - q.loc
    z = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * z.pow(2))
    far = distance * torch.erf(math.sqrt(0.5) * z)
    return -torch.log(p.scale / q.scale) + (near + far) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


# ------------------------------------------------------------------ from Pareto


@register_kl(Pareto, Exponential)
def kl_pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    """From p's mean, infinite up to alpha = 1."""
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    result = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def kl_pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    """From p's mean and mean logarithm."""
    mean_log = p.scale.log() + p.alpha.reciprocal()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + _gamma_normalizer(q) + (1 - q.concentration) * mean_log + mean - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def kl_pareto_normal(p: Pareto, q: Normal) -> Tensor:
    """From p's first two moments, infinite up to alpha = 2."""
    part = p.scale / (p.alpha - 1)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    spread = p.alpha * part.pow(2) / (p.alpha - 2) + (p.alpha * part - q.loc).pow(2)
    return (normalizer + spread / (2 * q.scale.pow(2)) - 1).masked_fill(p.alpha <= 2, math.inf)


# ------------------------------------------------------------------ from Uniform


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log x over an interval."""
    width = high - low
    return (torch.special.xlogy(high, high) - torch.special.xlogy(low, low) - width) / width


@register_kl(Uniform, Beta)
def kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    """Infinite unless p lies in [0, 1]."""
    a, b = q.concentration1, q.concentration0
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    powers = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    result = normalizer - torch.log(p.high - p.low) - powers
    return result.masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, ContinuousBernoulli)
def kl_uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """Infinite where torch says so: if p reaches an end of [0, 1]."""
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    return torch.where((p.high >= 1.0) | (p.low <= 0.0), torch.ones_like(result) * math.inf, result)


@register_kl(Uniform, Exponential)
def kl_uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    """From p's mean; infinite if p reaches below zero."""
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gamma)
def kl_uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    """From p's mean and mean logarithm; infinite if p reaches below zero."""
    powers = (1 - q.concentration) * _mean_log(p.low, p.high)
    mean = q.rate * (p.high + p.low) / 2
    result = -(p.high - p.low).log() + _gamma_normalizer(q) + powers + mean
    return result.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gumbel)
def kl_uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    """From p's mean and the mean of its exponential."""
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Normal)
def kl_uniform_normal(p: Uniform, q: Normal) -> Tensor:
    """From p's mean and variance."""
    width = p.high - p.low
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * (width.pow(2) / 12 + distance) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """From p's mean logarithm; infinite if p reaches below q."""
    normalizer = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p.low, p.high) * (q.alpha + 1) - normalizer
    return result.masked_fill(p.low < q.scale, math.inf)
