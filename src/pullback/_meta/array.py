"""MetaArray: an array without elements. Shape, strides and dtype are those the real one would have.

It answers to what NumPy's arrays answer to, as far as no element has to be known: views are views of the same
(absent) memory, writes check that they fit and write nothing. Whoever asks for an element gets `NoValues`.
What NumPy's *functions* make of such arrays is said in _meta/rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback._arrays.strided import StridedArray, row_major_strides
from pullback._device import META
from pullback._runtime.messages import NO_META_VALUES

AnyArray = Any
NUMBERS = (bool, int, float, complex)


class NoValues(NotImplementedError):
    """An element of an array without elements was asked for."""


if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    raise NotImplementedError('device="meta" needs NumPy 2.1 or newer: older ones copy what is not there')


class MetaArray(StridedArray):
    """Shape, strides, dtype, and whose memory it would be."""

    __slots__ = ("address", "base", "dtype", "expected", "shape", "strides")
    device = META

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    base: MetaArray | None

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        strides: Sequence[int] | None = None,
        base: MetaArray | None = None,
        address: int = 0,
    ) -> None:
        self.shape, self.dtype = tuple([int(n) for n in shape]), np.dtype(dtype)
        self.strides = row_major_strides(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)
        self.base, self.address = base, address
        self.expected = False

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, dtype={self.dtype.name}, strides={self.strides})"

    # ---------------------------------------------------------------- elements, which there are none of
    def item(self, *index: Any) -> Any:
        """There is none."""
        raise NoValues(NO_META_VALUES)

    tolist = tobytes = __int__ = __float__ = __complex__ = __index__ = item  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """What code that asks about elements expects to hear: that nothing unusual is among them.

        Forwards and checks ask so whether an index is too large or a divisor zero. What shape a result has must not
        depend on the answer: where it does, the function that counts or finds elements raises `NoValues`.
        """
        return self.expected

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NoValues(NO_META_VALUES)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return answer_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return answer_function(function, args, kwargs)

    # ---------------------------------------------------------------- views
    def seen_as(self, shape: Sequence[int], strides: Sequence[int], dtype: Any = None, skip: int = 0) -> MetaArray:
        """Another window onto the same memory, `skip` bytes further on."""
        owner = self if self.base is None else self.base
        return MetaArray(shape, self.dtype if dtype is None else dtype, strides, owner, self.address + skip)

    @property
    def imag(self) -> MetaArray:
        """The imaginary parts."""
        return self.through(lambda a: a.imag) if self.dtype.kind == "c" else MetaArray(self.shape, self.dtype)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def ravel(self, order: str = "C") -> MetaArray:
        """All elements in a row."""
        return self.reshape(-1, order="A" if order == "K" else order)

    def flatten(self, order: str = "C") -> MetaArray:
        """All elements in a row, in new memory."""
        return MetaArray((self.size,), self.dtype)

    # ---------------------------------------------------------------- copies
    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """A copy in another dtype."""
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype and (order == "K" or (order == "C" and self.flags.c_contiguous)):
            return self
        return new_like(self, dtype, order)

    def copy(self, order: str = "C") -> MetaArray:
        """A copy."""
        return new_like(self, self.dtype, order)

    def __copy__(self) -> MetaArray:
        return new_like(self, self.dtype, "K")

    def __deepcopy__(self, memo: Any) -> MetaArray:
        return new_like(self, self.dtype, "K")

    def __reduce__(self) -> Any:
        return MetaArray, (self.shape, self.dtype, self.strides)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    # ---------------------------------------------------------------- indexing
    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if any([is_index_array(part) for part in parts]):
            return MetaArray(indexed_shape(self, parts), self.dtype)
        return self.through(lambda a: a[(*parts, ...)] if Ellipsis not in parts else a[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, (*NUMBERS, np.generic)):
            target = self.shape if key is Ellipsis else self[key].shape
            given = value.shape if isinstance(value, np.ndarray) else np.shape(value)
            while len(given) > len(target) and given[0] == 1:
                given = given[1:]
            if np.broadcast_shapes(given, target) != target:
                raise ValueError(f"could not broadcast input array from shape {given} into shape {target}")

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """Elements by number."""
        return answer_function(np.take, (self, indices, axis), {})

    def fill(self, value: Any) -> None:
        """Nothing to fill."""

    def sort(self, axis: int = -1, kind: Any = None, stable: Any = None) -> None:
        """Nothing to sort."""


# ------------------------------------------------------------------ attached by _meta/rules.py


def answer_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc makes of arrays of which some have no elements."""
    raise NotImplementedError("import pullback._meta.rules first")


