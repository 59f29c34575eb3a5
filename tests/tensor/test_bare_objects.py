"""Objects made without `__init__`, by CPython's own allocation, are like all others."""

import copy
import gc
import pickle
import sys
import weakref

import pullback as torch
from pullback._runtime.builtins import bare


class Slotted:
    __slots__ = ("__weakref__", "held")


class Open:
    pass


def test_a_bare_object_is_of_its_class_and_empty():
    for cls in (Slotted, Open, torch.Tensor):
        assert type(bare(cls)()) is cls
    assert not hasattr(bare(Slotted)(), "held")
    assert vars(bare(Open)()) == {}


def test_a_bare_object_takes_attributes_and_gives_them_back():
    one = bare(Open)()
    one.first, one.second = 1, 2
    del one.first
    assert vars(one) == {"second": 2} and one.second == 2
    x = torch.ones(2) * 3
    x.note = "kept"
    assert x.note == "kept" and vars(x) == {"note": "kept"}
    assert copy.deepcopy(x).note == "kept" and pickle.loads(pickle.dumps(x)).note == "kept"


def test_a_bare_object_dies_with_its_last_reference():
    x = torch.ones(2, requires_grad=True) * 3
    alive, node = weakref.ref(x), weakref.ref(x.grad_fn)
    x.note = 1
    del x
    assert alive() is None and node() is None


def test_the_collector_finds_a_cycle_of_bare_objects():
    one, other = bare(Slotted)(), bare(Open)()
    one.held, other.back = other, one
    alive = weakref.ref(one)
    del one, other
    gc.collect()
    assert alive() is None


def test_a_class_is_held_by_its_objects_and_its_maker_and_by_nobody_else():
    cls = type("Passing", (), {})
    before = sys.getrefcount(cls)
    make = bare(cls)
    made = [make() for _ in range(100)]
    assert sys.getrefcount(cls) == before + 101
    del make, made
    assert sys.getrefcount(cls) == before
