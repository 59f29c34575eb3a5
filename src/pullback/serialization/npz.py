"""Tensors in NumPy's .npz files: a zip file with one .npy file per tensor.

NumPy has no bfloat16. Such a tensor is stored as the 16 bits of its elements, in an array of uint16, and the entry
`__bfloat16__` lists the names of these arrays; `load_npz` turns them back. A program without this module gets the
numbers with `(array.astype(np.uint32) << 16).view(np.float32)`.

Nothing in a file can run: arrays of objects, which NumPy pickles, are neither written nor read.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from pullback import _dtype
from pullback._tensor import Tensor, wrap
from pullback.serialization.archive import places_of
from pullback.serialization.replacing import replaced

__all__ = ["load_npz", "save_npz"]

BFLOAT16 = "__bfloat16__"
SUFFIX = ".npy"
DEFLATE_LIMIT = 1032
"""Zip's compression makes nothing smaller than by this factor, so an entry that claims more is false."""
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    OSError,
    OverflowError,
    UnicodeError,
)
"""What Python's reader of zip files raises when the file is none, or no longer one."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


# ------------------------------------------------------------------ writing


def save_npz(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors, or a state dict, to a .npz file; a failure leaves the file that was there before.

    Args:
        path: where the file goes, as it stands: no ending is added.
        tensors: tensors by name.
    """
    arrays = {name: storable(name, tensor) for name, tensor in checked(tensors).items()}
    halves = [name for name, tensor in tensors.items() if is_half(tensor)]
    if halves:
        arrays[BFLOAT16] = np.array(halves)
    with replaced(path) as file:
        write_arrays(file, arrays)


def checked(tensors: Any) -> Mapping[str, Tensor]:
    """Tensors by name, and nothing else."""
    if not isinstance(tensors, Mapping):
        raise TypeError(f"expected tensors by name, as in a dict, got {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a tensor must be text, got {type(name).__name__}")
        if name == BFLOAT16 or not name or "\0" in name:
            raise ValueError(f"{name!r} cannot be the name of a tensor in a .npz file")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} must be a tensor, got {type(tensor).__name__}")
    return tensors


def storable(name: str, tensor: Tensor) -> np.ndarray[Any, Any]:
    """The elements of a tensor in a dtype NumPy has."""
    if tensor.dtype is _dtype.complex32:
        raise TypeError(f"{name!r} has the dtype {tensor.dtype}, which NumPy has not; convert it to complex64")
    array = tensor._array
    return np.ascontiguousarray(array).reshape(array.shape).view(np.uint16) if is_half(tensor) else array


def is_half(tensor: Tensor) -> bool:
    """Whether a tensor is stored as its bits."""
    return tensor.dtype is _dtype.bfloat16


def write_arrays(file: BinaryIO, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """All entries of a file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + SUFFIX, (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=True) as entry:
                npy.write_array(entry, array, allow_pickle=False)


# ------------------------------------------------------------------ reading


def load_npz(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a .npz file, of `save_npz` or of NumPy's `savez` and `savez_compressed`."""
    with open(path, "rb") as file:
        try:
            arrays = read_arrays(file)
        except DAMAGE as error:
            raise ValueError(f"{os.fspath(path)!r} is not a .npz file, or it is damaged: {error}") from error
    for name in bfloat16_names(arrays.pop(BFLOAT16, None)):
        bits = arrays.get(name)
        if bits is None or bits.dtype != np.uint16:
            raise ValueError(f"{BFLOAT16} names {name!r}, which is no array of 16 bits")
        arrays[name] = bits.view(_dtype.bfloat16.numpy)
    return {name: as_tensor(name, array) for name, array in arrays.items()}


def bfloat16_names(listed: np.ndarray[Any, Any] | None) -> list[str]:
    """The names of the arrays that hold bits of bfloat16."""
    if listed is None:
        return []
    if listed.dtype.kind != "U" or listed.ndim != 1:
        raise ValueError(f"{BFLOAT16} must be a list of names")
    return [str(name) for name in listed]


def as_tensor(name: str, array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor on an array of the file."""
    try:
        return wrap(_dtype.canonical(array))
    except TypeError:
        raise ValueError(f"{name!r} has NumPy's dtype {array.dtype}, which no tensor has") from None


def read_arrays(file: BinaryIO) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of a file; no entry can ask for more memory than its part of the file can hold."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    with zipfile.ZipFile(file) as archive:
        file_size = file.seek(0, os.SEEK_END)
        places_of(archive)
        for info in archive.infolist():
            name = info.filename.removesuffix(SUFFIX)
            if name == info.filename or name in arrays:
                raise ValueError(f"the entry {info.filename!r} is no .npy file, or there are two of it")
            check_size(info, file_size)
            arrays[name] = read_array(name, archive.read(info))
    return arrays


def check_size(info: zipfile.ZipInfo, file_size: int) -> None:
    """The sizes an entry claims must be possible."""
    factor = DEFLATE_LIMIT if info.compress_type == zipfile.ZIP_DEFLATED else 1
    if info.compress_type not in METHODS or info.flag_bits & 1:
        raise ValueError(f"the entry {info.filename!r} is encrypted, or compressed in a way .npz files are not")
    if info.compress_size > file_size or info.file_size > factor * info.compress_size + DEFLATE_LIMIT * (factor > 1):
        raise ValueError(f"the entry {info.filename!r} claims {info.file_size} bytes, which the file does not have")


def read_array(name: str, content: bytes) -> np.ndarray[Any, Any]:
    """The array of a .npy file, if the bytes after its header are as many as the header says."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, columns_first, kind = read_header(stream)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{name!r} is no .npy file: {error}") from error
    if kind.hasobject:
        raise ValueError(f"{name!r} is an array of objects, which only unpickling could read; it is refused")
    if any(n < 0 for n in shape) or len(content) - stream.tell() != math.prod(shape) * kind.itemsize:
        raise ValueError(f"{name!r} says {kind} of shape {shape}, and has {len(content) - stream.tell()} bytes")
    if kind.itemsize == 0:
        raise ValueError(f"{name!r} has elements of no size")
    flat = np.frombuffer(content, kind, math.prod(shape), stream.tell()).astype(kind.newbyteorder("="))
    return flat.reshape(shape[::-1]).T if columns_first else flat.reshape(shape)
