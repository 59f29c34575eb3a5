"""Tensors that look at memory through a sign: the lazy conjugates and negatives of torch.

`x.conj()` looks at the memory of x and remembers that what lies there is to be conjugated; `.imag` of it is a lazy
negative. They are of a class of their own, so that nothing is asked of plain tensors: the fast path of an op takes
none but those, and everybody else reads `_array`, which is computed here at each look: writing to it would
change nothing. Who makes views reads `stored`; who writes calls `store`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import read_for
from pullback._arrays.memory import element_strides, empty_strided
from pullback._tensor import Tensor, adopt, new, wrap

AnyArray = np.ndarray[Any, Any]


class LazyTensor(Tensor):
    """A tensor whose elements are the conjugates, or the negatives, of what lies in its memory."""

    __slots__ = ("_conjugate", "_negative", "_stored")

    _stored: AnyArray
    _conjugate: bool
    _negative: bool

    @property
    def _array(self) -> AnyArray:  # type: ignore[override]
        return signed(self, self._stored)

    @_array.setter
    def _array(self, array: AnyArray) -> None:
        self._stored = array

    @property
    def data(self) -> Tensor:
        """The same memory without history; writes through it are not counted."""
        out = seen(self, self._stored)
        out._counter, out._detached_at = (plain := Tensor.data.fget(self))._counter, plain._detached_at  # type: ignore[attr-defined]
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]
        self._stored = stored(value)
        self._conjugate, self._negative = signs(value)


def same(name: str) -> Any:
    """A fact about the memory, which needs no look at the elements."""
    known = getattr(Tensor, name)
    if isinstance(known, property):
        return property(lambda self: getattr(wrap(self._stored), name), doc=known.__doc__)

    def method(self: LazyTensor, *args: Any, **kwargs: Any) -> Any:
        return known(wrap(self._stored), *args, **kwargs)

    method.__name__, method.__doc__ = name, known.__doc__
    return method


for name in (
    *("shape", "ndim", "dtype", "itemsize", "nbytes", "dim", "ndimension", "size", "stride", "numel", "nelement"),
    "device",
    *("element_size", "data_ptr", "storage_offset", "is_contiguous", "is_floating_point", "is_complex", "is_signed"),
):
    setattr(LazyTensor, name, same(name))
LazyTensor.__name__ = LazyTensor.__qualname__ = "Tensor"
LazyTensor.__module__ = Tensor.__module__


def signs(tensor: Tensor) -> tuple[bool, bool]:
    """Whether a tensor is a lazy conjugate, and whether it is a lazy negative."""
    while hasattr(type(tensor), "run_op"):  # a batched tensor: see batching/tensor.py
        tensor = tensor._array.value  # type: ignore[attr-defined]
    return (tensor._conjugate, tensor._negative) if type(tensor) is LazyTensor else (False, False)


def stored(tensor: Tensor) -> AnyArray:
    """What lies in the memory of a tensor."""
    return tensor._stored if type(tensor) is LazyTensor else tensor._array


def signed(tensor: LazyTensor, array: AnyArray) -> AnyArray:
    """From what is stored to the elements, or back: in new memory with the same strides."""
    out = read_for((array,), empty_strided)(array.shape, element_strides(array), array.dtype)
    out[...] = np.conjugate(array) if tensor._conjugate else array
    return np.negative(out, out=out) if tensor._negative else out


def store(tensor: Tensor, values: Any) -> None:
    """Overwrite the elements of a tensor."""
    conjugate, negative = signs(tensor)
    array = stored(tensor)
    values = np.conjugate(values) if conjugate else values
    array[...] = np.negative(values, dtype=array.dtype, casting="unsafe") if negative else values


def seen(source: Tensor, array: AnyArray, flips: str = "") -> Tensor:
    """A new tensor that sees an array with the signs of another tensor, one of them flipped if asked."""
    conjugate, negative = signs(source)
    conjugate, negative = conjugate != (flips == "conjugate"), negative != (flips == "negative")
    if not conjugate and not negative:
        return wrap(array)
    out = new(LazyTensor)
    out._conjugate, out._negative = conjugate, negative
    adopt(out, array)
    return out  # type: ignore[no-any-return]
