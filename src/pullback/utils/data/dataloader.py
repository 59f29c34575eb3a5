"""DataLoader: batches of a dataset, in an order, fetched here or by workers."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pullback as torch
from pullback.utils.data.collate import default_collate, default_convert
from pullback.utils.data.dataset import Dataset, IterableDataset
from pullback.utils.data.fetch import _DatasetKind
from pullback.utils.data.iterators import _BaseDataLoaderIter as _BaseDataLoaderIter
from pullback.utils.data.iterators import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from pullback.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from pullback.utils.data.worker import get_worker_info as get_worker_info

T = TypeVar("T", covariant=True)


class _InfiniteConstantSampler(Sampler[None]):
    """What a stream is asked for: the next item, again and again."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class PinningPass:
    """A pass over a dataset whose batches are put into pinned memory."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return pinned(next(self.inner))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def pinned(data: Any) -> Any:
    """What a batch holds, its tensors in pinned memory; what knows `pin_memory` itself is asked."""
    if isinstance(data, torch.Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return type(data)({key: pinned(value) for key, value in data.items()})  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[pinned(value) for value in data])
    if isinstance(data, (tuple, list)):
        return type(data)([pinned(value) for value in data])
    return data


class DataLoader(Generic[T]):
    """Goes over a dataset in batches.

    Args:
        dataset: items by index, or an IterableDataset.
        batch_size: items in a batch; None for single items as they are.
        shuffle: a new random order in each epoch.
        sampler, batch_sampler: orders of your own.
        num_workers: processes that fetch ahead; 0 fetches in this process.
        collate_fn: makes a batch of a list of items.
        pin_memory: put tensors of batches into memory that a CUDA device copies from by itself, if there is one.
        drop_last: leave out a last batch that is too short.
        timeout: seconds to wait for a batch of a worker; 0 waits as long as it takes.
        worker_init_fn: called with its number in each worker.
        generator: where random orders and the seeds of workers come from.
        prefetch_factor: batches each worker fetches ahead.
        persistent_workers: keep the workers from one epoch to the next.
        in_order: hand out batches in the order of the indices, not as they come.
    """

    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T] | Sequence[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        prefetch_factor = check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Any = dataset
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        is_stream = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        if is_stream:
            check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if is_stream:
                sampler = _InfiniteConstantSampler()
            else:
                sized: Any = dataset
                sampler = RandomSampler(sized, generator=generator) if shuffle else SequentialSampler(sized)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._iterator: Any = None
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if not self.num_workers > 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self.__context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and torch.cuda.is_available():
            return PinningPass(self._pass())
        return self._pass()

    def _pass(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator._reset(self)
        return self._iterator  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """More workers than processors only get into each other's way."""
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cpus is not None and self.num_workers > cpus:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {cpus}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> int | None:
    """The options about workers, and how far they fetch ahead."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """A stream has its own order."""
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    if sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
            f"batch_sampler={batch_sampler}"
        )
