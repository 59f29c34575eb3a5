"""What native programs are made of: windows on memory, and pieces of work on them.

A piece names what it reads and what it writes, so that pieces can be put together, left out and moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np


class Base:
    """A piece of memory: that of an array which is given, or made here."""

    __slots__ = ("alias", "dtype", "made", "size", "slot")

    def __init__(self, dtype: np.dtype[Any], size: int, slot: Any = None, alias: Any = None) -> None:
        self.dtype, self.size, self.slot = dtype, size, slot
        self.made = slot is None
        """Whether it is made by native code; else the array of a slot is given, with its first element."""
        self.alias: Any = self if alias is None else alias
        """Bases of one alias may be the same memory."""


class Window:
    """Some elements of a base, as an array has them; strides in elements."""

    __slots__ = ("base", "offset", "shape", "strides")

    def __init__(self, base: Base, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.base, self.offset, self.shape = base, offset, shape
        self.strides = tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.base.dtype

    @property
    def size(self) -> int:
        """How many elements it shows."""
        return prod(self.shape)

    def key(self) -> Any:
        """What equal windows have in common."""
        return self.base, self.offset, self.shape, self.strides

    def steps(self, shape: Sequence[int]) -> list[int]:
        """The strides of the window broadcast to a shape."""
        return [0] * (len(shape) - len(self.shape)) + list(self.strides)

    def is_row_major(self) -> bool:
        """Whether its elements lie side by side in order."""
        return self.strides == row_major(self.shape)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new array, 0 where nothing is next to an element."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(0 if n == 1 else step)
        step *= n
    return tuple(reversed(steps))


def fresh(dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int] | None = None) -> Window:
    """New memory for an array: row-major, or with the strides of one without gaps."""
    shape = tuple(shape)
    size = prod(shape)
    return Window(Base(dtype, size), 0, shape, row_major(shape) if strides is None else tuple(strides))


class Point:
    """One operation on elements: out[i] = op(args[i]), arguments broadcast to the shape of `out`."""

    __slots__ = ("args", "dtypes", "op", "out")

    def __init__(self, op: str, args: Sequence[Any], dtypes: Sequence[np.dtype[Any]], out: Window) -> None:
        self.op, self.args, self.out = op, tuple(args), out
        self.dtypes = tuple(dtypes)
        """In which each argument is read, and the result computed, before it is written in the dtype of `out`."""

    def reads(self) -> Iterator[Window]:
        """The windows read."""
        return (arg for arg in self.args if type(arg) is Window)


class Dot:
    """A product of matrices, or of stacks of them: out = a @ b, plus `added` where there is such."""

    __slots__ = ("a", "added", "b", "out", "panels")

    def __init__(self, a: Window, b: Window, out: Window, panels: Window | None = None) -> None:
        self.a, self.b, self.out = a, b, out
        self.added: Window | None = None
        """A row, or a matrix for each product."""
        self.panels = panels
        """Where the kernel for large products packs what it reads; None for small ones."""

    def reads(self) -> Iterator[Window]:
        """The windows read."""
        return iter((self.a, self.b) if self.added is None else (self.a, self.b, self.added))

    def writes(self) -> list[Window]:
        """The windows written."""
        return [self.out] if self.panels is None else [self.out, self.panels]


class Reduce:
    """out = how over some dimensions of x; `out` has the other ones."""

    __slots__ = ("axes", "how", "out", "x")

    def __init__(self, how: str, x: Window, axes: Sequence[int], out: Window) -> None:
        self.how, self.x, self.axes, self.out = how, x, tuple(axes), out

    def count(self) -> int:
        """How many elements become one."""
        return prod([self.x.shape[a] for a in self.axes])

    def reads(self) -> Iterator[Window]:
        """The windows read."""
        return iter((self.x,))


Piece = Point | Dot | Reduce
