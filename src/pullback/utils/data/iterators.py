"""One pass over a DataLoader: in this process, or with workers that fetch ahead."""

from __future__ import annotations

import itertools
import multiprocessing
import queue
from collections.abc import Iterator
from typing import Any

import pullback as torch
from pullback.autograd.tracebacks import trim
from pullback.utils.data import worker
from pullback.utils.data.fetch import _DatasetKind

SECONDS_BETWEEN_LOOKS = 5.0
"""How often a waiting main process looks whether its workers are alive."""


class _BaseDataLoaderIter:
    """What both kinds of pass share: the order of indices, and a seed for the workers."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self._sampler_iter: Iterator[Any] = iter(loader._index_sampler)
        self._base_seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches fetched when they are asked for."""

    def __init__(self, loader: Any) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if loader.num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        super().__init__(loader)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def __next__(self) -> Any:
        try:
            return self._dataset_fetcher.fetch(next(self._sampler_iter))
        except Exception as error:
            trim(error)
            raise


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches fetched ahead by worker processes, and handed out in order.

    Each task has a number; `results` holds what came too early, `owner` says which worker has a task.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        context = loader.multiprocessing_context
        self.context = context if context is not None else default_context()
        self.done = self.context.Event()
        self.batches = self.context.Queue()
        self.queues: list[Any] = []
        self._workers: list[Any] = []
        self.closed = False
        for number in range(loader.num_workers):
            indices = self.context.Queue()
            indices.cancel_join_thread()
            job = worker.Job(
                loader.dataset,
                loader._dataset_kind,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                int(self._base_seed),
                loader.worker_init_fn,
                number,
                loader.num_workers,
                loader.persistent_workers,
            )
            process = self.context.Process(target=worker.run, args=(job, indices, self.batches, self.done), daemon=True)
            process.start()
            self.queues.append(indices)
            self._workers.append(process)
        self.begin()

    def begin(self) -> None:
        """Start an epoch: nothing asked for, nothing received; then ask for the first batches."""
        self.sent = self.received = 0
        self.results: dict[int, Any] = {}
        self.owner: dict[int, int] = {}
        self.active = [True] * len(self._workers)
        self.turns = itertools.cycle(range(len(self._workers)))
        for _ in range(self.loader.prefetch_factor * len(self._workers)):
            self.ask()

    def _reset(self, loader: Any) -> None:
        """The next epoch with the same workers."""
        self.loader = loader
        self._sampler_iter = iter(self.loader._index_sampler)
        for indices in self.queues:
            indices.put(worker.Restart())
        waiting = len(self._workers)
        while waiting:
            number, _ = self.receive()
            waiting -= isinstance(number, worker.Restart)
        self.begin()

    def ask(self) -> None:
        """Give the next indices to the next worker that still has something to give."""
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        for _ in self._workers:
            number = next(self.turns)
            if self.active[number]:
                break
        else:
            return
        self.queues[number].put((self.sent, index))
        self.owner[self.sent] = number
        self.sent += 1

    def receive(self) -> Any:
        """The next thing any worker sends; an error if one has died or none sends in time."""
        timeout = self.loader.timeout
        waited = 0.0
        while True:
            step = min(timeout - waited, SECONDS_BETWEEN_LOOKS) if timeout > 0 else SECONDS_BETWEEN_LOOKS
            try:
                return self.batches.get(timeout=step)
            except queue.Empty:
                waited += step
            dead = [w.pid for n, w in enumerate(self._workers) if self.active[n] and not w.is_alive()]
            if dead:
                pids = ", ".join(map(str, dead))
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
            if timeout > 0 and waited >= timeout:
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")

    def __next__(self) -> Any:
        try:
            while True:
                # Tasks of a worker whose stream has ended are never answered.
                while self.received < self.sent and self.received not in self.results:
                    owner = self.owner.get(self.received)
                    if owner is not None and self.active[owner]:
                        break
                    self.owner.pop(self.received, None)
                    self.received += 1
                if self.received in self.results:
                    number = self.received
                    result = self.results.pop(number)
                    self.received += 1
                    return self.hand_out(number, result)
                if self.received >= self.sent:
                    if not self.loader.persistent_workers:
                        self._shutdown_workers()
                    raise StopIteration
                number, result = self.receive()
                if isinstance(result, worker.StreamEnd):
                    self.active[result.worker] = False
                    self.owner.pop(number, None)
                    if not self.loader.persistent_workers:
                        self.queues[result.worker].put(None)
                    self.ask()
                elif number == self.received or not self.loader.in_order:
                    self.received += number == self.received
                    return self.hand_out(number, result)
                else:
                    self.results[number] = result
        except Exception as error:
            trim(error)
            raise

    def hand_out(self, number: int, result: Any) -> Any:
        """Ask for another batch, and give this one, or raise what the worker met."""
        self.owner.pop(number, None)
        self.ask()
        if isinstance(result, worker.WorkerError):
            result.reraise()
        return result

    def _shutdown_workers(self) -> None:
        """Stop the workers and wait for them."""
        if self.closed:
            return
        self.closed = True
        self.done.set()
        for indices in self.queues:
            indices.put(None)
        for process in self._workers:
            process.join(timeout=5.0)
            if process.is_alive():
                process.terminate()
                process.join(timeout=5.0)
        for each in (*self.queues, self.batches):
            each.cancel_join_thread()
            each.close()

    def __del__(self) -> None:
        if hasattr(self, "closed"):
            self._shutdown_workers()


def default_context() -> Any:
    """The platform's own way to start processes."""
    return multiprocessing.get_context()
