"""DLPack: sharing memory with other libraries of arrays, both ways.

NumPy does the work. It has no bfloat16, so such arrays travel as 16 bit integers whose capsule names the type.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np

from pullback._device import check_device
from pullback._dtype import bfloat16
from pullback._lazy import signs, stored
from pullback._op.define import function
from pullback._tensor import Tensor, fresh
from pullback.ops.create.copy import clone, detach
from pullback.ops.create.data import shared


class DLDeviceType(IntEnum):
    """The kinds of device DLPack knows; tensors here are all on the first."""

    kDLCPU = 1


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
    return DLDeviceType.kDLCPU, 0


Tensor.__dlpack__ = to_capsule  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = capsule_device  # type: ignore[attr-defined]


@function(raw=True, method=False)
def to_dlpack(tensor: Tensor) -> Any:
    """Export a tensor as a DLPack capsule on the same memory, which another library can take once."""
    return to_capsule(tensor)


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
    check_device(device)
    if isinstance(ext_tensor, Tensor):
        out = detach(ext_tensor)
        return clone(out) if copy else out  # type: ignore[no-any-return]
    if type(ext_tensor).__name__ == "PyCapsule":
        type_code(ext_tensor)  # raises for a capsule somebody has taken
        ext_tensor = Capsule(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(INVALID_CAPSULE)
    array = ext_tensor if isinstance(ext_tensor, np.ndarray) else array_of_capsule(ext_tensor)
    array = shared(array)
    return fresh(array.copy() if copy else array)
