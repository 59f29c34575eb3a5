"""The container of a checkpoint: a zip file of uncompressed records, as torch writes it.

<name>/data.pkl ............ the pickle          <name>/byteorder .... little or big
<name>/data/<key> .......... one storage each    <name>/version ...... of the format
"""

from __future__ import annotations

import mmap
import struct
import sys
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from pullback._arrays.kinds import is_foreign
from pullback.serialization.options import MAP_SHARED, LoadEndianness, options

ALIGNMENT = 64
START = b"PK\x03\x04"
LOCAL_HEADER = 30
"""Bytes before a record: this many, then its name and what else the two lengths at their end say."""
DAMAGE = (zipfile.BadZipFile, struct.error, ValueError, OverflowError, OSError, EOFError)
"""What Python's reader of zip files raises when the file is none, or no longer one."""
CORRUPTED = (
    "PytorchStreamReader failed reading zip archive: {}. This is an internal miniz error. If you are seeing this "
    "error, there is a high likelihood that your checkpoint file is corrupted. This can happen if the checkpoint was "
    "not saved properly, was transferred incorrectly, or the file was modified after saving."
)


class ArchiveWriter:
    """A zip file being written, with every record on a boundary of 64 bytes."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self.name = name

    def record(self, name: str, content: bytes | memoryview) -> None:
        """Write one record."""
        info = zipfile.ZipInfo(f"{self.name}/{name}", (1980, 1, 1, 0, 0, 0))
        header = 30 + len(info.filename.encode())
        padding = -(self.zip.fp.tell() + header + 4) % ALIGNMENT  # type: ignore[union-attr]
        info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        with self.zip.open(info, "w") as record:
            record.write(content)

    def close(self) -> None:
        """Write the directory of records."""
        self.zip.close()

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.zip.fp = None  # a file that failed gets no directory, neither now nor when this object goes
        self.close()


def places_of(archive: zipfile.ZipFile) -> dict[str, tuple[int, zipfile.ZipInfo]]:
    """Where in a zip file the bytes of every record begin, if each has bytes of its own.

    A directory can name the same bytes many times, and a small file so become large memory. Here all records lie one
    after the other before the directory, so together they are never more than the file.
    """
    file: Any = archive.fp
    found: dict[str, tuple[int, zipfile.ZipInfo]] = {}
    free = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        file.seek(max(info.header_offset, 0))
        head = file.read(LOCAL_HEADER)
        if info.header_offset < free or len(head) < LOCAL_HEADER or head[:4] != START:
            raise zipfile.BadZipFile(f"record {info.filename!r} does not lie where the directory says")
        start = info.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", head[26:]))
        free = start + info.compress_size
        if free > archive.start_dir:
            raise zipfile.BadZipFile(f"record {info.filename!r} is longer than the file")
        if info.filename in found:
            raise zipfile.BadZipFile(f"there are two records {info.filename!r}")
        found[info.filename] = start, info
    return found


class ArchiveReader:
    """A zip file of records; sizes are those of the file itself, so a record cannot ask for more memory than it has."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
            places = places_of(self.zip)
        except (*DAMAGE, NotImplementedError) as error:
            raise RuntimeError(CORRUPTED.format("failed finding central directory")) from error
        self.map: mmap.mmap | None = None
        # All records of a checkpoint are in one folder, that of the first.
        self.folder = next(iter(places), "").partition("/")[0] + "/"
        self.places = {name[len(self.folder) :]: at for name, at in places.items() if name.startswith(self.folder)}
        if "data.pkl" not in self.places:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def place(self, name: str) -> tuple[int, int]:
        """Where a record begins, and how many bytes it has."""
        if name not in self.places:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        start, info = self.places[name]
        stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
        if not stored or info.flag_bits & 1:
            raise RuntimeError(f"record {name} is compressed or encrypted, which no checkpoint's records are")
        return start, info.file_size

    def record(self, name: str) -> bytearray:
        """The content of a record."""
        start, size = self.place(name)
        file: Any = self.zip.fp
        try:
            file.seek(start)
            content = bytearray(file.read(size))
        except DAMAGE as error:
            raise RuntimeError(CORRUPTED.format("invalid header or archive is corrupted")) from error
        if len(content) != size or zlib.crc32(content) != self.places[name][1].CRC:
            raise RuntimeError(CORRUPTED.format(f"the bytes of {name} are not those that were written"))
        return content

    def mapped(self, name: str) -> memoryview:
        """The part of the file that is a record; the file is mapped once."""
        start, size = self.place(name)
        if self.map is None:
            shared = options.mapping == MAP_SHARED
            file: Any = self.zip.fp
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        return memoryview(self.map)[start : start + size]

    def is_little_endian(self) -> bool:
        """In which order the bytes of a number stand."""
        if "byteorder" not in self.places:
            if options.endianness is LoadEndianness.NATIVE:
                return LITTLE
            return options.endianness is not LoadEndianness.BIG
        order = bytes(self.record("byteorder"))
        if order not in (b"little", b"big"):
            raise ValueError("Unknown endianness type: " + order.decode("latin1"))
        return order == b"little"


def raw_bytes(memory: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of an array in the order they lie in memory."""
    memory = memory.on_host() if is_foreign(memory) else memory  # type: ignore[attr-defined]
    return memory.reshape(-1, order="A").view(np.uint8).data


def swapped(content: np.ndarray[Any, Any], item: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The bytes of elements in the other order; a complex number is two."""
    part = np.dtype(f"u{item.itemsize // (2 if item.kind == 'c' else 1)}")
    return content.view(part).byteswap().view(np.uint8)


def is_archive(file: BinaryIO) -> bool:
    """Whether a file starts as a zip file does."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == START


def is_tar(file: BinaryIO) -> bool:
    """Whether a file is a tar file, as the first versions of torch wrote."""
    start = file.tell()
    head = file.read(262)
    file.seek(start)
    return head[257:] == b"ustar"


LITTLE = sys.byteorder == "little"
"""Whether this machine writes the smallest byte of a number first."""
