"""Lists and dicts that cannot be changed: the arguments of nodes, whose users a graph keeps count of."""

from __future__ import annotations

from typing import Any, NoReturn

from pullback.utils._pytree import MappingKey, SequenceKey, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Say how arguments are changed."""
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or "
        "args of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = refuse  # type: ignore[assignment]
    append = clear = extend = insert = pop = remove = reverse = sort = refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    __delitem__ = __ior__ = __setitem__ = refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, _: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: ([(SequenceKey(i), value) for i, value in enumerate(values)], None),
)
register_pytree_node(
    immutable_dict,
    lambda mapping: (list(mapping.values()), list(mapping)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda mapping: ([(MappingKey(key), value) for key, value in mapping.items()], list(mapping)),
)
