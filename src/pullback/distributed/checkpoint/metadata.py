"""What a checkpoint says of itself, in torch's words: the file `.metadata`, which either library reads."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
from dataclasses import dataclass, field, fields
from typing import Any

import pullback as torch
from pullback import Size
from pullback._arrays.layout import layout, memory_format
from pullback.serialization.pickle_writer import Writer, name

FORMATS = [torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format]


@dataclass
class TensorProperties:
    """What a tensor is, beside its shape."""

    dtype: Any = field(default_factory=torch.get_default_dtype)
    layout: Any = torch.strided
    requires_grad: bool = False
    memory_format: Any = torch.contiguous_format
    pin_memory: bool = False

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, self.memory_format, self.pin_memory = state

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad)


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its shape."""

    offsets: Size
    sizes: Size


@dataclass
class TensorStorageMetadata:
    """A tensor and its parts."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something that is no tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a thing, and for a part of a tensor where it begins."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(default=None, hash=False, compare=False)


@dataclass
class StorageMeta:
    """Where and when it was saved."""

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class _StorageInfo:
    """Where the bytes of a thing are."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None


@dataclass
class Metadata:
    """All of it."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


HERE = "torch.distributed.checkpoint.metadata"
CLASSES = [TensorProperties, ChunkStorageMetadata, TensorStorageMetadata, BytesStorageMetadata, MetadataIndex]
CLASSES += [StorageMeta, Metadata]
KNOWN: dict[tuple[str, str], Any] = {(HERE, kind.__name__): kind for kind in CLASSES}
KNOWN["torch.distributed.checkpoint.filesystem", "_StorageInfo"] = _StorageInfo
NAMES = {kind: key for key, kind in KNOWN.items()}
"""By which torch knows them; Python knows them by where they are."""


# ------------------------------------------------------------------ the file


class MetadataWriter(Writer):
    """Pickles it so that torch reads it: every class by a call of torch's."""

    def reducer_override(self, obj: Any) -> Any:
        """A call with the values of the fields."""
        kind = type(obj)
        if kind in NAMES:
            if kind is _StorageInfo and obj.transform_descriptors is None:
                values = [obj.relative_path, obj.offset, obj.length]
            else:
                values = [getattr(obj, one.name) for one in fields(kind)]
            return name(*NAMES[kind]), tuple(values)
        if kind in (layout, memory_format):
            return name("torch", obj.name), None
        return super().reducer_override(obj)

    def save_reduce(self, func: Any, args: Any, *rest: Any, **options: Any) -> None:
        """A name alone is no call."""
        if args is None:
            self.save(func)
        else:
            super().save_reduce(func, args, *rest, **options)


def written(metadata: Metadata) -> bytes:
    """The bytes of the file."""
    file = io.BytesIO()

    def keep(memory: Any, kind: Any) -> str:
        raise TypeError("metadata holds no tensors")

    MetadataWriter(file, 4, keep).dump(metadata)
    return file.getvalue()


def path_of(*parts: str) -> str:
    """A path in a file."""
    return os.path.join(*parts) if parts else "."


def layout_named(text: str) -> Any:
    """A layout, as torch's files name it."""
    return getattr(torch, text.removeprefix("torch."))


class MetadataReader(pickle.Unpickler):
    """Reads it, and nothing else: other names are refused, because a file may say anything."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file means."""
        if (module, name) in KNOWN:
            return KNOWN[module, name]
        if module == HERE and name == "_MEM_FORMAT_ENCODING":
            return lambda number: FORMATS[number]
        if module == "torch" and name == "Size":
            return Size
        if module == "torch" and type(getattr(torch, name, None)) in (torch.dtype, layout, memory_format):
            return getattr(torch, name)
        if (module, name) == ("torch.serialization", "_get_layout"):
            return layout_named
        if module.partition(".")[0] == "pathlib" and name in ("PosixPath", "WindowsPath", "Path", "PurePosixPath"):
            return path_of
        if (module, name) in (("collections", "OrderedDict"), ("builtins", "set")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"metadata names {module}.{name}, which is none of its words")


def read(path: pathlib.Path) -> Metadata:
    """The metadata in a file."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path.parent} is no complete checkpoint: it has no {path.name}, which is written last"
        )
    try:
        found = MetadataReader(io.BytesIO(path.read_bytes())).load()
    except Exception as error:
        raise RuntimeError(f"{path} is corrupt: {error}") from None
    if not isinstance(found, Metadata) or not isinstance(found.storage_data, dict):
        raise RuntimeError(f"{path} is corrupt: it holds no metadata of a checkpoint")
    return found
