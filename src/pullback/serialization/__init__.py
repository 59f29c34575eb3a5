"""Saving and loading tensors and what contains them, in torch's own file format.

`load` does not run what a file says: it reads tensors, numbers, strings and containers, and refuses the rest. Only
with `weights_only=False` it unpickles, as torch does, and a file can then run anything.
`save` to a path leaves the file that was there before until the new one is complete: see replacing.py.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pullback._arrays.kinds import exists, made_on
from pullback._device import CPU, META, device, place_of
from pullback._dtype import dtype
from pullback.ops.storage_classes import UntypedStorage, on_memory, typed
from pullback.serialization.archive import (
    LITTLE,
    ArchiveReader,
    ArchiveWriter,
    is_archive,
    is_tar,
    raw_bytes,
    swapped,
)
from pullback.serialization.legacy import read_legacy, write_legacy
from pullback.serialization.names import (
    FUNCTIONS,
    STORAGES,
    VALUES,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe,
    safe_globals,
)
from pullback.serialization.options import (
    MAP_SHARED,
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from pullback.serialization.pickle_reader import Reader
from pullback.serialization.pickle_writer import Writer, keeper
from pullback.serialization.replacing import NO_SPACE, replaced
from pullback.serialization.safetensors import load_file

__all__ = [
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
VERSION = b"3\n"
TAR = (
    "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. In PyTorch 2.6, we changed the "
    "default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` with "
    "`weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if "
    "you got the file from a trusted source."
)
TAR_TRUSTED = (
    "files in the .tar format of torch's first versions are not read; load them with torch and save them again"
)


# ------------------------------------------------------------------ save


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file, by path or open for writing; torch and `load` read it.

    Args:
        obj: tensors, numbers, strings and containers of them; other objects are pickled by name.
        f: a path, or a file object with `write`.
        pickle_module: only Python's own pickle.
        pickle_protocol: the version of the pickle inside.
        _use_new_zipfile_serialization: False for the format torch wrote before version 1.6.
    """
    with_order = not _disable_byteorder_record
    if pickle_module is not pickle:
        raise NotImplementedError("only Python's own pickle module writes checkpoints")
    if isinstance(f, (str, os.PathLike)):
        with written(f, _use_new_zipfile_serialization) as file:
            write(obj, file, archive_name(os.fspath(f)), pickle_protocol, _use_new_zipfile_serialization, with_order)
    elif hasattr(f, "write"):
        write(obj, f, "archive", pickle_protocol, _use_new_zipfile_serialization, with_order)
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def archive_name(path: str) -> str:
    """The name of the folder inside a zip file: that of the file, without what follows the last dot."""
    if not path.isascii():
        return "archive"
    name = os.path.basename(path)
    return name.rpartition(".")[0] if "." in name else name


@contextmanager
def written(path: str | os.PathLike[str], zipped: bool) -> Iterator[BinaryIO]:
    """`replaced`, with torch's errors: for zip files it opens paths of plain letters itself, and has its own texts."""
    given, parent = os.fspath(path), Path(path).parent
    own = zipped and given.isascii()
    if own and not archive_name(given):
        raise RuntimeError(f"[enforce fail at inline_container.cc:720] . invalid file name: {given}")
    if own and not parent.is_dir():
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    is_open = False
    try:
        with replaced(path) as file:
            is_open = True
            yield file
    except OSError as error:
        if own and not is_open:
            reason = f"open file failed with strerror: {error.strerror}"
            raise RuntimeError(f"[enforce fail at inline_container.cc:747] . {reason}") from error
        if is_open and error.errno in NO_SPACE:
            raise RuntimeError(f"write(): {given} failed with {error.strerror}") from error
        raise


def write(obj: object, file: BinaryIO, name: str, protocol: int, zipped: bool, with_order: bool) -> None:
    """An object in the zip format, or in that of old."""
    if zipped:
        write_archive(obj, file, name, protocol, with_order)
    elif options.skip:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    else:
        write_legacy(obj, file, protocol)


