"""DeviceArray: an array in the memory of a CUDA device. It answers to what NumPy's arrays answer to.

Views are windows onto the same memory. What computes is asked of NumPy's protocols, which lead to the kernels of the
device, or by way of the host: see carry.py. `np.asarray` of such an array raises: nothing is copied to the host unless
somebody says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback._arrays.strided import StridedArray, row_major_strides
from pullback._device import device
from pullback._runtime.messages import not_on_host
from pullback.kernels.cuda.device import awake, placed
from pullback.kernels.cuda.front import Python, front_of
from pullback.kernels.cuda.memory import Memory, pool_of

AnyArray = Any
awake()  # the modules that compute on the device follow


class DeviceArray(StridedArray):
    """Shape, strides, dtype, where the first element lies, and whose memory that is."""

    __slots__ = ("__weakref__", "address", "base", "device", "dtype", "memory", "shape", "strides")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        strides: Sequence[int] | None,
        base: DeviceArray | None,
        address: int,
        place: device,
        memory: Memory | None = None,
    ) -> None:
        self.shape, self.dtype = tuple([int(n) for n in shape]), np.dtype(dtype)
        self.strides = row_major_strides(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)
        self.base, self.address, self.device, self.memory = base, address, place, memory

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}, strides={self.strides}, on {self.device})"

    def seen_as(self, shape: Sequence[int], strides: Sequence[int], dtype: Any = None, skip: int = 0) -> DeviceArray:
        """Another window onto the same memory, `skip` bytes further on."""
        owner = self if self.base is None else self.base
        kind = self.dtype if dtype is None else dtype
        return DeviceArray(shape, kind, strides, owner, self.address + skip, self.device)

    # ---------------------------------------------------------------- protocols
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(not_on_host(self.device))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return answers.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return answers.function(function, args, kwargs)

    # ---------------------------------------------------------------- elements
    def item(self, *index: Any) -> Any:
        """One element as a Python number."""
        return (self[index] if index else self).on_host().item()

    def on_host(self) -> AnyArray:
        """A copy in the memory of the host, with the same strides."""
        return answers.download(self)

    def tolist(self) -> Any:
        """The elements as lists of Python numbers."""
        return self.on_host().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the elements."""
        return self.on_host().tobytes(order)  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return bool(self.on_host())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return self.on_host().__index__()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, value: Any) -> bool:
        return value in self.on_host()

    # ---------------------------------------------------------------- views and copies
    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return (
            self.through(lambda a: a.imag) if self.dtype.kind == "c" else filled(self.shape, self.dtype, 0, self.device)
        )

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def ravel(self, order: Any = "C") -> Any:
        """All elements in a row."""
        return self.reshape(-1, order="A" if order == "K" else order)

    def flatten(self, order: Any = "C") -> Any:
        """All elements in a row, in new memory."""
        return self.copy("A" if order == "K" else order).reshape(-1, order="A" if order == "K" else order)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """A copy in another dtype."""
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype and (order == "K" or (order == "C" and self.flags.c_contiguous)):
            return self
        return answers.cast(self, dtype) if order == "K" else converted(self, dtype, order)

    def copy(self, order: str = "C") -> Any:
        """A copy."""
        return self.astype(self.dtype, order)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, (self.on_host(), str(self.device))

    # ---------------------------------------------------------------- indexing
    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if any([is_array(part) for part in parts]):
            return answers.indexed(self, key)
        return self.through(lambda a: a[(*parts, ...)] if Ellipsis not in parts else a[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if type(key) is tuple else (key,)
        if any([is_array(part) for part in parts]):
            answers.write_at(self, key, value)
        else:
            answers.write(self if key is Ellipsis else self[key], value)

    def fill(self, value: Any) -> None:
        """Set every element."""
        answers.write(self, value)


def is_array(part: Any) -> bool:
    """True for a part of an index that is not a slice, a number, None or `...`."""
    return isinstance(part, (np.ndarray, list, np.bool_)) or type(part) is bool


# ------------------------------------------------------------------ new arrays


def empty(shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None, place: device | None = None) -> Any:
    """New memory, seen with strides; row-major if none are given."""
    place = placed() if place is None else place
    kind = np.dtype(dtype)
    shape = tuple([int(n) for n in shape])
    steps = row_major_strides(shape, kind.itemsize)
    if strides is None or tuple(strides) == steps:
        nbytes = kind.itemsize * math.prod(shape)
        if not nbytes:
            return DeviceArray(shape, kind, steps, None, 0, place)
        return maker_on(place)(shape, steps, kind, nbytes)
    low, nbytes = reach(shape, strides, kind.itemsize)
    whole = empty((-(-nbytes // kind.itemsize),), kind, None, place)
    return whole.seen_as(shape, strides, kind, -low)


def maker_on(place: device) -> Any:
    """What makes arrays of a device: make(shape, strides, dtype, nbytes)."""
    index = place.index or 0
    pool = pool_of(index)
    front = pool.front
    if front is None or front.pool is not pool:  # which is another pool's now, if the device was another meanwhile
        front = pool.front = front_of(pool, place, DeviceArray, made_with) or Python(pool, partial(made_with, place))
    return front.make


def made_with(place: device, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, nbytes: int) -> DeviceArray:
    """The same in Python: without the compiler, and on other streams than the default one."""
    memory = Memory(place.index or 0, nbytes)
    return DeviceArray(shape, dtype, strides, None, memory.address, place, memory)


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Where the lowest byte of an array lies, from its first element on, and how many bytes there are from it on."""
    if 0 in shape:
        return 0, 0
    low = sum([min((n - 1) * s, 0) for n, s in zip(shape, strides, strict=True)])
    high = sum([max((n - 1) * s, 0) for n, s in zip(shape, strides, strict=True)])
    return low, high - low + itemsize


def like(array: Any, dtype: Any, order: str = "K") -> Any:
    """A new array of the shape of another, its memory in the order NumPy's letter says."""
    if order == "A":
        order = "F" if array.flags.fnc else "C"
    dims = list(range(array.ndim))
    if order == "F":
        dims.reverse()
    elif order == "K" and not array.flags.c_contiguous:
        dims.sort(key=lambda d: (-abs(array.strides[d]), d))
    steps = row_major_strides([array.shape[d] for d in dims], np.dtype(dtype).itemsize)
    return empty(array.shape, dtype, [steps[dims.index(d)] for d in range(array.ndim)], array.device)


def converted(array: Any, dtype: Any, order: str = "K") -> Any:
    """A copy in a dtype, its memory in the order NumPy's letter says."""
    out = like(array, dtype, order)
    out[...] = array
    return out


def filled(shape: Sequence[int], dtype: Any, value: Any, place: device | None = None) -> Any:
    """A new array, every element a number."""
    out = empty(shape, dtype, None, place)
    answers.write(out, value)
    return out


def restored(host: Any, place: str) -> Any:
    """A pickled array, on its device again."""
    return answers.upload(host, device(place))


class Answers:
    """Who answers: attached by carry.py, which is built on this file."""

    ufunc: Any
    function: Any
    download: Any
    upload: Any
    cast: Any
    call: Any
    into: Any
    indexed: Any
    write: Any
    write_at: Any


answers = Answers()
