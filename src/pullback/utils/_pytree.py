"""Trees of containers as programs use them: `torch.utils._pytree`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pullback._pytree import (
    BUILTIN,
    DICTS,
    LEAF,
    NODES,
    Leaf,
    LeafSpec,
    TreeSpec,
    broadcast_to,
    drawn,
    is_namedtuple_class,
    node_type,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from pullback._pytree import (
    ConstantNode as ConstantNode,
)
from pullback._pytree import (
    GetAttrKey as GetAttrKey,
)
from pullback._pytree import (
    MappingKey as MappingKey,
)
from pullback._pytree import (
    NodeDef as NodeDef,
)
from pullback._pytree import (
    SequenceKey as SequenceKey,
)
from pullback.utils._pytree_registry import (
    CONSTANT_NODES,
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
    deprecated,
    private,
    register_pytree_node,
    treespec_dumps,
    treespec_loads,
)
from pullback.utils._pytree_registry import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL as DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
)
from pullback.utils._pytree_registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND as NO_SERIALIZED_TYPE_NAME_FOUND,
)
from pullback.utils._pytree_registry import (
    SERIALIZED_TYPE_TO_PYTHON_TYPE as SERIALIZED_TYPE_TO_PYTHON_TYPE,
)
from pullback.utils._pytree_registry import (
    SUPPORTED_SERIALIZED_TYPES as SUPPORTED_SERIALIZED_TYPES,
)
from pullback.utils._pytree_registry import (
    EnumEncoder as EnumEncoder,
)
from pullback.utils._pytree_registry import (
    FlattenFunc as FlattenFunc,
)
from pullback.utils._pytree_registry import (
    FlattenWithKeysFn as FlattenWithKeysFn,
)
from pullback.utils._pytree_registry import (
    FlattenWithKeysFunc as FlattenWithKeysFunc,
)
from pullback.utils._pytree_registry import (
    UnflattenFunc as UnflattenFunc,
)
from pullback.utils._pytree_registry import (
    _deregister_pytree_node as _deregister_pytree_node,
)
from pullback.utils._pytree_registry import (
    _private_register_pytree_node as _private_register_pytree_node,
)
from pullback.utils._pytree_registry import (
    _register_namedtuple as _register_namedtuple,
)
from pullback.utils._pytree_registry import (
    _register_pytree_node as _register_pytree_node,
)
from pullback.utils._pytree_registry import (
    enum_object_hook as enum_object_hook,
)
from pullback.utils._pytree_registry import (
    register_constant as register_constant,
)
from pullback.utils._pytree_registry import (
    register_dataclass as register_dataclass,
)

PyTreeSpec = TreeSpec
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
SUPPORTED_NODES = NODES
BUILTIN_TYPES, STANDARD_DICT_TYPES = BUILTIN, DICTS
_LEAF_SPEC = LEAF
_broadcast_to_and_flatten = broadcast_to
_cxx_pytree_exists = _cxx_pytree_dynamo_traceable = _cxx_pytree_imported = False
__all__ = [
    "PyTree", "Context", "FlattenFn", "UnflattenFn", "DumpableContext", "ToDumpableContextFn",
    "FromDumpableContextFn", "PyTreeSpec", "TreeSpec", "LeafSpec", "keystr", "key_get", "register_pytree_node",
    "tree_is_leaf", "tree_flatten", "tree_flatten_with_path", "tree_unflatten", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_structure", "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_all", "tree_any", "tree_all_only", "tree_any_only", "treespec_dumps", "treespec_loads",
    "treespec_pprint", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq",
    "is_structseq_class", "is_structseq_instance",
]  # fmt: skip


def _get_node_type(tree: Any) -> Any:
    """The kind of a branch or a leaf: its class, `namedtuple` for all of those."""
    return node_type(tree) or type(tree)


# ------------------------------------------------------------------ kinds of branches


def is_constant_class(cls: Any) -> bool:
    """Whether a class was registered as a part of forms."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = deprecated(private("_is_namedtuple_instance"))(is_namedtuple_instance)


def is_structseq_class(cls: Any) -> bool:
    """Whether it is a class of tuples with names that C code defines, such as that of `time.localtime()`."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and ((cls.__bases__ == (tuple,) and not cls.__flags__ & BASE_TYPE) or cls.__module__ == "torch.return_types")
        and all([isinstance(getattr(cls, count, None), int) for count in counts])
    )


BASE_TYPE = 1 << 10
"""The flag of a class that can be a base."""


def is_structseq(obj: Any) -> bool:
    """Whether it is such a tuple or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Whether it is such a tuple."""
    return is_structseq_class(type(obj))


def tree_is_leaf(tree: Any, is_leaf: Leaf = None) -> bool:
    """Whether it is a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) is None


_is_leaf = deprecated(private("_is_leaf").replace("_pytree.is_leaf", "_pytree.tree_is_leaf"))(tree_is_leaf)

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
    children = list(iterable)
    if not all([isinstance(child, TreeSpec) for child in children]):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The form of a dict."""
    specs = dict(mapping, **kwargs)
    if not all([isinstance(child, TreeSpec) for child in specs.values()]):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {specs!r}.")
    return TreeSpec(dict, list(specs), list(specs.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The form drawn as its tree."""
    return drawn(treespec)


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


def walk(path: tuple[Any, ...], tree: Any, is_leaf: Leaf) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves with the paths that lead to them."""
    kind = None if is_leaf is not None and is_leaf(tree) else node_type(tree)
    if kind is None:
        yield path, tree
    else:
        with_keys = NODES[kind].flatten_with_keys_fn
        if with_keys is None:
            raise ValueError(
                f"Did not find a flatten_with_keys_fn for type: {kind}. "
                "Please pass a flatten_with_keys_fn argument to register_pytree_node."
            )
        for key, child in with_keys(tree)[0]:
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


pytree_to_str = deprecated("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.")(treespec_dumps)
str_to_pytree = deprecated("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.")(treespec_loads)
