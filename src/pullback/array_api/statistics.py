"""Functions of the array API standard that reduce dimensions, and those that run along one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback.array_api.dtypes import KINDS
from pullback.array_api.manipulation import as_tuple

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip

Axes = int | tuple[int, ...] | None


def over(x: torch.Tensor, axis: Axes, keepdims: bool) -> tuple[torch.Tensor, tuple[int, ...], bool]:
    """What to reduce, over which dimensions, and whether to keep them.

    No dimensions are none here, and all of them to torch: a dimension of size one is reduced instead.
    """
    if axis is None:
        axis = tuple(range(x.ndim))
    if axis == () or x.ndim == 0:
        return x.unsqueeze(-1), (-1,), False
    return x, as_tuple(axis), keepdims


def sum_dtype(x: torch.Tensor, dtype: Any) -> Any:
    """The dtype of sums and products: wide enough for many elements, and without a sign if they have none."""
    return torch.uint64 if dtype is None and x.dtype in KINDS["unsigned integer"] else dtype


def sum(x: torch.Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> torch.Tensor:
    """The sum over some dimensions, all by default."""
    part, dims, keep = over(x, axis, keepdims)
    return torch.sum(part, dims, keep, dtype=sum_dtype(x, dtype))


def prod(x: torch.Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> torch.Tensor:
    """The product over some dimensions, all by default."""
    part, dims, keep = over(x, axis, keepdims)
    kind = sum_dtype(x, dtype)
    for dim in sorted([dim % part.ndim for dim in dims], reverse=True):
        part = torch.prod(part, dim, keep, dtype=kind)
    return part


def mean(x: torch.Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> torch.Tensor:
    """The mean over some dimensions, all by default."""
    return torch.mean(*over(x, axis, keepdims))


def max(x: torch.Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> torch.Tensor:
    """The largest element over some dimensions, all by default."""
    return torch.amax(*over(x, axis, keepdims))


def min(x: torch.Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> torch.Tensor:
    """The smallest element over some dimensions, all by default."""
    return torch.amin(*over(x, axis, keepdims))


def std(x: torch.Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    """The standard deviation over some dimensions, all by default."""
    part, dims, keep = over(x, axis, keepdims)
    return torch.std(part, dims, correction=correction, keepdim=keep)


def var(x: torch.Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    """The variance over some dimensions, all by default."""
    part, dims, keep = over(x, axis, keepdims)
    return torch.var(part, dims, correction=correction, keepdim=keep)


def any(x: torch.Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> torch.Tensor:
    """Whether an element is not zero."""
    return torch.any(*over(x.bool(), axis, keepdims))


def all(x: torch.Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> torch.Tensor:
    """Whether all elements are not zero."""
    return torch.all(*over(x.bool(), axis, keepdims))


def cumulative_sum(
    x: torch.Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> torch.Tensor:
    """The running sum; with `include_initial` it begins with a zero."""
    return running(torch.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: torch.Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> torch.Tensor:
    """The running product; with `include_initial` it begins with a one."""
    return running(torch.cumprod, x, axis, dtype, 1 if include_initial else None)


def running(
    op: Callable[..., torch.Tensor], x: torch.Tensor, axis: int | None, dtype: Any, initial: int | None
) -> torch.Tensor:
    """The results of an operation on ever more elements, after the number it starts with, if that is wanted."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"an array of {x.ndim} dimensions needs an axis to run along")
        axis = 0
    out = op(x, axis, dtype=sum_dtype(x, dtype))
    if initial is None:
        return out
    shape = list(out.shape)
    shape[axis] = 1
    return torch.cat([torch.full(shape, initial, dtype=out.dtype), out], axis)


def diff(
    x: torch.Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> torch.Tensor:
    """The differences of neighbours along a dimension, taken several times."""
    return torch.diff(x, n, axis, prepend, append)
