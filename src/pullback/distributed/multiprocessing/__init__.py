"""`torch.multiprocessing`: Python's own, with `spawn`, and with queues and pipes that share the memory of tensors."""

from __future__ import annotations

import warnings
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
    """Take file descriptors. Who asks for files by name is told that memory is shared by descriptors all the same."""
    if new_strategy not in ("file_descriptor", "file_system"):
        known = get_all_sharing_strategies()
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {known}")
    if new_strategy == "file_system":
        warnings.warn("memory is shared by file descriptors here, not by file_system", stacklevel=2)


init_reductions()
