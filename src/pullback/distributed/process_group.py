"""`ProcessGroup`: ranks that do collectives together, from tensors to the engine that carries their memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np

from pullback import Tensor
from pullback._lazy import LazyTensor, store
from pullback._runtime.quiet import SILENT, errors
from pullback._tensor import bump_version, strided
from pullback.distributed.errors import DistBackendError
from pullback.distributed.reduce_op import RedOpType, combiner, kind
from pullback.distributed.sparse_sum import check_sparse, sparse_sum
from pullback.distributed.stores import Store
from pullback.distributed.transport.engine import Engine, from_all
from pullback.distributed.transport.lanes import answer, own_address
from pullback.distributed.transport.mail import Mail
from pullback.distributed.transport.mpi import Messages
from pullback.distributed.transport.shared import Shared, machine
from pullback.distributed.work import Line, Work


class Piece:
    """The memory of a tensor in one piece: its own where it is so already, else a copy that is put back."""

    def __init__(self, tensor: Tensor, wanted: bool = True) -> None:
        self.tensor, array = tensor, tensor._array
        self.staged: Tensor | None = None
        if tensor.device.type == "cuda":  # by way of the host
            self.staged = tensor.detach().cpu()
            array = self.staged._array
        if type(array) is not np.ndarray:
            here = tensor.device.type in ("cpu", "cuda")
            raise RuntimeError(
                "Invalid scalar type" if here else f"No backend type associated with device type {tensor.device.type}"
            )
        self.own = array.flags.c_contiguous and type(tensor) is not LazyTensor and self.staged is None
        if self.own:
            self.array = array
        else:
            self.array = np.array(array, order="C") if wanted else np.empty(array.shape, array.dtype)

    def put_back(self) -> None:
        """What was received is in the tensor now."""
        if self.staged is not None:
            store(self.staged, self.array)
            self.tensor.detach().copy_(self.staged)
        elif not self.own:
            store(self.tensor, self.array)


class ProcessGroup:
    """A group of ranks. `names` are their global names in messages."""

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta = timedelta(minutes=30),
        ranks: list[int] | None = None,
        comm: Any = None,
    ) -> None:
        self._timeout, self.generation = timeout, 0
        self.group_name, self.group_desc, self._backend = "", "undefined", "gloo"
        self.bound_device_id: Any = None
        self._form(store, rank, size, list(range(size)) if ranks is None else ranks, comm)

    def _form(self, store: Store, rank: int, size: int, ranks: list[int], comm: Any = None) -> None:
        """Meet the others."""
        self._store, self._rank, self._size, self._ranks = store, rank, size, ranks
        self._names = [f"rank {global_rank}" for global_rank in ranks]
        self._engine, self._mail = self._connect(comm)
        self._line = Line(f"pullback group {ranks}")
        self._mail_lines: dict[tuple[str, int], Line] = {}
        self._batch: list[tuple[Callable[[], Any], Work]] | None = None
        self._calls = 0

    def _form_again(self, store: Store, rank: int, size: int, comm: Any = None) -> None:
        """Go on with those that are left; whoever holds this group holds the new one."""
        self.generation += 1
        self._form(store, rank, size, list(range(size)), comm)

    def _connect(self, comm: Any) -> tuple[Engine, Mail]:
        """Find the others: by MPI if it has started them, else those on one machine share memory."""
        mail = Mail(self._store, self._rank, self._size, self._names)
        arguments = self._store, self._rank, self._size, self._names, self._timeout.total_seconds()
        if self._size == 1:
            return Engine(*arguments), mail
        self._store.set(f"member/{self._rank}", f"{machine()} {os.getpid()}")
        members = [said.decode().split() for said in from_all(self._store, "member", self._names)]
        mail.lanes.join(own_address(self._store))
        engine: Engine
        if comm is not None:
            engine = Messages(comm, *arguments)
        elif len({where for where, _ in members}) == 1:
            engine = Shared(*arguments)
            engine.join([int(process) for _, process in members])
        else:
            engine = Engine(*arguments)
        engine.lanes.join(own_address(self._store))
        return engine, mail

    # ------------------------------------------------------------------ facts

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks there are."""
        return self._size

    def name(self) -> str:
        """The backend that was asked for."""
        return self._backend

    def get_group_store(self) -> Store:
        """The store of the group."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """How long a collective may take."""
        self._timeout = timeout
        self._engine.timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Let go of all connections."""
        self._line.close()
        for line in self._mail_lines.values():
            line.close()
        self._engine.close()
        self._mail.close()

    abort = shutdown

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ProcessGroup object at {id(self):#x}>"

    # ------------------------------------------------------------------ collectives

    def _run(self, what: str, job: Callable[[], Any], result: Any, later: bool, line: Line | None = None) -> Work:
        """Do something now or later; who was late is named."""
        if line is None:
            self._calls += 1
        call = self._calls if line is None else 0

        def named() -> Any:
            began, loudness = time.monotonic(), errors.get()
            try:
                errors.set(SILENT)
                return job()
            except TimeoutError as late:
                waited = round((time.monotonic() - began) * 1000)
                names = self._missing(call, late) if call and not self._engine.knows_who else late
                message = f"Timed out waiting {waited}ms for {what} to complete: no answer from {names}"
                raise DistBackendError(message) from None
            except self._engine.failures as error:
                raise DistBackendError(self._engine.blame(error)) from None
            finally:
                errors.set(loudness)

        if self._batch is not None:
            self._batch.append((named, Work(result)))
            return self._batch[-1][1]
        if any(tensor.device.type == "cuda" for tensor in result):  # a device is used by the thread of the program only
            (line or self._line).run(lambda: None, (), False)
            later = False
        return (line or self._line).run(named, result, later)

    def _missing(self, call: int, late: TimeoutError) -> str:
        """The ranks that do not wait in the same call: those that do say so in the store."""
        missing = [rank for rank in range(self._size) if rank != self._rank]
        end = time.monotonic() + LAST_CALL

        def ask() -> list[int]:
            left, store = missing, self._store
            store.set(f"late/{call}/{self._rank}", "1")
            while left and time.monotonic() < end:
                time.sleep(0.05)
                left = [rank for rank in left if not store.check([f"late/{call}/{rank}"])]
            return left

        found = answer(ask, LAST_CALL + 1)
        if found is None:  # rank 0 holds the store, unless whoever started the ranks does
            return "rank 0" if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" else str(late)
        return ", ".join([self._names[rank] for rank in found]) or str(late)

    @contextlib.contextmanager
    def _together(self, later: bool) -> Iterator[list[Work]]:
        """Collectives called in this block are done at its end, as one."""
        jobs: list[tuple[Callable[[], Any], Work]] = []
        works: list[Work] = []
        self._batch = jobs
        try:
            yield works
        finally:
            self._batch = None

        def together() -> None:
            failed: BaseException | None = None
            for job, work in jobs:
                try:
                    if failed is None:
                        job()
                except BaseException as error:
                    failed = error
                work._finish(failed)
            if failed is not None:
                raise failed

        works.append(self._line.run(together, (), later))

    def all_reduce(self, tensors: list[Tensor], op: Any, later: bool = False) -> Work:
        """Combine tensors over all ranks, in place."""
        op = kind(op)
        if any([tensor.layout is not strided for tensor in tensors]):
            for tensor in tensors:
                check_sparse(tensor, op)
            return self._run("all_reduce", lambda: self._sparse_sums(tensors), tensors, later)
        pieces = [Piece(tensor) for tensor in tensors]
        combine = [combiner(op, tensor) for tensor in tensors]

        def job() -> None:
            for piece, ufunc in zip(pieces, combine):
                if self._size > 1:
                    self._engine.all_reduce(piece.array, ufunc)
                self._average(op, piece)
                piece.put_back()

        return self._run("all_reduce", job, tensors, later)

    def _sparse_sums(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            sparse_sum(self._engine, tensor)

    def _mean(self, arrays: list[np.ndarray[Any, Any]], divisor: int) -> Work:
        """Add up arrays of one dtype over all ranks, each divided first, in place and in the background."""
        factor = arrays[0].dtype.type(1.0 / divisor)

        def job() -> None:
            if self._size > 1:
                self._engine.scaled_sum(arrays, factor)
            else:
                for array in arrays:
                    np.multiply(array, factor, out=array)

        return self._run("all_reduce", job, (), later=True)

    def _average(self, op: RedOpType, piece: Piece) -> None:
        if op is RedOpType.AVG:
            np.divide(piece.array, piece.array.dtype.type(self._size), out=piece.array)
            bump_version(piece.tensor)

    def reduce(self, tensor: Tensor, root: int, op: Any, later: bool = False) -> Work:
        """Combine a tensor over all ranks, in place at the root."""
        op, piece, ufunc = kind(op), Piece(tensor), combiner(op, tensor)

        def job() -> None:
            if self._size > 1:
                self._engine.reduce(piece.array, root, ufunc)
            if self._rank == root:
                self._average(op, piece)
                piece.put_back()

        return self._run("reduce", job, [tensor], later)

    def broadcast(self, tensors: list[Tensor], root: int, later: bool = False) -> Work:
        """The tensors of the root, everywhere."""
        pieces = [Piece(tensor) for tensor in tensors]

        def job() -> None:
            for piece in pieces:
                if self._size > 1:
                    self._engine.broadcast(piece.array, root)
                if self._rank != root:
                    piece.put_back()

        return self._run("broadcast", job, tensors, later)

    def all_gather(self, outs: list[Tensor], tensor: Tensor, later: bool = False) -> Work:
        """The tensors of all ranks, everywhere."""
        piece, pieces = Piece(tensor), [Piece(out, wanted=False) for out in outs]
        return self._run("all_gather", lambda: self._gathered(pieces, piece), outs, later)

    def _gathered(self, pieces: list[Piece], piece: Piece) -> None:
        if self._size == 1:
            pieces[0].array[...] = piece.array
        else:
            self._engine.all_gather([one.array for one in pieces], piece.array)
        for one in pieces:
            one.put_back()

    def reduce_scatter(self, out: Tensor, tensors: list[Tensor], op: Any, later: bool = False) -> Work:
        """Combine the tensors all ranks have for each; each gets its own."""
        op, target, pieces = kind(op), Piece(out, wanted=False), [Piece(tensor) for tensor in tensors]
        ufunc = combiner(op, out)

        def job() -> None:
            if self._size == 1:
                target.array[...] = pieces[0].array
            else:
                self._engine.reduce_scatter(target.array, [piece.array for piece in pieces], ufunc)
            self._average(op, target)
            target.put_back()

        return self._run("reduce_scatter", job, [out], later)

    def gather(self, outs: list[Tensor], tensor: Tensor, root: int, later: bool = False) -> Work:
        """The tensors of all ranks, at the root."""
        piece, pieces = Piece(tensor), [Piece(out, wanted=False) for out in outs]

        def job() -> None:
            if self._size == 1:
                pieces[0].array[...] = piece.array
            else:
                self._engine.gather([one.array for one in pieces] or None, piece.array, root)
            for one in pieces:
                one.put_back()

        return self._run("gather", job, outs, later)

    def scatter(self, out: Tensor, tensors: list[Tensor], root: int, later: bool = False) -> Work:
        """To every rank the tensor that the root has for it."""
        target, pieces = Piece(out, wanted=False), [Piece(tensor) for tensor in tensors]

        def job() -> None:
            if self._size == 1:
                target.array[...] = pieces[0].array
            else:
                self._engine.scatter(target.array, [piece.array for piece in pieces] or None, root)
            target.put_back()

        return self._run("scatter", job, [out], later)

    def all_to_all(self, outs: list[Tensor], tensors: list[Tensor], later: bool = False) -> Work:
        """To every rank the tensor this one has for it."""
        targets, pieces = [Piece(out, wanted=False) for out in outs], [Piece(tensor) for tensor in tensors]

        def job() -> None:
            if self._size == 1:
                targets[0].array[...] = pieces[0].array
            else:
                self._engine.all_to_all([one.array for one in targets], [one.array for one in pieces])
            for one in targets:
                one.put_back()

        return self._run("all_to_all", job, outs, later)

    def barrier(self, later: bool = False) -> Work:
        """Wait for all ranks."""
        return self._run("barrier", self._engine.barrier if self._size > 1 else lambda: None, (), later)

    def monitored_barrier(self, timeout: timedelta, wait_all: bool) -> None:
        """Wait for all ranks; rank 0 says which have not come."""
        end, mail, note = time.monotonic() + timeout.total_seconds(), self._mail, np.zeros(1, np.uint8)
        if self._rank:
            try:
                mail.send(note, 0, MONITOR, end)
                mail.receive(note, 0, MONITOR, end)
            except (TimeoutError, DistBackendError):
                raise RuntimeError(
                    f"Rank {self._ranks[self._rank]} successfully reached monitoredBarrier, but received errors while "
                    "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
                ) from None
            return
        missing: list[int] = []

        def failed() -> RuntimeError:
            late = f"Ranks {', '.join(map(str, missing))}" if wait_all else f"Rank {missing[0]}"
            waited = round(timeout.total_seconds() * 1000)
            return RuntimeError(f"[Rank {self._ranks[0]}]: {late} failed to pass monitoredBarrier in {waited} ms")

        for rank in range(1, self._size):
            try:
                mail.receive(note, rank, MONITOR, end)
            except (TimeoutError, DistBackendError):
                missing.append(self._ranks[rank])
                if not wait_all:
                    raise failed() from None
        if missing:
            raise failed()
        for rank in range(1, self._size):
            try:
                mail.send(note, rank, MONITOR, end + 10)
            except (TimeoutError, DistBackendError):  # lost since it came; the others may go
                missing.append(self._ranks[rank])
        if missing:
            raise failed()

    # ------------------------------------------------------------------ messages

    def _mail_line(self, direction: str, rank: int) -> Line:
        return self._mail_lines.setdefault((direction, rank), Line(f"pullback {direction} {rank}"))

    def send(self, tensor: Tensor, rank: int, tag: int, later: bool = False) -> Work:
        """Send a tensor."""
        piece = Piece(tensor)
        job = lambda: self._mail.send(piece.array, rank, tag, self._engine.deadline())
        return self._run("send", job, [tensor], later, self._mail_line("to", rank))

    def recv(self, tensor: Tensor, rank: int, tag: int, later: bool = False) -> Work:
        """Receive a tensor; from anybody where the rank is -1."""
        piece = Piece(tensor, wanted=False)

        def job() -> int:
            end, source = self._engine.deadline(), rank
            if rank < 0:
                source = self._mail.receive_any(piece.array, tag, end)
            else:
                self._mail.receive(piece.array, rank, tag, end)
            piece.put_back()
            return source

        return self._run("recv", job, [tensor], later, self._mail_line("from", rank))


LAST_CALL = 1.0
"""Seconds in which ranks that wait in the same call say so, once one of them has waited too long."""
MONITOR = -(1 << 40)
"""The tag of monitored barriers, which no program uses."""
ProcessGroup.__module__ = "torch.distributed.distributed_c10d"
