"""By way of the host: what has no kernel on the device computes there. Right, counted, and refused where asked.

    upload, download ... copies between the two memories; strides stay what they are
    Trip ............... the operands of one call on the host, and the way back of its results
    by_host ............ one such call, counted under a name

The copy of an operand on the host has the strides of the operand. So NumPy gives results the order of memory it would
give them on the host, and what is a view of such a copy becomes a view of the operand.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback._device import copies, device
from pullback.kernels.cuda.array import DeviceArray, empty, reach
from pullback.kernels.cuda.device import placed, required, stream_on, streams
from pullback.kernels.cuda.driver import pinned_by
from pullback.kernels.cuda.memory import pool_of

counts: Counter[str] = Counter()
"""How often what went through the host, by name."""


class NoKernel(Exception):
    """What is attempted on the device alone has come to something that only the host can do."""


def refuse(self: Any, *args: Any) -> Any:
    """End the attempt."""
    raise NoKernel("a reduction")


class Refused:
    """Stands for a reduction that only the host can do: whoever looks at it ends the attempt.

    An error in the reduction itself would pass through NumPy, which then never lets go of the operands.
    """

    __slots__ = ()
    __bool__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = __array__ = refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = refuse  # type: ignore[assignment]
    __array_ufunc__ = __array_function__ = refuse


class Attempts(threading.local):
    """How many attempts this thread is inside of: see composed.py."""

    depth = 0


attempts = Attempts()


def count(name: str) -> None:
    """Note that something goes through the host; raises where that is not wanted."""
    if attempts.depth:
        raise NoKernel(name)
    if os.environ.get("PULLBACK_CUDA_FALLBACK") == "error":
        raise NotImplementedError(
            f"{name} has no kernel on the CUDA device, and PULLBACK_CUDA_FALLBACK=error refuses to compute it on the "
            "host: move its operands there with .cpu(), or unset the variable"
        )
    counts[name] += 1


# ------------------------------------------------------------------ copies between the memories


class Watch:
    """What becomes of calls that wait for the device to read it: nothing (0), a warning (1), an error (2)."""

    mode = 0

    def asked(self) -> None:
        """Say that somebody is about to wait."""
        if self.mode == 1:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=2)
        elif self.mode:
            raise RuntimeError("called a synchronizing CUDA operation")


watch = Watch()
checks: list[Callable[[], None]] = []
"""What is asked after every copy to the host, when the device has done its work: it raises what went wrong there."""


def download(array: DeviceArray) -> Any:
    """A copy on the host, with the same strides."""
    if attempts.depth and array.size > 1:
        raise NoKernel("elements that are read")
    low, nbytes = reach(array.shape, array.strides, array.itemsize)
    if not nbytes:
        return np.empty(array.shape, array.dtype)
    if watch.mode:
        watch.asked()
    index = array.device.index or 0
    if array.flags.c_contiguous:
        out: Any = np.empty(array.shape, array.dtype)
        if out.strides != array.strides:  # dimensions of one element may have any step
            out = np.ndarray(array.shape, array.dtype, out, 0, array.strides)
        required().download(index, out, array.address, stream_on(index))
        checked()
        return out
    memory: Any = np.empty(nbytes, np.uint8)
    required().download(index, memory, array.address + low, stream_on(index))
    checked()
    return np.ndarray(array.shape, array.dtype, memory, -low, array.strides)


def download_into(host: Any, array: DeviceArray) -> None:
    """Overwrite an array of the host with one that lies alike and without gaps; it may wait if it is pinned."""
    index = array.device.index or 0
    low, nbytes = reach(host.shape, host.strides, host.itemsize)
    if not nbytes:
        return
    memory = host if host.flags.c_contiguous else spanned(host, low, nbytes)
    owner, stream = pinned_by(host), stream_on(index)
    if copies.waited or owner is None:
        watch.asked()
        required().download(index, memory, array.address + low, stream)
        checked()
    else:
        required().download_later(index, memory, array.address + low, stream)
        owner.used_by(index, stream)


def checked() -> None:
    """Raise what a kernel has noted."""
    for check in checks:
        check()


def upload(host: Any, place: device | None = None) -> DeviceArray:
    """A copy on a device, with the same strides."""
    if type(host) is not np.ndarray:
        raise NotImplementedError(
            f"elements of type {type(host).__name__} cannot be placed on a CUDA device; use device='cpu'"
        )
    place = placed() if place is None else place
    index = place.index or 0
    kept = pool_of(index).captured.get(stream_on(index))
    if kept is None:
        out = empty(host.shape, host.dtype, host.strides, place)
        store(out, host)
        return out  # type: ignore[no-any-return]
    # A graph is captured: what it reads again and again is copied at once, beside it, and lives as long as it.
    stream = streams.use(index, 0)
    try:
        out = empty(host.shape, host.dtype, host.strides, place)
        store(out, host)
    finally:
        streams.use(index, stream)
    kept.append(out)
    return out  # type: ignore[no-any-return]


def store(target: DeviceArray, host: Any) -> None:
    """Overwrite an array with one of the host that has its shape and strides, gaps and all."""
    low, nbytes = reach(host.shape, host.strides, host.itemsize)
    if not nbytes:
        return
    index = target.device.index or 0
    memory = host if host.flags.c_contiguous else spanned(host, low, nbytes)
    stream = stream_on(index)
    required().upload(index, target.address + low, memory, stream)
    owner = pinned_by(host)
    if owner is None:
        return
    if copies.waited:
        required().wait(index, stream)
    else:
        owner.used_by(index, stream)


def spanned(host: Any, low: int, nbytes: int) -> Any:
    """The bytes from the first of an array of the host to its last."""
    first = np.lib.stride_tricks.as_strided(host, (1,), (host.itemsize,))
    return np.asarray(Bytes(first.__array_interface__["data"][0] + low, nbytes, host))


class Bytes:
    """The bytes an array of the host spans, gaps included."""

    __slots__ = ("__array_interface__", "base")

    def __init__(self, address: int, nbytes: int, array: Any) -> None:
        self.base = array
        self.__array_interface__ = {
            "data": (address, not array.flags.writeable),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


# ------------------------------------------------------------------ there and back


class Trip:
    """The operands of one call on the host."""

    def __init__(self) -> None:
        self.carried: list[tuple[Any, int, int, DeviceArray]] = []
        self.known: dict[int, Any] = {}
        self.place: device | None = None

    def there(self, value: Any, writable: bool = False) -> Any:
        """A value for the host: copies for arrays of the device, in lists too, all else as it is."""
        kind = type(value)
        if kind is DeviceArray:
            host = self.known.get(id(value))
            if host is None:
                host = download(value)
                low, nbytes = reach(host.shape, host.strides, host.itemsize)
                start = host.__array_interface__["data"][0] + low
                self.carried.append((host, start, start + nbytes, value))
                self.known[id(value)] = host
                self.place = value.device
                host.flags.writeable = writable
            elif writable:
                host.flags.writeable = True
            return host
        if kind is list or kind is tuple:
            return kind([self.there(item) for item in value])
        if kind is dict:
            return {key: self.there(item) for key, item in value.items()}
        return value.function if issubclass(kind, OnHost) else value

    def back(self, value: Any) -> Any:
        """A result for the device: the operand itself, a view of one, or a copy."""
        kind = type(value)
        if kind is np.ndarray:
            address = value.__array_interface__["data"][0]
            for host, start, end, array in self.carried:
                if host is value:
                    return array
                if start <= address < end and value.size:
                    skip = address - host.__array_interface__["data"][0]
                    return array.seen_as(value.shape, value.strides, value.dtype, skip)
            return upload(value, self.place)
        if kind is list or (isinstance(value, tuple) and kind in (tuple,)):
            return kind([self.back(item) for item in value])
        return value

    def written(self, values: Iterable[Any]) -> None:
        """Write what was changed on the host back to where it belongs."""
        for value in values:
            if type(value) is DeviceArray:
                store(value, self.known[id(value)])


def by_host(name: str, function: Callable[..., Any], args: Any, kwargs: Any, writes: Iterable[Any] = ()) -> Any:
    """Call a function on the host; `writes` are those of its operands that it writes to."""
    count(name)
    trip = Trip()
    for value in writes:
        trip.there(value, writable=True)
    made = function(*[trip.there(a) for a in args], **{key: trip.there(a) for key, a in kwargs.items()})
    trip.written(writes)
    return trip.back(made)


class OnHost:
    """A function that computes on the host, whatever it is given; `writes` says that it writes to its first operand."""

    __slots__ = ("function", "writes")

    def __init__(self, function: Callable[..., Any], writes: bool = False) -> None:
        self.function, self.writes = function, writes

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not any([has_device_arrays(value) for value in (*args, *kwargs.values())]):
            trip = Trip()
            return self.function(*[trip.there(a) for a in args], **{key: trip.there(a) for key, a in kwargs.items()})
        writes = [args[0] if args else next(iter(kwargs.values()))] if self.writes else []
        return by_host(name_of(self.function), self.function, args, kwargs, writes)


def has_device_arrays(value: Any) -> bool:
    """True for an array of the device, and for a list with one in it."""
    kind = type(value)
    return kind is DeviceArray or (kind in (list, tuple) and any([has_device_arrays(item) for item in value]))


def name_of(function: Any) -> str:
    """What a function is counted under."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return f"{getattr(function, '__module__', None) or ''}.{name}".removeprefix("pullback.")


def numbers_too(made: Any, place: device | None = None) -> Any:
    """A result of NumPy's as arrays of the device: numbers become arrays without dimensions."""
    if isinstance(made, np.generic):
        return upload(np.asarray(made), place)
    if type(made) is tuple:
        return tuple([numbers_too(item, place) for item in made])
    return made


def place_among(values: Iterable[Any]) -> device:
    """The device of the first array of a device among values."""
    for value in values:
        if type(value) is DeviceArray:
            return value.device
        if type(value) in (list, tuple):
            for item in value:
                if type(item) is DeviceArray:
                    return item.device
    return placed()
