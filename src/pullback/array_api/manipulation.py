"""Functions of the array API standard that change shapes, and join and repeat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback as torch
from pullback.array_api.dtypes import operands

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims",
    "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip

Axes = int | tuple[int, ...]


def as_tuple(axis: Any) -> tuple[int, ...]:
    """One dimension or several, as a tuple."""
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_arrays(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The arrays, all in the shape they have in common."""
    return tuple(torch.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes have in common."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not fit together") from error


def broadcast_to(x: torch.Tensor, /, shape: tuple[int, ...]) -> torch.Tensor:
    """The array in a larger shape."""
    return torch.broadcast_to(x, shape)


def concat(arrays: Sequence[torch.Tensor], /, *, axis: int | None = 0) -> torch.Tensor:
    """The arrays one after the other along a dimension; flat ones without a dimension."""
    joined = operands(*arrays)
    return torch.cat([array.reshape(-1) for array in joined]) if axis is None else torch.cat(joined, axis)


def stack(arrays: Sequence[torch.Tensor], /, *, axis: int = 0) -> torch.Tensor:
    """The arrays one after the other along a new dimension."""
    return torch.stack(operands(*arrays), axis)


def unstack(x: torch.Tensor, /, *, axis: int = 0) -> tuple[torch.Tensor, ...]:
    """The slices along a dimension."""
    return torch.unbind(x, axis)


def expand_dims(x: torch.Tensor, /, axis: Axes) -> torch.Tensor:
    """With dimensions of size one at some positions of the result."""
    axes = as_tuple(axis)
    ndim = x.ndim + len(axes)
    if not all(-ndim <= dim < ndim for dim in axes):
        raise IndexError(f"the positions {axes} are not all among the {ndim} dimensions of the result")
    positions = sorted(dim % ndim for dim in axes)
    if len(set(positions)) != len(positions):
        raise ValueError(f"the positions {axes} are not all different")
    for dim in positions:
        x = torch.unsqueeze(x, dim)
    return x


def squeeze(x: torch.Tensor, /, axis: Axes) -> torch.Tensor:
    """Without dimensions of size one."""
    for dim in as_tuple(axis):
        if x.shape[dim] != 1:
            raise ValueError(f"dimension {dim} has the size {x.shape[dim]}, not one")
    return torch.squeeze(x, as_tuple(axis))


def flip(x: torch.Tensor, /, *, axis: Axes | None = None) -> torch.Tensor:
    """The elements in reverse order along some dimensions, all by default."""
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else as_tuple(axis))


def moveaxis(x: torch.Tensor, source: Axes, destination: Axes, /) -> torch.Tensor:
    """Some dimensions moved to other positions."""
    return torch.moveaxis(x, source, destination)


def permute_dims(x: torch.Tensor, /, axes: tuple[int, ...]) -> torch.Tensor:
    """The dimensions in another order."""
    return torch.permute(x, axes)


def reshape(x: torch.Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> torch.Tensor:
    """The elements in another shape; without a copy where that can be, or never (False), or always with one (True)."""
    if copy:
        return torch.reshape(x.clone(), shape)
    if copy is None:
        return torch.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"shape {tuple(x.shape)} cannot become {tuple(shape)} without a copy: {error}") from error


def roll(x: torch.Tensor, /, shift: Axes, *, axis: Axes | None = None) -> torch.Tensor:
    """The elements shifted around."""
    if axis is None:
        return torch.roll(x, shift)
    axes = as_tuple(axis)
    if not axes:
        return x.clone()
    return torch.roll(x, (shift,) * len(axes) if isinstance(shift, int) else shift, axes)


def repeat(x: torch.Tensor, repeats: int | torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """Each element several times."""
    return torch.repeat_interleave(x, repeats, axis)


def tile(x: torch.Tensor, repetitions: tuple[int, ...], /) -> torch.Tensor:
    """The whole array several times along each dimension."""
    return torch.tile(x, repetitions)
