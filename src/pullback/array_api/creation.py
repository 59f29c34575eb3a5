"""Functions of the array API standard that make arrays."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = int | tuple[int, ...]


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> torch.Tensor:
    """An array of numbers, of sequences of numbers, or of another library's array; a tensor keeps its history."""
    if not isinstance(obj, torch.Tensor):
        return torch.asarray(obj, dtype=dtype, device=device, copy=copy)
    if copy is False and dtype not in (None, obj.dtype):
        raise ValueError(f"an array of {obj.dtype} cannot become one of {dtype} without a copy")
    return obj.to(device=device, dtype=dtype, copy=bool(copy))


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> torch.Tensor:
    """The numbers from a start (zero, if only a stop is given) up to a stop, in equal steps."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("the step must not be zero")
    if dtype is None:
        whole = all(isinstance(number, int) for number in (start, stop, step))
        dtype = torch.int64 if whole else torch.get_default_dtype()
    if math.copysign(1, step) * (stop - start) <= 0:
        return torch.empty(0, dtype=dtype, device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> torch.Tensor:
    """Evenly spaced numbers, the last of which is the stop if it is an endpoint."""
    if endpoint:
        return torch.linspace(start, stop, num, dtype=dtype, device=device)
    return torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def empty(shape: Shape, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of elements that happen to be there."""
    return torch.empty(shape, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of zeros."""
    return torch.zeros(shape, dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of ones."""
    return torch.ones(shape, dtype=dtype, device=device)


def full(shape: Shape, fill_value: complex, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of one number."""
    return torch.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def empty_like(x: torch.Tensor, /, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of the same shape, of elements that happen to be there."""
    return torch.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: torch.Tensor, /, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of the same shape, of zeros."""
    return torch.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: torch.Tensor, /, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of the same shape, of ones."""
    return torch.ones_like(x, dtype=dtype, device=device)


def full_like(x: torch.Tensor, /, fill_value: complex, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """An array of the same shape, of one number."""
    return torch.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> torch.Tensor:
    """Ones on a diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    out = torch.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        out.diagonal(k).fill_(1)
    return out


def tril(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """The elements on and below a diagonal; the others are zero."""
    return torch.tril(x, k)


def triu(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """The elements on and above a diagonal; the others are zero."""
    return torch.triu(x, k)


def meshgrid(*arrays: torch.Tensor, indexing: str = "xy") -> tuple[torch.Tensor, ...]:
    """The coordinates of a grid."""
    return tuple(torch.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> torch.Tensor:
    """An array on the memory of another library's."""
    return torch.from_dlpack(x, device=device, copy=copy)
