"""Memory of the device shared with other libraries: DLPack capsules both ways, and `__cuda_array_interface__`.

A capsule holds a structure of DLPack's, which says where elements lie and what to call when nobody needs them any more.
The stream that the taker will use waits for the work that was given to the current one, so that nobody reads too early.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from pullback._device import _device, current_cuda, device
from pullback._dtype import bfloat16
from pullback._runtime.builtins import lasting
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.device import follow, placed, stream_on

CUDA = 2
"""DLPack's number of CUDA devices."""
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT = 4
KINDS = {code: letter for letter, code in CODES.items()}
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLTensor(ctypes.Structure):
    """Where elements lie."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """What a capsule named "dltensor" holds."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    """What one named "dltensor_versioned" holds."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


PLAIN, VERSIONED = lasting(b"dltensor"), lasting(b"dltensor_versioned")
"""Names of capsules, which refer to these very bytes."""
FORMS = {PLAIN: Managed, VERSIONED: Versioned}
USED = {PLAIN: lasting(b"used_dltensor"), VERSIONED: lasting(b"used_dltensor_versioned")}


def of_python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's own library."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = of_python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR)
name_of = of_python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
pointer_of = of_python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = of_python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# The same for an object that is about to die, which may not be touched as one.
is_named = of_python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
dying_pointer = of_python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)

# ------------------------------------------------------------------ giving

given: dict[int, Any] = {}
"""What the takers of capsules use, by where their structures lie."""


# Capsules and takers may die after the names of this module have: both functions bring what they need.
@lasting
@DELETER
def give_back(place: int, given: dict[int, Any] = given) -> None:
    """A taker needs the memory no more."""
    given.pop(place, None)


@lasting
@DESTRUCTOR
def unused(
    capsule: int,
    names: tuple[bytes, ...] = (PLAIN, VERSIONED),
    is_named: Any = is_named,
    pointer: Any = dying_pointer,
    give_back: Any = give_back,
) -> None:
    """A capsule dies; if nobody has taken it, its memory is free."""
    for name in names:
        if is_named(capsule, name):
            give_back(pointer(capsule, name))


def capsule_of(array: DeviceArray, max_version: Any) -> Any:
    """A capsule on the memory of an array."""
    name = PLAIN if max_version is None or max_version < (1, 0) else VERSIONED
    managed = FORMS[name]()
    tensor = managed.tensor
    count, size = array.ndim, array.itemsize
    shape = (ctypes.c_int64 * count)(*array.shape)
    strides = (ctypes.c_int64 * count)(*[step // size for step in array.strides])
    tensor.data, tensor.device_type, tensor.device_id = array.address, CUDA, array.device.index or 0
    tensor.ndim, tensor.shape, tensor.strides = count, shape, strides
    tensor.code = BFLOAT if array.dtype == bfloat16.numpy else CODES[array.dtype.kind]
    tensor.bits, tensor.lanes, tensor.byte_offset = 8 * size, 1, 0
    managed.deleter = give_back
    if name is VERSIONED:
        managed.major, managed.minor, managed.flags = 1, 0, 0
    place = ctypes.addressof(managed)
    given[place] = (managed, shape, strides, array)
    return new_capsule(place, name, unused)


def prepared(index: int, stream: Any) -> None:
    """Let the stream of a taker wait for what was given to the current one."""
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if index != current_cuda.index:
        raise BufferError(
            f"Can't export tensors on a different CUDA device index. Expected: {index}. Current device: "
            f"{current_cuda.index}."
        )
    if stream == -1:
        return
    if stream == 2:
        raise BufferError("per-thread default stream is not supported.")
    if stream == 0:
        raise AssertionError(f"unsupported stream on CUDA: {stream}.")
    follow(index, stream_on(index), 0 if stream is None or stream == 1 else stream)


# ------------------------------------------------------------------ taking


class Foreign:
    """Memory of another library, given back to it when no array needs it any more."""

    __slots__ = ("managed", "place")

    def __init__(self, managed: Any, place: int) -> None:
        self.managed, self.place = managed, place

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(self.place)


def taken(capsule: Any) -> DeviceArray:
    """An array on the memory that a capsule tells of, which can be taken once."""
    name = name_of(capsule)
    place = pointer_of(capsule, name)
    managed = FORMS[name].from_address(place)
    tensor = managed.tensor
    if tensor.device_type != CUDA:
        raise BufferError(f"the capsule is on a device of DLPack's kind {tensor.device_type}, not on a CUDA device")
    if tensor.lanes != 1 or (tensor.code != BFLOAT and tensor.code not in KINDS):
        raise BufferError(f"Unsupported kind of elements: code {tensor.code} with {tensor.lanes} lanes")
    dtype = bfloat16.numpy if tensor.code == BFLOAT else np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = [step * dtype.itemsize for step in tensor.strides[: tensor.ndim]] if tensor.strides else None
    placed(tensor.device_id)
    rename(capsule, USED[name])
    memory: Any = Foreign(managed, place)
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceArray(shape, dtype, strides, None, address, _device("cuda", tensor.device_id), memory)


def taken_from(source: Any, copy: bool | None) -> DeviceArray:
    """The same of another library's array, which lets the current stream wait for it."""
    index = source.__dlpack_device__()[1]
    options: dict[str, Any] = {"max_version": (1, 0), "stream": stream_on(index) or 1}
    if copy is not None:
        options["copy"] = copy
    for missing in ("max_version", "copy", None):
        try:
            made = taken(source.__dlpack__(**options))
        except TypeError:
            if missing is None:
                raise
            options.pop(missing, None)
        else:
            return made.copy("K") if copy and "copy" not in options else made  # type: ignore[no-any-return]
    raise AssertionError


def of_interface(source: Any, place: device | None = None) -> DeviceArray:
    """An array on the memory that `__cuda_array_interface__` tells of."""
    told = source.__cuda_array_interface__
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    if told.get("mask") is not None:
        raise NotImplementedError("__cuda_array_interface__ with a mask: a tensor has none; take the data alone")
    if told.get("stream") not in (None, 1):
        follow(current_cuda.index, told["stream"], stream_on(current_cuda.index))
    here = placed() if place is None else place
    memory: Any = source  # which lives as long as the array
    return DeviceArray(shape, dtype, told.get("strides"), None, told["data"][0], here, memory)
