"""DLPack: sharing memory with other libraries of arrays, both ways.

NumPy does the work. It has no bfloat16, so such arrays travel as 16 bit integers whose capsule names the type.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np

from pullback._device import place_of
from pullback._dtype import bfloat16
from pullback._lazy import signs, stored
from pullback._op.define import function
from pullback._runtime.building import loaded
from pullback._tensor import Tensor, fresh
from pullback.ops.create.copy import clone, detach
from pullback.ops.create.data import shared


class DLDeviceType(IntEnum):
    """The kinds of device DLPack knows; tensors here are on the first two."""

    kDLCPU, kDLCUDA, kDLCUDAHost = 1, 2, 3


# ------------------------------------------------------------------ the type a capsule names

UNSIGNED, BFLOAT = 1, 4
"""DLPack's codes of types."""
CODE_OFFSETS = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Where the structure in a capsule keeps the code of its type, by the name of the capsule, in bytes."""

capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def type_code(capsule: Any) -> ctypes.c_uint8:
    """The code of the type in a capsule nobody has taken yet; writing its `value` changes it there."""
    name = capsule_name(capsule)
    if name not in CODE_OFFSETS:
        raise RuntimeError(INVALID_CAPSULE)
    return ctypes.c_uint8.from_address(capsule_pointer(capsule, name) + CODE_OFFSETS[name])


# ------------------------------------------------------------------ giving


def to_capsule(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule on the memory of this tensor."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if signs(self)[0]:
        raise BufferError("Can't export tensors with the conjugate bit set")
    assert stream in (None, -1), "stream should be None on cpu."
    wanted: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    options = {key: value for key, value in wanted.items() if value is not None}
    if self.dtype is not bfloat16:
        return stored(self).__dlpack__(**options)
    capsule = self._array.view(np.uint16).__dlpack__(**options)
    type_code(capsule).value = BFLOAT
    return capsule


def capsule_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """Where the memory is, in DLPack's words."""
    return dl_device(self.device)


def dl_device(place: Any) -> tuple[DLDeviceType, int]:
    """A device in DLPack's words."""
    return (DLDeviceType.kDLCPU, 0) if place.type != "cuda" else (DLDeviceType.kDLCUDA, place.index or 0)


Tensor.__dlpack__ = to_capsule  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = capsule_device  # type: ignore[attr-defined]


@function(raw=True, method=False)
def to_dlpack(tensor: Tensor) -> Any:
    """Export a tensor as a DLPack capsule on the same memory, which another library can take once."""
    return tensor.__dlpack__()  # type: ignore[attr-defined]


# ------------------------------------------------------------------ taking

INVALID_CAPSULE = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have "
    "already constructed a tensor from it once."
)


class Capsule:
    """A bare DLPack capsule in the form NumPy takes."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


class Writable:
    """An array as the array interface describes it, writable: DLPack's older form does not say whether it is."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def array_of_capsule(source: Any) -> np.ndarray[Any, Any]:
    """The array another library's array or a capsule gives, writable."""
    dtype = None
    try:
        array = np.from_dlpack(source)
    except RuntimeError:
        source = source if isinstance(source, Capsule) else Capsule(source.__dlpack__())
        code = type_code(source.capsule)
        if code.value != BFLOAT:
            raise
        code.value, dtype = UNSIGNED, bfloat16.numpy
        array = np.from_dlpack(source)
    if not array.flags.writeable:
        array = np.asarray(Writable(array))
    return array if dtype is None else array.view(dtype)


@function(raw=True, method=False, overridable=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Create a tensor from another library's array through DLPack, sharing its memory.

    `ext_tensor` has a `__dlpack__` method or is a DLPack capsule, which can be taken only once.
    With `copy` the elements are copied to new memory.
    """
    place = None if device is None else place_of(device)
    bare = type(ext_tensor).__name__ == "PyCapsule"
    if bare and (device is not None or copy is not None):
        raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
    if isinstance(ext_tensor, Tensor):
        out = detach(ext_tensor)
        return moved(clone(out) if copy else out, place, copy)
    if bare and is_on_cuda(ext_tensor):
        return fresh(loaded("pullback.kernels.cuda.dlpack").taken(ext_tensor))
    if bare:
        ext_tensor = Capsule(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(INVALID_CAPSULE)
    elif ext_tensor.__dlpack_device__()[0] == DLDeviceType.kDLCUDA:
        made_there = loaded("pullback.kernels.cuda.dlpack").taken_from(ext_tensor, copy)
        return moved(fresh(made_there), place, copy)
    array = ext_tensor if isinstance(ext_tensor, np.ndarray) else array_of_capsule(ext_tensor)
    array = shared(array)
    return moved(fresh(array.copy() if copy else array), place, copy)


def is_on_cuda(capsule: Any) -> bool:
    """Whether the memory of a capsule is a CUDA device's; raises for a capsule somebody has taken."""
    code = type_code(capsule)  # which follows the kind and the number of the device, and the number of dimensions
    return ctypes.c_int32.from_address(ctypes.addressof(code) - 12).value == DLDeviceType.kDLCUDA


def moved(made: Tensor, place: Any, copy: bool | None) -> Tensor:
    """A tensor on the device asked for."""
    if place is None or made.device is place:
        return made
    if copy is False:
        here, (kind, index) = dl_device(made.device), dl_device(place)
        raise ValueError(
            f"cannot move DLPack tensor from device {here} to {(int(kind), index)} without copying. Set copy=None or "
            "copy=True."
        )
    return made.to(place)  # type: ignore[attr-defined, no-any-return]
