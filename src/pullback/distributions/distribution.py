"""Distribution: what all distributions share, from shapes and validation to `expand` and printing."""

from __future__ import annotations

import warnings
from typing import Any, Self

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.utils import Shape, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them.

    A sample has the shape `sample_shape + batch_shape + event_shape`: one event of each distribution of the batch,
    for each element of the sample shape. Events are what `log_prob` gives one number for.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args: bool = __debug__
    _parameters: tuple[str, ...] | None = None
    """The attributes that start with the dimensions of the batch: what `expand` expands, tensors and distributions.

    A class with its own __init__ names its own."""

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether distributions check their parameters and values unless told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self._batch_shape = torch.Size(batch_shape)
        self._event_shape = torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        """Compare each parameter with its constraint."""
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # probs and logits say the same: only the one that was given is checked
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """The same distributions with their parameters expanded to a larger batch, as views."""
        if self._parameters is None:
            raise NotImplementedError
        new = self._with_parameters(batch_shape, _instance)
        return self._finish_expanded(new, batch_shape)

    def _with_parameters(self, batch_shape: Shape, _instance: Any) -> Any:
        """A new instance that has the expanded parameters and nothing else yet."""
        home = next(cls for cls in type(self).__mro__ if "_parameters" in cls.__dict__)
        new = self._get_checked_instance(home, _instance)
        own = len(self._batch_shape)
        for name in home._parameters:  # type: ignore[attr-defined]
            value = self.__dict__.get(name)
            if isinstance(value, Distribution):
                new.__dict__[name] = value.expand(torch.Size(batch_shape) + value._batch_shape[own:])
            elif value is not None:
                new.__dict__[name] = value.expand(torch.Size(batch_shape) + value.shape[own:])
        return new

    def _finish_expanded(self, new: Any, batch_shape: Shape) -> Any:
        """Give an expanded distribution its shapes; its parameters were checked already."""
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> torch.Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint each parameter must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that events satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable event."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw events, without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw events as differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draw `n` events of each distribution."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of events."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of an event not greater than this one."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The event at which `cdf` has this value."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All events of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return torch.exp(self.entropy())

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Events in one dimension, brought to the shape `enumerate_support` answers with."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _extended_shape(self, sample_shape: Shape = ()) -> torch.Size:
        """The shape of a sample."""
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Tensor) -> None:
        """Check that a value may be an event: its shape and its elements."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, expected = value.shape, self._batch_shape + self._event_shape
        if actual[value.dim() - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        for i, j in zip(reversed(actual), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _check(self, value: Tensor) -> None:
        """Validate a value if this distribution validates."""
        if self._validate_args:
            self._validate_sample(value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A bare instance for `expand` to fill; a subclass with its own __init__ must bring its own."""
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def __repr__(self) -> str:
        own = self.__dict__
        shown = [(name, own[name]) for name in self.arg_constraints if name in own]
        inside = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in shown)
        return f"{self.__class__.__name__}({inside})"
