"""Getting batches out of a dataset: by index, or from its stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

Collate = Callable[[Any], Any]


class MapFetcher:
    """Items by index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn

    def fetch(self, index: Any) -> Any:
        """The batch of some indices, or the item of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        several = getattr(self.dataset, "__getitems__", None)
        if callable(several):
            return self.collate_fn(several(index))
        return self.collate_fn([self.dataset[i] for i in index])


class StreamFetcher:
    """Items as they come."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.stream, self.auto_collation, self.collate_fn = iter(dataset), auto_collation, collate_fn
        self.drop_last, self.ended = drop_last, False

    def fetch(self, index: Any) -> Any:
        """As many items as there are indices; at the end of the stream, what is left."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.stream))
        items = list(islice(self.stream, len(index)))
        self.ended = len(items) < len(index)
        if not items or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(items)


def make_fetcher(dataset: Any, is_stream: bool, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> Any:
    """The way to get batches out of this dataset."""
    return (StreamFetcher if is_stream else MapFetcher)(dataset, auto_collation, collate_fn, drop_last)
