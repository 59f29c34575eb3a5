"""Trees of containers as programs use them: `torch.utils._pytree`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pullback._pytree import (
    DICTS,
    LEAF,
    NODES,
    Leaf,
    LeafSpec,
    NodeDef,
    TreeSpec,
    broadcast_to,
    node_type,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

PyTree = Context = Any
SUPPORTED_NODES = NODES
_broadcast_to_and_flatten = broadcast_to
__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten", "LeafSpec", "TreeSpec"]


def _get_node_type(tree: Any) -> Any:
    """The kind of a branch or a leaf: its class, `namedtuple` for all of those."""
    return node_type(tree) or type(tree)


# ------------------------------------------------------------------ more kinds of branches


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
    **ignored: Any,
) -> None:
    """Make a class a branch; how it would be written to a file (`serialized_type_name`, ...) does not matter here."""
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Make a class a leaf again."""
    del NODES[cls]


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **ignored: Any
) -> None:
    """Make a dataclass a branch: its fields are its children."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize the class, as it is not a "
                "dataclass."
            )
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    names = [name for name in field_names if name not in (drop_field_names or ())]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        kept = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in kept], [kept, [name for name in names if name not in kept]]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    def with_keys(obj: Any) -> tuple[list[Any], Any]:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


def register_constant(cls: type) -> None:
    """Make a class a part of the form: a branch without children."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple or a class of them."""
    kind = obj if isinstance(obj, type) else type(obj)
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


is_namedtuple_class = is_namedtuple_instance = is_namedtuple


def tree_is_leaf(tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether it is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) is None


_is_leaf = tree_is_leaf

# ------------------------------------------------------------------ looking at trees


def tree_iter(tree: Any, is_leaf: Leaf = None) -> Iterator[Any]:
    """The leaves, one by one."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: Any, is_leaf: Leaf = None) -> TreeSpec:
    """The form."""
    return tree_flatten(tree, is_leaf)[1]


def treespec_leaf() -> LeafSpec:
    """The form of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The form of a tuple."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The form of a dict."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The form drawn as its tree."""
    return repr(treespec)


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments of a call."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """Call a function with every leaf, for its effect; the tree comes back as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is only called for some leaves, and the others stay as they are."""
    wanted = type_or_types_or_pred
    if isinstance(wanted, (type, tuple)):
        matches: Any = lambda x: isinstance(x, wanted)
    elif callable(wanted):
        matches = wanted
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")
    return lambda func: lambda x: func(x) if matches(x) else x


def tree_map_only(which: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None) -> Any:
    """The tree with a function applied to the leaves of some types, or those a predicate chooses."""
    return tree_map(map_only(which)(func), tree, is_leaf=is_leaf)


def tree_map_only_(which: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None) -> Any:
    """Call a function with such leaves, for its effect."""
    return tree_map_(map_only(which)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether all leaves are so."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether any leaf is so."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(which: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether all leaves of some types are so."""
    return all([pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, which)])


def tree_any_only(which: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether any leaf of some types is so."""
    return any([pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, which)])


# ------------------------------------------------------------------ paths


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


def keyed(tree: Any, kind: Any) -> list[tuple[Any, Any]]:
    """The children of a branch with their places."""
    definition = NODES[kind]
    if definition.flatten_with_keys_fn is not None:
        return list(definition.flatten_with_keys_fn(tree)[0])
    children, context = definition.flatten_fn(tree)
    if kind in DICTS:
        keys = [MappingKey(key) for key in (context[1] if kind is defaultdict else context)]
    elif kind is namedtuple:
        keys = [GetAttrKey(field) for field in tree._fields]  # type: ignore[misc]
    elif kind in (tuple, list) or definition.type.__module__ == "collections":
        keys = [SequenceKey(i) for i in range(len(children))]  # type: ignore[misc]
    else:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn.")
    return list(zip(keys, children, strict=True))


def walk(path: tuple[Any, ...], tree: Any, is_leaf: Leaf) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves with the paths that lead to them."""
    kind = None if is_leaf is not None and is_leaf(tree) else node_type(tree)
    if kind is None:
        yield path, tree
    else:
        for key, child in keyed(tree, kind):
            yield from walk((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Leaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves with their paths."""
    return list(walk((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: Leaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """The leaves with their paths, and the form."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """The tree with a function applied to the path and the value of every leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in found], [leaf for _, leaf in found], *[spec.flatten_up_to(r) for r in rests]]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def keystr(kp: Iterable[Any]) -> str:
    """A path as Python writes it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Not available: forms are not written to files."""
    raise NotImplementedError("torch.utils._pytree.treespec_dumps is not available in pullback; pickle the tree itself")
