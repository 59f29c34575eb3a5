"""Quantiles: linear interpolation between sorted elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import float32, float64, int64
from pullback._op.define import Array, function, op
from pullback._op.out import exactly
from pullback._tensor import Tensor, wrap
from pullback.ops.reduce.sort import sort_any
from pullback.ops.shape.reshape import wrapped

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@function(
    out_by_rows="always",
    out=True,
    autocast="float32",
    out_dtype=exactly("quantile() out tensor must be same dtype as the input tensor"),
    out_copies=True,
)
def quantile(
    self: Array, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """Compute quantiles of all elements, or along a dimension; NaN where there is a NaN.

    `q` is a number in [0, 1] or a vector of them, which adds a first dimension to the result.
    The quantile lies at the place `q * (n - 1)` of the n sorted elements; between two of them `interpolation` decides:
    "linear", "lower", "higher", "nearest" or "midpoint". With `keepdim` the reduced dimensions stay, with size 1.
    """
    return quantiles("quantile", self, q, dim, keepdim, interpolation, False)


@function(
    out_by_rows="always",
    out=True,
    autocast="float32",
    out_dtype=exactly("quantile() out tensor must be same dtype as the input tensor"),
    out_copies=True,
)
def nanquantile(
    self: Array, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """Compute quantiles of the elements that are not NaN, of all or along a dimension.

    The arguments are those of `quantile`. Where there is nothing but NaN, the result is NaN.
    """
    return quantiles("nanquantile", self, q, dim, keepdim, interpolation, True)


def quantiles(
    name: str, self: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Array:
    """Sort, find the two elements between which each quantile lies, and interpolate."""
    q = checked(self, q, interpolation)
    place = None if dim is None or (not self.ndim and dim in (0, -1)) else wrapped(dim, self.ndim)
    in_order = along_last(self, place)
    in_order = in_order.view(*reduced_shape(self, place, keepdim), in_order.shape[-1])
    ranks = ranks_of(in_order, q if q.ndim else q.unsqueeze(0), ignore_nan)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    below = ranks.to(int64)
    values = in_order.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = ranks.new_full(ranks.shape, 0.5) if interpolation == "midpoint" else ranks - below
        values = values.lerp(in_order.gather(-1, ranks.ceil().to(int64)), weights)
    return values.squeeze_(-1) if not q.ndim else values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)


def checked(self: Tensor, q: Any, interpolation: str) -> Tensor:
    """q as a tensor, after torch's checks."""
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q = wrap(made_on(self.device, np.full, (), q, self._array.dtype))
    if not self.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self.dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    in_range(q)
    return q


@op(space=None, pointwise=True, untraced=True)
def in_range(q: Array) -> Array:
    """True for each quantile there is, after torch's check; an op, so that it sees all entries of a batch."""
    found = np.logical_and(q >= 0, q <= 1)
    if not found.all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return found


def along_last(self: Tensor, dim: int | None) -> Tensor:
    """The sorted elements, with the dimension the quantiles are taken over at the end."""
    if dim is None:
        return sort_any(self.flatten())[0]
    if dim == self.ndim - 1:
        return sort_any(self)[0]
    return sort_any(self.unsqueeze(-1).transpose(dim, -1))[0]


def reduced_shape(self: Tensor, dim: int | None, keepdim: bool) -> list[int]:
    """The shape of one quantile."""
    if dim is None or not self.ndim:
        return [1] * self.ndim if keepdim else []
    return [n if i != dim else 1 for i, n in enumerate(self.shape) if keepdim or i != dim]


def ranks_of(in_order: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """The fractional rank of each quantile in each row; where there is nan, that of a nan unless it is ignored."""
    if ignore_nan:
        ranks = q * ((in_order == in_order).sum(-1, True) - 1)
        return ranks.masked_fill(ranks < 0, 0)
    last = in_order.shape[-1] - 1
    has_nan = (in_order != in_order).any(-1, True)
    ranks = (q * last).expand(*in_order.shape[:-1], q.shape[0])
    return ranks.masked_fill(has_nan, last)
