"""Settings of saving and loading that programs switch."""

from __future__ import annotations

import mmap
from enum import Enum
from typing import Any

MAP_SHARED, MAP_PRIVATE = getattr(mmap, "MAP_SHARED", 1), getattr(mmap, "MAP_PRIVATE", 2)


class LoadEndianness(Enum):
    """In which order the bytes of a number stand in files that do not say so."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class Options:
    """What is set."""

    endianness: LoadEndianness | None = None
    mapping = MAP_PRIVATE
    checksums = True
    skip = False


options = Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes in files that do not say it; None for that of torch's own files, little."""
    return options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set it."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` computes checksums; it does in any case, since zip files have them."""
    return options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether checksums are computed."""
    options.checksums = compute_crc32


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    return options.mapping


class set_default_mmap_options:
    """Set how files are mapped, for good or for a block: privately, or so that writes change the file."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev, options.mapping = options.mapping, flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        options.mapping = self.prev


class skip_data:
    """A block in which `save` leaves the space of storages empty, and `load` does not read them."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before, options.skip = options.skip, True

    def __exit__(self, *error: Any) -> None:
        options.skip = self.before