def write_archive(obj: object, file: BinaryIO, name: str, protocol: int, with_order: bool) -> None:
    """All records of a checkpoint."""
    memories: dict[int, tuple[str, np.ndarray[Any, Any], dtype]] = {}

    content = io.BytesIO()
    Writer(content, protocol, keeper(memories)).dump(obj)
    with ArchiveWriter(file, name) as archive:
        archive.record("data.pkl", content.getvalue())
        archive.record(".format_version", b"1")
        archive.record(".storage_alignment", b"64")
        if with_order:
            archive.record("byteorder", b"little" if LITTLE else b"big")
        for key, memory, _ in memories.values():
            archive.record(f"data/{key}", bytes(memory.nbytes) if options.skip else raw_bytes(memory))
        archive.record("version", VERSION)


# ------------------------------------------------------------------ load


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch wrote.

    Args:
        f: a path, or a file object that can be read and searched.
        map_location: where storages go: to the CPU, or to the meta device, without their elements.
        pickle_module: as in torch, giving one means `weights_only=False`; files are read as Python's own pickle.
        weights_only: with False, a file may run any code it names: only for files you trust.
        mmap: map the file instead of reading it; what is written to the tensors changes the file only if
            `set_default_mmap_options` says so.
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if isinstance(f, (str, os.PathLike)):
        if os.fspath(f).endswith(".safetensors"):
            Locations(map_location)("cpu")
            return load_file(f)
        with open(f, "r+b" if mmap and options.mapping == MAP_SHARED else "rb") as file:
            if mmap and not is_archive(file):
                raise not_mapped(f"{f}, ")
            return read(file, map_location, weights_only, bool(mmap))
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    if mmap and is_archive(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if mmap:
        raise not_mapped("")
    return read(f, map_location, weights_only, False)


def not_mapped(path: str) -> RuntimeError:
    """The error for mapping an old file."""
    return RuntimeError(
        f"mmap can only be used with files saved with `torch.save({path}_use_new_zipfile_serialization=True), please "
        "torch.save your checkpoint with this option in order to use mmap."
    )


def read(f: BinaryIO, map_location: Any, weights_only: bool, mapped: bool) -> Any:
    """The value in an open file, and one kind of error for whatever is wrong with it."""
    placed = Locations(map_location)
    try:
        if is_archive(f):
            return read_archive(ArchiveReader(f), placed, weights_only, mapped)
        if is_tar(f):
            raise RuntimeError(TAR) if weights_only else NotImplementedError(TAR_TRUSTED)
        return read_legacy(f, placed, reader_of(weights_only))
    except (EOFError, RuntimeError, NotImplementedError, AttributeError, ImportError):
        raise
    except Exception as error:
        if not weights_only:
            raise  # what the file did, or Python's own unpickler
        if isinstance(error, pickle.UnpicklingError):
            raise refused(str(error)) from None
        if isinstance(error, (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError)):
            raise refused(f"{type(error).__name__}: {error}") from error
        raise


def refused(reason: str) -> pickle.UnpicklingError:
    """The error for a file that says something that is not data, or not sense."""
    return pickle.UnpicklingError(
        "Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
        "it can result in arbitrary code execution. Do it only if you got the file from a trusted source.\n"
        f"WeightsUnpickler error: {reason}"
    )


def reader_of(weights_only: bool) -> Callable[[bytes, Callable[[Any], Any]], tuple[Any, int]]:
    """The machine that reads a pickle: (bytes, storages) -> (value, how many bytes it had)."""

    def careful(content: bytes, storage_of: Callable[[Any], Any]) -> tuple[Any, int]:
        reader = Reader(content, storage_of)
        return reader.read(), reader.position

    def trusting(content: bytes, storage_of: Callable[[Any], Any]) -> tuple[Any, int]:
        file = io.BytesIO(content)
        return TrustingReader(file, storage_of).load(), file.tell()

    return careful if weights_only else trusting


class TrustingReader(pickle.Unpickler):
    """Python's own unpickler, for files the caller trusts; torch's names mean ours."""

    def __init__(self, file: BinaryIO, storage_of: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.persistent_load = storage_of  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
        for known in (FUNCTIONS, VALUES):
            if (module, name) in known and module.startswith("torch"):
                return known[module, name]
        if module.partition(".")[0] == "torch":
            module = "pullback" + module.removeprefix("torch")
        return super().find_class(module, name)


def read_archive(archive: ArchiveReader, placed: Locations, weights_only: bool, mapped: bool) -> Any:
    """The value in a zip file."""
    little = archive.is_little_endian()
    memories: dict[str, UntypedStorage] = {}

    def storage_of(identity: Any) -> Any:
        kind, key, location, length = checked_identity(identity)
        place = placed(location)
        if key not in memories:
            name = f"data/{key}"
            if place.type == "cuda":
                data = np.frombuffer(bytearray(archive.record(name)), np.uint8)
                content = made_on(
                    place, np.asarray, data if little is LITTLE or kind is None else swapped(data, kind.numpy)
                )
            elif place is not CPU:
                content = made_on(place, np.empty, archive.place(name)[1], np.dtype(np.uint8))
            elif options.skip:
                content = np.zeros(archive.place(name)[1], np.uint8)
            else:
                content = np.frombuffer(archive.mapped(name) if mapped else archive.record(name), np.uint8)
            if little is not LITTLE and kind is not None and place is CPU:
                content = swapped(content, kind.numpy)
            memories[key] = placed.moved(on_memory(content), location)
        if memories[key].nbytes() < length * (1 if kind is None else kind.itemsize):
            raise ValueError(f"storage {key} is shorter than the file says")
        return memories[key] if kind is None else typed(memories[key], kind)

    value, _ = reader_of(weights_only)(bytes(archive.record("data.pkl")), storage_of)
    return value


def checked_identity(identity: Any) -> tuple[dtype | None, str, Any, int]:
    """Dtype, key, place and length of a storage, as a pickle mentions it."""
    if type(identity) is not tuple or len(identity) < 5 or identity[0] != "storage":
        raise pickle.UnpicklingError("Only persistent_load of storage is allowed")
    kind, key, location, length = identity[1:5]
    if kind is UntypedStorage:
        kind = None
    elif not isinstance(kind, dtype) or kind not in STORAGES.values():
        raise pickle.UnpicklingError("a storage needs a class of storages")
    if type(length) is not int or length < 0 or type(key) is not str:
        raise pickle.UnpicklingError("a storage needs a key and a length")
    return kind, key, location, length


class Locations:
    """Where storages go: to the devices they were on, to one that is named, or where a function puts them."""

    def __init__(self, map_location: Any) -> None:
        self.map, self.function = map_location, None
        if callable(map_location) and not isinstance(map_location, device):
            self.map, self.function = None, map_location

    def __call__(self, location: Any) -> device:
        """The device a storage is read to; refuses those that do not exist here."""
        return CPU if self.function is not None else self.found(location)

    def moved(self, storage: UntypedStorage, location: Any) -> UntypedStorage:
        """What a function makes of a storage that was read to the host; what it answers None for goes where it was."""
        if self.function is None:
            return storage
        made = self.function(storage, location)
        if made is None:
            return storage.to(device=self.found(location))  # type: ignore[no-any-return]
        if not isinstance(made, UntypedStorage):
            raise TypeError(WRAPS_BYTES.format(type(made)))
        return made

    def found(self, location: Any) -> device:
        """The device that a storage is mapped to."""
        target = location
        if isinstance(self.map, dict):
            target = self.map.get(location, location)
        elif self.map is not None:
            target = self.map
        kind = target.type if isinstance(target, device) else str(target).partition(":")[0]
        if kind == "cuda":
            place = place_of(target)
            if exists(place):
                return place
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
                "your storages to the CPU."
            )
        if kind == "meta":
            return META
        if kind != "cpu":
            raise RuntimeError(
                f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {kind})"
            )
        return CPU


WRAPS_BYTES = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
    "Argument 'wrap_storage' must be UntypedStorage, but got {}"
)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The classes and functions a file names that `load` would refuse, without loading it."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    if not is_archive(f):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    found, texts = dict[str, None](), [""]
    for code, argument, _ in pickletools.genops(ArchiveReader(f).record("data.pkl")):
        if "UNICODE" in code.name:
            texts.append(str(argument))
        if code.name in ("GLOBAL", "STACK_GLOBAL"):
            module, _, name = str(argument or " ".join(texts[-2:])).partition(" ")
            if not any((module, name) in known for known in (FUNCTIONS, VALUES, safe)):
                found[f"{module}.{name}"] = None
    return list(found)
