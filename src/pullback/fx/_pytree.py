"""Trees of arguments taken apart by a form known beforehand, as the code of a traced function does."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from pullback.utils._pytree import TreeSpec, tree_flatten

FlattenFnSpec = FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, Any] = {}


def register_pytree_flatten_spec(
    cls: Any, flatten_fn_spec: FlattenFnSpec, flatten_fn_exact_match_spec: Any = None
) -> None:
    """Say how a class is taken apart by a form."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: Any) -> None:
    """Forget it again."""
    del SUPPORTED_NODES[cls], SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree that has this form."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = zip(SUPPORTED_NODES[spec.type](pytree, spec), spec.children(), strict=False)
        return [leaf for child, form in children for leaf in tree_flatten_spec(child, form)]
    leaves, real = tree_flatten(pytree)
    if spec != real:
        raise RuntimeError(
            f"Real spec {real} of object {pytree} is different from expected spec {spec}. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml"
        )
    return leaves


def same_length(tree: Any, spec: TreeSpec) -> bool:
    """Whether a branch has as many children as its form."""
    return len(tree) == spec.num_children


register_pytree_flatten_spec(dict, lambda tree, spec: [tree[key] for key in spec.context], same_length)
for kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(kind, lambda tree, spec: [tree[i] for i in range(spec.num_children)], same_length)
