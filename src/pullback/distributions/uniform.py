"""Uniform, and Kumaraswamy, which is made of it: distributions on an interval."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import AffineTransform, PowerTransform
from pullback.distributions.utils import Shape, broadcast_all, euler_constant

__all__ = ["Uniform", "Kumaraswamy"]


class Uniform(Distribution):
    """Numbers in [low, high), all equally probable."""

    has_rsample = True
    _parameters = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Each bound is a constraint for the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """Not a number: all events are equally probable."""
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        """The width over √12."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        """The squared width over 12."""
        return (self.high - self.low).pow(2) / 12

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval."""
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """low + u (high - low)."""
        u = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """-log of the width inside, minus infinity outside."""
        self._check(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return torch.log(inside) - torch.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        """A line from 0 to 1."""
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        """A line from low to high."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """The logarithm of the width."""
        return torch.log(self.high - self.low)


class Kumaraswamy(TransformedDistribution):
    """A distribution on [0, 1] much like Beta, but with a closed form: (1 - u ** (1/b)) ** (1/a) for a uniform u."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        ends = torch.full_like(self.concentration0, 0), torch.full_like(self.concentration0, 1)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(*ends, validate_args=validate_args), transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The mean of xⁿ: b B(1 + n/a, b)."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * torch.exp(torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))

    @property
    def mean(self) -> Tensor:
        """The first moment."""
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """Where both concentrations are at least one."""
        log_mode = (
            self.concentration0.reciprocal() * (-self.concentration0).log1p()
            - (-self.concentration0 * self.concentration1).log1p()
        )
        none = (self.concentration0 < 1) | (self.concentration1 < 1)
        return log_mode.masked_fill(none, math.nan).exp()

    @property
    def variance(self) -> Tensor:
        """The second moment less the squared mean."""
        return self._moment(2) - torch.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        """By the harmonic number of concentration0."""
        harmonic = torch.digamma(self.concentration0 + 1) + euler_constant
        of_ends = (1 - self.concentration0.reciprocal()) + (1 - self.concentration1.reciprocal()) * harmonic
        return of_ends - torch.log(self.concentration1) - torch.log(self.concentration0)
