"""Datasets, samplers and loaders on torch and on pullback: the same items in the same order."""

import random
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import numpy as np
import pytest
import torch as peer

import pullback

BOTH = (peer, pullback)
Pair = namedtuple("Pair", "a b")


class Noted(list):
    """A list that has something beside its items."""

    def __init__(self, items, note="none"):
        super().__init__(items)
        self.note = note


def data(torch):
    return import_module(f"{torch.__name__}.utils.data")


def plain(value):
    """A batch as Python values, with the dtypes of tensors."""
    if isinstance(value, (peer.Tensor, pullback.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


class Squares:
    def __len__(self):
        return 11

    def __getitem__(self, index):
        if index >= 11:
            raise IndexError(index)
        return index, float(index) ** 2


def stream_of(torch, items, shared=False):
    class Stream(data(torch).IterableDataset):
        def __iter__(self):
            info = data(torch).get_worker_info()
            if info is None or shared:
                return iter(items)
            return iter(items[info.id :: info.num_workers])

    return Stream()


PROGRAMS = {
    "plain": lambda torch, d: d.DataLoader(Squares(), batch_size=4),
    "drop last": lambda torch, d: d.DataLoader(Squares(), batch_size=4, drop_last=True),
    "shuffled": lambda torch, d: d.DataLoader(Squares(), batch_size=4, shuffle=True),
    "own generator": lambda torch, d: d.DataLoader(
        Squares(), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(7)
    ),
    "no batches": lambda torch, d: d.DataLoader(Squares(), batch_size=None, shuffle=True),
    "batch sampler": lambda torch, d: d.DataLoader(Squares(), batch_sampler=[[1, 2], [5], [0, 3, 4]]),
    "sampler": lambda torch, d: d.DataLoader(Squares(), 3, sampler=[3, 1, 2, 9]),
    "replacement": lambda torch, d: d.DataLoader(
        Squares(), 8, sampler=d.RandomSampler(Squares(), replacement=True, num_samples=70)
    ),
    "more than once": lambda torch, d: d.DataLoader(Squares(), 8, sampler=d.RandomSampler(Squares(), num_samples=25)),
    "subset": lambda torch, d: d.DataLoader(Squares(), 2, sampler=d.SubsetRandomSampler([3, 5, 7])),
    "weights": lambda torch, d: d.DataLoader(Squares(), 5, sampler=d.WeightedRandomSampler([1.0, 2, 3], 9)),
    "distributed": lambda torch, d: d.DataLoader(Squares(), 2, sampler=d.DistributedSampler(Squares(), 3, 1)),
    "tensors": lambda torch, d: d.DataLoader(
        d.TensorDataset(torch.arange(7.0), torch.arange(14).view(7, 2)), 3, shuffle=True
    ),
    "concatenated": lambda torch, d: d.DataLoader(d.ConcatDataset([Squares(), Squares()]), 5, shuffle=True),
    "stacked": lambda torch, d: d.DataLoader(d.StackDataset(a=Squares(), b=Squares()), 5),
    "stream": lambda torch, d: d.DataLoader(stream_of(torch, range(7)), 3),
    "stream, drop last": lambda torch, d: d.DataLoader(stream_of(torch, range(7)), 3, drop_last=True),
    "stream, no batches": lambda torch, d: d.DataLoader(stream_of(torch, range(3)), batch_size=None),
    "chained": lambda torch, d: d.DataLoader(stream_of(torch, range(3)) + stream_of(torch, range(4)), 2),
    "split": lambda torch, d: d.DataLoader(d.random_split(Squares(), [4, 7])[0], 3),
    "fractions": lambda torch, d: d.DataLoader(d.random_split(Squares(), [0.25, 0.35, 0.4])[2], 3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loader_gives_the_batches_of_torch(name):
    results = []
    for torch in BOTH:
        torch.manual_seed(3)
        loader = PROGRAMS[name](torch, data(torch))
        epochs = [[plain(batch) for batch in loader] for _ in range(2)]
        try:
            length = len(loader)
        except TypeError as error:
            length = str(error).replace("'Stream'", "")
        results.append((epochs, length, torch.rand(1).item()))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["plain", "shuffled", "no batches", "tensors", "stream"])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_give_the_batches_of_torch(name, persistent):
    results = []
    for torch in BOTH:
        torch.manual_seed(3)
        d = data(torch)
        source = PROGRAMS[name](torch, d)
        options = {"num_workers": 2, "persistent_workers": persistent, "batch_size": source.batch_size}
        if name in ("shuffled", "no batches", "tensors"):
            options["shuffle"] = True
        loader = d.DataLoader(source.dataset, **options)
        results.append([[plain(batch) for batch in loader] for _ in range(2)])
        if torch is pullback and persistent:
            loader._iterator._shutdown_workers()
    assert results[0] == results[1]


class Draws:
    """Items that are random numbers of all generators a worker has."""

    def __init__(self, torch):
        self.torch = torch

    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = data(self.torch).get_worker_info()
        return [random.random(), float(np.random.rand()), self.torch.rand(1).item(), info.seed, info.id]


def test_workers_draw_the_random_numbers_of_torchs_workers():
    results = []
    for torch in BOTH:
        torch.manual_seed(5)
        results.append(list(data(torch).DataLoader(Draws(torch), batch_size=None, num_workers=2)))
    assert results[0] == results[1]


class Fails:
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise self.error


@pytest.mark.parametrize("error", [KeyError("missing"), ValueError("wrong"), IndexError(3)])
def test_an_error_in_a_worker_arrives_with_its_type_and_its_place(error):
    for torch in BOTH:
        with pytest.raises(type(error)) as caught:
            list(data(torch).DataLoader(Fails(error), num_workers=1))
        lines = str(caught.value).splitlines()
        assert lines[0] == f"Caught {type(error).__name__} in DataLoader worker process 0."
        assert lines[1] == "Original Traceback (most recent call last):"
        assert lines[-1].startswith(type(error).__name__)


BATCHES = {
    "tensors": lambda torch: [torch.ones(2), torch.zeros(2)],
    "arrays": lambda torch: [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "array numbers": lambda torch: [np.float32(1), np.float32(2)],
    "floats": lambda torch: [1.0, 2.0],
    "ints": lambda torch: [1, 2],
    "bools": lambda torch: [True, False],
    "text": lambda torch: ["a", "b"],
    "tuples": lambda torch: [(1, 2.0), (3, 4.0)],
    "lists": lambda torch: [[1, 2], [3, 4]],
    "dicts": lambda torch: [{"a": 1, "b": [1.0]}, {"a": 2, "b": [2.0]}],
    "named": lambda torch: [Pair(1, 2.0), Pair(3, 4.0)],
    "sets": lambda torch: [{1}, {2}],
    "none": lambda torch: [None],
    "nothing": lambda torch: [],
    "strings in arrays": lambda torch: [np.array(["a"])],
    "unequal": lambda torch: [[1], [1, 2]],
    "unequal tensors": lambda torch: [torch.ones(2), torch.ones(3)],
    "text of arrays": lambda torch: [np.str_("a"), np.str_("b")],
    "numbers of arrays": lambda torch: [np.float64(1.5), np.float64(2)],
    "truths of arrays": lambda torch: [np.bool_(True), np.bool_(False)],
    "bytes": lambda torch: [b"a", b"b"],
    "ranges": lambda torch: [range(2), range(2, 4)],
    "dicts with defaults": lambda torch: [defaultdict(int, a=1), defaultdict(int, a=2)],
    "ordered": lambda torch: [OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)],
    "noted": lambda torch: [Noted([1, 2], "first"), Noted([3, 4], "second")],
    "frozen": lambda torch: [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
    "sparse": lambda torch: [torch.eye(2).to_sparse()],
    "objects in arrays": lambda torch: [np.array([None])],
}


@pytest.mark.parametrize("name", BATCHES)
def test_collating_is_torchs(name):
    results = []
    for torch in BOTH:
        batch = BATCHES[name](torch)
        try:
            collated = plain(data(torch).default_collate(batch))
        except Exception as error:
            collated = type(error).__name__, str(error).partition("\n")[0]
        kind = type(data(torch).default_collate(batch)).__name__ if not isinstance(collated, tuple) else ""
        converted = data(torch).default_convert(batch)
        if name == "sparse":
            converted = [item.to_dense() for item in converted]
        kinds = [(type(item).__name__, getattr(item, "note", None)) for item in converted]
        results.append((collated, kind, plain(converted), kinds))
    assert results[0] == results[1]


def test_what_a_container_holds_beside_its_items_is_kept():
    for torch in BOTH:
        collated = data(torch).default_collate([Noted([1, 2], "first"), Noted([3, 4], "second")])
        assert type(collated) is Noted and collated.note == "first" and collated[1].tolist() == [2, 4]
        counts = data(torch).default_collate([defaultdict(int, a=1), defaultdict(int, a=2)])
        assert counts["a"].tolist() == [1, 2] and counts["b"] == 0


class Loader:
    """What a loader of a package's own gives the iterators: a stream of ready batches."""

    _IterableDataset_len_called = generator = worker_init_fn = multiprocessing_context = None
    _auto_collation = drop_last = pin_memory = persistent_workers = False
    in_order, prefetch_factor, timeout, pin_memory_device = True, 2, 0, ""

    def __init__(self, kind, batches, num_workers):
        self._dataset_kind, self.dataset, self.num_workers = kind, batches, num_workers
        self._index_sampler = range(100)

    @staticmethod
    def collate_fn(batch):
        return batch


def test_loaders_of_packages_use_the_iterators_of_torch():
    for torch in BOTH:
        inside = import_module(f"{torch.__name__}.utils.data.dataloader")
        kinds = inside._DatasetKind
        for number, iterator in enumerate((inside._SingleProcessDataLoaderIter, inside._MultiProcessingDataLoaderIter)):
            assert issubclass(iterator, inside._BaseDataLoaderIter)
            batches = [torch.arange(3), torch.arange(2)]
            stream = [batch.tolist() for batch in iterator(Loader(kinds.Iterable, batches, number))]
            assert stream == [[0, 1, 2], [0, 1]]
            items = iterator(Loader(kinds.Map, list(range(100)), number))
            assert [next(items) for _ in range(3)] == [0, 1, 2] and len(items) == 100
        loader = inside.DataLoader([1, 2, 3])
        assert loader._dataset_kind == kinds.Map and type(iter(loader)) is inside._SingleProcessDataLoaderIter
        with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires timeout == 0"):
            iter(inside.DataLoader([1, 2, 3], timeout=1))
        with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires num_workers == 0"):
            inside._SingleProcessDataLoaderIter(Loader(kinds.Map, [1], 1))
        assert kinds.create_fetcher(kinds.Map, [5, 6, 7], True, list, False).fetch([0, 2]) == [5, 7]
        assert kinds.create_fetcher(kinds.Iterable, [5, 6, 7], True, list, False).fetch([0, 1]) == [5, 6]


def rules_of(torch):
    return import_module("torch.utils.data._utils.collate" if torch is peer else "pullback.utils.data.collate")


def test_packages_add_types_to_the_rules_of_collating():
    class Kept:
        def __init__(self, value):
            self.value = value

    class Further(Kept):
        pass

    def keep(batch, *, collate_fn_map=None):
        return Kept(rules_of(torch).collate([item.value for item in batch], collate_fn_map=collate_fn_map))

    for torch in BOTH:
        rules = rules_of(torch).default_collate_fn_map
        rules.update({Kept: keep})
        try:
            pair = next(iter(data(torch).DataLoader([(Kept(1.0), 2), (Further(3.0), 4)], batch_size=2)))
            assert pair[0].value.tolist() == [1.0, 3.0] and pair[1].tolist() == [2, 4]
            assert data(torch).default_collate([Further(1), Further(2)]).value.tolist() == [1, 2]
        finally:
            del rules[Kept]
        with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
            data(torch).default_collate([Kept(1)])
        with pytest.raises(TypeError, match="found <class 'int'>"):
            rules_of(torch).collate([1, 2])
        own = {int: lambda batch, *, collate_fn_map: sum(batch)}
        assert rules_of(torch).collate([{"a": 1}, {"a": 2}], collate_fn_map=own) == {"a": 3}


def test_the_rules_of_collating_are_those_of_torch():
    def named(rules):
        return [(str(kind).replace("pullback._tensor", "torch"), rule.__name__) for kind, rule in rules.items()]

    assert named(rules_of(pullback).default_collate_fn_map) == named(rules_of(peer).default_collate_fn_map)


BAD = [
    "DataLoader(s, num_workers=-1)",
    "DataLoader(s, timeout=-1)",
    "DataLoader(s, prefetch_factor=2)",
    "DataLoader(s, num_workers=1, prefetch_factor=-1)",
    "DataLoader(s, persistent_workers=True)",
    "DataLoader(s, sampler=[0], shuffle=True)",
    "DataLoader(s, batch_sampler=[[0]], batch_size=2)",
    "DataLoader(s, batch_size=None, drop_last=True)",
    "DataLoader(s, batch_size=0)",
    "DataLoader(s, multiprocessing_context='fork')",
    "DataLoader(s, num_workers=1, multiprocessing_context='x')",
    "DataLoader(s, num_workers=1, multiprocessing_context=5)",
    "DataLoader(s, num_workers=100)",
    "DataLoader(stream, shuffle=True)",
    "DataLoader(stream, sampler=[1])",
    "setattr(DataLoader(s), 'batch_size', 3)",
    "RandomSampler([])",
    "RandomSampler([1], replacement=1)",
    "BatchSampler([1], 0, False)",
    "BatchSampler([1], 1, 1)",
    "WeightedRandomSampler([1.0], 0)",
    "WeightedRandomSampler([[1.0]], 1)",
    "DistributedSampler([1], 2, 2)",
    "TensorDataset(torch.ones(2), torch.ones(3))",
    "ConcatDataset([])",
    "ConcatDataset([stream])",
    "ConcatDataset([s])[-12]",
    "StackDataset()",
    "StackDataset(s, a=s)",
    "StackDataset(s, [1])",
    "random_split(s, [1, 2])",
    "random_split(s, [0.5, -0.5, 1.0])",
    "random_split([1], [0.5, 0.5])",
    "Dataset()[0]",
]


@pytest.mark.parametrize("text", BAD)
def test_errors_and_warnings_are_torchs(text):
    results = []
    for torch in BOTH:
        names = {"s": Squares(), "stream": stream_of(torch, range(3)), "torch": torch}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                eval(text, names, vars(data(torch)))
                outcome = None
            except Exception as error:
                outcome = type(error).__name__, str(error)
        results.append((outcome, [str(w.message) for w in caught]))
    assert results[0] == results[1]
