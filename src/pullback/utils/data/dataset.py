"""Datasets: things with a length and items, streams of items, and ways to combine and divide them."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import pullback as torch
from pullback import Tensor

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Items by index: derive from it, and define `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """A stream of items: derive from it, and define `__iter__`."""

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of one length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several datasets side by side: items are tuples, or dicts if the datasets have names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        first, *others = args or kwargs.values()
        self._length = len(first)
        if any(len(other) != self._length for other in others):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T]):
    """One dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Any) -> list[int]:
        """Where each dataset ends."""
        return list(accumulate(len(dataset) for dataset in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """One stream after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def check(self, dataset: Any) -> Any:
        """Only streams can be chained."""
        if not isinstance(dataset, IterableDataset):
            raise AssertionError("ChainDataset only supports IterableDataset")
        return dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from self.check(dataset)

    def __len__(self) -> int:
        return sum(len(self.check(dataset)) for dataset in self.datasets)


class Subset(Dataset[T]):
    """Some of the items of a dataset, in a given order."""

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several items at once."""
        inner = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(inner)  # type: ignore[attr-defined, no-any-return]
        return [self.dataset[index] for index in inner]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Divide a dataset at random into parts of given lengths, or of given fractions."""
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
            sizes.append(math.floor(total * fraction))
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
        lengths = sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    drawn = torch.default_generator if generator is None else generator
    indices = torch.randperm(int(sum(lengths)), generator=drawn).tolist()
    ends = list(accumulate(int(length) for length in lengths))
    return [Subset(dataset, indices[end - int(length) : end]) for end, length in zip(ends, lengths)]
