"""The container of a checkpoint: a zip file of uncompressed records, as torch writes it.

<name>/data.pkl ............ the pickle          <name>/byteorder .... little or big
<name>/data/<key> .......... one storage each    <name>/version ...... of the format
"""

from __future__ import annotations

import mmap
import struct
import sys
import zipfile
from typing import Any, BinaryIO

import numpy as np

from pullback.serialization.options import MAP_SHARED, LoadEndianness, options

ALIGNMENT = 64
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


class ArchiveReader:
    """A zip file of records; sizes are those of the file itself, so a record cannot ask for more memory than it has."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
            infos = self.zip.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise RuntimeError(CORRUPTED.format("failed finding central directory")) from error
        self.map: mmap.mmap | None = None
        self.infos = {info.filename.partition("/")[2]: info for info in infos}
        if "data.pkl" not in self.infos:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")

    def __contains__(self, name: str) -> bool:
        return name in self.infos

    def record(self, name: str, mapped: bool = False) -> Any:
        """The content of a record: its bytes, or the part of the mapped file."""
        info = self.infos.get(name)
        if info is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise RuntimeError(f"record {name} is compressed or encrypted, which no checkpoint's records are")
        try:
            return self.mapped(info) if mapped else self.zip.read(info)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
            raise RuntimeError(CORRUPTED.format(f"invalid header or archive is corrupted ({error})")) from error

    def mapped(self, info: zipfile.ZipInfo) -> memoryview:
        """Where a record lies in the file, which is mapped once."""
        if self.map is None:
            shared = options.mapping == MAP_SHARED
            file: Any = self.zip.fp
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        head = self.map[info.header_offset : info.header_offset + 30].ljust(30, b"\0")
        start = info.header_offset + 30 + sum(struct.unpack("<HH", head[26:]))
        if head[:4] != b"PK\x03\x04" or info.file_size != info.compress_size or start + info.file_size > len(self.map):
            raise zipfile.BadZipFile("a record does not lie where the directory says")
        return memoryview(self.map)[start : start + info.file_size]

    def is_little_endian(self) -> bool:
        """In which order the bytes of a number stand."""
        if "byteorder" not in self.infos:
            if options.endianness is LoadEndianness.NATIVE:
                return LITTLE
            return options.endianness is not LoadEndianness.BIG
        order: bytes = self.record("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"unknown byte order {order!r}")
        return order == b"little"


def raw_bytes(memory: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of an array in the order they lie in memory."""
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
    return head == b"PK\x03\x04"


LITTLE = sys.byteorder == "little"
"""Whether this machine writes the smallest byte of a number first."""
