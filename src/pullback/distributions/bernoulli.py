"""Bernoulli, and ContinuousBernoulli on the interval between its two events."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions import binary, constraints
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.utils import Shape, broadcast_all, clamp_probs, lazy_property, logits_to_probs
from pullback.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli", "ContinuousBernoulli"]


class Bernoulli(ExponentialFamily):
    """One with probability `probs`, zero otherwise."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _parameters = ("probs", "logits", "_param")
    _param: Tensor
    logits = binary.logits
    probs = binary.probs
    param_shape = binary.param_shape

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        binary.take_binary(self, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """probs."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more probable event, if one is."""
        return (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw with `torch.bernoulli`."""
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log p + (1 - x) log (1 - p)."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log (1 - p)."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Zero and one."""
        return self._enumerated(torch.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return torch.log1p(torch.exp(x))


class ContinuousBernoulli(ExponentialFamily):
    """Numbers in [0, 1] with density proportional to p ** x (1 - p) ** (1 - x).

    Near p = ½, inside `lims`, the formulas are 0 / 0: a Taylor series stands in for them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = ("probs", "logits", "_param")
    _param: Tensor
    logits = binary.logits
    param_shape = binary.param_shape

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        binary.take_binary(self, probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """Expand the parameters; the limits stay."""
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p, kept off 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """p, moved to the limit where the formulas do not hold, so that their unused gradients are finite."""
        return torch.where(self._outside_unstable_region(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _stable(self, value: Tensor, taylor: Tensor) -> Tensor:
        return torch.where(self._outside_unstable_region(), value, taylor)

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the normalizer, 2 atanh(1 - 2p) / (1 - 2p)."""
        p = self._cut_probs()
        below = torch.where(p <= 0.5, p, torch.zeros_like(p))
        above = torch.where(p >= 0.5, p, torch.ones_like(p))
        log_denominator = torch.where(p <= 0.5, torch.log1p(-2.0 * below), torch.log(2.0 * above - 1.0))
        log_norm = torch.log(torch.abs(torch.log1p(-p) - torch.log(p))) - log_denominator
        x = torch.pow(self.probs - 0.5, 2)
        return self._stable(log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        """p / (2p - 1) + 1 / (log (1 - p) - log p)."""
        p, x = self._cut_probs(), self.probs - 0.5
        mean = p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - torch.log(p))
        return self._stable(mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x)

    @property
    def variance(self) -> Tensor:
        """p (p - 1) / (1 - 2p)² + 1 / (log (1 - p) - log p)²."""
        p, x = self._cut_probs(), torch.pow(self.probs - 0.5, 2)
        variance = p * (p - 1.0) / torch.pow(1.0 - 2.0 * p, 2) + 1.0 / torch.pow(torch.log1p(-p) - torch.log(p), 2)
        return self._stable(variance, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def _uniforms(self, sample_shape: Shape) -> Tensor:
        return torch.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """By inversion."""
        u = self._uniforms(sample_shape)
        with torch.no_grad():
            return self.icdf(u)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """By inversion."""
        return self.icdf(self._uniforms(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Bernoulli's, and the normalizer."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """(pˣ (1 - p)¹⁻ˣ + p - 1) / (2p - 1)."""
        self._check(value)
        p = self._cut_probs()
        inside = (torch.pow(p, value) * torch.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = self._stable(inside, value)
        upper = torch.where(value >= 1.0, torch.ones_like(value), inside)
        return torch.where(value <= 0.0, torch.zeros_like(value), upper)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf."""
        p = self._cut_probs()
        above = torch.log1p(-p + value * (2.0 * p - 1.0)) - torch.log1p(-p)
        return self._stable(above / (torch.log(p) - torch.log1p(-p)), value)

    def entropy(self) -> Tensor:
        """From the mean and the normalizer."""
        log_no, log_yes = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (log_no - log_yes) - self._cont_bern_log_norm() - log_no

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = (x <= low) | (x > high)
        cut = torch.where(outside, x, low * torch.ones_like(x))
        log_norm = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(outside, log_norm, 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0)
