"""Trees of containers, on torch and on pullback."""

import time
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from enum import Enum

import pytest
import torch as peer
import torch.utils._pytree as theirs

import pullback
from pullback.utils import _pytree as ours

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")
Colour = Enum("Colour", "RED GREEN")


@dataclass
class Pair:
    left: object
    right: object


@dataclass(frozen=True)
class Setting:
    norm: str


TREES = [
    3,
    None,
    [],
    (1, [2, {"a": 3}]),
    {"b": 1, "a": [2, (3,)]},
    OrderedDict(x=1, y=[2]),
    defaultdict(list, {"q": 1}),
    deque([1, 2], maxlen=3),
    Point(1, [2, 3]),
    {"p": Point((1,), {}), 5: None},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_trees_are_taken_apart_and_put_together_as_in_torch(tree):
    (leaves, spec), (own_leaves, own_spec) = theirs.tree_flatten(tree), ours.tree_flatten(tree)
    assert own_leaves == leaves and repr(own_spec) == repr(spec)
    assert (own_spec.num_leaves, own_spec.num_nodes) == (spec.num_leaves, spec.num_nodes)
    assert ours.tree_unflatten(own_leaves, own_spec) == tree
    assert ours.tree_map(lambda x: (x,), tree) == theirs.tree_map(lambda x: (x,), tree)
    assert own_spec == ours.tree_structure(tree) and hash(own_spec) == hash(ours.tree_structure(tree))


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_paths_are_torchs(tree):
    paths = [(theirs.keystr(path), leaf) for path, leaf in theirs.tree_flatten_with_path(tree)[0]]
    own = ours.tree_flatten_with_path(tree)[0]
    assert [(ours.keystr(path), leaf) for path, leaf in own] == paths
    assert all(ours.key_get(tree, path) == leaf for path, leaf in own)


PROGRAMS = """p.tree_map(lambda a, b: a + b, [1, 2], [1]); p.tree_map(lambda a, b: a + b, [1, 2], (1, 2))
p.tree_map(lambda a, b: (a, b), {'a': 1, 'b': 2}, {'b': 1, 'a': 2}); p.tree_map(lambda a, b: a, {'a': 1}, {'b': 1})
p.tree_map(lambda a, b: (a, b), [1, 2], [[1, 2], 3]); p.tree_unflatten([1], p.tree_structure([1, 2]))
p.tree_map_only(int, lambda x: -x, [1, 'a', 2.0]); p.tree_map_only((int, float), lambda x: -x, [1, 'a', 2.0])
p.tree_map_only(lambda x: x == 1, lambda x: -x, [1, 2]); p.tree_map_only(3, None, [1]); p.tree_all(bool, [1, 0])
p.tree_any(bool, [1, 0]); p.tree_all_only(int, bool, [1, '']); p.tree_any_only(str, bool, [1, ''])
p.tree_leaves((1, {2: 3})); p.tree_flatten([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple))[0]
list(p.tree_iter([1, [2]])); p.tree_is_leaf([1])
p._broadcast_to_and_flatten((0, None), p.tree_structure(([1, 2], {'a': 3}))); p.register_pytree_node(list, None, None)
p.tree_map_with_path(lambda k, x: p.keystr(k) + str(x), {'a': [1, 2]}); p.treespec_tuple([p.treespec_leaf()])
p.tree_map(lambda a, b: a, deque([1]), [1]); p.tree_map(lambda a, b: a, P(1, 2), Q(1, 2))
p.treespec_tuple([3]); p.treespec_dict(a=1); p.treespec_dict(a=p.treespec_leaf()); p.treespec_dumps(3)
p.treespec_pprint(p.tree_structure({'a': [1, P(2, 3)]})); p.treespec_dumps(p.tree_structure(P(1, 2)))
p.treespec_dumps(p.tree_structure([1]), 7); p.treespec_loads('[7, {}]'); p.SequenceKey(3); p.MappingKey('a')
p.treespec_loads('[1, {"type": "x.Y", "context": "null", "children_spec": []}]'); p.GetAttrKey('b')
p.is_structseq(time.localtime()); p.is_structseq((1,)); p.is_namedtuple(P); p.is_namedtuple_instance(P)
p.register_constant(object); p.register_dataclass(object); p.register_dataclass(D, field_names=['left', 'up'])
p.register_pytree_node(D, None, None, to_dumpable_context=str); p.LeafSpec(); p._is_leaf(3); p._is_leaf([])
p._is_namedtuple_instance(P(1, 2)); p.tree_structure([1]).children_specs; p.pytree_to_str(p.tree_structure([1]))
p.arg_tree_leaves([1], a=(2, 3)); p.tree_structure([1, 2]) == p.tree_structure((1, 2)); p.is_namedtuple((1,))"""


@pytest.mark.parametrize("text", [one.strip() for line in PROGRAMS.splitlines() for one in line.split("; ")])
def test_answers_and_errors_are_torchs(text):
    def outcome(p):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                said = repr(eval(text, {"p": p, "P": Point, "Q": Other, "D": Pair, "deque": deque, "time": time}))
            except Exception as error:
                said = type(error).__name__, str(error)
            finally:
                if Pair in p.SUPPORTED_NODES:
                    del p.SUPPORTED_NODES[Pair]
        return said, [(one.category, str(one.message)) for one in caught]

    assert outcome(ours) == outcome(theirs)


@pytest.mark.parametrize("tree", [tree for tree in TREES if "Point" not in repr(tree)], ids=repr)
def test_forms_are_written_as_torch_writes_them(tree):
    text = theirs.treespec_dumps(theirs.tree_structure(tree))
    assert ours.treespec_dumps(ours.tree_structure(tree)) == text
    assert ours.treespec_loads(text) == ours.tree_structure(tree)


def test_forms_of_registered_named_tuples_are_written_with_their_name():
    texts = []
    for p in (theirs, ours):
        p._register_namedtuple(Point, serialized_type_name="tests.Point")
        try:
            spec = p.tree_structure([Point(1, [2])])
            texts.append((p.treespec_dumps(spec), repr(spec), p.treespec_loads(p.treespec_dumps(spec)) == spec))
        finally:
            p._deregister_pytree_node(Point)
    assert texts[0] == texts[1]


def test_members_of_enumerations_are_written_by_name():
    class Bag(list):
        pass

    texts = []
    for p in (theirs, ours):
        p.register_pytree_node(
            Bag, lambda bag: (list(bag), [Colour.RED]), lambda v, _: Bag(v), serialized_type_name="tests.Bag"
        )
        try:
            text = p.treespec_dumps(p.tree_structure(Bag([1])))
            texts.append((text, p.treespec_loads(text).context))
        finally:
            p._deregister_pytree_node(Bag)
    assert texts[0] == texts[1] and texts[1][1] == [Colour.RED]


def test_constants_are_a_part_of_the_form():
    said = []
    for p in (theirs, ours):
        p.register_constant(Setting)
        try:
            leaves, spec = p.tree_flatten([Setting("l2"), 3])
            again = p.tree_unflatten(leaves, spec)
            same = spec == p.tree_structure([Setting("l2"), 4]), spec == p.tree_structure([Setting("l1"), 4])
            said.append(
                (leaves, again, same, hash(spec) == hash(p.tree_structure(again)), p.is_constant_class(Setting))
            )
        finally:
            p._deregister_pytree_node(Setting)
    assert said[0] == said[1]


def test_sizes_and_the_tuples_that_ops_return_are_branches():
    said = []
    for p, torch in ((theirs, peer), (ours, pullback)):
        found = torch.max(torch.ones(2, 3), 0)
        again = p.tree_map(lambda x: x + 1, found)
        paths = [p.keystr(path) for path, _ in p.tree_leaves_with_path(found)]
        said.append((repr(p.tree_structure(found)), type(again).__name__, again.values.tolist(), paths))
        said[-1] += (repr(p.tree_structure(torch.Size([2]))), repr(p.tree_map(lambda n: n + 1, torch.Size([2, 3]))))
        said[-1] += (p.treespec_dumps(p.tree_structure(torch.Size([2]))),)
    assert said[0] == said[1]


def test_every_name_that_the_module_lists_is_there():
    assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []
    assert sorted(ours.__all__) == sorted(theirs.__all__)


def test_registered_classes_are_branches_for_the_transforms_too():
    ours.register_dataclass(Pair)
    try:
        grads = pullback.func.grad(lambda p: (p.left * p.right).sum())(Pair(pullback.ones(2), pullback.full((2,), 3.0)))
        assert isinstance(grads, Pair) and grads.left.tolist() == [3.0, 3.0]
        assert [ours.keystr(path) for path, _ in ours.tree_leaves_with_path(Pair(1, [2]))] == [".left", ".right[0]"]
    finally:
        ours._deregister_pytree_node(Pair)
