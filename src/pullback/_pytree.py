"""Trees of Python containers: what func's transforms take and return instead of single tensors.

Tuples, lists, dicts, deques, named tuples and registered classes are branches; everything else is a leaf.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pullback._arrays.layout import Size

Leaf = Callable[[Any], bool] | None


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """A place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How a kind of branch is taken apart and put together again."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None = None


class ConstantNode(NamedTuple):
    """What a branch without children keeps beside them: the object itself, which is a part of the form."""

    value: Any


def of_default_dict(children: list[Any], context: Any) -> Any:
    """A defaultdict from its values, its factory and its keys."""
    return defaultdict(context[0], zip(context[1], children, strict=True))


def numbered(flatten: Callable[[Any], tuple[list[Any], Any]]) -> Callable[[Any], tuple[list[Any], Any]]:
    """How a sequence is taken apart with the places of its parts."""

    def with_keys(tree: Any) -> tuple[list[Any], Any]:
        children, context = flatten(tree)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return with_keys


def of_keys(flatten: Callable[[Any], tuple[list[Any], Any]]) -> Callable[[Any], tuple[list[Any], Any]]:
    """How a dict is taken apart with its keys."""
    return lambda tree: ([(MappingKey(key), child) for key, child in tree.items()], flatten(tree)[1])


def of_fields(tree: Any) -> tuple[list[Any], Any]:
    """A named tuple taken apart with the names."""
    return [(GetAttrKey(name), child) for name, child in zip(tree._fields, tree, strict=True)], type(tree)


def dict_of(kind: Any) -> NodeDef:
    """A kind of dict."""
    flatten: Any = lambda tree: (list(tree.values()), list(tree))
    return NodeDef(kind, flatten, lambda v, k: kind(zip(k, v, strict=True)), of_keys(flatten))


def sequence_of(kind: Any, build: Callable[[Any], Any]) -> NodeDef:
    """A kind of sequence; `build` makes one from its parts."""
    flatten: Any = lambda tree: (list(tree), None)
    return NodeDef(kind, flatten, lambda values, _: build(values), numbered(flatten))


def flatten_default(tree: Any) -> tuple[list[Any], Any]:
    """A defaultdict: its values; its factory and its keys."""
    return list(tree.values()), [tree.default_factory, list(tree)]


def flatten_deque(tree: Any) -> tuple[list[Any], Any]:
    """A deque: its parts and its greatest length."""
    return list(tree), tree.maxlen


NODES: dict[Any, NodeDef] = {
    definition.type: definition
    for definition in (
        sequence_of(tuple, tuple),
        sequence_of(list, list),
        dict_of(dict),
        NodeDef(namedtuple, lambda t: (list(t), type(t)), lambda children, kind: kind(*children), of_fields),
        dict_of(OrderedDict),
        NodeDef(defaultdict, flatten_default, of_default_dict, of_keys(flatten_default)),
        sequence_of(Size, tuple),
        NodeDef(deque, flatten_deque, lambda parts, length: deque(parts, maxlen=length), numbered(flatten_deque)),
    )
}
"""The kinds of branches."""
DICTS = frozenset({dict, OrderedDict, defaultdict})
BUILTIN = frozenset({tuple, list, namedtuple, deque, *DICTS})
"""The kinds that are there from the beginning."""


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
        """The forms of the children; deprecated."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or "
            "`treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
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
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in DICTS:
            context = tuple(context)
        elif self.type is not None and self.type not in BUILTIN and not isinstance(context, ConstantNode):
            context = None  # what a registered class keeps need not be hashable
        return hash((self.type, context, tuple(self._children)))

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
            what = "Node type" if self.type in BUILTIN else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind or type(tree)!r}.")
        children, context = NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if tree.keys() != set(keys):
                missing, extra = set(keys) - tree.keys(), tree.keys() - set(keys)
                shown = f"; missing key(s): {missing}" * bool(missing) + f"; extra key(s): {extra}" * bool(extra)
                raise ValueError(f"Node keys mismatch{shown}.")
            children = [tree[key] for key in keys]
        elif context != self._context and self.type is not deque:
            if self.type not in BUILTIN:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
            said = f"expected {self._context!r}, but got {context!r}"
            raise ValueError(f"Node context mismatch for node type {self.type!r}; {said}.")
        return [
            part for child, spec in zip(children, self._children, strict=True) for part in spec.flatten_up_to(child)
        ]


class LeafSpec(TreeSpec):
    """The form of a leaf; deprecated as a class to be asked for."""

    __slots__ = ()

    def __init__(self) -> None:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and "
            "treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(None, None, [])


LEAF = LeafSpec.__new__(LeafSpec)
TreeSpec.__init__(LEAF, None, None, [])


class Star(str):
    """What a leaf looks like in the drawing of a form."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def drawn(spec: TreeSpec) -> str:
    """A form as the tree it belongs to, with a star for every leaf."""
    return repr(spec.unflatten([Star("*")] * spec.num_leaves))


def node_type(tree: Any) -> Any:
    """The kind of a branch, None for a leaf."""
    kind = type(tree)
    if kind in NODES and (kind is tuple or not issubclass(kind, tuple)):
        return kind
    if is_namedtuple_class(kind):
        return namedtuple  # also one that was registered by itself
    if kind not in NODES and kind.__module__ == "torch.return_types" and issubclass(kind, tuple):
        NODES[kind] = sequence_of(kind, kind)  # the tuples of ops are made when they are first needed
    return kind if kind in NODES else None


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is a class of named tuples."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all([type(field) is str for field in fields])
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


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
