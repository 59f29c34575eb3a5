"""Divergences between multivariate normal distributions, full and of low rank."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions.kl.registry import register_kl
from pullback.distributions.multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
    _half_log_det,
)

# KL(p || q) = ½ (log det Σq - log det Σp + tr(Σq⁻¹ Σp) + |mq - mp|² under Σq - n)


def require_same_events(p: Any, q: Any, kind: str) -> None:
    """Torch's demand on the two."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind} with                          different event shapes cannot be computed"
        )


def trace(matrix: Tensor) -> Tensor:
    """tr(X Xᵀ): the sum of all squares."""
    return matrix.pow(2).sum((-2, -1))


def log_det(d: MultivariateNormal | LowRankMultivariateNormal) -> Tensor:
    """The logarithm of the determinant of the covariance."""
    if isinstance(d, LowRankMultivariateNormal):
        return _batch_lowrank_logdet(*d._parts, d._capacitance_tril)
    return 2 * _half_log_det(d._unbroadcasted_scale_tril)


def solved(lower: Tensor, matrix: Tensor) -> Tensor:
    """L⁻¹ X."""
    return torch.linalg.solve_triangular(lower, matrix, upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def kl_full(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    """tr(Σq⁻¹ Σp) = tr(X Xᵀ), with X = Lq⁻¹ Lp."""
    require_same_events(p, q, "Multivariate Normals")
    lower_p, lower_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    spread = trace(solved(lower_q, lower_p)) + _batch_mahalanobis(lower_q, q.loc - p.loc)
    return _half_log_det(lower_q) - _half_log_det(lower_p) + 0.5 * (spread - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def kl_of_low_rank(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    """Σp has two parts, and so has the trace."""
    require_same_events(p, q, "(Low Rank) Multivariate Normals")
    factor, diagonal = p._parts
    lower = q._unbroadcasted_scale_tril
    spread = trace(solved(lower, factor)) + trace(solved(lower, torch.diag_embed(diagonal.sqrt())))
    distance = _batch_mahalanobis(lower, q.loc - p.loc)
    return 0.5 * (log_det(q) - log_det(p) + spread + distance - p.event_shape[0])


def of_inverse(q: LowRankMultivariateNormal) -> Tensor:
    """A with Σq⁻¹ = D⁻¹ - Aᵀ A, by the Woodbury identity."""
    factor, diagonal = q._parts
    return solved(q._capacitance_tril, factor.mT / diagonal.unsqueeze(-2))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def kl_from_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    """Σq⁻¹ has two parts, and so has the trace."""
    require_same_events(p, q, "(Low Rank) Multivariate Normals")
    factor, diagonal = q._parts
    lower = p._unbroadcasted_scale_tril
    spread = trace(lower * diagonal.rsqrt().unsqueeze(-1)) - trace(of_inverse(q).matmul(lower))
    distance = _batch_lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, q._capacitance_tril)
    return 0.5 * (log_det(q) - log_det(p) + spread + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def kl_low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    """Both have two parts: the trace has four."""
    require_same_events(p, q, "Low Rank Multivariate Normals")
    (factor_p, diagonal_p), (factor_q, diagonal_q) = p._parts, q._parts
    inverse = of_inverse(q)
    by_diagonal = (diagonal_p / diagonal_q).sum(-1) + trace(factor_p * diagonal_q.rsqrt().unsqueeze(-1))
    by_factor = trace(inverse * diagonal_p.sqrt().unsqueeze(-2)) + trace(inverse.matmul(factor_p))
    distance = _batch_lowrank_mahalanobis(factor_q, diagonal_q, q.loc - p.loc, q._capacitance_tril)
    return 0.5 * (log_det(q) - log_det(p) + by_diagonal - by_factor + distance - p.event_shape[0])
