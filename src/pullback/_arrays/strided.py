"""StridedArray: what every kind of array says of itself that knows shape, strides and dtype, and the views it makes.

Nothing here touches an element, so that arrays without elements (_meta/) and arrays in the memory of another device
(kernels/cuda/) share it: a view is what NumPy makes of an outline, an array with the same shape and strides and nothing
behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np

from pullback._arrays.kinds import ForeignArray

AnyArray = Any


class Flags:
    """The part of NumPy's flags that anybody asks for."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata", "writeable")
    aligned = True

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, owndata: bool) -> None:
        self.c_contiguous = in_order(shape[::-1], strides[::-1], itemsize)
        self.f_contiguous = in_order(shape, strides, itemsize)
        self.owndata, self.writeable = owndata, True

    contiguous = property(lambda self: self.c_contiguous)
    forc = property(lambda self: self.c_contiguous or self.f_contiguous)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)


flags_of = lru_cache(4096)(Flags)
"""Nobody changes them: arrays that lie alike share them."""


def in_order(shape: Sequence[int], strides: Sequence[int], step: int) -> bool:
    """True if dimensions given from the innermost to the outermost lie without gaps."""
    if 0 in shape:
        return True
    for n, stride in zip(shape, strides, strict=True):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


def row_major_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes NumPy gives a new array."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


class StridedArray(ForeignArray):
    """An array that knows its shape, its strides in bytes, its dtype, and whose memory it looks at."""

    __slots__ = ()

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    base: Any

    def seen_as(self, shape: Sequence[int], strides: Sequence[int], dtype: Any = None, skip: int = 0) -> Self:
        """Another window onto the same memory, `skip` bytes further on."""
        raise NotImplementedError("defined by the kind")

    # ---------------------------------------------------------------- facts
    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes all elements would take."""
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        """How the elements would lie."""
        return flags_of(self.shape, self.strides, self.dtype.itemsize, self.base is None)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    # ---------------------------------------------------------------- views
    def outline(self) -> AnyArray:
        """An array of NumPy's with this shape and these strides, of which no element may be touched: to see what
        NumPy makes of an index or a permutation."""
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    def through(self, look: Any) -> Self:
        """The window that a function which only makes views sees."""
        outline = self.outline()
        window = look(outline)
        skip = window.__array_interface__["data"][0] - outline.__array_interface__["data"][0]
        return self.seen_as(window.shape, window.strides, window.dtype, skip if window.size else 0)

    def transpose(self, *axes: Any) -> Self:
        """The dimensions in another order."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
        if order and all([type(d) is int for d in order]) and sorted(order) == [*range(len(self.shape))]:
            return self.seen_as([self.shape[d] for d in order], [self.strides[d] for d in order])
        return self.through(lambda a: a.transpose(*axes))

    def copy(self, order: str = "C") -> Self:
        """A copy."""
        raise NotImplementedError("defined by the kind")

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Self:
        """The same elements in another shape: a view where strides can say it, else in new memory."""
        given = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        wanted = full_shape(self.shape, tuple(given))
        if order == "C" and self.flags.c_contiguous:
            return self.seen_as(wanted, row_major_strides(wanted, self.dtype.itemsize))
        if order == "A":
            order = "F" if self.flags.fnc else "C"
        try:
            return self.through(lambda a: a.reshape(wanted, order=order, copy=False))
        except ValueError:
            if copy is False:
                raise
        return self.copy(order).through(lambda a: a.reshape(wanted, order=order, copy=False))

    @property
    def T(self) -> Self:
        """The dimensions in reverse."""
        return self.seen_as(self.shape[::-1], self.strides[::-1])

    def swapaxes(self, one: int, other: int) -> Self:
        """Two dimensions exchanged."""
        return self.through(lambda a: a.swapaxes(one, other))

    def squeeze(self, axis: Any = None) -> Self:
        """Without dimensions of one element."""
        return self.through(lambda a: a.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The diagonals of two dimensions."""
        return self.through(lambda a: a.diagonal(offset, axis1, axis2))

    @property
    def real(self) -> Self:
        """The real parts."""
        return self.through(lambda a: a.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    def view(self, dtype: Any = None, type: Any = None) -> Self:
        """The same memory, read as another dtype."""
        if dtype is None or dtype is np.ndarray:
            return self.seen_as(self.shape, self.strides)
        return self.through(lambda a: a.view(dtype))


# ------------------------------------------------------------------ shapes


def full_shape(have: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """A shape to reshape to, its -1 worked out; NumPy's error if it does not fit."""
    wanted = tuple([int(n) for n in wanted])
    size = math.prod(have)
    if -1 in wanted:
        rest = math.prod([n for n in wanted if n != -1])
        fits = wanted.count(-1) == 1 and rest and size % rest == 0
        if not fits:
            raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
        wanted = tuple([size // rest if n == -1 else n for n in wanted])
    if math.prod(wanted) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
    return wanted
