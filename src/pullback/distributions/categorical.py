"""Categorical, its events as one-hot vectors, and Multinomial, which counts them."""

from __future__ import annotations

import math
from typing import Any, Self

import pullback as torch
from pullback import Tensor
from pullback.distributions import binary, constraints
from pullback.distributions.counts import Binomial
from pullback.distributions.distribution import Distribution
from pullback.distributions.utils import (
    Shape,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    one_of,
    probs_to_logits,
)
from pullback.nn.functional import one_hot

__all__ = ["Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Multinomial"]


class Categorical(Distribution):
    """One of K categories, with probabilities in the last dimension of `probs` or `logits`, normalized here."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _parameters = ("probs", "logits", "_param")
    param_shape = binary.param_shape

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        name = one_of("probs", "logits", probs, logits)
        value: Any = probs if logits is None else logits
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = self._param = value / value.sum(-1, keepdim=True)
        else:
            self.logits = self._param = value - value.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters."""
        new = super().expand(batch_shape, _instance)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers of the categories."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Tensor:
        """Not a number: categories have no order."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        """The most probable category."""
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        """Not a number: categories have no order."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw with `torch.multinomial`."""
        sample_shape = torch.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logit of each category in `value`."""
        self._check(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """-Σ p log p, where 0 log 0 is zero."""
        lowest = torch.finfo(self.logits.dtype).min
        return -(torch.clamp(self.logits, min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers of the categories."""
        return self._enumerated(torch.arange(self._num_events, dtype=torch.long, device=self._param.device), expand)


class _OfCategories(Distribution):
    """A distribution whose parameters are those of a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def param_shape(self) -> torch.Size:
        """The shape of what was given, probs or logits."""
        return self._categorical.param_shape


class OneHotCategorical(_OfCategories):
    """A category as a vector with a one in its place."""

    support = constraints.one_hot
    has_enumerate_support = True
    _parameters = ("_categorical",)

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The most probable category."""
        return self._hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        """p (1 - p), of each component."""
        return self.probs * (1 - self.probs)

    def _hot(self, categories: Tensor) -> Tensor:
        return one_hot(categories, self._categorical._num_events).to(self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw categories."""
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The categories'."""
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        """The categories'."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The rows of the identity matrix."""
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device).view(
            (n,) + (1,) * len(self.batch_shape) + (n,)
        )
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with draws whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A draw, plus the probabilities less themselves: nothing but their gradient."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OfCategories):
    """How often each category comes up in `total_count` draws."""

    _parameters = ("_categorical",)

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the parameters."""
        new = super().expand(batch_shape, _instance)
        new.total_count = self.total_count
        return new

    @lazy_property
    def _binomial(self) -> Binomial:
        """How often a single category comes up."""
        return Binomial(total_count=self.total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts with at most this sum."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw categories and count them."""
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        """From the categories' entropy and the mean of the logarithms of the factorials."""
        n = torch.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = torch.exp(self._binomial.log_prob(counts)) * torch.lgamma(counts + 1)
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + weights.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        """log n! - Σ log xᵢ! + Σ xᵢ log pᵢ."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        # What cannot happen and did not happen counts nothing.
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        arrangements = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return arrangements + (logits * value).sum(-1)
