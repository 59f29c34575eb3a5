"""Transforms that treat the parts of a tensor along one dimension each in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.transforms.base import Transform
from pullback.distributions.utils import _sum_rightmost, lazy_property


class _PartsTransform(Transform):
    """What CatTransform and StackTransform share."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(transform, Transform) for transform in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(transform.bijective for transform in self.transforms)

    def _check_size(self, name: str, value: Tensor, size: int, meaning: str, called: str = "tensor") -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for {called} with {value.dim()} dimensions")
        if value.size(self.dim) != size:
            raise AssertionError(f"{name}.size({self.dim}) = {value.size(self.dim)} must equal {meaning} {size}")


class CatTransform(_PartsTransform):
    """Transforms of slices of given lengths, as `torch.cat` joins them."""

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:
        """That of the part with the largest events."""
        return max(transform.event_dim for transform in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def _call(self, x: Tensor) -> Tensor:
        self._check_size("x", x, self.length, "length")
        parts = x.split(self.lengths, self.dim)
        return torch.cat([transform(part) for transform, part in zip(self.transforms, parts)], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check_size("y", y, self.length, "length")
        parts = y.split(self.lengths, self.dim)
        return torch.cat([transform.inv(part) for transform, part in zip(self.transforms, parts)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The parts' side by side, or their sum if the dimension belongs to the events."""
        self._check_size("x", x, self.length, "length", "x")
        self._check_size("y", y, self.length, "length", "y")
        terms = []
        pairs = zip(x.split(self.lengths, self.dim), y.split(self.lengths, self.dim))
        for transform, (x_part, y_part) in zip(self.transforms, pairs):
            term = transform.log_abs_det_jacobian(x_part, y_part)
            terms.append(_sum_rightmost(term, max(0, self.event_dim - transform.event_dim)))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms[1:], start=terms[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        """The parts' domains."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The parts' codomains."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """A transform for each index of a dimension, as `torch.stack` joins them."""

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _check_parts(self, name: str, value: Tensor, called: str = "tensor") -> None:
        self._check_size(name, value, len(self.transforms), "len(transforms)", called)

    def _call(self, x: Tensor) -> Tensor:
        self._check_parts("x", x)
        return torch.stack([t(part) for t, part in zip(self.transforms, x.unbind(self.dim))], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check_parts("y", y)
        return torch.stack([t.inv(part) for t, part in zip(self.transforms, y.unbind(self.dim))], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The parts' side by side."""
        self._check_parts("x", x, "x")
        self._check_parts("y", y, "y")
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim))
        return torch.stack([t.log_abs_det_jacobian(one, other) for t, one, other in parts], dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The parts' domains."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The parts' codomains."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
