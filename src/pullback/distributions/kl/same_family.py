"""Divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions.bernoulli import Bernoulli, ContinuousBernoulli
from pullback.distributions.categorical import Categorical, OneHotCategorical
from pullback.distributions.counts import Binomial, Geometric, Poisson
from pullback.distributions.dirichlet import Beta, Dirichlet
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.gamma import Exponential, Gamma
from pullback.distributions.half import HalfNormal
from pullback.distributions.independent import Independent
from pullback.distributions.kl.registry import kl_divergence, register_kl
from pullback.distributions.location_scale import Cauchy, Gumbel, Laplace
from pullback.distributions.normal import Normal
from pullback.distributions.pareto import Pareto
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import _sum_rightmost, euler_constant
from pullback.nn.functional import softplus

# ------------------------------------------------------------------ of any family


@register_kl(ExponentialFamily, ExponentialFamily)
def kl_exponential_families(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer: F(θq) - F(θp) - (θq - θp)·∇F(θp)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot"
            "                             be computed using Bregman divergences"
        )
    of_p = [value.detach().requires_grad_() for value in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = torch.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for theta_p, theta_q, gradient in zip(of_p, of_q, gradients):
        result = result - _sum_rightmost((theta_q - theta_p) * gradient, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def kl_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """The bases', as the same bijection changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def kl_independent(p: Independent[Any], q: Independent[Any]) -> Tensor:
    """The bases', summed over the event."""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ------------------------------------------------------------------ discrete


@register_kl(Bernoulli, Bernoulli)
def kl_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """p log (p / q) + (1 - p) log ((1 - p) / (1 - q)), with 0 log 0 zero and log (1 / 0) infinite."""
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return yes + no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)


@register_kl(Binomial, Binomial)
def kl_binomial(p: Binomial, q: Binomial) -> Tensor:
    """n times Bernoulli's; infinite if p has more trials."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * each).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def kl_categorical(p: Categorical, q: Categorical) -> Tensor:
    """Σ p log (p / q), with 0 log 0 zero and log (1 / 0) infinite."""
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def kl_one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    """The categories'."""
    return kl_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def kl_geometric(p: Geometric, q: Geometric) -> Tensor:
    """From p's entropy."""
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def kl_poisson(p: Poisson, q: Poisson) -> Tensor:
    """rate log (rate / rate') - (rate - rate')."""
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# ------------------------------------------------------------------ on an interval


@register_kl(Beta, Beta)
def kl_beta(p: Beta, q: Beta) -> Tensor:
    """By the digamma function."""
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    of_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    of_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    one = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    zero = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    return of_q - of_p + one + zero + (total_q - total_p) * torch.digamma(total_p)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    """From the mean and the normalizers."""
    of_p = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    of_q = q._cont_bern_log_norm() + torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + of_p - of_q


@register_kl(Dirichlet, Dirichlet)
def kl_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    """By the digamma function."""
    a, b = p.concentration, q.concentration
    totals = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    moved = (a - b) * (a.digamma() - a.sum(-1).digamma().unsqueeze(-1))
    return totals - (a.lgamma() - b.lgamma()).sum(-1) + moved.sum(-1)


@register_kl(Uniform, Uniform)
def kl_uniform(p: Uniform, q: Uniform) -> Tensor:
    """The logarithm of the ratio of the widths; infinite if q does not cover p."""
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


# ------------------------------------------------------------------ on a half-line


@register_kl(Exponential, Exponential)
def kl_exponential(p: Exponential, q: Exponential) -> Tensor:
    """r - 1 - log r, with r the ratio of the rates."""
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def kl_gamma(p: Gamma, q: Gamma) -> Tensor:
    """By the digamma function."""
    rates = q.concentration * (p.rate / q.rate).log() + (q.rate - p.rate) * (p.concentration / p.rate)
    normalizers = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    return rates + normalizers + (p.concentration - q.concentration) * torch.digamma(p.concentration)


@register_kl(HalfNormal, HalfNormal)
def kl_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    """That of the normal distributions."""
    return kl_normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def kl_pareto(p: Pareto, q: Pareto) -> Tensor:
    """Infinite if p reaches below q."""
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, math.inf)


# ------------------------------------------------------------------ on the line


@register_kl(Normal, Normal)
def kl_normal(p: Normal, q: Normal) -> Tensor:
    """½ (r² + d² - 1 - log r²), with r the ratio of the scales and d the distance in units of q's."""
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Cauchy, Cauchy)
def kl_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """log ((s + s')² + (m - m')²) - log 4 s s'."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Laplace, Laplace)
def kl_laplace(p: Laplace, q: Laplace) -> Tensor:
    """From the ratio of the scales and the distance."""
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


@register_kl(Gumbel, Gumbel)
def kl_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    """From the ratio of the scales and the distance in units of q's."""
    ratio, of_p, of_q = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    grown = torch.exp(of_q + (1 + ratio).lgamma() - of_p)
    return -ratio.log() - of_q + of_p + ratio * euler_constant + grown - (1 + euler_constant)
