"""Probabilities of yes or no that are given as `probs` or as `logits`: the other one is computed when it is read."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions.utils import broadcast_all, lazy_property, logits_to_probs, one_of, probs_to_logits


def take_binary(distribution: Any, probs: Any, logits: Any) -> None:
    """Keep the one of both that is given, as a tensor."""
    name = one_of("probs", "logits", probs, logits)
    (value,) = broadcast_all(probs if logits is None else logits)
    setattr(distribution, name, value)
    distribution._param = value


def take_counted(distribution: Any, total_count: Any, probs: Any, logits: Any) -> None:
    """Keep the one of both that is given, and a number of trials of the same shape and dtype."""
    name = one_of("probs", "logits", probs, logits)
    count, value = broadcast_all(total_count, probs if logits is None else logits)
    distribution.total_count = count.type_as(value)
    setattr(distribution, name, value)
    distribution._param = value


@lazy_property
def logits(self: Any) -> Tensor:
    """The log odds."""
    return probs_to_logits(self.probs, is_binary=True)


@lazy_property
def probs(self: Any) -> Tensor:
    """The probability of yes."""
    return logits_to_probs(self.logits, is_binary=True)


@property  # type: ignore[misc]
def param_shape(self: Any) -> torch.Size:
    """The shape of what was given, probs or logits."""
    return self._param.size()
