"""Checkpoints in a folder: a file for each rank, and `.metadata`, whose arrival makes the checkpoint complete."""

from __future__ import annotations

import io
import os
import re
import uuid
from pathlib import Path
from typing import Any

import pullback as torch
from pullback.distributed.checkpoint import metadata as words
from pullback.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta, _StorageInfo
from pullback.serialization import load as load_file
from pullback.serialization import save as save_file

METADATA = ".metadata"


class StorageWriter:
    """What writes checkpoints."""


class StorageReader:
    """What reads checkpoints."""


class FileSystemWriter(StorageWriter):
    """Writes checkpoints into a folder. One that is there stays whole until the new one is complete."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: Any = None,
    ) -> None:
        if _extensions or getattr(serialization_format, "value", "torch_save") != "torch_save":
            raise NotImplementedError("FileSystemWriter writes files of torch.save, without extensions")
        self.path, self.sync_files, self.overwrite = Path(path), sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def prepare(self) -> int:
        """Make the folder; the number that no file in it has yet."""
        self.save_id = str(uuid.uuid4())
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / METADATA).exists() and not self.overwrite:
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
        taken = {int(found[1]) for one in os.listdir(self.path) if (found := re.fullmatch(r"__\d+_(\d+)\.distcp", one))}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def write(self, rank: int, number: int, items: list[tuple[MetadataIndex, Any]]) -> list[Any]:
        """Write the things of a rank; where each is."""
        if not items:
            return []
        relative, found = f"__{rank}_{number}.distcp", []
        with open(self.path / relative, "wb") as file:
            for index, value in items:
                start, content = file.tell(), io.BytesIO()
                save_file(value, content)
                file.write(content.getbuffer())
                found.append((index, _StorageInfo(relative, start, file.tell() - start)))
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return found

    def finish(self, metadata: Metadata, results: list[list[Any]]) -> Metadata:
        """The last step: with `.metadata` the checkpoint is complete. Files of an older one go."""
        metadata.storage_data = {index: info for result in results for index, info in result}
        metadata.storage_meta = StorageMeta(str(self.path), self.save_id)
        metadata.version = "1.0.0"
        new = self.path / f"{METADATA}.tmp"
        with open(new, "wb") as file:
            file.write(words.written(metadata))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path / METADATA)
        named = {info.relative_path for info in metadata.storage_data.values()}
        for one in os.listdir(self.path):
            if re.fullmatch(r"__\d+_\d+\.distcp", one) and one not in named:
                os.remove(self.path / one)
        return metadata


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder."""

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint says of itself; all its files must be there, and long enough."""
        found = words.read(self.path / METADATA)
        needed: dict[str, int] = {}
        for info in found.storage_data.values():
            if info.transform_descriptors:
                raise NotImplementedError(f"{self.path} was written with extensions {info.transform_descriptors}")
            end = info.offset + info.length
            needed[info.relative_path] = max(needed.get(info.relative_path, 0), end)
        for relative, end in needed.items():
            path = self.path / relative
            if Path(relative).name != relative:
                raise RuntimeError(f"{self.path / METADATA} is corrupt: it names the file {relative!r}")
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing: the checkpoint is not complete")
            if path.stat().st_size < end:
                raise RuntimeError(f"{path} is corrupt: it has {path.stat().st_size} bytes, its metadata says {end}")
        return found

    def read(self, metadata: Metadata, index: MetadataIndex, weights_only: bool) -> Any:
        """One thing."""
        info = metadata.storage_data[index]
        path = self.path / info.relative_path
        with open(path, "rb") as file:
            file.seek(info.offset)
            content = io.BytesIO(file.read(info.length))
        try:
            return load_file(content, weights_only=weights_only)
        except Exception as error:
            raise RuntimeError(f"{path} is corrupt where {index.fqn} is: {error}") from None


def check_tensor(path: Path, index: MetadataIndex, found: Any, sizes: Any) -> Any:
    """A tensor of the size that the metadata says."""
    if not isinstance(found, torch.Tensor) or tuple(found.shape) != tuple(sizes):
        raise RuntimeError(f"{path} is corrupt where {index.fqn} is: it holds no tensor of shape {tuple(sizes)}")
    return found


for public in (FileSystemWriter, FileSystemReader):
    public.__module__ = "torch.distributed.checkpoint.filesystem"
