"""`TORCH_DISTRIBUTED_DEBUG`: the level is known; what ranks disagree about is always said."""

from __future__ import annotations

import os
from enum import Enum


class DebugLevel(Enum):
    """How much is checked."""

    OFF, INFO, DETAIL = range(3)


def from_env() -> DebugLevel:
    """The level the environment asks for."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    return DebugLevel[name]


level = from_env()


def get_debug_level() -> DebugLevel:
    """The level."""
    return level


def set_debug_level(value: DebugLevel) -> None:
    """Another level."""
    global level
    level = value


def set_debug_level_from_env() -> None:
    """The level the environment asks for now."""
    set_debug_level(from_env())
