"""ExponentialFamily: distributions p(x) = h(x) exp(t(x)·θ - F(θ)), known by their natural parameters θ."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with natural parameters θ, a log normalizer F(θ) and the mean of its carrier measure log h(x)."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, from the gradient of the log normalizer: F(θ) - θ·∇F(θ) - E[log h(x)]."""
        result: Any = -self._mean_carrier_measure
        parameters = [value.detach().requires_grad_() for value in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = torch.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = result + normalizer
        for value, gradient in zip(parameters, gradients):
            result = result - (value * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result  # type: ignore[no-any-return]
