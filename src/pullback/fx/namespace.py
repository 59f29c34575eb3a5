"""Names for the values of a graph: each of one thing only, and none that hides a keyword or a builtin."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from functools import partial
from typing import Any, NamedTuple

import pullback as torch
from pullback.fx import _pytree as fx_pytree
from pullback.fx.naming import name_of
from pullback.utils import _pytree as pytree


class _CustomBuiltin(NamedTuple):
    """A name that all generated code knows: how it is imported, and what it is."""

    import_str: str
    obj: Any


_custom_builtins = {
    "inf": _CustomBuiltin("from math import inf", math.inf),
    "nan": _CustomBuiltin("from math import nan", math.nan),
    "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": _CustomBuiltin("import torch", torch),
    "device": _CustomBuiltin("from torch import device", torch.device),
    "fx_pytree": _CustomBuiltin("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": _CustomBuiltin("import torch.utils._pytree as pytree", pytree),
}
_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist}
_illegal_names |= vars(builtins)
_illegal_names |= {name: known.obj for name, known in _custom_builtins.items()}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Let all generated code know a name."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
NUMBERED = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
HUMPS = partial(re.compile(r"(?<=[a-z])([A-Z])").sub, r"_\1")


def _snake_case(s: str) -> str:
    """A name in small letters, its words divided by underscores."""
    return HUMPS(s).lower()


def _is_magic(x: str) -> bool:
    """Whether it is the name of a method of Python's own."""
    return x.startswith("__") and x.endswith("__")


def target_name(target: Any) -> str:
    """The name a node gets from what it calls."""
    if callable(target):
        return _snake_case(name_of(target))
    if not isinstance(target, str):
        raise AssertionError(f"Expected target to be str, got {type(target)}")
    return _snake_case(target[2:-2] if _is_magic(target) else target)


class _Namespace:
    """Names in use, and what they are names of."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """The name of an object, or a new name like the one proposed: with a number behind it if that is taken."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        if NUMBERED.match(candidate) is None:
            candidate = ILLEGAL.sub("_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        match = NUMBERED.match(candidate)
        if match is None:
            raise AssertionError(f"Name regex failed to match candidate: {candidate}")
        base, digits = match.groups()
        if digits is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(digits)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note that a name is an object's."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        """Note that an object has another name now."""
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
