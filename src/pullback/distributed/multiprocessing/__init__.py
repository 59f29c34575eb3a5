"""`torch.multiprocessing`: Python's own, with `spawn`, and with queues and pipes that share the memory of tensors."""

from __future__ import annotations

from multiprocessing import *

from pullback.distributed.multiprocessing import spawn as spawn
from pullback.distributed.multiprocessing.reductions import init_reductions
from pullback.distributed.multiprocessing.spawn import ProcessContext as ProcessContext
from pullback.distributed.multiprocessing.spawn import ProcessException as ProcessException
from pullback.distributed.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from pullback.distributed.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from pullback.distributed.multiprocessing.spawn import SpawnContext as SpawnContext
from pullback.distributed.multiprocessing.spawn import start_processes as start_processes


def get_all_sharing_strategies() -> set[str]:
    """How memory is shared."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """How memory is shared: by file descriptors."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Take file descriptors; there is nothing else."""
    if new_strategy != "file_descriptor":
        raise NotImplementedError(f"memory is shared by file descriptors here, not by {new_strategy}")


init_reductions()
