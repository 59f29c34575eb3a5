"""Python functions called once for each element: apply_, map_, map2_. Slow, and outside of autograd, as in torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index as as_index
from typing import Any

import numpy as np

from pullback._dtype import TYPE_NAME
from pullback._lazy import store
from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.ops.shape.reshape import check_expand


def real(value: Any) -> float:
    """A number as a float; a text is none, even one that could be read as one."""
    return math.ldexp(value, 0)


def whole(value: Any) -> int:
    """A number rounded towards zero."""
    return math.trunc(value) if isinstance(value, float) else as_index(value)


CONVERT = {"b": bool, "i": whole, "u": whole, "f": real, "c": complex}


def refuse_gradients(name: str, *tensors: Tensor) -> None:
    """Python functions leave no history."""
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def write_each(self: Tensor, values: Any) -> Tensor:
    """Write one value after the other, all computed before the first is written; versions do not count it."""
    convert = CONVERT.get(self._array.dtype.kind, real)
    items = [convert(value) for value in values]
    store(self, np.array(items, self._array.dtype).reshape(self._array.shape))
    return self


def beside(self: Tensor, other: Tensor, where: str) -> list[Any]:
    """The elements of another tensor of the same type, expanded to the shape of self."""
    if other.dtype is not self.dtype:
        wanted, got = (TYPE_NAME[t.dtype] for t in (self, other))
        raise TypeError(f"{where.format(wanted)} (got {got})")
    check_expand(other._array, self._array.shape)
    return np.broadcast_to(other._array, self._array.shape).reshape(-1).tolist()


@function(raw=True, space=None)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element x by `callable(x)`, in place.

    Calls Python for every element, so it is slow and not differentiable: tensors that require a gradient are refused.
    """
    refuse_gradients("apply_", self)
    return write_each(self, (callable(value) for value in self._array.reshape(-1).tolist()))


@function(raw=True, space=None)
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element x by `callable(x, y)`, in place, where y is the matching element of `tensor`.

    `tensor` has the same dtype and broadcasts to this shape. Slow and not differentiable, as `apply_`.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"map_(): argument 'other' (position 1) must be Tensor, not {type(tensor).__name__}")
    refuse_gradients("map_", self, tensor)
    others = beside(self, tensor, "map_: expected {} for 'other'")
    return write_each(self, map(callable, self._array.reshape(-1).tolist(), others))


@function(raw=True, space=None)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element z by `callable(z, x, y)`, in place, with the matching elements of the tensors `x` and `y`.

    Both have the same dtype as this tensor and broadcast to its shape. Slow and not differentiable, as `apply_`.
    """
    for position, (name, tensor) in enumerate((("x", x), ("y", y))):
        if not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"map2_(): argument '{name}' (position {position + 1}) must be Tensor, not {kind}")
    refuse_gradients("map2_", self, x, y)
    first, second = (beside(self, t, f"map2_: expected {{}} for argument '{n}'") for n, t in (("x", x), ("y", y)))
    return write_each(self, map(callable, self._array.reshape(-1).tolist(), first, second))
