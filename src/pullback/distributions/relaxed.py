"""Relaxations of discrete distributions, whose draws are differentiable: RelaxedBernoulli, RelaxedOneHotCategorical.

The lower the temperature, the nearer the draws to discrete events.
"""

from __future__ import annotations

from typing import Any, Self

import pullback as torch
from pullback import Tensor
from pullback.distributions import binary, constraints
from pullback.distributions.categorical import Categorical, _OfCategories
from pullback.distributions.distribution import Distribution
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import ExpTransform, SigmoidTransform
from pullback.distributions.utils import Shape, broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli", "ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(Distribution):
    """The logit of a RelaxedBernoulli number."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _parameters = ("probs", "logits", "_param")
    _param: Tensor
    logits = binary.logits
    probs = binary.probs
    param_shape = binary.param_shape

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        binary.take_binary(self, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters; the temperature is for all."""
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The logit of the probability plus that of a uniform number, over the temperature."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logistic density."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class ExpRelaxedCategorical(_OfCategories):
    """The logarithm of a RelaxedOneHotCategorical vector."""

    support = constraints.real_vector
    has_rsample = True
    _parameters = ("_categorical",)

    def __init__(
        self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters; the temperature is for all."""
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Logits plus Gumbel noise, over the temperature, through log softmax."""
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the concrete distribution, of logarithms."""
        self._check(value)
        count = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_scale = torch.full_like(self.temperature, float(count)).lgamma() + self.temperature.log() * (count - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class _Relaxed(TransformedDistribution):
    """A relaxation in its own space, made of one in the space of logits."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        """The base's temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The base's logits."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The base's probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1) that come near to zero and one at low temperatures."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _parameters = ()

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class RelaxedOneHotCategorical(_Relaxed):
    """Points of the simplex that come near to its corners at low temperatures."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _parameters = ()

    def __init__(
        self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
