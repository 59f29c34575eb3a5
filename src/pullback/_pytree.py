"""Trees of Python containers: what func's transforms take and return instead of single tensors.

Tuples, lists, dicts and named tuples are branches; everything else is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class TreeSpec:
    """The form of a tree without its leaves."""

    __slots__ = ("children", "kind", "keys")

    def __init__(self, kind: Any, keys: Any, children: list[TreeSpec]) -> None:
        self.kind, self.keys, self.children = kind, keys, children

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.kind is other.kind
            and self.keys == other.keys
            and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return 1 if self.kind is None else sum(child.num_leaves for child in self.children)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inner = ",\n  ".join(repr(child).replace("\n", "\n  ") for child in self.children)
        return f"TreeSpec({self.kind.__name__}, {self.keys}, [{inner}])"


LEAF = TreeSpec(None, None, [])


class Star:
    """What a leaf looks like in the drawing of a form."""

    def __repr__(self) -> str:
        return "*"


def drawn(spec: TreeSpec) -> str:
    """A form as the tree it belongs to, with a star for every leaf."""
    return repr(tree_unflatten([Star()] * spec.num_leaves, spec))


def branches(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """The kind of a branch, its keys and what grows on it; None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind, None, list(tree)
    if kind is dict or kind is OrderedDict:
        return kind, list(tree), list(tree.values())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind, None, list(tree)
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the form."""
    found = branches(tree)
    if found is None:
        return [tree], LEAF
    kind, keys, children = found
    leaves: list[Any] = []
    specs = []
    for child in children:
        more, spec = tree_flatten(child)
        leaves += more
        specs.append(spec)
    return leaves, TreeSpec(kind, keys, specs)


def tree_unflatten(leaves: Any, spec: TreeSpec) -> Any:
    """The tree of a form with these leaves."""
    return grown(spec, iter(leaves))


def grown(spec: TreeSpec, leaves: Any) -> Any:
    """The next tree of a form."""
    if spec.kind is None:
        return next(leaves)
    children = [grown(child, leaves) for child in spec.children]
    if spec.keys is not None:
        return spec.kind(zip(spec.keys, children, strict=True))
    return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)


def tree_map(function: Callable[..., Any], tree: Any) -> Any:
    """The tree with `function` applied to every leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(leaf) for leaf in leaves], spec)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree)[0]


def broadcast_to(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of a tree that is a part of a form, each repeated for everything below it; None if it is no part."""
    found = branches(tree)
    if found is None:
        return [tree] * spec.num_leaves
    kind, keys, children = found
    if spec.kind is not kind or spec.keys != keys or len(children) != len(spec.children):
        return None
    out: list[Any] = []
    for child, child_spec in zip(children, spec.children, strict=True):
        more = broadcast_to(child, child_spec)
        if more is None:
            return None
        out += more
    return out
