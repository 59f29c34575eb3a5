"""Getting batches out of a dataset: by index, or from its stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

Collate = Callable[[Any], Any]


class _MapDatasetFetcher:
    """Items by index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, index: Any) -> Any:
        """The batch of some indices, or the item of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        several = getattr(self.dataset, "__getitems__", None)
        if callable(several):
            return self.collate_fn(several(index))
        return self.collate_fn([self.dataset[i] for i in index])


class _IterableDatasetFetcher:
    """Items as they come."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, index: Any) -> Any:
        """As many items as there are indices; at the end of the stream, what is left."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        items = list(islice(self.dataset_iter, len(index)))
        self.ended = len(items) < len(index)
        if not items or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(items)


class _DatasetKind:
    """How items are got out of a dataset."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> Any:
        """The way to get batches out of this dataset."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)
