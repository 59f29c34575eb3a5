"""Trees of Python containers: what func's transforms take and return instead of single tensors.

Tuples, lists, dicts, deques, named tuples and registered classes are branches; everything else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Leaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How a kind of branch is taken apart and put together again."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None = None


def of_default_dict(children: list[Any], context: Any) -> Any:
    """A defaultdict from its values, its factory and its keys."""
    return defaultdict(context[0], zip(context[1], children, strict=True))


NODES: dict[Any, NodeDef] = {
    definition.type: definition
    for definition in (
        NodeDef(tuple, lambda t: (list(t), None), lambda children, _: tuple(children)),
        NodeDef(list, lambda t: (t, None), lambda children, _: list(children)),
        NodeDef(dict, lambda t: (list(t.values()), list(t)), lambda v, k: dict(zip(k, v, strict=True))),
        NodeDef(namedtuple, lambda t: (list(t), type(t)), lambda children, kind: kind(*children)),
        NodeDef(OrderedDict, lambda t: (list(t.values()), list(t)), lambda v, k: OrderedDict(zip(k, v, strict=True))),
        NodeDef(defaultdict, lambda t: (list(t.values()), [t.default_factory, list(t)]), of_default_dict),
        NodeDef(deque, lambda t: (list(t), t.maxlen), lambda children, length: deque(children, maxlen=length)),
    )
}
"""The kinds of branches."""
DICTS = (dict, OrderedDict, defaultdict)


class TreeSpec:
    """The form of a tree without its leaves."""

    __slots__ = ("_children", "_context", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self._context, self._children = type, context, children_specs
        self.num_leaves = 1 if type is None else sum([child.num_leaves for child in children_specs])
        self.num_nodes = 1 + sum([child.num_nodes for child in children_specs])

    @property
    def context(self) -> Any:
        """What the branch keeps beside its children: the keys of a dict, the class of a named tuple."""
        return self._context

    @property
    def num_children(self) -> int:
        """How many children the branch has."""
        return len(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The forms of the children."""
        return self._children

    def is_leaf(self) -> bool:
        """Whether it is a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The forms of the children, in a list of one's own."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The form of one child."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self._context == other._context and self._children == other._children

    def __hash__(self) -> int:
        return hash((self.type, repr(self._context), tuple(self._children)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        inner = ",\n  ".join([repr(child).replace("\n", "\n  ") for child in self._children])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this form with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return grown(self, iter(leaves))

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree that begins like this form, where this one has its leaves."""
        if self.type is None:
            return [tree]
        kind = node_type(tree)
        dicts = self.type in DICTS and kind in DICTS
        if kind is not self.type and not dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if tree.keys() != set(keys):
                missing, extra = set(keys) - tree.keys(), tree.keys() - set(keys)
                shown = f" missing key(s): {missing};" * bool(missing) + f" extra key(s): {extra}" * bool(extra)
                raise ValueError(f"Node keys mismatch;{shown}.")
            children = [tree[key] for key in keys]
        elif context != self._context and self.type is not deque:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [
            part for child, spec in zip(children, self._children, strict=True) for part in spec.flatten_up_to(child)
        ]


class LeafSpec(TreeSpec):
    """The form of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF = LeafSpec()


class Star:
    """What a leaf looks like in the drawing of a form."""

    def __repr__(self) -> str:
        return "*"


def drawn(spec: TreeSpec) -> str:
    """A form as the tree it belongs to, with a star for every leaf."""
    return repr(spec.unflatten([Star()] * spec.num_leaves))


def node_type(tree: Any) -> Any:
    """The kind of a branch, None for a leaf."""
    kind = type(tree)
    if kind in NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


def tree_flatten(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the form."""
    leaves: list[Any] = []
    return leaves, gathered(tree, leaves, is_leaf)


def gathered(tree: Any, leaves: list[Any], is_leaf: Leaf) -> TreeSpec:
    """The form of a tree, whose leaves are put into a list."""
    kind = None if is_leaf is not None and is_leaf(tree) else node_type(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    children, context = NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [gathered(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a form with these leaves."""
    return treespec.unflatten(leaves)


def grown(spec: TreeSpec, leaves: Any) -> Any:
    """The next tree of a form."""
    if spec.type is None:
        return next(leaves)
    return NODES[spec.type].unflatten_fn([grown(child, leaves) for child in spec._children], spec._context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """The tree with a function applied to every leaf, and to what the other trees have in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(rest) for rest in rests]]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def broadcast_to(tree: Any, spec: TreeSpec, is_leaf: Leaf = None) -> list[Any] | None:
    """The leaves of a tree that is a part of a form, each repeated for everything below it; None if it is no part."""
    kind = None if is_leaf is not None and is_leaf(tree) else node_type(tree)
    if kind is None:
        return [tree] * spec.num_leaves
    children, context = NODES[kind].flatten_fn(tree)
    if spec.type is not kind or spec._context != context or len(children) != spec.num_children:
        return None
    out: list[Any] = []
    for child, child_spec in zip(children, spec._children, strict=True):
        more = broadcast_to(child, child_spec, is_leaf)
        if more is None:
            return None
        out += more
    return out
