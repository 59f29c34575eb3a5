"""Distributions of matrices: Wishart, of covariances, and LKJCholesky, of factors of correlations."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.dirichlet import Beta
from pullback.distributions.distribution import Distribution
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.gamma import Chi2
from pullback.distributions.multivariate_normal import _half_log_det, given_matrix, lower_factor
from pullback.distributions.utils import Number, Shape, broadcast_all, lazy_property

__all__ = ["Wishart", "LKJCholesky"]

_LOG_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device).div(2)).sum(-1)


class Wishart(ExponentialFamily):
    """Positive definite matrices: the sum of x xᵀ over `df` normal vectors x with this covariance."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The bound of df is given by the size of the matrices."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = given_matrix(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = torch.Size(matrix.shape[:-2])
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        size = event_shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.lt(size).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = lower_factor(name, matrix)
        self._dist_chi2 = self._diagonal_squares()

    def _diagonal_squares(self) -> Chi2:
        """What the squares of Bartlett's diagonal come from: a degree of freedom less in each row."""
        less = torch.arange(self._event_shape[-1], dtype=self._unbroadcasted_scale_tril.dtype)
        return Chi2(df=self.df.unsqueeze(-1) - less.expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters and what is computed from them."""
        new = self._get_checked_instance(Wishart, _instance)
        shape = torch.Size(batch_shape)
        for name in ("covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(shape + self._event_shape)
        new.df = self.df.expand(shape)
        self._finish_expanded(new, shape)
        new._dist_chi2 = new._diagonal_squares()
        return new

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor L of the covariance."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """L Lᵀ."""
        return self._expanded(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        lower = self._unbroadcasted_scale_tril
        identity = torch.eye(self._event_shape[-1], dtype=lower.dtype, device=lower.device)
        return self._expanded(torch.cholesky_solve(identity, lower))

    def _per_matrix(self, value: Tensor) -> Tensor:
        """A number for each distribution, ready to multiply its matrix."""
        return value.expand(self._batch_shape).unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        """df times the covariance."""
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - p - 1) times the covariance, where that is positive."""
        factor = self.df - self._event_shape[-1] - 1
        return self._per_matrix(factor.masked_fill(factor <= 0, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V² + d dᵀ), elementwise, with d the diagonal of the covariance V."""
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._per_matrix(self.df) * (self.covariance_matrix.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Shape = ()) -> Tensor:
        """L A Aᵀ Lᵀ, with χ numbers on the diagonal of A and normal numbers below it."""
        p = self._event_shape[-1]
        root = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = root.clamp(min=torch.finfo(root.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        below = torch.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = torch.randn(below, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _any_of_batch(self, flags: Tensor) -> Tensor:
        dims = [-(dim + 1) for dim in range(len(self._batch_shape))]
        return flags.amax(dims) if dims else flags

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        """Draw by Bartlett's decomposition.

        As in torch, the draws found *in* the support are the ones drawn anew, with a warning: the numbers that follow
        from a seed depend on it. Unlike there, the gradient passes through the second draw.
        """
        sample = self._bartlett_sampling(torch.Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                renewed = self._bartlett_sampling(again[again].shape)
                sample[again.clone()] = renewed  # the graph keeps this mask; `again` itself changes
                again[again.clone()] = self._any_of_batch(~self.support.check(renewed))
                if not again.any():
                    break
        return sample

    def _log_det_term(self) -> Tensor:
        return self._event_shape[-1] * _LOG_2 / 2 + _half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        nu, p = self.df, self._event_shape[-1]
        solved = torch.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * self._log_det_term()
            - torch.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Tensor:
        """By the multivariate digamma function."""
        nu, p = self.df, self._event_shape[-1]
        normalizer = (p + 1) * self._log_det_term() + torch.mvlgamma(nu / 2, p=p)
        return normalizer - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-torch.linalg.slogdet(-2 * x).logabsdet + _LOG_2 * p) + torch.mvlgamma(half, p=p)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices M, with density of M proportional to det(M) ** (concentration - 1)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = ("concentration", "_beta")

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of each row but its diagonal; the first row has none and is drawn in vain, as in torch.
        offset = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters."""
        new = super().expand(batch_shape, _instance)
        new.dim = self.dim
        return new

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """The onion method: each row is a random direction with a random length, and what is missing to one."""
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has nothing below the diagonal
        w = torch.sqrt(y) * direction
        left = torch.clamp(1 - torch.sum(w**2, dim=-1), min=torch.finfo(w.dtype).tiny)
        return w + torch.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        """The powers of the diagonal, normalized: page 1999 of Lewandowski, Kurowicka, Joe, 2009."""
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = (
            2 * (self.concentration - 1).unsqueeze(-1)
            + self.dim
            - torch.arange(2, self.dim + 1, device=self.concentration.device)
        )
        powers = torch.sum(order * diagonal.log(), dim=-1)
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        normalizer = 0.5 * rows * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, rows) - torch.lgamma(alpha) * rows
        return powers - normalizer