def answer_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What another function of NumPy makes of them."""
    raise NotImplementedError("import pullback._meta.rules first")


# ------------------------------------------------------------------ shapes


def order_of(array: Any) -> list[int]:
    """The dimensions of an array from the outermost in memory to the innermost, as NumPy's order "K" keeps them."""
    return sorted(range(array.ndim), key=lambda d: (-abs(array.strides[d]), d))


def empty_in(shape: Sequence[int], order: Sequence[int], dtype: Any) -> MetaArray:
    """A new array whose dimensions lie in an order, from the outermost to the innermost."""
    strides = row_major_strides([shape[d] for d in order], np.dtype(dtype).itemsize)
    return MetaArray(shape, dtype, [strides[order.index(d)] for d in range(len(shape))])


def new_like(array: Any, dtype: Any, order: str = "K", shape: Any = None) -> MetaArray:
    """A new array of the shape of another, its memory in the order NumPy's letter says."""
    if shape is not None and len(shape) != array.ndim:
        return MetaArray(shape, dtype)
    shape = array.shape if shape is None else shape
    if order == "A":
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    if order == "C" or array.flags.c_contiguous:
        return MetaArray(shape, dtype)
    if order == "F":
        return empty_in(shape, list(range(len(shape)))[::-1], dtype)
    return empty_in(shape, order_of(array), dtype)


def is_index_array(part: Any) -> bool:
    """True for a part of an index that is not a slice, a number, None or `...`."""
    return isinstance(part, (np.ndarray, list)) and not (
        type(part) is np.ndarray and part.ndim == 0 and part.dtype != bool
    )


def indexed_shape(array: MetaArray, parts: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape that an index with arrays in it gives: NumPy's, of stand-ins that are stretched from one element."""
    stretched = []
    for part in parts:
        if type(part) is MetaArray and part.dtype.kind == "b":
            raise NoValues(NO_META_VALUES)
        if isinstance(part, np.ndarray) and part.dtype.kind != "b":
            part = np.broadcast_to(np.zeros((), np.int64), part.shape)
        stretched.append(part)
    # Indexing would copy: the elements that are kept are counted with all other dimensions of one element.
    sliced, at = [], 0
    expanded = [p for p in stretched if p is not Ellipsis]
    taken = sum([p.ndim if isinstance(p, np.ndarray) and p.dtype.kind == "b" else p is not None for p in expanded])
    whole = []
    for p in stretched if Ellipsis in [q if q is Ellipsis else None for q in stretched] else [*stretched, Ellipsis]:
        whole += [slice(None)] * (array.ndim - taken) if p is Ellipsis else [p]
    groups: list[Any] = []
    for p in whole:
        if p is None:
            groups.append((1,))
        elif isinstance(p, slice):
            groups.append((len(range(*p.indices(array.shape[at]))),))
            at += 1
        else:
            p = np.asarray(p)
            if p.dtype.kind == "b":
                found = p.nonzero()
                groups.append(found[0] if found else p)
                at += p.ndim
            else:
                groups.append(p)
                at += 1
    arrays = [g for g in groups if isinstance(g, np.ndarray)]
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    places = [i for i, g in enumerate(groups) if isinstance(g, np.ndarray)]
    together = places == list(range(places[0], places[-1] + 1))
    for i, g in enumerate(groups):
        if not isinstance(g, np.ndarray):
            sliced.append((i, g[0]))
    before = [n for i, n in sliced if together and i < places[0]]
    after = [n for i, n in sliced if not (together and i < places[0])]
    return (*before, *shape, *after)
