"""Ranks that mpiexec has started: `Messages` does collectives by MPI, through mpi4py.

Requests are started and asked for, not waited for, so that who waits too long is told. What MPI has no type for (half
precision) and all_to_all go over lanes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.distributed.transport.engine import Array, Engine

LOOKS = 2000
PAUSE = 0.0002
STARTED = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MPI_LOCALRANKID")
TOLERANT = "OMPI_MCA_mpi_ft_enable"
KINDS = "?bBhHiIlLqQfdFD"
"""The types of elements, by NumPy's letters, that MPI knows."""


def started_by_mpiexec() -> bool:
    """Whether mpiexec started this process."""
    return any(name in os.environ for name in STARTED)


def mpi() -> Any:
    """The module of MPI, or None where mpi4py is not installed. Its first use starts MPI in this process."""
    try:
        if tolerant():
            import mpi4py

            mpi4py.rc.finalize = False  # now and then MPI_Finalize waits for ranks that are no more
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    return MPI


def tolerant() -> bool:
    """Whether the others are told of a rank that dies: `mpiexec --with-ft ulfm` of Open MPI has started them."""
    return os.environ.get(TOLERANT) == "1"


def end_all_on_errors(world: Any) -> None:
    """An exception that nobody catches ends the whole job: the others would wait for ever, unless they are told."""
    before = sys.excepthook

    def hook(*error: Any) -> None:
        before(*error)
        sys.stdout.flush()
        sys.stderr.flush()
        if tolerant():
            os.kill(os.getpid(), signal.SIGKILL)  # an exit without MPI_Finalize is not told to the others
        world.Abort(1)

    sys.excepthook = hook


class Messages(Engine):
    """Collectives by MPI. `comm` holds the ranks of the group in its order."""

    def __init__(self, comm: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.comm, module = comm, mpi()
        self.failures, self.revoked = (module.Exception,), False
        self.here = module.IN_PLACE
        self.ops = {np.add: module.SUM, np.multiply: module.PROD, np.minimum: module.MIN, np.maximum: module.MAX}
        self.ops |= {np.bitwise_and: module.BAND, np.bitwise_or: module.BOR, np.bitwise_xor: module.BXOR}
        self.ops |= {np.logical_or: module.LOR, np.logical_and: module.LAND}

    def knows(self, array: Array, combine: Any = None) -> bool:
        """Whether MPI can do it."""
        if array.dtype.kind == "b" and combine not in (None, np.logical_or, np.logical_and):
            return False
        return array.dtype.char in KINDS and (combine is None or combine in self.ops)

    def finish(self, request: Any) -> None:
        """Wait for a request, no longer than the timeout."""
        for _ in range(LOOKS):
            if request.Test():
                return
        end = self.deadline()
        while not request.Test():
            if time.monotonic() > end:
                raise TimeoutError("some rank")
            time.sleep(PAUSE)

    def blame(self, error: Exception) -> str:
        """What an error of MPI means: a rank has ended, if MPI knows of one."""
        if not tolerant():
            return str(error)
        ended, own = self.comm.Get_failed(), self.comm.Get_group()
        lost = [self.names[rank] for rank in ended.Translate_ranks(list(range(ended.size)), own)]
        return f"Lost {', '.join(lost)}: its process has ended" if lost else f"Lost a rank: {error}"

    def revoke(self) -> None:
        """Let all ranks that wait in this group know that it is no more."""
        self.revoked = True
        self.comm.Revoke()

    def barrier(self) -> None:
        """Wait for all."""
        self.finish(self.comm.Ibarrier())

    def broadcast(self, array: Array, root: int) -> None:
        """What the root has, everywhere."""
        self.finish(self.comm.Ibcast(array.reshape(-1).view(np.uint8), root))

    def all_reduce(self, array: Array, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, everywhere."""
        if not self.knows(array, combine):
            return super().all_reduce(array, combine)
        self.finish(self.comm.Iallreduce(self.here, array.reshape(-1), self.ops[combine]))

    def reduce(self, array: Array, root: int, combine: Callable[..., Any]) -> None:
        """Combine the arrays of all ranks, at the root."""
        if not self.knows(array, combine):
            return super().reduce(array, root, combine)
        flat = array.reshape(-1)
        if self.rank == root:
            self.finish(self.comm.Ireduce(self.here, flat, self.ops[combine], root))
        else:
            self.finish(self.comm.Ireduce(flat, None, self.ops[combine], root))

    def all_gather(self, outs: list[Array], array: Array) -> None:
        """What every rank has, everywhere."""
        data = array.reshape(-1).view(np.uint8)
        room = np.empty((self.size, data.size), np.uint8)
        self.finish(self.comm.Iallgather(data, room))
        for out, row in zip(outs, room):
            out.reshape(-1).view(np.uint8)[...] = row

    def gather(self, outs: list[Array] | None, array: Array, root: int) -> None:
        """What every rank has, at the root."""
        data = array.reshape(-1).view(np.uint8)
        room = np.empty((self.size, data.size), np.uint8) if outs else None
        self.finish(self.comm.Igather(data, room, root))
        if outs and room is not None:
            for out, row in zip(outs, room):
                out.reshape(-1).view(np.uint8)[...] = row

    def scatter(self, out: Array, arrays: list[Array] | None, root: int) -> None:
        """To every rank what the root has for it."""
        room = np.stack([array.reshape(-1).view(np.uint8) for array in arrays]) if arrays else None
        self.finish(self.comm.Iscatter(room, out.reshape(-1).view(np.uint8), root))

    def reduce_scatter(self, out: Array, arrays: list[Array], combine: Callable[..., Any]) -> None:
        """Combine the arrays each rank has for every rank; each gets its own."""
        if not self.knows(out, combine):
            return super().reduce_scatter(out, arrays, combine)
        room = np.stack([array.reshape(-1) for array in arrays])
        self.finish(self.comm.Ireduce_scatter_block(room, out.reshape(-1), self.ops[combine]))

    def close(self) -> None:
        """Let go of the communicator."""
        super().close()
        if not mpi().Is_finalized() and not self.revoked:
            self.comm.Free()
