"""Families of a location and a scale with heavier tails than the normal: Cauchy, Laplace, StudentT, Gumbel."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution
from pullback.distributions.gamma import Chi2
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, ExpTransform
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import Number, Shape, _standard_normal, broadcast_all, euler_constant

__all__ = ["Cauchy", "Laplace", "StudentT", "Gumbel"]


class Cauchy(Distribution):
    """The Cauchy distribution: the ratio of two normal numbers; it has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Not a number: the integral does not exist."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return torch.full(self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """loc + ε scale."""
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """-log π - log scale - log (1 + z²)."""
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """atan(z) / π + ½."""
        self._check(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """By the tangent."""
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """log 4π + log scale."""
        return math.log(4 * math.pi) + self.scale.log()


class Laplace(Distribution):
    """The Laplace distribution: exponential on both sides of `loc`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """2 scale²."""
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        """√2 scale."""
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """By inversion of one uniform number in (-1, 1)."""
        low = torch.finfo(self.loc.dtype).eps - 1
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(low, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        """-log 2 scale - |z|."""
        self._check(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """½ ± ½ (1 - exp -|z|)."""
        self._check(value)
        centred = value - self.loc
        return 0.5 - 0.5 * centred.sign() * torch.expm1(-centred.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        """By the logarithm."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * torch.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        """1 + log 2 scale."""
        return 1 + torch.log(2 * self.scale)


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, moved and scaled."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc, where there is a mean: for more than one degree of freedom."""
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale² df / (df - 2), infinite up to df = 2 and undefined up to df = 1."""
        finite = self.df > 2
        # Where it is not finite the formula is given a harmless df, so that its gradient is finite too.
        df = torch.where(finite, self.df, 3.0)
        variance = torch.where(finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return variance.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A normal number over the root of an independent χ² / df."""
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * torch.rsqrt(chi2 / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        """-½ (df + 1) log (1 + z² / df), normalized."""
        self._check(value)
        z = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + torch.lgamma(0.5 * self.df)
            - torch.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * torch.log1p(z**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        """By the digamma function and the logarithm of the beta function."""
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = torch.lgamma(half) + math.lgamma(0.5) - torch.lgamma(more)
        spread = more * (torch.digamma(more) - torch.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, of the largest of many: loc - scale log(-log u) for a uniform number u."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = torch.finfo(self.loc.dtype)
        low, high = info.tiny, 1 - info.eps
        if isinstance(loc, Number) and isinstance(scale, Number):
            base = Uniform(low, high, validate_args=validate_args)
        else:
            filled = torch.full_like(self.loc, low), torch.full_like(self.loc, high)
            base = Uniform(*filled, validate_args=validate_args)
        minus_log = [ExpTransform().inv, AffineTransform(loc=0, scale=-torch.ones_like(self.scale))]
        place = [ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)]
        super().__init__(base, minus_log + place, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """y - exp(y) - log scale, with y = (loc - x) / scale."""
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        """loc + γ scale, with Euler's constant γ."""
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """π / √6 scale."""
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        """π² / 6 scale²."""
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        """log scale + 1 + γ."""
        return self.scale.log() + (1 + euler_constant)
