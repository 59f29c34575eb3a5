"""Trees of containers, on torch and on pullback."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest
import torch.utils._pytree as theirs

import pullback
from pullback.utils import _pytree as ours

Point = namedtuple("Point", "x y")
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
p.arg_tree_leaves([1], a=(2, 3)); p.tree_structure([1, 2]) == p.tree_structure((1, 2)); p.is_namedtuple((1,))"""


@pytest.mark.parametrize("text", [one.strip() for line in PROGRAMS.splitlines() for one in line.split("; ")])
def test_answers_and_errors_are_torchs(text):
    def outcome(p):
        try:
            return repr(eval(text, {"p": p}))
        except Exception as error:
            return type(error).__name__, str(error)

    assert outcome(ours) == outcome(theirs)


def test_registered_classes_are_branches_for_the_transforms_too():
    @dataclass
    class Pair:
        left: object
        right: object

    ours.register_dataclass(Pair)
    try:
        grads = pullback.func.grad(lambda p: (p.left * p.right).sum())(Pair(pullback.ones(2), pullback.full((2,), 3.0)))
        assert isinstance(grads, Pair) and grads.left.tolist() == [3.0, 3.0]
        assert [ours.keystr(path) for path, _ in ours.tree_leaves_with_path(Pair(1, [2]))] == [".left", ".right[0]"]
    finally:
        ours._deregister_pytree_node(Pair)
