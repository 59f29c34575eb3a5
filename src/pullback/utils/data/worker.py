"""What a worker process does: take indices, send batches, until there are no more, or no parent."""

from __future__ import annotations

import os
import queue
import random
import sys
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback as torch
from pullback.utils.data.fetch import _DatasetKind

SECONDS_BETWEEN_LOOKS = 5.0
"""How often an idle worker looks whether its parent is still there."""


@dataclass
class WorkerInfo:
    """Which worker this process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker this process is; None in the main process."""
    return info


@dataclass
class StreamEnd:
    """The stream of a worker has ended."""

    worker: int


@dataclass
class Restart:
    """Begin again, for the next epoch."""


class WorkerError:
    """An exception on its way to the main process: its type, and what was printed."""

    def __init__(self, where: str) -> None:
        kind, value, trace = sys.exc_info()
        self.kind, self.where = kind, where
        self.text = "".join(traceback.format_exception(kind, value, trace))

    def reraise(self) -> None:
        """Raise it again, with the place it came from."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"  # type: ignore[union-attr]
        if self.kind is KeyError:
            message = KeyErrorText(message)
        try:
            error = self.kind(message)  # type: ignore[misc]
        except TypeError:
            raise RuntimeError(message) from None
        raise error


class KeyErrorText(str):
    """A text that a KeyError prints as it is, not quoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Job:
    """Everything a worker needs to know."""

    dataset: Any
    kind: int
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    seed: int
    init: Any
    number: int
    count: int
    persistent: bool


def numpy_seed(base_seed: int, number: int) -> list[int]:
    """The seed of NumPy's generator in a worker, as torch derives it."""
    words = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()  # type: ignore[no-any-return]


def run(job: Job, indices: Any, batches: Any, done: Any) -> None:
    """The life of a worker."""
    global info
    parent = os.getppid()
    failed: WorkerError | None = None
    fetcher: Any = None
    try:
        seed = job.seed + job.number
        random.seed(seed)
        torch.manual_seed(seed)
        np.random.seed(numpy_seed(job.seed, job.number))
        info = WorkerInfo(job.number, job.count, seed, job.dataset)
        if job.init is not None:
            job.init(job.number)
        fetcher = new_fetcher(job)
    except Exception:
        failed = WorkerError(f"in DataLoader worker process {job.number}")
    ended = False
    try:
        while True:
            try:
                task = indices.get(timeout=SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                if os.getppid() != parent or done.is_set():
                    break
                continue
            if isinstance(task, Restart):
                batches.put((task, None))
                ended, fetcher = False, new_fetcher(job)
                continue
            if task is None or done.is_set():
                break
            if ended:
                continue
            number, index = task
            if failed is not None:
                result: Any = failed
                failed = None
            else:
                try:
                    result = fetcher.fetch(index)
                except StopIteration:
                    result, ended = StreamEnd(job.number), True
                except Exception:
                    result = WorkerError(f"in DataLoader worker process {job.number}")
            batches.put((number, result))
    except KeyboardInterrupt:
        return  # the main process was interrupted too, and says so
    if done.is_set():
        batches.cancel_join_thread()
        batches.close()


def new_fetcher(job: Job) -> Any:
    """The dataset from its start."""
    return _DatasetKind.create_fetcher(job.kind, job.dataset, job.auto_collation, job.collate_fn, job.drop_last)
