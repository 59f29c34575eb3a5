"""Lazy conjugates and negatives as programs see them: is_conj, resolve_conj, is_neg, resolve_neg."""

from __future__ import annotations

from pullback._lazy import signs
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, function
from pullback._tensor import Tensor
from pullback.ops.create.copy import clone
from pullback.ops.pointwise.arithmetic import conj_complex
from pullback.ops.shape.complex_views import neg_view

publish("_conj", conj_complex, Publication())
publish("_neg_view", neg_view, Publication())


def marks(tensor: Tensor) -> tuple[bool, bool]:
    """Whether a tensor is a lazy conjugate, and whether a lazy negative."""
    if not isinstance(tensor, Tensor):
        raise TypeError("only tensors are conjugated or negated lazily")
    return signs(tensor)


@function(raw=True, explained=True)
def is_conj(input: Tensor) -> bool:
    """Return True if the tensor is a lazy conjugate: its memory holds the conjugates of its elements."""
    return marks(input)[0]


@function(raw=True, explained=True)
def is_neg(input: Tensor) -> bool:
    """Return True if the tensor is a lazy negative: its memory holds the negatives of its elements."""
    return marks(input)[1]


@function(numpy_names=True)
def resolve_conj(self: Array) -> Array:
    """Write out a lazy conjugate as a copy that holds the conjugated elements; other tensors are returned unchanged."""
    return clone(self) if marks(self)[0] else self


@function(numpy_names=True)
def resolve_neg(self: Array) -> Array:
    """Write out a lazy negative as a copy that holds the negated elements; other tensors are returned unchanged."""
    return clone(self) if marks(self)[1] else self
