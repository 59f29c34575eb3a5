"""The format torch wrote before version 1.6: several pickles one after the other, then the storages."""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import dtype, uint8
from pullback.ops.storage_classes import TypedStorage, UntypedStorage, on_memory, typed
from pullback.serialization.archive import raw_bytes
from pullback.serialization.names import storage_name
from pullback.serialization.pickle_writer import Writer, keeper

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
Read = Callable[[bytes, Callable[[Any], Any]], tuple[Any, int]]


def write_legacy(obj: object, file: BinaryIO, protocol: int) -> None:
    """All parts of an old file."""
    memories: dict[int, tuple[str, Any, dtype]] = {}
    sizes = {"short": 2, "int": 4, "long": 4}
    facts = {"protocol_version": PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for value in (MAGIC, PROTOCOL, facts):
        pickle.dump(value, file, protocol=protocol)
    Writer(file, protocol, keeper(memories), (None,)).dump(obj)
    pickle.dump([key for key, _, _ in memories.values()], file, protocol=protocol)
    file.flush()
    for _, memory, kind in memories.values():
        item = kind.itemsize if storage_name(kind) else 1
        file.write(struct.pack("<q", memory.nbytes // item))
        file.write(raw_bytes(memory))


def read_legacy(file: BinaryIO, placed: Any, read: Read) -> Any:
    """The value in an old file; one that is not such a file either is refused as a pickle that cannot be read."""
    content = file.read()
    if not content:
        raise EOFError("Ran out of input")
    position = 0

    def next_pickle(storage_of: Callable[[Any], Any]) -> Any:
        nonlocal position
        value, length = read(content[position:], storage_of)
        position += length
        return value

    if next_pickle(refuse) != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = next_pickle(refuse)
    if version != PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {version}")
    next_pickle(refuse)

    storages: dict[str, TypedStorage] = {}

    left = len(content)

    def storage_of(identity: Any) -> TypedStorage:
        nonlocal left
        if type(identity) is not tuple or len(identity) != 6 or identity[0] != "storage":
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed")
        kind, key, location, length, view = identity[1:]
        if kind is UntypedStorage:
            kind = uint8
        if not isinstance(kind, dtype) or type(key) is not str or type(length) is not int or view is not None:
            raise pickle.UnpicklingError("a storage needs a dtype, a key and a length")
        place = placed(location)
        if key not in storages:
            # Together, too, they are no more than the file: it holds each of them once.
            left -= length * kind.itemsize
            if length < 0 or left < 0:
                raise ValueError(f"storage {key} is longer than the file")
            memory = on_memory(made_on(place, np.zeros, length * kind.itemsize, np.uint8))
            storages[key] = typed(placed.moved(memory, location), kind)
        return storages[key]

    value = next_pickle(storage_of)
    keys = next_pickle(refuse)
    if type(keys) is not list:
        raise pickle.UnpicklingError("the list of storages is missing")
    for key in keys:
        storage = storages[key]
        if position + 8 > len(content):
            raise EOFError("the file is cut off")
        (length,) = struct.unpack_from("<q", content, position)
        position += 8
        if length != len(storage):
            raise ValueError(f"storage {key} has another length than the file says")
        size = length * storage.dtype.itemsize
        if position + size > len(content):
            raise EOFError("the file is cut off")
        storage.untyped()._bytes()[:] = np.frombuffer(content, np.uint8, size, position)
        position += size
    return value


def refuse(identity: Any) -> Any:
    """There are no storages in this part of a file."""
    raise pickle.UnpicklingError("a storage where none can be")
