"""`torch.distributed.checkpoint`: saved by many ranks, loaded by as many as there are then."""

from __future__ import annotations

from pullback.distributed.checkpoint import format_utils as format_utils
from pullback.distributed.checkpoint import state_dict as state_dict
from pullback.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from pullback.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter
from pullback.distributed.checkpoint.filesystem import StorageReader as StorageReader
from pullback.distributed.checkpoint.filesystem import StorageWriter as StorageWriter
from pullback.distributed.checkpoint.loading import load as load
from pullback.distributed.checkpoint.metadata import BytesStorageMetadata as BytesStorageMetadata
from pullback.distributed.checkpoint.metadata import ChunkStorageMetadata as ChunkStorageMetadata
from pullback.distributed.checkpoint.metadata import Metadata as Metadata
from pullback.distributed.checkpoint.metadata import TensorStorageMetadata as TensorStorageMetadata
from pullback.distributed.checkpoint.planner import DefaultLoadPlanner as DefaultLoadPlanner
from pullback.distributed.checkpoint.planner import DefaultSavePlanner as DefaultSavePlanner
from pullback.distributed.checkpoint.ranks import CheckpointException as CheckpointException
from pullback.distributed.checkpoint.saving import async_save as async_save
from pullback.distributed.checkpoint.saving import save as save
