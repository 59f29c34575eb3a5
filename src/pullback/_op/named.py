"""The named tuples that ops with several results return: torch.return_types."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

return_types: dict[str, type[ReturnType]] = {}
"""Those made so far, by name: there is one for each name."""


class ReturnType(tuple[Any, ...]):
    """A tuple with names for its parts, made from one sequence as torch's are, or from the parts."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    n_fields = n_sequence_fields = n_unnamed_fields = 0

    def __new__(cls, *parts: Any) -> ReturnType:
        if len(parts) == 1:
            if not isinstance(parts[0], Iterable):
                raise TypeError("constructor requires a sequence")
            parts = tuple(parts[0])
        if len(parts) != cls.n_fields:
            name = f"torch.return_types.{cls.__name__}()"
            raise TypeError(f"{name} takes a {cls.n_fields}-sequence ({len(parts)}-sequence given)")
        return tuple.__new__(cls, parts)

    def __repr__(self) -> str:
        lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{lines})"

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self).__name__, self._fields, tuple(self))


def return_type(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of this name."""
    found = return_types.get(name)
    if found is None or found._fields != fields:
        members: dict[str, Any] = {field: property(itemgetter(place)) for place, field in enumerate(fields)}
        members |= {"__slots__": (), "__module__": "torch.return_types", "__match_args__": fields, "_fields": fields}
        members |= {"n_fields": len(fields), "n_sequence_fields": len(fields)}
        found = return_types[name] = type(name, (ReturnType,), members)
    return found


def returned_out(found: Any, targets: Iterable[Any]) -> Any:
    """What a call with `out=` returns instead of the named tuple it would have made: one named after both."""
    return return_type(f"{found.__name__}_out", found._fields)(*targets)


def rebuild(name: str, fields: tuple[str, ...], parts: tuple[Any, ...]) -> Any:
    """A named tuple from its pickle."""
    return return_type(name, fields)(*parts)


def plain_tuple(*outputs: Any) -> tuple[Any, ...]:
    """What some functions with several outputs return: a tuple without names."""
    return outputs
