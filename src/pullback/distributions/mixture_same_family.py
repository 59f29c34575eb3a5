"""MixtureSameFamily: a Categorical chooses among distributions of one family."""

from __future__ import annotations

from typing import Any, Self

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.categorical import Categorical
from pullback.distributions.distribution import Distribution
from pullback.distributions.utils import Shape

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: the last dimension of the components' batch holds what the mixture distribution chooses from."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _parameters = ("_mixture_distribution", "_component_distribution")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        chosen, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for size, other in zip(reversed(chosen), reversed(batch_shape)):
            if size != 1 and other != 1 and size != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({chosen}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Expand the choice and what is chosen from."""
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        shape = torch.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand((*shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return self._finish_expanded(new, shape)

    @constraints.dependent_property
    def support(self) -> Any:
        """What every component supports."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """What is chosen from."""
        return self._component_distribution

    def _mixed(self, value: Tensor) -> Tensor:
        """The mean over the components of a value they have."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return torch.sum(probs * value, dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        """The mean of the components' means."""
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        spread = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._mixed(self.component_distribution.variance) + self._mixed(spread)

    def cdf(self, value: Tensor) -> Tensor:
        """The mean of the components'."""
        below = self.component_distribution.cdf(self._pad(value))
        return torch.sum(below * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """log Σ pᵢ pᵢ(x)."""
        self._check(value)
        of_components = self.component_distribution.log_prob(self._pad(value))
        of_choice = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(of_components + of_choice, dim=-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw a choice, then all components, and take what was chosen."""
        with torch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            choice = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = choice.reshape(choice.shape + (1,) * (self._event_ndims + 1))
            index = index.repeat((1,) * len(choice.shape) + (1, *self.event_shape))
            return torch.gather(drawn, dim, index).squeeze(dim)

    def _pad(self, value: Tensor) -> Tensor:
        """A dimension for the components, before the event."""
        return value.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, value: Tensor) -> Tensor:
        """The choice's probabilities with dimensions for the batch and the events of the components."""
        own = len(self.mixture_distribution.batch_shape)
        more = 0 if own == 1 else len(self.batch_shape) - own
        return value.reshape(value.shape[:-1] + more * (1,) + value.shape[-1:] + self._event_ndims * (1,))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
