"""`torch.jit.isinstance`: whether a value is of a type, its items included."""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from collections.abc import Container
from typing import Any

BARE = {list: "list", dict: "dict", tuple: "tuple", typing.List: "List", typing.Dict: "Dict"}  # noqa: UP006
BARE |= {typing.Tuple: "Tuple", typing.Optional: "Optional"}  # noqa: UP006


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type as TorchScript knows them: the items of lists, dicts and tuples are looked at."""
    own = builtins.isinstance
    if own(target_type, Container) and not own(target_type, type):
        if not own(target_type, tuple):
            raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
        return any([isinstance(obj, each) for each in target_type])
    if typing.get_origin(target_type):
        return fits(obj, target_type)
    refuse_bare(target_type)
    return own(obj, target_type)


def refuse_bare(kind: Any) -> None:
    """A container must say what it contains."""
    for bare, name in BARE.items():
        if kind is bare:
            if name.lower() == "dict":
                raise RuntimeError(
                    f"Attempted to use {name} without contained types. Please add contained type, e.g. {name}[int, int]"
                )
            raise RuntimeError(
                f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
            )


def fits(obj: Any, kind: Any) -> bool:
    """Whether a value is of a type with parameters."""
    own, origin, parts = builtins.isinstance, typing.get_origin(kind), typing.get_args(kind)
    item = lambda value, part: fits(value, part) if typing.get_origin(part) else own(value, part)
    if origin in (typing.Union, types.UnionType):
        return obj is None or any([item(obj, part) for part in parts])
    refuse_bare(kind)
    if origin not in (list, dict, tuple):
        return False
    if obj == [] or obj == {} or obj == ():
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, "
            "List[int] would become list and therefore falsely return True for List[float] or List[str].",
            stacklevel=3,
        )
    if not own(obj, origin):
        return False
    if origin is list:
        return all([item(value, parts[0]) for value in obj])
    if origin is dict:
        return all([own(key, parts[0]) and item(value, parts[1]) for key, value in obj.items()])
    return len(obj) == len(parts) and all([item(value, part) for value, part in zip(obj, parts, strict=True)])
