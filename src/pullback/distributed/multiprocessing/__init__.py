"""`torch.multiprocessing`: Python's own, with `spawn`.

Tensors are pickled on the way to another process; those in shared memory (`share_memory_`) are seen by forked children.
"""

from __future__ import annotations

from multiprocessing import *

from pullback.distributed.multiprocessing import spawn as spawn
from pullback.distributed.multiprocessing.spawn import ProcessContext as ProcessContext
from pullback.distributed.multiprocessing.spawn import ProcessException as ProcessException
from pullback.distributed.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from pullback.distributed.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from pullback.distributed.multiprocessing.spawn import SpawnContext as SpawnContext
from pullback.distributed.multiprocessing.spawn import start_processes as start_processes
