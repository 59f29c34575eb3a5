"""register_kl and kl_divergence: the formula for two distributions is the one registered for their nearest classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import total_ordering
from typing import Any

from pullback import Tensor
from pullback.distributions.distribution import Distribution

Formula = Callable[[Any, Any], Tensor]

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Register the decorated function as the formula for two classes of distributions and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        # As in torch, any class will do, and what is none is refused by issubclass itself.
        if not isinstance(kind, type) and issubclass(kind, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def add(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _KL_MEMOIZE.clear()  # what was found before may not be the nearest any more
        return formula

    return add


@total_ordering
class _Match:
    """Classes that match; smaller is nearer, the first class first."""

    __slots__ = ("types",)

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for one, two in zip(self.types, other.types):
            if not issubclass(one, two):
                return False
            if one is not two:
                break
        return True

    __hash__ = None  # type: ignore[assignment]


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The formula whose classes are nearest: judged by p first, with a warning if judging by q first says another."""
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(p, q) for p, q in matches).types
    right_q, right_p = min(_Match(q, p) for p, q in matches).types
    formula = _KL_REGISTRY[left_p, left_q]
    if formula is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return formula


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of q from p: the mean under p of log p(x) - log q(x)."""
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    formula = _KL_MEMOIZE[pair]
    if formula is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return formula(p, q)  # type: ignore[no-any-return]
